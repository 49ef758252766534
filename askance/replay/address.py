"""The address of records: where they are, and how they are opened.

An address is a folder, or `KIND:REST` for a store that is no folder. No such kind is known yet.

Outside of `askance.replay` no module imports the store on disk: this one alone knows which store an address means.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from askance.errors import StoreError
from askance.replay.database import DATABASE
from askance.replay.store import Store
from askance.trust import check_owner

if TYPE_CHECKING:
    from askance.replay.record import Records

Address: TypeAlias = Path | str
"""Where records are; a `Path` is a folder, whatever its name."""

STORE_VARIABLE = "ASKANCE_STORE"
STORE_FOLDER = ".askance"
PROJECT_MARKS = (".git", "pyproject.toml", "askance.toml")
"""The root folder of a project holds one of these."""

_KIND = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""The kind of a store in its address; a single letter is a drive."""


def open_records(address: Address | None = None, *, read_only: bool = False) -> Records:
    """The records at an address, and what goes with them: leases, ledgers, a pace, a folder. The caller closes them.

    Records that do not exist yet are empty; the first `put` makes what keeps them.

    Args:
        address: see `find_address`.
        read_only: whether nothing may be written.

    Raises:
        StoreError: the address is of no known kind; what is there is not a store, or one of another version; or it
            would be written and is on a network file system.
    """
    return Store.open(find_address(address), read_only=read_only)


def find_address(address: Address | None = None) -> Path:
    """The address of records, which need not exist yet: `address`, else `ASKANCE_STORE`, else that of the project.

    That of the project is the nearest `.askance/` from the current folder upwards, else `.askance/` in the project's
    root folder, else in the current folder.

    Raises:
        StoreError: the address is of no known kind, or the store of the project is another user's.
    """
    named = (os.environ.get(STORE_VARIABLE) or None) if address is None else address
    if named is not None:
        return folder_at(named).absolute()
    found = _store_of_project()
    for place in (found, found / DATABASE):
        check_owner(place, "The record store", kind=StoreError)
    return found


def folder_at(address: Address) -> Path:
    """The folder that an address names.

    Raises:
        StoreError: the address is of a kind that is not known.
    """
    if isinstance(address, str) and (kind := _KIND.match(address)):
        # The rest is not said: it may hold a password.
        raise StoreError(
            f"Records cannot be kept at an address of the kind {kind[1]!r}: the only kind of address is a folder.",
            hint="Name a folder, such as '.askance'; one that has a colon in its name begins with './'.",
        )
    return Path(address).expanduser()


def _store_of_project() -> Path:
    here = Path.cwd()
    folders = (here, *here.parents)
    home = _first(folder for folder in folders if (folder / STORE_FOLDER).is_dir())
    root = _first(folder for folder in folders if any((folder / mark).exists() for mark in PROJECT_MARKS))
    return (home or root or here) / STORE_FOLDER


def _first(folders: Iterable[Path]) -> Path | None:
    return next(iter(folders), None)
