"""A system without POSIX, such as Windows: what does not need it works, and what does says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.command import DEMO, ROOT, Done

WITHOUT = """
import asyncio, filelock, multiprocessing, os, signal, subprocess, sys, tempfile
from contextlib import suppress

for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for name in (
    "O_DIRECTORY", "O_NOFOLLOW", "fork", "geteuid", "getuid", "killpg", "register_at_fork",
    "setsid", "sysconf",
):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGUSR1", "pthread_sigmask"):
    delattr(signal, name)

from askance.cli import main

main(sys.argv[1:])
"""
"""Runs the command where what Windows lacks is missing. What has a form of its own for Windows is loaded before."""

PICTURE = str(DEMO / "pictures" / "brick-cup.jpg")


def askance(*arguments: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{WITHOUT}", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_project_is_begun_read_evaluated_and_reported() -> None:
    steps = [
        ("init", "."),
        ("run", "verbalize", PICTURE, "--out", "runs/read"),
        ("run", "verbalize", PICTURE, "--replay"),
        ("eval", "run", "claims.yaml", "--out", "runs/first"),
        ("watch", "runs/first", "--once"),
        ("report", "runs/first"),
        ("cache", "stats"),
    ]

    assert [(words[0], done.code, done.err[-300:]) for words in steps if (done := askance(*words)).code] == []
    assert Path("report.html").is_file()


def test_a_budget_says_that_it_cannot_be_held() -> None:
    done = askance("run", "verbalize", PICTURE, "--vlm", "demo", "--budget", "9calls")

    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "askance: The budget of 9 calls cannot be held: its ledger needs POSIX locks, which this system has not.\n"
        "  → Run without a budget; on Windows, run askance in WSL.\n"
    )
