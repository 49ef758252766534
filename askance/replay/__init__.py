"""Every answer on record, so that any run can be played again without a network.

`Record` is one request and its answer; a `Store` keeps records on disk, a `MemoryStore` in memory. Cassettes carry them
from machine to machine. `explain_miss` says why a request is not on record.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from askance.replay.record import DAMAGED_HINT, KINDS, MemoryStore, Mode, Record, RecordKind, Records
from askance.replay.store import STORE_VARIABLE, Store, find_store

if TYPE_CHECKING:
    from askance.replay.cassette import (
        MAX_LINE,
        Cassette,
        RecordedPicture,
        export_cassette,
        import_cassette,
        read_cassette,
        read_pictures,
    )
    from askance.replay.explain import RequestDifference, differences, explain_difference, explain_miss
    from askance.replay.leases import Leases, StoreLeases
    from askance.replay.maintain import (
        ImportCounts,
        PruneCounts,
        RecordDifference,
        RecordProblem,
        Savings,
        Stats,
        ValidRecords,
        diff,
        merge,
        prune,
        savings,
        select,
        stats,
        verify,
    )

_HOMES = {
    "cassette": (
        "MAX_LINE",
        "Cassette",
        "RecordedPicture",
        "export_cassette",
        "import_cassette",
        "read_cassette",
        "read_pictures",
    ),
    "explain": ("RequestDifference", "differences", "explain_difference", "explain_miss"),
    "leases": ("Leases", "StoreLeases"),
    "maintain": (
        "ImportCounts",
        "PruneCounts",
        "RecordDifference",
        "RecordProblem",
        "Savings",
        "Stats",
        "ValidRecords",
        "diff",
        "merge",
        "prune",
        "savings",
        "select",
        "stats",
        "verify",
    ),
}
"""Modules and what is shown of them; each is loaded when something of it is first asked for."""

__all__ = [
    "DAMAGED_HINT",
    "KINDS",
    "MAX_LINE",
    "STORE_VARIABLE",
    "Cassette",
    "ImportCounts",
    "Leases",
    "MemoryStore",
    "Mode",
    "PruneCounts",
    "Record",
    "RecordDifference",
    "RecordKind",
    "RecordProblem",
    "RecordedPicture",
    "Records",
    "RequestDifference",
    "Savings",
    "Stats",
    "Store",
    "StoreLeases",
    "ValidRecords",
    "diff",
    "differences",
    "explain_difference",
    "explain_miss",
    "export_cassette",
    "find_store",
    "import_cassette",
    "merge",
    "prune",
    "read_cassette",
    "read_pictures",
    "savings",
    "select",
    "stats",
    "verify",
]


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.replay.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
