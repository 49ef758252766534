"""Where the records and the prompts of a command are: its options first, then the settings file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.replay import STORE_VARIABLE, Store

if TYPE_CHECKING:
    from askance.models import Config
    from askance.prompts import PromptLibrary


def open_store(path: Path | None, config: Config, *, read_only: bool) -> Store:
    """The records: `--store`, else what `ASKANCE_STORE` says, else the settings file's, else the project's.

    Raises:
        StoreError: there is something that is no store, or a store of another version.
    """
    configured = None if os.environ.get(STORE_VARIABLE) else config.store
    return Store.open(path or configured, read_only=read_only)


def library(path: Path | None, config: Config) -> PromptLibrary:
    """The prompts: the package's, under those in `--prompts`, else the settings file's folder, else `./prompts`.

    Raises:
        UsageError: a folder that is named is not there.
    """
    from askance.prompts import PromptLibrary

    overlay = path or config.prompts
    if overlay is None:
        return PromptLibrary()
    if not overlay.is_dir():
        raise UsageError(
            f"There is no prompts folder {str(overlay)!r}.",
            hint=f"`askance prompts eject NAME --to {overlay}` begins one.",
        )
    return PromptLibrary([overlay])
