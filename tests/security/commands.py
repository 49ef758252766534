"""The real command in a process of its own, on a project of its own, against an endpoint of the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import ZipFile, is_zipfile

from tests.scripted import OPTIONS, PICTURE

ROOT = Path(__file__).resolve().parents[2]

KEY = "sk-marker-4711-qwertyuiop"
HEADER = "header-marker-0815-asdfghjkl"
SECRETS = {"MARKED_KEY": KEY, "MARKED_HEADER": HEADER, "OPENAI_API_KEY": "sk-marker-of-openai-123456"}

SETTINGS = """
vlm = "eye"

[models.eye]
spec = "openai:fake-model@{url}"
key_variable = "MARKED_KEY"
headers = {{ "X-Team-Secret" = "env:MARKED_HEADER" }}
"""

ASKANCE = ("-m", "askance")
QUICKLY = (
    "-c",
    """
from dataclasses import replace
from askance.cli import main
from askance.models.batch import batches
from tests.batch_client import QUICK
batches.BatchPolicy = lambda: replace(QUICK, max_wait=9.0)
main()
""",
)
"""How Python begins the command; the second one looks at batches without delay, and waits after faults."""

IN_TURN = """
import shlex, sys
from askance.cli import main
for command in sys.argv[1:]:
    try:
        main(shlex.split(command))
    except SystemExit:
        print(chr(28), end="", flush=True)
"""
"""Several commands in one process, and a mark after each: loading all that they need takes longer than they do."""


@dataclass
class Project:
    """A folder with settings, one picture and options; everything that a command leaves behind is below it."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict[str, str])
    said: list[str] = field(default_factory=list[str])
    """What commands and scripts wrote to stdout and stderr."""

    @classmethod
    def make(cls, folder: Path, url: str, settings: str = SETTINGS, **env: str) -> Project:
        (folder / "askance.toml").write_text(settings.format(url=url), encoding="utf-8")
        (folder / "options.json").write_text(json.dumps(OPTIONS), encoding="utf-8")
        (folder / "ad.jpg").write_bytes(PICTURE.read_bytes())
        places = {
            "ASKANCE_STORE": str(folder / "store"),
            "TMPDIR": str(folder),
            "HOME": str(folder),
            "ASKANCE_TRUST": str(folder),
        }
        return cls(folder, {**os.environ, **SECRETS, **places, "PYTHONPATH": str(ROOT), **env})

    def askance(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Runs the command to its end."""
        return self.run(*ASKANCE, *arguments, timeout=timeout)

    def read(self, *more: str, out: str = "out") -> subprocess.CompletedProcess[str]:
        """Runs the whole chain over the picture."""
        return self.askance("run", "action-reason", "ad.jpg", "--options", "options.json", "--out", out, *more)

    def run(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )
        self.said += (done.stdout, done.stderr)
        return done

    def start(self, *arguments: str, first: tuple[str, ...] = ASKANCE) -> subprocess.Popen[str]:
        """Starts the command and leaves it running."""
        return subprocess.Popen(
            [sys.executable, *first, *arguments],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )

    def on_terminal(self, *commands: str) -> list[str]:
        """What each of the commands shows on a terminal, byte for byte."""
        ours, theirs = os.openpty()
        with subprocess.Popen(
            [sys.executable, "-c", IN_TURN, *commands],
            cwd=self.folder,
            env={**self.env, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            shown = b""
            # At the end of the other side reading fails.
            with suppress(OSError):
                while chunk := os.read(ours, 65_536):
                    shown += chunk
            os.close(ours)
            process.wait(timeout=60)
        *each, rest = shown.decode().split("\x1c")
        assert (len(each), rest) == (len(commands), "")
        return each

    def leaks(self) -> Iterator[str]:
        """Each place in which a secret stands."""
        texts = [("said", text.encode()) for text in self.said]
        for place, content in (*texts, *self._files()):
            for name, secret in SECRETS.items():
                if secret.encode() in content:
                    yield f"{name} in {place}"

    def _files(self) -> Iterator[tuple[str, bytes]]:
        """Every file, and what is packed in it, by name."""
        for path in (path for path in self.folder.rglob("*") if path.is_file()):
            yield str(path), path.read_bytes()
            if is_zipfile(path):
                with ZipFile(path) as pack:
                    yield from ((f"{name} in {path}", pack.read(name)) for name in pack.namelist())
