"""The process of a command: its exit codes, its signals, what it prints, and how it prints an error."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Union

import typer

from askance.errors import AskanceError
from askance.terminal import echo, json_text, printable

if TYPE_CHECKING:
    from askance.evals.tables import Table

OK = 0
"""Every picture has an answer; or the command succeeded."""
SOME = 1
"""Some pictures have no answer, or a check found something."""
USAGE = 2
"""The command line, a file or a setting cannot be used as it stands."""
CANNOT_START = 3
"""The model cannot be reached, knows no such key or name, or the store cannot be opened."""
INTERRUPTED = 130
"""Ctrl-C."""
TERMINATED = 143
"""SIGTERM, as a scheduler sends it before it kills."""

HELP = (
    "Exit codes: 0 all answered · 1 some have no answer · 2 the command, a file or a setting is wrong · "
    "3 cannot start · 130 interrupted · 143 terminated."
)


def code_of(error: AskanceError) -> int:
    """The exit code for an error that ends a command."""
    from askance.errors import CassetteError, UsageError

    return USAGE if isinstance(error, (UsageError, CassetteError)) else CANNOT_START


def complain(error: AskanceError) -> None:
    """Prints an error with its hint and diff on stderr, wrapped at the width of the terminal."""
    echo(_fitted(f"askance: {printable(error.message)}", indent=2), err=True)
    if error.hint:
        echo(_fitted(f"  → {printable(error.hint)}", indent=4), err=True)
    diff = getattr(error, "diff", "")
    if diff:
        echo(diff, err=True)


def _fitted(text: str, *, indent: int) -> str:
    if not sys.stderr.isatty():
        return text
    from shutil import get_terminal_size
    from textwrap import fill

    width = max(40, get_terminal_size().columns)
    lines = text.split("\n")
    return "\n".join(
        fill(line, width, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False)
        for line in lines
    )


# Named tuples: each command loads these classes, and they are made in an eighth of the time of data classes.


class Line(NamedTuple):
    """A line, broken between words where it is too long; what follows is indented so far."""

    text: str
    indent: int


class Columns(NamedTuple):
    """A table whose first row is its head; the rest is as `askance.cli.columns.aligned` takes it."""

    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    keys: int = 1


Part: TypeAlias = Union[str, Line, Columns, "Table"]
"""A part of what is printed; a text may be of several lines."""


class Report(NamedTuple):
    """What a command prints."""

    form: Callable[[], Mapping[str, Any] | Sequence[Any]] | None
    """Makes the JSON object; None where there is none."""
    parts: Callable[[], Iterable[Part]]
    """Makes what a person reads in its place."""
    notes: Iterable[str] = ()
    """What there is to know beside either, on stderr."""
    breaks: bool = True
    """Whether lines break between words where the terminal is too narrow for them."""
    ends: Callable[[], int] = lambda: OK
    """Says on stderr, after all this, how the command ended; gives its exit code."""

    def print(self, *, as_json: bool) -> int:
        """Prints it, as one JSON object or for a person; returns the exit code."""
        from askance.cli.columns import filled, terminal_width, text_of

        if as_json and self.form is not None:
            echo(json_text(self.form()))
        elif text := text_of(self.parts(), breaks=self.breaks):
            echo(text)
        for note in self.notes:
            echo(filled(f"· {note}", width=terminal_width()), err=True)
        return self.ends()


@dataclass(slots=True, kw_only=True)
class Process:
    """The process that a command runs in; what commands find as the context's object."""

    own: bool
    """Whether the process was started for the command; else a program called `main` with its own arguments."""
    terminated: bool = False
    """Whether it was asked to stop by SIGTERM."""

    @classmethod
    def of(cls, context: typer.Context) -> Process:
        """The process of the running command."""
        process = context.find_object(Process)
        return process if process is not None else cls(own=False)

    def begin(self) -> None:
        """Runs the garbage collector less often, since a command ends soon; and handles SIGTERM.

        SIGTERM prints a message and then acts as Ctrl-C, so that a command that a scheduler stops ends in order.
        """
        if self.own:
            gc.set_threshold(50_000, 20, 20)
            signal.signal(signal.SIGTERM, self._terminated)

    def _terminated(self, _number: int, _frame: object) -> None:
        self.terminated = True
        os.write(2, b"askance: asked to stop (SIGTERM).\n")  # a buffer may be in use just now
        signal.raise_signal(signal.SIGINT)

    def without_langchain(self) -> None:
        """Keeps LangChain from being loaded, which takes longer than most replays; commands do not compose with it."""
        if self.own:
            from askance.nodes.runnable import leave_langchain_out

            leave_langchain_out()

    def settled(self) -> None:
        """Tells the garbage collector that everything is loaded, so that it does not scan that again."""
        if self.own:
            gc.freeze()
