"""The pace of calls to one endpoint among workers on all machines, in a PostgreSQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.replay.shared_pace import DrawnTimes, Opening, WantedTimes

if TYPE_CHECKING:
    from askance.replay.postgres_database import Connection, Database

_BEGIN = "INSERT INTO pace (endpoint) VALUES (%s) ON CONFLICT DO NOTHING"
_LOOK = """
    SELECT extract(epoch FROM calls - clock_timestamp()), extract(epoch FROM tokens - clock_timestamp()),
        extract(epoch FROM paused - clock_timestamp())
    FROM pace WHERE endpoint = %s FOR UPDATE
"""
_DRAW = """
    UPDATE pace SET calls = clock_timestamp() + make_interval(secs => %s),
        tokens = clock_timestamp() + make_interval(secs => %s),
        paused = greatest(paused, clock_timestamp() + make_interval(secs => %s))
    WHERE endpoint = %s
"""


class PostgresStarts:
    """Hands out the times at which calls to one endpoint may start; see `Starts`.

    Args:
        database: where the pace is kept.
        endpoint: its name there.
    """

    def __init__(self, database: Database, endpoint: str) -> None:
        self._database = database
        self._endpoint = endpoint
        self._begun = False

    @property
    def closings(self) -> int:
        return self._database.closed

    def draw(self, wanted: WantedTimes, /) -> DrawnTimes:
        def drawn(connection: Connection) -> DrawnTimes:
            connection.execute("SET LOCAL synchronous_commit = off")
            if not self._begun:
                connection.execute(_BEGIN, (self._endpoint,))
            ((calls, tokens, paused),) = connection.execute(_LOOK, (self._endpoint,))
            opening, drawn = Opening(calls=float(calls), tokens=float(tokens), paused=float(paused)).after(wanted)
            connection.execute(_DRAW, (opening.calls, opening.tokens, opening.paused, self._endpoint))
            return drawn

        result = self._database.change(drawn)
        self._begun = True
        return result
