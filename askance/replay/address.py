"""The address of records: where they are, and how they are opened.

An address is a folder, `postgres://USER@HOST/DATABASE`, or `KIND:REST` for a store that an installed package brings.

Outside of `askance.replay` no module imports the store on disk: this one alone knows which store an address means.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from askance.errors import StoreError, boundary
from askance.registry import Registry, nearest
from askance.replay.database import DATABASE
from askance.replay.record import Records
from askance.replay.store import Store
from askance.trust import check_owner

Address: TypeAlias = Path | str
"""Where records are; a `Path` is a folder, whatever its name."""

STORE_VARIABLE = "ASKANCE_STORE"
STORE_FOLDER = ".askance"
SETTINGS = "askance.toml"
PROJECT_MARKS = (".git", "pyproject.toml")
"""The root folder of a project holds one of these."""

STORES = Registry(
    group="askance.stores",
    what="store",
    built_in=dict.fromkeys(("postgres", "postgresql"), "askance.replay.postgres:PostgresStore"),
    error=StoreError,
)
"""By the kind of an address: a function of what stands behind the colon, and `read_only=`, that gives the records."""

_KIND = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""The kind of a store in its address; a single letter is a drive."""
_PASSWORD = re.compile(r"(//[^/?#@:]*):[^/?#]*@")
_PASSWORD_SETTING = re.compile(r"([?&])password=[^&#]*&?")


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
    resolved = find_address(address)
    if isinstance(resolved, Path):
        return Store.open(resolved, read_only=read_only)
    kind, _, rest = resolved.partition(":")
    opens = STORES.load(kind)
    # What the package says is left to the error's cause: it may hold the address, and a password in it.
    with boundary(lambda words: _unopened(kind, words.partition(":")[0])):
        records: object = opens(rest, read_only=read_only)
    if not isinstance(records, Records):
        raise _unopened(kind, f"a {type(records).__name__} is no `Records`")
    return records


def find_address(address: Address | None = None) -> Address:
    """The address of records, which need not exist yet: `address`, else `ASKANCE_STORE`, else that of the project.

    That of the project is `.askance/` in the nearest folder, from the current one upwards, that has it or holds
    `askance.toml`; else in the project's root folder, else in the current folder.

    Raises:
        StoreError: the address is of no known kind, or the store of the project is another user's.
    """
    named = (os.environ.get(STORE_VARIABLE) or None) if address is None else address
    if named is not None:
        kind = kind_of(named)
        if kind is None:
            return Path(named).expanduser().absolute()
        if kind not in STORES:
            # The rest is not said: it may hold a password.
            raise StoreError(
                f"Records cannot be kept at an address of the kind {kind!r}: no installed package brings such a store.",
                hint=f"{nearest(kind, STORES.names())}Name a folder, such as '.askance'; one that has a colon in its "
                "name begins with './'.",
            )
        return named
    folder = _store_of_project()
    for place in (folder, folder / DATABASE):
        check_owner(place, "The record store", kind=StoreError)
    return folder


def without_password(address: Address) -> Address:
    """The address as it may be kept and sent: who opens it has the password from their own environment."""
    if not isinstance(address, str) or kind_of(address) is None:
        return address
    return _PASSWORD.sub(r"\1@", _PASSWORD_SETTING.sub(r"\1", address, count=1), count=1)


def kind_of(address: Address) -> str | None:
    """The kind of an address; None is a folder."""
    match = _KIND.match(address) if isinstance(address, str) else None
    return None if match is None else match[1]


def _unopened(kind: str, reason: str) -> StoreError:
    return StoreError(
        f"The records at an address of the kind {kind!r} cannot be opened: {reason}.",
        hint="Mend the address, or the package that brings the store.",
    )


def _store_of_project() -> Path:
    here = Path.cwd()
    folders = (here, *here.parents)
    home = _first(each for each in folders if (each / STORE_FOLDER).is_dir() or (each / SETTINGS).exists())
    root = _first(each for each in folders if any((each / mark).exists() for mark in PROJECT_MARKS))
    return (home or root or here) / STORE_FOLDER


def _first(folders: Iterable[Path]) -> Path | None:
    return next(iter(folders), None)
