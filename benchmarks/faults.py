"""The chain of seven calls on endpoints that limit, fail, hang and cut off: how many pictures finish, and how soon.

    python benchmarks/faults.py [--images N] [--runs N]

Server and client are processes of their own. What the limit implies is the time that its bucket takes to fill for all
calls, those that fail and are asked again included.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from serving import by_askance, pictures, serving

CALLS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What the endpoint does, and what it is called."""

    name: str
    server: Sequence[str]
    client: Sequence[str] = ()
    rate: float | None = None
    """Requests a second that are let through, from a bucket with room for `room`."""
    room: int = 0


FAULTS = (
    Fault(
        name="50 requests/s, room for 5, 429 and Retry-After in whole seconds, 5 % of 500s",
        server=("--latency", "0.1", "--rate", "50", "--room", "5", "--fail", "0.05"),
        rate=50,
        room=5,
    ),
    Fault(
        name="2 % hang past the time limit (2 s), 2 % are truncated",
        server=("--latency", "0.1", "--hang", "0.02", "--cut", "0.02"),
        client=("--timeout", "2"),
    ),
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, default=100, help="how many pictures")
    parser.add_argument("--runs", type=int, default=5, help="how many runs of each")
    given = parser.parse_args()
    print(f"{given.images} pictures, {CALLS * given.images} calls, {given.runs} runs of each\n")
    print("| | finished | seconds, median (least – most) | to what the limit implies | rejected (429) |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        pictures(Path(temporary), given.images)
        for fault in FAULTS:
            print(row(Path(temporary), fault, runs=given.runs))


def row(folder: Path, fault: Fault, *, runs: int) -> str:
    """Measures; the row of the table."""
    finished: list[int] = []
    seconds: list[float] = []
    ratios: list[float] = []
    rejected: list[int] = []
    for _ in range(runs):
        with serving(*fault.server) as served:
            ended = by_askance(folder, served.url, *fault.client)
        did = served.did
        finished.append(ended.get("answered", 0))
        seconds.append(ended["seconds"])
        rejected.append(did.get("limited", 0))
        if fault.rate is not None:
            through = sum(did.get(name, 0) for name in ("answered", "failed"))
            ratios.append(ended["seconds"] / ((through - fault.room) / fault.rate))
    spread = f"{statistics.median(seconds):.1f} ({min(seconds):.1f} – {max(seconds):.1f})"
    ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f})" if ratios else ""
    return f"| {fault.name} | {min(finished)} | {spread} | {ratio} | {statistics.median(rejected):.0f} |"


if __name__ == "__main__":
    main()
