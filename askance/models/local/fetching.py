"""Downloads of models, by the hub's own client, where a name was given for them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from askance.errors import ConfigError, MissingExtra
from askance.models.local.folders import find_folder, hub_cache
from askance.models.local.opening import EXTRA
from askance.models.settings import Local

WANTED = ("*.jinja", "*.json", "*.model", "*.safetensors", "*.tiktoken", "*.txt")
"""Files that a model is read from: weights as data alone, no pickles and no code."""
UNWANTED = ("*/*",)
"""Folders within: the same weights for other programs."""


def is_here(name: str, local: Local | None = None) -> bool:
    """Whether a folder, or a name on the hub, can be used on this machine as it is."""
    try:
        find_folder(name, local or Local())
    except ConfigError:
        return False
    return True


def fetch(name: str, *, revision: str | None = None) -> Path:
    """The folder of the model called `name` on the hub, downloaded whole; the hub's client draws the progress.

    A file that was broken off is begun again, and those that are whole are not asked for again.

    Raises:
        ConfigError: no hub is reached, it has no such model, or the download broke off.
        MissingExtra: the hub's client is not installed.
    """
    hub = _hub()
    try:
        snapshot(name, revision=revision, wanted=WANTED, unwanted=UNWANTED)
    except Exception as error:
        raise _failed(hub, name, error) from error
    return find_folder(name, Local(revision=revision)).path


def snapshot(name: str, *, revision: str | None, wanted: Sequence[str], unwanted: Sequence[str] = ()) -> Path:
    """The folder of what is called `name` on the hub, with its files that have a `wanted` name and no `unwanted` one.

    Raises:
        MissingExtra: the hub's client is not installed.
        Exception: what the hub's client raises.
    """
    patterns = {"allow_patterns": list(wanted), "ignore_patterns": list(unwanted)}
    return Path(_hub().snapshot_download(name, revision=revision, max_workers=4, **patterns))


def _hub() -> Any:
    try:
        return import_module("huggingface_hub")
    except ImportError as error:
        raise MissingExtra("Downloads need huggingface_hub, which is not installed.", hint=EXTRA) from error


def bring(name: str) -> str:
    """How a model comes to a machine without a hub."""
    return (
        f"Where there is a network: `hf download {name} --local-dir FOLDER`. Bring the folder here, and name it: "
        '`hf:FOLDER` as a model, or `local = "FOLDER"` in askance.toml for `--local`.'
    )


def _failed(hub: Any, name: str, error: Exception) -> ConfigError:
    """What came of a download, in words."""
    errors: Any = hub.errors
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "TRUE", "YES"}:
        return ConfigError(
            f"The model {name!r} is not on this machine, and `HF_HUB_OFFLINE` forbids its download.",
            hint=f"Unset it. {bring(name)}",
        )
    if isinstance(error, (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.GatedRepoError)):
        said = " ".join(str(error).split())[:200]
        return ConfigError(f"The hub does not give out the model {name!r}: {said}", hint=bring(name))
    got = _got(name)
    if got:
        return ConfigError(
            f"The download of {name!r} broke off: {_kind(error)}. {got / 1e6:,.1f} MB of it are here.",
            hint="The same command goes on; files that are whole are not asked for again.",
        )
    return ConfigError(f"No hub gives out {name!r} here: {_kind(error)}.", hint=bring(name))


def _kind(error: BaseException) -> str:
    """The first cause, in words."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__ or error
    return " ".join(f"{type(error).__name__}: {error}".split())[:200].rstrip(".: ")


def _got(name: str) -> int:
    """Bytes of it that are on this machine."""
    blobs = hub_cache() / f"models--{name.replace('/', '--')}" / "blobs"
    return sum(file.stat().st_size for file in blobs.glob("*") if file.is_file()) if blobs.is_dir() else 0
