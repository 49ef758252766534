"""Every answer on record, so that any run can be played again without a network.

`Record` is one request and its answer; a `Store` keeps records on disk, a `MemoryStore` in memory. Cassettes carry them
from machine to machine. `explain_miss` says why a request is not on record.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from askance.replay.location import STORE_VARIABLE, find_store
from askance.replay.records import KINDS, Mode, Record, RecordKind, Records
from askance.replay.store import DAMAGED_HINT, Store, sound

if TYPE_CHECKING:
    from askance.replay.cassette import ImportCounts, export_cassette, import_cassette
    from askance.replay.leases import Leases, StoreLeases
    from askance.replay.lines import Picture
    from askance.replay.memory import MemoryStore
    from askance.replay.miss import Difference, differences, explain_difference, explain_miss
    from askance.replay.reading import MAX_LINE, Cassette, read_cassette, read_pictures
    from askance.replay.selection import Stats, select, stats
    from askance.replay.soundness import Sound
    from askance.replay.upkeep import Change, Pruned, Worth, diff, merge, prune, worth
    from askance.replay.verifying import Problem, verify

_HOMES = {
    "cassette": (
        "ImportCounts",
        "export_cassette",
        "import_cassette",
    ),
    "leases": ("Leases", "StoreLeases"),
    "lines": ("Picture",),
    "memory": ("MemoryStore",),
    "miss": (
        "Difference",
        "differences",
        "explain_difference",
        "explain_miss",
    ),
    "reading": (
        "MAX_LINE",
        "Cassette",
        "read_cassette",
        "read_pictures",
    ),
    "selection": (
        "Stats",
        "select",
        "stats",
    ),
    "soundness": ("Sound",),
    "upkeep": (
        "Change",
        "Pruned",
        "Worth",
        "diff",
        "merge",
        "prune",
        "worth",
    ),
    "verifying": (
        "Problem",
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
    "Change",
    "Difference",
    "ImportCounts",
    "Leases",
    "MemoryStore",
    "Mode",
    "Picture",
    "Problem",
    "Pruned",
    "Record",
    "RecordKind",
    "Records",
    "Sound",
    "Stats",
    "Store",
    "StoreLeases",
    "Worth",
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
    "select",
    "sound",
    "stats",
    "verify",
    "worth",
]


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.replay.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
