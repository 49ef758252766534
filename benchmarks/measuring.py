"""Run commands in turn and say how long each takes and how much memory it holds at most."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

UNUSUAL = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
"""Variables that a user's machine does not set; bytecode is kept and lines are written as they are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A command that is measured."""

    name: str
    command: Sequence[str]
    folder: Path
    reads: Sequence[Path] = ()
    """Folders whose files are read once before each run, so that none of the contenders waits for a disk."""
    clears: Path | None = None
    """Folder that is removed before each run."""
    prints_to: Path | None = None
    """File for what it prints; None throws it away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a command."""

    seconds: float
    cpu: float
    """Seconds of CPU, of which a busy machine takes fewer away than of the time on the wall."""
    megabytes: float
    """Largest resident memory, in 10⁶ bytes."""


def in_turn(contenders: Sequence[Contender], *, runs: int) -> Mapping[str, list[Run]]:
    """`runs` runs of each, one after the other in turn, after one each that does not count."""
    found: dict[str, list[Run]] = {contender.name: [] for contender in contenders}
    for turn in range(-1, runs):
        for contender in contenders:
            run = measure(contender)
            if turn >= 0:
                found[contender.name].append(run)
    return found


def measure(contender: Contender) -> Run:
    """One run, the start of the interpreter and all imports included; stops the program if it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in UNUSUAL}
    if contender.clears is not None:
        shutil.rmtree(contender.clears, ignore_errors=True)
    for file in (file for folder in contender.reads for file in folder.rglob("*") if file.is_file()):
        with file.open("rb") as content:  # a piece at a time: a child is charged for what its parent holds
            while content.read(1 << 20):
                pass
    target = contender.prints_to or Path(os.devnull)
    with target.open("wb") as out:
        start = time.perf_counter()
        process = subprocess.Popen(
            contender.command, cwd=contender.folder, env=environment, stdin=subprocess.DEVNULL, stdout=out
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{contender.name} ended with exit code {process.returncode}: {' '.join(contender.command)}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(seconds=seconds, cpu=used.ru_utime + used.ru_stime, megabytes=used.ru_maxrss * unit / 1e6)


def table(found: Mapping[str, list[Run]], *, against: str) -> str:
    """Medians as a Markdown table, and the ratio of each to the contender named `against`."""
    base = statistics.median(run.seconds for run in found[against])
    least = min(run.cpu for run in found[against])
    lines = [
        "| | seconds, median (least – most) | ratio | least CPU, seconds | ratio | peak memory, MB |",
        "|---|---|---|---|---|---|",
    ]
    for name, runs in found.items():
        seconds = [run.seconds for run in runs]
        middle = statistics.median(seconds)
        memory = statistics.median(run.megabytes for run in runs)
        cpu = min(run.cpu for run in runs)
        spread = f"{middle:.2f} ({min(seconds):.2f} – {max(seconds):.2f})"
        lines.append(f"| {name} | {spread} | {middle / base:.2f} | {cpu:.2f} | {cpu / least:.2f} | {memory:.0f} |")
    return "\n".join(lines)


def ratio(runs: Sequence[Run], others: Sequence[Run]) -> str:
    """How `runs` compare with those of another contender in the same turns, in words."""
    seconds = statistics.median(run.seconds for run in runs) / statistics.median(run.seconds for run in others)
    in_turns = statistics.median(run.seconds / other.seconds for run, other in zip(runs, others, strict=True))
    cpu = min(run.cpu for run in runs) / min(run.cpu for run in others)
    return f"{seconds:.2f} by median seconds, {in_turns:.2f} by the median of each turn's ratio, {cpu:.2f} by least CPU"


def python(*, tool: str | None = None) -> str:
    """The running Python, or the command `tool` that is installed beside it."""
    return sys.executable if tool is None else str(Path(sys.executable).with_name(tool))
