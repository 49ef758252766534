"""vLLM's log: where the engine in process writes it, and why by the log an engine did not start, or ended."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from askance.documents import read_yaml
from askance.errors import AskanceError, ConfigError, MissingExtra
from askance.models.vendor_errors import one_line
from askance.models.vllm.engine_args import OFFLINE

if TYPE_CHECKING:
    from askance.models.settings import Vllm

LOGGING_VARIABLE = "VLLM_LOGGING_CONFIG_PATH"
"""Environment variable from which vLLM reads, as it is loaded, how to log."""

_ENVIRONMENT = {**OFFLINE, "TRANSFORMERS_VERBOSITY": "error", "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
"""Nothing leaves the machine, and no process is made by forking one with threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLog:
    """What the engine in process logs from a moment on.

    Its processes would otherwise write to the terminal, and the log says why it does not start.
    """

    file: Path
    start: int = 0
    """Bytes that were there before."""

    @classmethod
    def opened(cls) -> EngineLog:
        """The log from now on; sets the environment variables that vLLM and its processes read."""
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        config = Path(os.environ.get(LOGGING_VARIABLE) or _new_config())
        file = config.with_name("log.txt")
        return cls(file=file, start=file.stat().st_size if file.is_file() else 0)

    def read(self) -> str:
        """What was logged; empty where the user has vLLM log elsewhere."""
        with suppress(OSError), self.file.open("rb") as opened:
            opened.seek(self.start)
            return opened.read().decode("utf-8", "replace")
        return ""


def _new_config() -> str:
    """Writes a configuration of logging into a file beside it; both are kept as long as this process."""
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
    os.environ[LOGGING_VARIABLE] = str(path)
    return str(path)


# --- what a log says ---

SHOWN_LINES = 8
"""Last lines of a log that a message quotes."""

EXTRA = "pip install 'askance[vllm]'; or name the environment that has it: `vllm = { python = \"…/bin/python\" }`"
"""The way out where vLLM is not installed."""

_PORT_TAKEN = re.compile(r"address already in use", re.IGNORECASE)
_NOISE = re.compile(r"^\s*(File \"|\^+|~+|return |await |raise |self\.|Traceback|\.\.\.|\()|^\s*$")
_PREFIX = re.compile(r"^\([^)]*pid[ =]\d+\)\s*|^(INFO|WARNING|ERROR|DEBUG) [\d:. -]+(\[[^\]]+\]\s*)+")


@cache
def _causes() -> list[dict[str, str]]:
    """What a log may say, what that means, and the way out."""
    return read_yaml(Path(__file__).with_name("start_errors.yaml"), what="causes")["causes"]


def _cause_in(log: str) -> tuple[str, str] | None:
    """What a log says, and the way out; None where it says nothing that is known."""
    for cause in _causes():
        if match := re.search(cause["pattern"], log):
            told = {name: one_line(value or "", limit=160) for name, value in match.groupdict().items()}
            if "total" in told:
                told["part"] = f"{max(0.05, 0.95 * float(told['free']) / (float(told['total']) or 1.0)):.2f}"
            if told.get("fits") == "":
                told["fits"] = str(int(told["context"]) // 2)
            return cause["means"].format(**told), cause["hint"].format(**told)
    return None


def port_taken(log: str) -> bool:
    """Whether the log says that someone listens on the port already."""
    return _PORT_TAKEN.search(log) is not None


def not_installed(spec: str, python: str) -> MissingExtra:
    """The error where vLLM is not installed."""
    return MissingExtra(f"The model {spec!r} needs vLLM, which {python} has not installed.", hint=EXTRA)


def check_system(spec: str) -> None:
    """Refuses to start vLLM on a system that is not POSIX.

    Raises:
        ConfigError: the system has no process groups, by which its processes are ended.
    """
    if not hasattr(os, "killpg"):
        raise ConfigError(
            f"The model {spec!r} would start vLLM, which runs on POSIX systems alone.",
            hint="On Windows, run askance in WSL; or name a server that runs elsewhere: vllm:NAME@http://HOST:8000/v1.",
        )


def start_error(log: str, *, spec: str, vllm: Vllm, code: int | None = None) -> AskanceError:
    """The error for an engine that did not start, by what its log says."""
    if port_taken(log):
        port = "its port" if vllm.port is None else f"port {vllm.port}"
        return ConfigError(
            f"vLLM did not start with {spec!r}: {port} is taken.", hint="Leave `port` out of its `vllm` settings."
        )
    if cause := _cause_in(log):
        return ConfigError(f"vLLM did not start with {spec!r}: {cause[0]}.", hint=cause[1])
    ended = "" if code is None else f" (exit code {code})"
    return ConfigError(
        f"vLLM did not start with {spec!r}{ended}. The end of its log: {last_words(log)}",
        hint="The first error in the log says more; arguments of its engine go into `vllm = { engine = { … } }`.",
    )


def last_words(log: str) -> str:
    """The last lines of a log that say something, on one line, errors first where there are any."""
    lines = [_PREFIX.sub("", _PREFIX.sub("", line)).strip() for line in log.splitlines()]
    told = [one_line(line, limit=200) for line in lines if line and not _NOISE.search(line)]
    errors = [line for line in told if re.search(r"\b\w*(Error|Exception)\b: ", line)]
    chosen = [*errors[:1], *(line for line in told[-SHOWN_LINES:] if line not in errors[:1])] if errors else told
    return " | ".join(chosen[-SHOWN_LINES:]) or "nothing."
