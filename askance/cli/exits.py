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

HELP = (
    "Exit codes: 0 all answered · 1 some have no answer · 2 the command, a file or a setting is wrong · "
    "3 cannot start · 130 interrupted."
)


class CannotStart(AskanceError):
    """A model cannot be asked at all; the message is the call's."""


def code_of(error: AskanceError) -> int:
    """The exit code for an error that ends a command."""
    from askance.errors import CassetteError, UsageError

    return USAGE if isinstance(error, (UsageError, CassetteError)) else CANNOT_START


def complain(error: AskanceError) -> None:
    """Says what went wrong and the way out, on stderr, in plain words."""
    from askance.replay import visible

    print(f"askance: {visible(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"  → {visible(error.hint)}", file=sys.stderr)
    diff = getattr(error, "diff", "")
    if diff:
        print(visible(diff), file=sys.stderr)


def hear_warnings() -> None:
    """Has what askance warns of while it works said on stderr as its errors are."""
    import logging

    from askance.replay import visible

    class Speaker(logging.Handler):
        """Says a warning on whatever stderr is at the time: a progress bar may stand there."""

        def emit(self, record: logging.LogRecord) -> None:
            print(f"askance: {visible(record.getMessage())}", file=sys.stderr)

    log = logging.getLogger("askance")
    log.handlers[:] = [Speaker(logging.WARNING)]
    log.propagate = False
