"""What a picture costs in small and in large runs: time that grows with their number, and memory that does not.

    python benchmarks/growth.py [--images 250 1000 10000] [--concurrency N] [--replays N]

The chain of seven calls, first asked of an endpoint in a process of its own that answers at once, then replayed, a few
times: the least counts, since what was just written is still on its way to the disk while the first one runs. Each run
is a process of its own, with records of its own; what is measured is the reading, without the start of the interpreter,
and the largest memory of the whole process. "Each further" is what the pictures cost that a run has more than the one
before it: what the first picture alone takes (prompts are compiled, the records opened) falls out of it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from serving import ask, pictures, serving

SIZES = (250, 1_000, 10_000)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, nargs="+", default=SIZES, help="how many pictures, from few to many")
    parser.add_argument("--concurrency", type=int, default=32, help="calls at once")
    parser.add_argument("--replays", type=int, default=3, help="replays of each size, of which the least counts")
    given = parser.parse_args()
    print("| pictures | | ms a picture | ratio | each further | CPU | ratio | each further | peak memory, MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary, serving() as served:
        pictures(Path(temporary), max(given.images))
        rows: dict[str, list[dict[str, Any]]] = {"asked": [], "replayed": []}
        for count in given.images:
            shutil.rmtree(Path(temporary) / "cold", ignore_errors=True)
            for how, times, more in (
                ("asked", 1, ("--concurrency", str(given.concurrency))),
                ("replayed", given.replays, ("--replay",)),
            ):
                runs = [ask(Path(temporary), served.url, "--images", str(count), *more) for _ in range(times)]
                rows[how].append(least(runs, count))
                show(rows[how], count, how)


def least(runs: list[dict[str, Any]], count: int) -> dict[str, Any]:
    """The least seconds and CPU of equal runs, each of which answered all pictures, and the most memory."""
    for run in runs:
        if run.get("answered") != count:
            sys.exit(f"Not all of {count} pictures were answered: {run}")
    found: dict[str, Any] = {name: min(run[name] for run in runs) for name in ("seconds", "cpu")}
    return {**found, "pictures": count, "megabytes": max(run["megabytes"] for run in runs)}


def show(rows: list[dict[str, Any]], count: int, how: str) -> None:
    """Print the last row, beside the first and the one before it."""
    *_, last = rows
    cells = [f"{count:,}", how]
    for name in ("seconds", "cpu"):
        each, base = (1000 * row[name] / row["pictures"] for row in (last, rows[0]))
        cells += [f"{each:.2f}", f"{each / base:.2f}", _further(rows, name)]
    print(f"| {' | '.join(cells)} | {last['megabytes']:.0f} |", flush=True)


def _further(rows: list[dict[str, Any]], name: str) -> str:
    """Milliseconds for each picture that the last row has more than the one before it."""
    if len(rows) < 2:
        return ""
    before, last = rows[-2:]
    return f"{1000 * (last[name] - before[name]) / (last['pictures'] - before['pictures']):.2f}"


if __name__ == "__main__":
    main()
