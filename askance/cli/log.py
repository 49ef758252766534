"""Warnings: what askance's log says while a command runs, on stderr."""

from __future__ import annotations

import logging
import os

from askance.errors import UsageError
from askance.terminal import echo

LOG_VARIABLE = "ASKANCE_LOG"
"""Environment variable; with the value `debug`, each failed try and each pause is printed."""


class StderrHandler(logging.Handler):
    """Prints a warning on what `sys.stderr` is at the time: a progress bar may have taken its place."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints one warning."""
        echo(f"askance: {record.getMessage()}", err=True)


def print_warnings() -> None:
    """Prints the warnings of askance's log on stderr from now on, in the form of errors; `LOG_VARIABLE` adds more.

    Raises:
        UsageError: the variable holds something else than `debug`.
    """
    level_name = os.environ.get(LOG_VARIABLE, "")
    if level_name not in {"", "debug"}:
        raise UsageError(f"{LOG_VARIABLE} is {level_name!r}.", hint="Set it to `debug`, or to nothing.")

    log = logging.getLogger("askance")
    level = logging.DEBUG if level_name else logging.WARNING
    log.handlers[:] = [StderrHandler(level)]
    if level_name:
        log.setLevel(level)
    log.propagate = False
