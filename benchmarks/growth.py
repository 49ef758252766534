"""What a picture costs in small and in large runs: time that grows with their number, and memory that does not.

    python benchmarks/growth.py [--images 250 1000 10000] [--concurrency N] [--rounds N]

The chain of seven calls, first asked of an endpoint in a process of its own that answers at once, then replayed in
rounds, each size in turn, so that a machine that slows down meanwhile does so for all sizes. Times are medians, and a
ratio is the median of those of each round. Each run is a process of its own, and each size has records of its own; what
is measured is the reading, without the start of the interpreter, and the largest memory of the whole process. "Each
further" is what the pictures cost that a run has more than the one before it: what the first picture alone takes
(prompts are compiled, the records opened) falls out of it.

A machine that soon forgets the files it has read (many virtual ones do) reads the pictures of a large run from its disk
again, and those of a small one not. `TMPDIR=/dev/shm` keeps them in memory.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from serving import ask, pictures, serving

SIZES = (250, 1_000, 10_000)
Runs: TypeAlias = "dict[int, list[dict[str, Any]]]"
"""By number of pictures: what each run said of itself."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, nargs="+", default=SIZES, help="how many pictures, from few to many")
    parser.add_argument("--concurrency", type=int, default=32, help="calls at once")
    parser.add_argument("--rounds", type=int, default=7, help="replays of each size")
    given = parser.parse_args()
    print("| pictures | | ms a picture | ratio | each further | CPU | ratio | each further | peak memory, MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary, serving() as served:
        folder = Path(temporary)
        pictures(folder, max(given.images))
        asked: Runs = {size: [] for size in given.images}
        replayed: Runs = {size: [] for size in given.images}
        for size in given.images:
            asked[size].append(run(folder, served.url, size, "--concurrency", str(given.concurrency)))
        show(asked, "asked")
        for _ in range(given.rounds):
            for size in given.images:
                replayed[size].append(run(folder, served.url, size, "--replay"))
        show(replayed, "replayed")


def run(folder: Path, url: str, size: int, *more: str) -> dict[str, Any]:
    """What one run over `size` pictures, all of which it answered, says of itself."""
    said = ask(folder, url, "--images", str(size), "--records", f"cold-{size}", *more)
    if said.get("answered") != size:
        sys.exit(f"Not all of {size} pictures were answered: {said}")
    return said


def show(runs: Runs, how: str) -> None:
    """Print a row for each size, beside the first and the one before it."""
    first, *_ = sizes = [*runs]
    for before, size in zip((None, *sizes), sizes, strict=False):
        cells = [f"{size:,}", how]
        for name in ("seconds", "cpu"):
            each = {number: [1000 * said[name] / number for said in runs[number]] for number in sizes}
            ratios = [here / there for here, there in zip(each[size], each[first], strict=True)]
            cells += [f"{statistics.median(each[size]):.2f}", f"{statistics.median(ratios):.2f}"]
            cells.append(
                "" if before is None else _further(runs[before], runs[size], pictures=size - before, name=name)
            )
        memory = max(said["megabytes"] for said in runs[size])
        print(f"| {' | '.join(cells)} | {memory:.0f} |", flush=True)


def _further(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], *, pictures: int, name: str) -> str:
    """Milliseconds for each of the `pictures` that one run has more than the other of its round."""
    more = [large[name] - small[name] for small, large in zip(before, after, strict=True)]
    return f"{1000 * statistics.median(more) / pictures:.2f}"


if __name__ == "__main__":
    main()
