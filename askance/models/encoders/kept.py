"""What is not chat and kept on record all the same: vectors and scores, looked up or made many at once.

The modes are those of `recording.py`. Equal requests are made once, and what is missing is made in one go, because a
local model is fastest so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from askance.chat import JsonObject, key_of
from askance.errors import UsageError
from askance.models.loop import PerLoop
from askance.models.scope import scope
from askance.replay import Record, Store, explain_miss

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from askance.models.engine import Engine
    from askance.replay import RecordKind

Make: TypeAlias = "Callable[[Sequence[int]], Awaitable[Sequence[JsonObject]]]"
"""From places among the requests to the responses there."""


class Kept:
    """The answers of one kind that one model gives.

    Args:
        kind: of the records.
        engine: whose records and mode are used.
        stored: whether anything tells this model's answers from another's, so that they can be recorded.
        title: what the model is called in messages.

    Raises:
        UsageError: the mode is `replay` and nothing can be.
    """

    def __init__(self, kind: RecordKind, engine: Engine, *, stored: bool, title: str) -> None:
        if not stored and engine.mode == "replay":
            raise UsageError(
                f"The answers of {title!r} cannot be replayed: nothing tells them from another model's.",
                hint='Give it a name of its own: `identity="…"`.',
            )
        self._kind: RecordKind = kind
        self._engine = engine
        self._stored = stored
        self._renewed: set[str] = set()
        self._under_way: PerLoop[dict[str, asyncio.Event]] = PerLoop(dict[str, asyncio.Event])

    async def answers(self, forms: Sequence[JsonObject], make: Make) -> list[JsonObject]:
        """The responses to `forms`, in their order.

        Args:
            forms: requests in canonical form.
            make: makes what is not on record and nobody else is making; never called with two equal requests.

        Raises:
            ReplayMiss: the mode is `replay` and one of them is not on record.
            BadRecord: one of the records is damaged.
            StoreError: the records cannot be read.
        """
        keys = [key_of(self._kind, form) for form in forms]
        places: dict[str, int] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, place)
        if not self._stored:
            made = await make(list(places.values()))
            return [dict(zip(places, made, strict=True))[key] for key in keys]
        if (notes := scope().notes) is not None:
            notes.extend(places)
        found = self._found(places)
        while missing := {key: place for key, place in places.items() if key not in found}:
            found |= await self._next(forms, missing, make)
        return [found[key] for key in keys]

    async def _next(self, forms: Sequence[JsonObject], missing: Mapping[str, int], make: Make) -> dict[str, JsonObject]:
        """Makes what nobody is making, else waits for one that somebody is; what is on record by then."""
        under_way = self._under_way()
        mine = {key: place for key, place in missing.items() if key not in under_way}
        if not mine:
            await under_way[next(iter(missing))].wait()
            return self._found(missing)
        done = asyncio.Event()
        under_way.update(dict.fromkeys(mine, done))
        try:
            return await self._made(forms, mine, make)
        finally:
            for key in mine:
                del under_way[key]
            done.set()

    def lacking(self, forms: Sequence[JsonObject]) -> frozenset[str]:
        """Keys of those `forms` that are not on record, or not to be read from there."""
        keys = frozenset(key_of(self._kind, form) for form in forms)
        return keys - self._found(keys).keys() if self._stored else keys

    def lend_folder(self, model: object) -> None:
        """Tells a model that keeps arrays of numbers where the records' folder is, or that there is none for it."""
        tell: Callable[[Path | None], None] | None = getattr(model, "keep_in", None)
        if tell is not None:
            tell(self.folder)

    @property
    def folder(self) -> Path | None:
        """The records' folder, where arrays of numbers may be read and kept there."""
        records = self._engine.shelf.records
        allowed = self._stored and self._engine.mode == "auto"
        return records.folder if allowed and isinstance(records, Store) else None

    def _found(self, keys: Iterable[str]) -> dict[str, JsonObject]:
        """Of `keys`, what is on record and may be used."""
        mode = self._engine.mode
        usable = keys if mode in {"auto", "replay"} else [key for key in keys if key in self._renewed]
        records = {key: self._engine.shelf.look_up(key) for key in usable}
        return {key: record.response for key, record in records.items() if record is not None}

    async def _made(self, forms: Sequence[JsonObject], places: Mapping[str, int], make: Make) -> dict[str, JsonObject]:
        found = self._found(places)
        missing = {key: place for key, place in places.items() if key not in found}
        shelf = self._engine.shelf
        if missing and shelf.mode == "replay":
            raise explain_miss(forms[min(missing.values())], self._kind, shelf.records)
        made = dict(zip(missing, await make(list(missing.values())), strict=True)) if missing else {}
        kept = {key for key in made if shelf.mode == "live" and shelf.look_up(key) is not None}
        fresh = [key for key in made if key not in kept]
        makers = [partial(Record.make, self._kind, forms[places[key]], made[key]) for key in fresh]
        written = await asyncio.gather(*map(shelf.write, makers))
        if shelf.mode == "refresh":
            self._renewed.update(key for key, done in zip(fresh, written, strict=True) if done)
        return found | made
