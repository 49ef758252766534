"""vLLM's log: where the engine in process writes it, and why by the log an engine did not start, or ended."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cause:
    """What a log may say, what that means, and the way out; groups of the pattern go into both texts."""

    pattern: re.Pattern[str]
    means: str
    hint: str | Callable[[re.Match[str]], str]


def _free_memory_hint(match: re.Match[str]) -> str:
    free, total = float(match["free"]), float(match["total"])
    part = max(0.05, 0.95 * free / total) if total else 0.05
    return (
        f"End what else runs there, or take less: `vllm = {{ memory = {part:.2f} }}`. Runs that use one model share a "
        "server: start it once, and name its address, `vllm:NAME@http://…`."
    )


_CAUSES: tuple[_Cause, ...] = (
    _Cause(
        pattern=re.compile(
            r"Free memory on device \S+ \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less than desired \w+ "
            r"memory utilization \([\d.]+, (?P<wanted>[\d.]+) GiB\)"
        ),
        means="{wanted} GiB of the device's memory are wanted and {free} of its {total} GiB are free: something else "
        "runs on it",
        hint=_free_memory_hint,
    ),
    _Cause(
        pattern=re.compile(
            r"Available memory on node \d+ \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\).{0,80}?less than "
            r".{0,60}?\((?P<wanted>[\d.]+)"
        ),
        means="{wanted} GiB of memory are wanted for what is read and {free} of the machine's {total} GiB are free",
        hint="End what else runs here, or take less: `vllm = {{ cache = 1 }}` (GiB).",
    ),
    _Cause(
        pattern=re.compile(
            r"max(?:imum)? (?:seq|model) len(?:gth)? \(?(?P<context>\d+)\)?.{0,60}?(?P<wanted>[\d.]+) GiB KV cache is "
            r"needed"
            r".{0,60}?available KV cache memory \((?P<free>[\d.]+) GiB\)"
            r"(?:.{0,200}?maximum model length is (?P<fits>\d+))?",
            re.DOTALL,
        ),
        means="{context} tokens of context want {wanted} GiB for what is read, and there are {free} GiB",
        hint=lambda match: (
            f"Read less at once: `vllm = {{ context = {match['fits'] or int(match['context']) // 2} }}`; or give it "
            "more memory (`memory`, `cache`)."
        ),
    ),
    _Cause(
        pattern=re.compile(r"No available memory for the cache blocks"),
        means="the weights leave no memory for what is read",
        hint="Give it more of the device (`vllm = {{ memory = 0.95 }}`), quantize the weights (`quantization`), or "
        "take a smaller model.",
    ),
    _Cause(
        pattern=re.compile(r"out of memory\. (?P<words>Tried to allocate [\d.]+ \w+[^\n]{0,160})", re.IGNORECASE),
        means="the device has too little memory: {words}",
        hint="End what else runs there, quantize the weights (`quantization`), read less at once (`context`), or "
        "spread them over more devices (`devices`).",
    ),
    _Cause(
        pattern=re.compile(r"out of memory|Cannot allocate memory|std::bad_alloc", re.IGNORECASE),
        means="there is too little memory",
        hint="End what else runs here, read less at once (`context`), or take a smaller model.",
    ),
    _Cause(
        pattern=re.compile(
            r"Model architectures (?P<kinds>\[[^\]]{0,200}\]) (?:are not supported|failed to be inspected)"
        ),
        means="it does not run models of the kind {kinds}",
        hint="`hf:` may run them; a newer vLLM may, too.",
    ),
    _Cause(
        pattern=re.compile(
            r"Unsupported CPU attention configuration|head size (?P<size>\d+) is not supported|head_size"
        ),
        means="it has no attention for heads of the model's size on this device",
        hint="`hf:` runs it.",
    ),
    _Cause(
        pattern=re.compile(
            r"max_model_len \((?P<wanted>\d+)\) is greater than the derived max_model_len \([^)]*?=(?P<most>\d+)"
        ),
        means="the model reads {most} tokens, and {wanted} were asked for",
        hint="`vllm = {{ context = {most} }}`, or leave it out.",
    ),
    _Cause(
        pattern=re.compile(r"trust_remote_code=True|requires you to execute the"),
        means="the model comes with Python code of its own, which is not run unasked",
        hint="If you trust it: `vllm = {{ remote_code = true }}`.",
    ),
    _Cause(
        pattern=re.compile(r"(?:unrecognized arguments:|unexpected keyword argument) (?P<words>[^\n]{0,160})"),
        means="it has no arguments {words}",
        hint="Mend `engine` in the model's `vllm` settings.",
    ),
    _Cause(
        pattern=re.compile(r"torchvision::nms does not exist"),
        means="the torchvision beside it is built for another torch",
        hint="Take torchvision out of vLLM's environment, or install the build that goes with its torch.",
    ),
)


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
    for cause in _CAUSES:
        match = cause.pattern.search(log)
        if match is not None:
            groups = {name: one_line(value or "", limit=160) for name, value in match.groupdict().items()}
            hint = cause.hint if isinstance(cause.hint, str) else cause.hint(match)
            means = cause.means.format(**groups)
            return ConfigError(
                f"vLLM did not start with {spec!r}: {means}.",
                hint=hint.format(**groups) if isinstance(cause.hint, str) else hint,
            )
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
