"""Runs a command that must not outlive the one who started it: `python leash.py COMMAND…`.

The command runs in a process group of its own. When standard input closes, which happens however the starter ends, or
when this process is told to stop, the whole group is ended: asked first, and killed after a grace. It is run as a file,
so it imports nothing of askance.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

GRACE = 8.0
"""Seconds between asking and killing."""


def main(command: list[str]) -> int:
    """Runs `command` until it ends or the leash is let go; its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: _end(child))
    threading.Thread(target=_await_release, args=(child,), daemon=True).start()
    code = child.wait()
    _signal(child.pid, signal.SIGKILL)
    return code


def _await_release(child: subprocess.Popen[bytes]) -> None:
    # Read without Python's buffer, whose lock a thread that never ends would hold at the end of the interpreter.
    while os.read(0, 1024):
        pass
    _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    _signal(child.pid, signal.SIGTERM)
    killer = threading.Timer(GRACE, _signal, (child.pid, signal.SIGKILL))
    killer.daemon = True
    killer.start()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
