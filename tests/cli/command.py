"""The `askance` command in tests: within the process, and as a process of its own."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from askance.cli import main
from tests.servers import Seen, default_text

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "askance" / "demo"


@dataclass(frozen=True, slots=True)
class Done:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What stdout holds, each line of it a JSON object."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def stable(self) -> list[dict[str, Any]]:
        """The lines without what is volatile."""
        return [{**line, "meta": None} for line in self.lines]


Command = Callable[..., Done]
"""Runs `askance` with the arguments, in this process."""


@contextmanager
def log_kept() -> Generator[None]:
    """Within it commands may set up the log of `askance`; afterwards it is as it was."""
    log = logging.getLogger("askance")
    handlers, propagate, level = log.handlers[:], log.propagate, log.level
    try:
        yield
    finally:
        log.handlers[:], log.propagate = handlers, propagate
        log.setLevel(level)


@dataclass(frozen=True, slots=True)
class Workplace:
    """A working directory and a store beside it, made once for a module; each test works in a copy."""

    folder: Path

    @contextmanager
    def entered(self) -> Generator[Path]:
        """Within it the working directory and the store are these."""
        work, store = self.folder / "work", os.environ.get("ASKANCE_STORE")
        work.mkdir(exist_ok=True)
        os.environ["ASKANCE_STORE"] = str(self.folder / "store")
        try:
            with contextlib.chdir(work):
                yield work
        finally:
            del os.environ["ASKANCE_STORE"]
            os.environ.update({} if store is None else {"ASKANCE_STORE": store})

    def run(self, *arguments: str) -> None:
        """Runs `askance` here, in this process; it must end well."""
        out = io.StringIO()
        with self.entered(), log_kept(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                main([*arguments])
            except SystemExit as end:
                assert end.code == 0, out.getvalue()  # noqa: PT017  # what it printed says why

    def copy_to(self, place: Path) -> None:
        """Copies all of it to a test's `own_place` and to the store beside that."""
        shutil.copytree(self.folder / "work", place, dirs_exist_ok=True)
        if (self.folder / "store").is_dir():
            shutil.copytree(self.folder / "store", place.parent / "store", dirs_exist_ok=True)


def start(*arguments: str, interrupts: signal.Handlers = signal.SIG_DFL, **options: Any) -> subprocess.Popen[str]:
    """`askance` as a process of its own, with pipes unless `options` say otherwise.

    By default it heeds Ctrl-C even where the tests run in the background, with interrupts ignored.
    """
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "askance", *arguments],
        text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, interrupts),  # noqa: PLW1509  # one call, before any thread
        **{**pipes, **options},
    )


def finish(process: subprocess.Popen[str]) -> Done:
    try:
        out, err = process.communicate(timeout=180)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Done(process.returncode, out or "", err or "")


def draw(folder: Path, *names: str) -> list[str]:
    """Small pictures, no two alike, in `folder`; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, name in enumerate(names):
        Image.new("RGB", (8, 8), (40 * place % 256, 90, 160)).save(folder / name)
    return [str(folder / name) for name in names]


def link_of(seen: Seen) -> str:
    """Name of the prompt that a request with a schema was made from; `probe` for the probe."""
    form: dict[str, Any] = seen.json.get("response_format") or {}
    return form.get("json_schema", {}).get("name", "")


def picture_of(seen: Seen) -> str:
    """The picture in a request, as it was sent; empty where there is none."""
    for message in seen.json["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                return part["image_url"]["url"]
    return ""


def telling(seen: Seen) -> str:
    """An answer in words of its own for every request, so that no two pictures are described alike."""
    text = default_text(seen.json)
    if link_of(seen) not in {"combine", "narration", "unusual"}:
        return text
    mark = hashlib.sha256(seen.body).hexdigest()[:8]
    return json.dumps({name: f"{value} {mark}" for name, value in json.loads(text).items()})
