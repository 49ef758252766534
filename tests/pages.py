"""Pages that are run: what a reader would type is typed, and what the page shows is held against what came out.

Fences of two languages run, in order and in one folder for the page:

- `python`, in one namespace; `await` may stand at the top. A `text` fence after `<!-- prints -->` shows what it prints.
- `console`: after each `$ ` a command (a backslash at its end goes on), then what it prints. A command begins with
  `askance` and ends with exit code 0, or with the N of `<!-- exit: N -->`. One that needs no shell is run within this
  process, which spares it the second that loading takes; any other, such as a pipe, is given to `sh`.

In what is shown, `...` stands for anything. A comment on the line before a fence changes what happens to it:
`<!-- file: NAME -->` writes its text to that file, `<!-- not run: REASON -->` leaves it alone. Fences of any other
language are for the eye.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FENCE = re.compile(
    r"^(?:<!-- (?P<word>file|not run|exit|prints):? ?(?P<rest>.*?) ?-->\n\n?)?"
    r"(?P<marks>`{3,})(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^(?P=marks)$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"^\$ (?P<command>.*?[^\\])\n(?P<shown>.*?)(?=^\$ |\Z)", re.MULTILINE | re.DOTALL)

_RUNS = re.compile(r"(?:\w+=\S* )*askance\b")
_PLAIN = re.compile(r"askance\b[^|&;<>()$`*?#~]*")
"""A command of which the shell would make nothing but words."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block of a page."""

    where: str
    """File and line of its first line of text."""
    language: str
    text: str
    word: str | None = None
    """`file`, `not run`, `exit` or `prints`, where a comment says so."""
    rest: str = ""
    """What the comment says after its word."""


def fences(page: Path) -> Iterator[Fence]:
    """The fences of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("text")) + 1
        yield Fence(f"{page.name}:{line}", found["language"], found["text"], found["word"], found["rest"] or "")


@dataclass
class Reader:
    """Does what a page says, in `folder`; every complaint names file and line."""

    folder: Path
    environment: Mapping[str, str]
    """For commands in a shell; its `PATH` leads to `askance`."""
    askance: Callable[[list[str]], object]
    """The command within this process, in this folder and environment: it takes its words, and exits by itself."""
    servers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where an address in a file that a page writes leads in truth."""
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    printed: str = ""

    def follow(self, fence: Fence) -> None:
        if fence.word == "not run":
            assert fence.rest, f"{fence.where}: say why it is not run"
        elif fence.word == "file":
            self._write(fence)
        elif fence.word == "prints":
            compare(fence.where, fence.text, self.printed)
        elif fence.language == "python":
            self._run_python(fence)
        elif fence.language == "console":
            self._run_commands(fence)

    def _write(self, fence: Fence) -> None:
        path = self.folder / fence.rest
        path.parent.mkdir(parents=True, exist_ok=True)
        text = fence.text
        for address, truth in self.servers.items():
            text = text.replace(address, truth)
        path.write_text(text, encoding="utf-8")

    def _run_python(self, fence: Fence) -> None:
        name, _, line = fence.where.rpartition(":")
        source = "\n" * (int(line) - 1) + fence.text  # so that a traceback shows the page's own lines
        code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            ended = eval(code, self.names)  # noqa: S307
            if inspect.iscoroutine(ended):
                asyncio.run(ended)
        self.printed = out.getvalue()

    def _run_commands(self, fence: Fence) -> None:
        commands = list(_COMMAND.finditer(fence.text))
        assert commands, f"{fence.where}: a console fence begins its commands with `$ `"
        for found in commands:
            command = found["command"].replace("\\\n", " ")
            assert _RUNS.match(command), f"{fence.where}: `{command}` is not run here; mark the fence"
            code, printed = self._run(command)
            expected = int(fence.rest) if fence.word == "exit" else 0
            assert code == expected, f"{fence.where}: `{command}` ended with exit code {code}:\n{printed}"
            compare(f"{fence.where}: `{command}`", found["shown"], printed)

    def _run(self, command: str) -> tuple[int, str]:
        if _PLAIN.fullmatch(command):
            return self._run_here(shlex.split(command)[1:])
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout

    def _run_here(self, words: list[str]) -> tuple[int, str]:
        code: object = 0
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            try:
                self.askance(words)
            except SystemExit as end:
                code = end.code
        assert isinstance(code, int), f"a command ended with {code!r}, which is no exit code"
        return code, out.getvalue()


def compare(where: str, shown: str, printed: str) -> None:
    """Fail unless `printed` is what is `shown`, blanks at the ends of lines apart; `...` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in _trimmed(shown).split("..."))
    if not re.fullmatch(pattern, _trimmed(printed), re.DOTALL):
        message = f"{where}: the page shows\n{_trimmed(shown)}\nand what came out is\n{_trimmed(printed)}"
        raise AssertionError(message)


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
