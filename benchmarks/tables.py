"""Every table of `docs/performance.md` in one run of some twenty minutes, under the machine that it was made on.

    python benchmarks/tables.py [--quick]

Leave the machine alone meanwhile: what else runs on it shows in the seconds. With `--quick` the same scripts measure
less and fewer times, in under three minutes, and one table of their ratios stands at the end: to be set beside that of
another state of the sources on the same machine, not beside the document.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = (
    "startup.py",
    "replay.py",
    "cold.py",
    "faults.py",
    "growth.py",
    "evaluations.py",
    "layers.py",
    "grid_plan.py",
    "pages.py",
    "investigations.py",
    "regions.py",
)
NEEDS = {
    "investigations.py": ("agent", ("langchain", "langgraph")),
    "pages.py": ("dev", ("playwright",)),
    "regions.py": ("local", ("torch", "transformers")),
}
"""Extra and packages of those that need some; where these are not installed they are left out."""
QUICK = {
    "startup.py": ("--runs", "5"),
    "replay.py": ("--images", "300", "--runs", "5"),
    "cold.py": ("--images", "60", "--runs", "3"),
    "faults.py": ("--images", "40", "--runs", "2"),
    "growth.py": ("--images", "100", "400", "--rounds", "5"),
    "evaluations.py": ("--samples", "200", "--runs", "3", "--growth"),
    "investigations.py": ("--pictures", "40", "--runs", "3"),
    "regions.py": ("--regions", "100", "--runs", "2", "--chunks", "3"),
}
"""What is measured in `--quick`, and how little of it; the others print no ratios."""
NAMES = ("", "at once", "pictures")
"""Columns that say what a row is of."""
RATIOS = ("ratio", "to ideal", "to the script", "to what the limit implies")
"""Columns that carry over to another machine."""


def main() -> None:
    """Run one after the other, and stop where one fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less of each, and one table of ratios at the end")
    quick = parser.parse_args().quick
    started = time.monotonic()
    print(f"{datetime.now(UTC):%Y-%m-%d}: {machine()}.")
    found: list[str] = []
    for script in QUICK if quick else SCRIPTS:
        extra, packages = NEEDS.get(script, ("", ()))
        if not all(map(find_spec, packages)):
            print(f"\n{script} is left out: it needs `pip install 'askance[{extra}]'`.", flush=True)
            continue
        print(f"\n## {script}\n", flush=True)
        said = printed(script, *QUICK[script] if quick else ())
        found += [
            f"| {script.removesuffix('.py')} | {row} | {column} | {value} |" for row, column, value in ratios(said)
        ]
    if quick:
        print(f"\n## Ratios, {time.monotonic() - started:.0f} s in all\n\n| | | | ratio |\n|---|---|---|---|")
        print("\n".join(found))


def printed(script: str, *words: str) -> str:
    """What a script prints, which is shown as it comes."""
    lines: list[str] = []
    command = [sys.executable, "-u", str(HERE / script), *words]
    # What a command says on the way stands on standard error, and is no table.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        sys.exit(f"{script} failed; run it alone to see why.")
    return "".join(lines)


def ratios(text: str) -> Iterator[tuple[str, str, str]]:
    """Row, column and value of each ratio in the Markdown tables of `text`, without the rows that it is a ratio to."""
    heads: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells or not heads:
            heads = cells
            continue
        row = " ".join(cell for head, cell in zip(heads, cells, strict=True) if head in NAMES and cell)
        found = [
            (head if head != "ratio" else heads[at - 1].partition(",")[0], cells[at].partition(" ")[0])
            for at, head in enumerate(heads)
            if head in RATIOS and cells[at].strip("-")
        ]
        if [value for head, value in found if head != "to ideal" and value != "1.00"]:
            yield from ((row, head, value) for head, value in found)


def machine() -> str:
    """The machine in words."""
    cores = os.cpu_count() or 1
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{cores} cores of {_processor()}, {_memory():.0f} GB, {platform.system()}, {python}"


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


if __name__ == "__main__":
    main()
