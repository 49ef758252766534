"""Exit codes, and how an error becomes one message."""

from __future__ import annotations

import sys

from askance.errors import AskanceError

OK = 0
"""Every picture has an answer, or the command did what it says."""
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

LOG_VARIABLE = "ASKANCE_LOG"
"""Variable of the environment that has each try that failed said, and each pause: with the value `debug`."""

HELP = (
    "Exit codes: 0 all answered · 1 some have no answer · 2 the command, a file or a setting is wrong · "
    "3 cannot start · 130 interrupted · 143 terminated."
)


class CannotStart(AskanceError):
    """A model cannot be asked at all; the message is the call's."""


def code_of(error: AskanceError) -> int:
    """The exit code for an error that ends a command."""
    from askance.errors import CassetteError, UsageError

    return USAGE if isinstance(error, (UsageError, CassetteError)) else CANNOT_START


def complain(error: AskanceError) -> None:
    """Says what went wrong and the way out, on stderr, in plain words; a terminal gets no broken words."""
    from askance.terminal import printable

    print(_fitted(f"askance: {printable(error.message)}", indent=2), file=sys.stderr)
    if error.hint:
        print(_fitted(f"  → {printable(error.hint)}", indent=4), file=sys.stderr)
    diff = getattr(error, "diff", "")
    if diff:
        print(printable(diff), file=sys.stderr)


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


def hear_warnings() -> None:
    """Has what askance warns of while it works said on stderr as its errors are; more of it by `LOG_VARIABLE`.

    Raises:
        UsageError: the variable holds what is no level.
    """
    import logging
    import os

    from askance.errors import UsageError
    from askance.terminal import printable

    asked = os.environ.get(LOG_VARIABLE, "")
    if asked not in {"", "debug"}:
        raise UsageError(f"{LOG_VARIABLE} is {asked!r}.", hint="Set it to `debug`, or to nothing.")

    class Speaker(logging.Handler):
        """Says a warning on whatever stderr is at the time: a progress bar may stand there."""

        def emit(self, record: logging.LogRecord) -> None:
            print(f"askance: {printable(record.getMessage())}", file=sys.stderr)

    log = logging.getLogger("askance")
    level = logging.DEBUG if asked else logging.WARNING
    log.handlers[:] = [Speaker(level)]
    if asked:
        log.setLevel(level)
    log.propagate = False
