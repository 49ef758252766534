"""Open models on the hub: a dated list for users who name none, what a machine has room for, and downloads."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from askance.errors import ConfigError, optional_library
from askance.models.local.folder import find_folder, hub_repository
from askance.models.local.runtime import EXTRA
from askance.models.settings import Local

LIST = Path(__file__).with_name("open_models.json")

_CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux says how much memory a container may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenModel:
    """An open vision-language model, and what it takes."""

    name: str
    """On the hub."""
    parameters: str
    license: str
    bytes: int
    """Size of the download."""
    memory: int | None
    """Bytes of main memory from which on it is taken without an accelerator; None is never."""
    accelerator: int
    """Bytes of an accelerator's memory from which on it is taken there."""

    @property
    def size(self) -> str:
        return f"{self.bytes / 1e9:.1f} GB"

    def fits(self, machine: Machine) -> bool:
        if machine.accelerator is not None:
            return machine.accelerator >= self.accelerator
        return self.memory is not None and machine.memory >= self.memory

    def __str__(self) -> str:
        return f"{self.name} ({self.parameters} parameters, {self.size}, {self.license})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The memory of a machine, in bytes."""

    memory: int
    accelerator: int | None = None
    """Memory of the largest accelerator; None without one."""

    @classmethod
    def here(cls) -> Machine:
        """This machine; without torch no accelerator is found."""
        memory = _main_memory()
        return cls(memory=memory, accelerator=_accelerator_memory(memory))

    def __str__(self) -> str:
        if self.accelerator is not None:
            return f"an accelerator with {self.accelerator / 1e9:.0f} GB"
        return f"{self.memory / 1e9:.0f} GB of memory and no accelerator"


@cache
def open_models() -> tuple[OpenModel, ...]:
    """Those in the list, smallest first."""
    listed: list[dict[str, Any]] = json.loads(LIST.read_text(encoding="utf-8"))["models"]
    return tuple(OpenModel(**entry) for entry in listed)


def open_model_for(machine: Machine) -> OpenModel:
    """The largest that `machine` has room for; the smallest where it has room for none."""
    return next((each for each in reversed(open_models()) if each.fits(machine)), open_models()[0])


def _main_memory() -> int:
    """Bytes of main memory that this process may have; 0 where the system does not say."""
    whole = 0
    with suppress(OSError, ValueError, AttributeError):
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in _CONTAINER_LIMITS:
        with suppress(OSError, ValueError):
            whole = min(whole or 1 << 62, int(file.read_text(encoding="ascii")))
    return whole


def _accelerator_memory(memory: int) -> int | None:
    try:
        torch: Any = import_module("torch")
    except ImportError:
        return None
    if torch.cuda.is_available():
        return max(int(torch.cuda.mem_get_info(place)[1]) for place in range(torch.cuda.device_count()))
    # Main memory that is shared with graphics is not all for one model.
    return memory // 2 if torch.backends.mps.is_available() else None


# --- downloads, by the hub's own client ---

MODEL_FILES = ("*.jinja", "*.json", "*.model", "*.safetensors", "*.tiktoken", "*.txt")
"""Files that a model is read from: weights as data alone, no pickles and no code."""
SUBFOLDERS = ("*/*",)
"""Subfolders hold the same weights for other programs."""


def is_downloaded(name: str) -> bool:
    """Whether the model called `name` on the hub can be used on this machine as it is."""
    try:
        find_folder(name, Local())
    except ConfigError:
        return False
    return True


def download_model(name: str) -> Path:
    """The folder of the model called `name` on the hub, downloaded whole; the hub's client shows the progress.

    After an interruption the same call goes on: files that are whole are not asked for again.

    Raises:
        ConfigError: no hub is reached, it has no such model, or the download broke off.
        MissingExtra: the hub's client is not installed.
    """
    hub = _hub()
    try:
        download(name, revision=None, files=MODEL_FILES, but=SUBFOLDERS)
    except Exception as error:
        raise _download_error(hub, name, error) from error
    return find_folder(name, Local()).path


def download(name: str, *, revision: str | None, files: Sequence[str], but: Sequence[str] = ()) -> Path:
    """The folder of what is called `name` on the hub, with the files that a pattern in `files` names and none in `but`.

    Raises:
        MissingExtra: the hub's client is not installed.
        Exception: what the hub's client raises.
    """
    patterns = {"allow_patterns": list(files), "ignore_patterns": list(but)}
    return Path(_hub().snapshot_download(name, revision=revision, max_workers=4, **patterns))


def how_to_bring(name: str) -> str:
    """How to bring a model to a machine that reaches no hub."""
    return (
        f"Where there is a network: `hf download {name} --local-dir FOLDER`. Bring the folder here, and name it: "
        '`hf:FOLDER` as a model, or `local = "FOLDER"` in askance.toml for `--local`.'
    )


def _hub() -> Any:
    return optional_library("huggingface_hub", lacking="Downloads need {}, which is not installed.", hint=EXTRA)


def _download_error(hub: Any, name: str, error: Exception) -> ConfigError:
    errors: Any = hub.errors
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "TRUE", "YES"}:
        return ConfigError(
            f"The model {name!r} is not on this machine, and `HF_HUB_OFFLINE` forbids its download.",
            hint=f"Unset it. {how_to_bring(name)}",
        )
    if isinstance(error, (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.GatedRepoError)):
        reason = " ".join(str(error).split())[:200]
        return ConfigError(f"The hub does not give out the model {name!r}: {reason}", hint=how_to_bring(name))
    blobs = hub_repository(name) / "blobs"
    got = sum(file.stat().st_size for file in blobs.glob("*") if file.is_file()) if blobs.is_dir() else 0
    if got:
        return ConfigError(
            f"The download of {name!r} broke off: {_first_cause(error)}. {got / 1e6:,.1f} MB of it are here.",
            hint="The same command goes on; files that are whole are not asked for again.",
        )
    return ConfigError(f"No hub gives out {name!r} here: {_first_cause(error)}.", hint=how_to_bring(name))


def _first_cause(error: BaseException) -> str:
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__ or error
    return " ".join(f"{type(error).__name__}: {error}".split())[:200].rstrip(".: ")
