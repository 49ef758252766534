"""The endpoint of `server.py` in a process of its own, and clients that ask it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


@dataclass
class Served:
    """An endpoint that runs; once it has ended, `did` says what it did."""

    url: str
    did: dict[str, Any] = field(default_factory=dict[str, Any])


@contextmanager
def serving(*settings: str) -> Generator[Served]:
    """The endpoint with these settings, while the context lasts."""
    command = [sys.executable, str(HERE / "server.py"), *settings]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError
        served = Served(f"http://127.0.0.1:{int(server.stdout.readline())}/v1")
        try:
            yield served
        finally:
            server.stdin.close()
        served.did |= json.loads(server.stdout.readline())


def pictures(folder: Path, count: int) -> None:
    """Puts `count` pictures of 40 kB and the options into `folder`, in a process of its own."""
    make = f"import sys; sys.path.insert(0, {str(HERE)!r}); import workload; from pathlib import Path; "
    make += f"workload.make_pictures(Path({str(folder)!r}), images={count})"
    subprocess.run([sys.executable, "-c", make], check=True)


def by_askance(folder: Path, url: str, *more: str) -> dict[str, Any]:
    """One cold run of the chain; what it says of itself."""
    shutil.rmtree(folder / "cold", ignore_errors=True)
    return ask(folder, url, *more)


def ask(folder: Path, url: str, *more: str) -> dict[str, Any]:
    """One run of the chain with the records that are there; what it says of itself."""
    command = [sys.executable, str(HERE / "client.py"), str(folder), url, *more]
    return json.loads(_run(command, {}).stdout)


def by_floor(folder: Path, url: str, *more: str) -> dict[str, Any]:
    """One cold run of the bare script; what it says of itself."""
    shutil.rmtree(folder / "floor", ignore_errors=True)
    command = [sys.executable, str(HERE / "floor.py"), str(folder), *more]
    ended = _run(command, {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"})
    return json.loads(ended.stderr.splitlines()[-1])


def _run(command: Sequence[str], more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(command)} ended with exit code {ended.returncode}:\n{ended.stderr}")
    return ended
