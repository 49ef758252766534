"""The words of the engine in process, in a file.

Its processes would write them over the terminal; and they say why it does not start.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from askance.models.vllm.options import OFFLINE

VARIABLE = "VLLM_LOGGING_CONFIG_PATH"
"""Variable that vLLM reads how to log from, as it is loaded."""

_SETTLED = {**OFFLINE, "TRANSFORMERS_VERBOSITY": "error", "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
"""Nothing leaves the machine, and no process is made by forking one with threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What is said from a moment on."""

    file: Path
    start: int = 0
    """Bytes that were there before."""

    @classmethod
    def opened(cls) -> Log:
        """The log of this process from now on; sets the variables that vLLM and its processes read."""
        for name, value in _SETTLED.items():
            os.environ.setdefault(name, value)
        config = Path(os.environ.get(VARIABLE) or _configured())
        file = config.with_name("log.txt")
        return cls(file=file, start=file.stat().st_size if file.is_file() else 0)

    def read(self) -> str:
        """What was said; empty where the user has it said elsewhere."""
        with suppress(OSError), self.file.open("rb") as opened:
            opened.seek(self.start)
            return opened.read().decode("utf-8", "replace")
        return ""


def _configured() -> str:
    """A file that has vLLM log into another beside it, kept as long as the process: vLLM reads it once."""
    folder = Path(tempfile.mkdtemp(prefix="askance-vllm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"file": {"class": "logging.FileHandler", "filename": str(folder / "log.txt")}},
        "loggers": {"vllm": {"handlers": ["file"], "level": "INFO", "propagate": False}},
    }
    path = folder / "logging.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    os.environ[VARIABLE] = str(path)
    return str(path)
