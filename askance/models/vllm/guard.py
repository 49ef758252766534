"""Ends processes when the one who started it is gone: `python guard.py PID…`, a pipe as standard input.

A line on standard input lets them live. It is run as a file, so it imports nothing of askance.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

GRACE = 8.0
"""Seconds between asking and killing."""


def main(pids: list[int]) -> None:
    """Waits for the line or the end of the pipe."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.read(0, 1):
        return
    _signal(pids, signal.SIGTERM)
    time.sleep(GRACE)
    _signal(pids, signal.SIGKILL)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
