"""What a picture costs in small and in large runs: time that grows with their number, and memory that does not.

    python benchmarks/growth.py [--images 250 1000 10000] [--concurrency N]

The chain of seven calls, first asked of an endpoint in a process of its own that answers at once, then replayed. Each
run is a process of its own, with records of its own; what is measured is the reading, without the start of the
interpreter, and the largest memory of the whole process.
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
    given = parser.parse_args()
    print("| pictures | | ms a picture | ratio | CPU, ms a picture | ratio | peak memory, MB |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary, serving() as served:
        pictures(Path(temporary), max(given.images))
        rows: dict[str, list[dict[str, Any]]] = {"asked": [], "replayed": []}
        for count in given.images:
            shutil.rmtree(Path(temporary) / "cold", ignore_errors=True)
            for how, more in (("asked", ("--concurrency", str(given.concurrency))), ("replayed", ("--replay",))):
                rows[how].append(ask(Path(temporary), served.url, "--images", str(count), *more))
                show(rows[how], count, how)


def show(runs: list[dict[str, Any]], count: int, how: str) -> None:
    """Print the row of the last run, beside the first."""
    first, last = runs[0], runs[-1]
    if last.get("answered") != count:
        sys.exit(f"Not all of {count} pictures were answered: {last}")
    each, cpu = (1000 * last[name] / count for name in ("seconds", "cpu"))
    base, base_cpu = (1000 * first[name] / first["answered"] for name in ("seconds", "cpu"))
    print(
        f"| {count:,} | {how} | {each:.2f} | {each / base:.2f} | {cpu:.2f} | {cpu / base_cpu:.2f} "
        f"| {last['megabytes']:.0f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
