"""Run the `askance` command as a user does, and read what it printed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from askance.replay import open_records
from tests.slow.environments import HERE

OPTIONS: dict[str, list[str]] = json.loads((HERE / "options.json").read_text(encoding="utf-8"))
"""By photograph: what it could argue for."""

ENDS_WITHIN = 420.0
"""Seconds that a command may take."""

JsonObject = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @cached_property
    def lines(self) -> list[JsonObject]:
        """What `--json` printed, one object for each photograph."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def lasting(self) -> list[JsonObject]:
        """The lines without what is volatile."""
        return [{name: value for name, value in line.items() if name != "meta"} for line in self.lines]

    @property
    def links(self) -> list[JsonObject]:
        """Every link of every line."""
        return [link for line in self.lines for link in line["links"].values()]

    @property
    def calls(self) -> list[str]:
        """The key of every call that a link names."""
        return [key for link in self.links for key in link["calls"]]

    def meta(self, name: str) -> int:
        """The sum of a count over all lines."""
        return sum(line["meta"][name] for line in self.lines)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A folder in which a user works: photographs, options, settings, and the records that come to be."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, photos: Path, settings: str) -> Place:
        """A new place in `folder`."""
        (folder / "photos").mkdir(parents=True)
        for name in OPTIONS:
            shutil.copyfile(photos / name, folder / "photos" / name)
        shutil.copyfile(HERE / "options.json", folder / "options.json")
        (folder / "askance.toml").write_text(settings, encoding="utf-8")
        return cls(folder=folder)

    def run(self, *words: str, **variables: str) -> Ran:
        """`askance WORDS` in this place, with `variables` in the environment and no others that mean anything to it."""
        return self.run_by(Path(sys.executable), words, variables)

    def run_by(
        self, python: Path, words: Sequence[str], variables: Mapping[str, str], *, seconds: float = ENDS_WITHIN
    ) -> Ran:
        """As `run`, in the environment of another Python, which may take so many seconds."""
        command = [str(python.with_name("askance")), *words]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**_environment(), "ASKANCE_TRUST": str(self.folder), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Ran(code=done.returncode, out=done.stdout, err=done.stderr)

    def begin_by(
        self, python: Path, words: Sequence[str], variables: Mapping[str, str], *, terminal: int
    ) -> subprocess.Popen[str]:
        """As `run_by`, on a terminal, and still under way; it heeds Ctrl-C even where the tests ignore it."""
        return subprocess.Popen(
            [str(python.with_name("askance")), *words],
            cwd=self.folder,
            env={**_environment(), "ASKANCE_TRUST": str(self.folder), **variables},
            stdin=terminal,
            stdout=subprocess.DEVNULL,
            stderr=terminal,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # before any thread
        )

    def keys(self) -> set[str]:
        """The calls on record."""
        with open_records(self.folder / ".askance", read_only=True) as store:
            return {record.key for record in store.of_kind("chat")}

    def models(self) -> set[str]:
        """The identities of the models that gave the answers on record."""
        with open_records(self.folder / ".askance", read_only=True) as store:
            return {record.request["model"]["name"] for record in store.of_kind("chat")}


def _environment() -> Mapping[str, str]:
    """The environment without keys, addresses of services, and settings of ours."""
    foreign = ("ASKANCE_", "OPENAI_", "LANGCHAIN_", "LANGSMITH_", "AZURE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(foreign)}
    # As on a terminal of a hundred columns, whatever the tests run in.
    return {**kept, "NO_COLOR": "1", "COLUMNS": "100"}
