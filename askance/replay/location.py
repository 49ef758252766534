"""Where the store is: the one place that reads `ASKANCE_STORE`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from askance.errors import StoreError
from askance.trust import check_owner

STORE_VARIABLE = "ASKANCE_STORE"
STORE_FOLDER = ".askance"
DATABASE = "cache.db"
"""The file in the folder that holds the records."""
PROJECT_MARKS = (".git", "pyproject.toml", "askance.toml")
"""What a project's root folder holds, any one of them."""


def find_store(path: Path | str | None = None) -> Path:
    """The folder of the store, which need not exist yet: `path`, else what `ASKANCE_STORE` says, else found from here.

    From here means: the nearest `.askance/` upwards, else `.askance/` in the project's root folder, else here.

    Raises:
        StoreError: what is found from here is another user's.
    """
    if path is not None:
        return Path(path).expanduser().absolute()
    if named := os.environ.get(STORE_VARIABLE):
        return Path(named).expanduser().absolute()
    found = store_from(Path.cwd())
    for place in (found, found / DATABASE):
        check_owner(place, "The record store", kind=StoreError)
    return found


def store_from(start: Path) -> Path:
    """The store that belongs to the folder `start`, whatever the environment says."""
    folders = (start.absolute(), *start.absolute().parents)
    home = _first(folder for folder in folders if (folder / STORE_FOLDER).is_dir())
    root = _first(folder for folder in folders if any((folder / mark).exists() for mark in PROJECT_MARKS))
    return (home or root or folders[0]) / STORE_FOLDER


def _first(folders: Iterable[Path]) -> Path | None:
    return next(iter(folders), None)
