"""Run a command that must not outlive the one who started it.

    python leash.py COMMAND…

The command runs in a process group of its own. When standard input closes, which happens however the starter ends, or
when this process is told to stop, the whole group is ended: asked first, and killed after a grace.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

GRACE = 8.0
"""Seconds between asking and killing."""


def main(command: list[str]) -> int:
    """Run `command` until it ends or the leash is let go; its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: end(child))
    threading.Thread(target=await_release, args=(child,), daemon=True).start()
    code = child.wait()
    signal_group(child.pid, signal.SIGKILL)
    return code


def await_release(child: subprocess.Popen[bytes]) -> None:
    """End `child` once standard input closes."""
    sys.stdin.buffer.read()
    end(child)


def end(child: subprocess.Popen[bytes]) -> None:
    """Ask the group of `child` to end, and kill what is left of it after the grace."""
    signal_group(child.pid, signal.SIGTERM)
    killer = threading.Timer(GRACE, signal_group, (child.pid, signal.SIGKILL))
    killer.daemon = True
    killer.start()


def signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
