"""Read a corpus by 1, 2 and 4 workers, of an endpoint with a latency that binds: the chain of seven calls, in turn.

    python benchmarks/scale.py [--images N] [--latency SECONDS] [--runs N] [--ray]

Seconds are those from the first shard's start to the last one's end, by the receipts; workers that start later are
within them. The endpoint is a process of its own.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measuring import python
from serving import pictures, serving

from askance.scale import ShardedCorpus

WORKERS = (1, 2, 4)
AT_ONCE = 4
"""Calls of one worker at a time."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, default=256, help="how many pictures")
    parser.add_argument("--latency", type=float, default=0.5, help="seconds that the endpoint takes for an answer")
    parser.add_argument("--runs", type=int, default=1, help="how many runs of each")
    parser.add_argument("--ray", action="store_true", help="the workers are actors of a Ray cluster")
    given = parser.parse_args()
    taken: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    with tempfile.TemporaryDirectory() as temporary, serving("--latency", str(given.latency)) as served:
        folder = Path(temporary)
        pictures(folder, given.images)
        for run in range(given.runs):
            for workers in WORKERS:
                out = folder / f"corpus-{run}-{workers}"
                read(folder, served.url, out, workers=workers, ray=given.ray)
                taken[workers].append(seconds(out))
    calls = 7 * given.images
    print(f"\n{given.images} pictures, {calls} calls, {given.latency:g} s, {AT_ONCE} at once and worker\n")
    print("| workers | seconds, median (least – most) | calls a second | to one worker | of N times |")
    print("|---|---|---|---|---|")
    one = statistics.median(taken[1])
    for workers, each in taken.items():
        middle = statistics.median(each)
        spread = f"{middle:.1f} ({min(each):.1f} – {max(each):.1f})"
        print(f"| {workers} | {spread} | {calls / middle:.1f} | {one / middle:.2f} | {one / middle / workers:.2f} |")


def read(folder: Path, url: str, out: Path, *, workers: int, ray: bool) -> None:
    """The command as a user types it, with records of its own."""
    words: Sequence[str] = (
        *(python(tool="askance"), "scale", "run", "action-reason", "images", "--options", "options.txt", "--quiet"),
        *("--vlm", f"openai:bench@{url}", "--concurrency", str(AT_ONCE), "--out", str(out), "--store", f"{out}-store"),
        *("--workers", str(workers), *(["--ray"] if ray else [])),
    )
    ended = subprocess.run(words, cwd=folder, check=False)
    if ended.returncode:
        sys.exit(f"Not all pictures were answered: exit code {ended.returncode}")


def seconds(out: Path) -> float:
    """From the start of the first shard to the end of the last."""
    receipts = [*ShardedCorpus(out).receipts()]
    return max(each.ended for each in receipts) - min(each.ended - each.seconds for each in receipts)


if __name__ == "__main__":
    main()
