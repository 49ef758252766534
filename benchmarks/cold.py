"""Ask everything once: the chain of seven calls against an endpoint with a latency, beside the bare script, in turn.

    python benchmarks/cold.py [--images N] [--runs N] [--latency SECONDS]

Server and client are processes of their own; seconds are those of the reading, without the start of the interpreter.
CPU is the client's alone, of which a busy machine takes fewer away than of the time on the wall.
Ideal is calls × latency / calls at once.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from serving import by_askance, by_floor, pictures, serving

CALLS = 7
AT_ONCE = (32, 128)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, default=250, help="how many pictures")
    parser.add_argument("--runs", type=int, default=5, help="how many runs of each")
    parser.add_argument("--latency", type=float, default=0.1, help="seconds that the endpoint takes for an answer")
    given = parser.parse_args()
    print(f"{given.images} pictures, {CALLS * given.images} calls, {given.latency:g} s, {given.runs} runs of each\n")
    print("| at once | | seconds, median (least – most) | to ideal | to the script | least CPU, ms a call | ratio |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        pictures(Path(temporary), given.images)
        for at_once in AT_ONCE:
            rows(Path(temporary), at_once, images=given.images, runs=given.runs, latency=given.latency)


def rows(folder: Path, at_once: int, *, images: int, runs: int, latency: float) -> None:
    """Measure and print the rows for so many calls at once."""
    ours: list[dict[str, float]] = []
    floors: list[dict[str, float]] = []
    with serving("--latency", str(latency)) as served:
        for _ in range(runs):
            ended = by_askance(folder, served.url, "--concurrency", str(at_once))
            if ended.get("answered") != images:
                sys.exit(f"Not all of {images} pictures were answered: {ended}")
            ours.append(ended)
            floors.append(by_floor(folder, served.url, "--at-once", str(at_once)))
    calls = CALLS * images
    ideal, floor = calls * latency / at_once, statistics.median(run["seconds"] for run in floors)
    least = min(run["cpu"] for run in floors)
    for name, ran in (("askance", ours), ("bare script, AsyncOpenAI and diskcache", floors)):
        seconds, cpu = [run["seconds"] for run in ran], min(run["cpu"] for run in ran)
        middle = statistics.median(seconds)
        ratios = f"{middle / ideal:.2f} | {middle / floor:.2f} | {1000 * cpu / calls:.2f} | {cpu / least:.2f}"
        print(f"| {at_once} | {name} | {spread(seconds)} | {ratios} |", flush=True)


def spread(seconds: Sequence[float]) -> str:
    """Median, least and most."""
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} – {max(seconds):.2f})"


if __name__ == "__main__":
    main()
