"""The `askance` command in this process, its help, and the demo."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from askance.cli import main
from tests.cli.command import Done, log_kept
from tests.golden.comparison import FILES, over
from tests.servers import FakeEndpoint

PLAIN = {"COLUMNS": "80", "LINES": "24", "TERM": "dumb", "NO_COLOR": "1"}
"""What has help written alike everywhere."""

NOBODY = "http://127.0.0.1:9/v1"
"""Stands in golden files for the address of an endpoint."""


def askance(*arguments: str) -> Done:
    """Runs the command, in the working directory."""
    out, err = io.StringIO(), io.StringIO()
    with log_kept(), redirect_stdout(out), redirect_stderr(err):
        try:
            main([*arguments])
        except SystemExit as end:
            return Done(int(end.code or 0), out.getvalue(), err.getvalue())
    raise AssertionError(arguments)


def askance_over(names: str, *arguments: str, code: int = 0, said: str = "") -> Done:
    """As `askance`, over copies of golden files (their names, with blanks between), and sees to how it ends.

    Raises:
        AssertionError: it ended otherwise, or did not say on stderr what is wanted; the message names the files.
    """
    with over(*names.split()):
        done = askance(*arguments)
        assert (done.code, said in done.err) == (code, True), (
            f"wanted: {code} and {said!r}; got: {done.code} and {done.err}"
        )
    return done


def help_text() -> str:
    """What `--help` prints, of every command that some help names."""
    with patch.dict(os.environ, PLAIN):
        return "".join(f"$ askance {' '.join([*words, '--help'])}\n{text}\n" for words, text in _helps(()))


def _helps(words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    done = askance(*words, "--help")
    assert (done.code, done.err) == (0, ""), (words, done)
    yield words, done.out
    listed = done.out.partition("\nCommands:\n")[2].partition("\n\n")[0]
    for name in re.findall(r"^  (\S+)", listed, re.MULTILINE):
        yield from _helps((*words, name))


def demo_lines() -> str:
    """The lines of `askance demo --json`, without what is volatile."""
    lines = askance("demo", "--json").stable
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def lay_out(endpoint: FakeEndpoint | None = None) -> None:
    """Puts the pictures, the task and the settings into the working directory; `endpoint` plays the model."""
    for source in sorted((FILES / "project").rglob("*")):
        target = Path(source.relative_to(FILES / "project"))
        if source.is_dir():
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(source.read_bytes())
    settings = Path("askance.toml")
    if endpoint is not None:
        settings.write_text(settings.read_text("utf-8").replace(NOBODY, endpoint.url), encoding="utf-8")
