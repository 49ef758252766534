"""The slow tests, a group after the other: `python -m tests.slow.groups [GROUP…]`, without a word all of them.

A slow test says in its mark to which group it belongs: `pytest.mark.slow(group="pages")`. Each group is a pytest of its
own, makes the environments that its tests ask for and no others, and is stopped when it takes longer than its cap.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(r"\bmark\.slow\b(?:\(group=\"(?P<group>\w+)\"\))?")
STOPS_WITHIN = 30.0
"""Seconds that a stopped group has to say what it was at."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Tests that run together."""

    about: str
    cap: int
    """Seconds, its environments included."""
    words: tuple[str, ...] = ()
    """What pytest is told beside the files."""


ON_EVERY_CORE = ("-n", "auto", "--maxprocesses", "8", "--dist", "loadgroup")
GROUPS = {
    "pages": Group(about="reports in a real browser, before axe", cap=420, words=ON_EVERY_CORE),
    "properties": Group(
        about="every property of hypothesis, 100 examples each; figures beside reference packages",
        cap=160,
        words=("--hypothesis-profile", "many", *ON_EVERY_CORE),
    ),
    "wheel": Group(about="what users install: the wheel, exports, notebooks, Label Studio, OCR", cap=300),
    "local": Group(
        about="weights in the process: `hf:`, `st:`, `clip:`, `bem:`, `--local`", cap=740, words=ON_EVERY_CORE
    ),
    "servers": Group(
        about="`openai:` models at servers, with real weights and far away", cap=1220, words=ON_EVERY_CORE
    ),
    "retrieval": Group(
        about="indexes of texts: by the command, at their largest, in three stores", cap=440, words=ON_EVERY_CORE
    ),
    "training": Group(
        about="training sets, learnt by TRL alone; every recipe on tiny models, killed and gone on with", cap=330
    ),
    "workers": Group(
        about="a corpus that workers read, and records that they share: processes, Ray, object storage, a database",
        cap=540,
    ),
    "vllm": Group(about="`vllm:` models: a server of its own, at an address, in process", cap=760, words=ON_EVERY_CORE),
}
"""In the order in which they run."""


def groups_in(text: str) -> list[str | None]:
    """The group that each mark of a slow test in `text` names; None for a mark without one."""
    return [found["group"] for found in MARK.finditer(text)]


def selection(group: str) -> list[str]:
    """The words for pytest that select the tests of a group and load no other files."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    chosen, beside = f"slow(group='{group}')", "hypothesis" if group == "properties" else None
    if beside:
        chosen = f"({chosen} or {beside}) and not soak"
    named = [path for path, text in texts.items() if group in groups_in(text) or (beside and beside in text)]
    return ["--run-slow", "-m", chosen, *map(str, named)]


def run(name: str) -> tuple[str, float]:
    """How a group ended (`passed`, or what went wrong), and the seconds that it took."""
    group = GROUPS[name]
    tell(f"\n--- {name}: {group.about} (at most {group.cap} s)\n")
    return held([sys.executable, "-m", "pytest", "--durations", "10", *group.words, *selection(name)], cap=group.cap)


def held(command: Sequence[str], *, cap: float) -> tuple[str, float]:
    """How `command` ended, and the seconds that it took; after `cap` seconds it is stopped."""
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        start_new_session=True,  # so that whatever a test has started is stopped with it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # a background job ignores it
    )
    try:
        code = process.wait(cap)
        ended = "passed" if code == 0 else f"failed with exit code {code}"
    except subprocess.TimeoutExpired:
        ended = f"stopped: over the cap of {cap} s"
    finally:
        stop(process)
    return ended, time.monotonic() - started


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C for a group that still runs, after which pytest says what it was at; then the end of all of it."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(STOPS_WITHIN)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(names: Sequence[str]) -> None:
    """Run the groups `names`, or all of them, and tell what each took; the exit code is 1 where one failed."""
    if unknown := [name for name in names if name not in GROUPS]:
        sys.exit(f"There is no group {unknown[0]!r} of slow tests. Choose from {', '.join(GROUPS)}.")
    ended = {name: run(name) for name in names or GROUPS}
    tell("")
    for name, (how, seconds) in ended.items():
        tell(f"{name:<11} {seconds:5.0f} s of {GROUPS[name].cap} s  {how}")
    if failed := [f"{name} ({how})" for name, (how, _) in ended.items() if how != "passed"]:
        sys.exit(f"Not passed: {', '.join(failed)}. One of them alone: make test-slow GROUP={failed[0].split()[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
