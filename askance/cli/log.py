"""Warnings: what askance's log says while a command runs, on stderr."""

from __future__ import annotations

import logging
import os

from askance.errors import UsageError
from askance.terminal import print_log

LOG_VARIABLE = "ASKANCE_LOG"
"""Environment variable; with the value `debug`, each failed try and each pause is printed."""


def print_warnings() -> None:
    """Prints the warnings of askance's log on stderr from now on, in the form of errors; `LOG_VARIABLE` adds more.

    Raises:
        UsageError: the variable holds something else than `debug`.
    """
    level_name = os.environ.get(LOG_VARIABLE, "")
    if level_name not in {"", "debug"}:
        raise UsageError(f"{LOG_VARIABLE} is {level_name!r}.", hint="Set it to `debug`, or to nothing.")

    print_log(logging.DEBUG if level_name else logging.WARNING)
    if level_name:
        logging.getLogger("askance").setLevel(logging.DEBUG)
