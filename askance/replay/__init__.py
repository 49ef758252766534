"""Every answer on record, so that any run can be played again without a network.

`Record` is one request and its answer; a `Store` keeps records on disk, a `MemoryStore` in memory. Cassettes carry them
from machine to machine. `explain_miss` says why a request is not on record.
"""

from __future__ import annotations

from askance.replay.cassette import ImportCounts, export_cassette, import_cassette
from askance.replay.lines import Picture
from askance.replay.location import STORE_VARIABLE, find_store
from askance.replay.memory import MemoryStore
from askance.replay.miss import Difference, differences, explain_difference, explain_miss
from askance.replay.reading import MAX_LINE, read_cassette, read_pictures
from askance.replay.records import KINDS, Mode, Record, RecordKind, Records
from askance.replay.selection import Stats, select, stats
from askance.replay.store import DAMAGED_HINT, Store, sound
from askance.replay.upkeep import Change, Pruned, Worth, diff, merge, prune, worth
from askance.replay.verify import Problem, verify
from askance.replay.visible import visible

__all__ = [
    "DAMAGED_HINT",
    "KINDS",
    "MAX_LINE",
    "STORE_VARIABLE",
    "Change",
    "Difference",
    "ImportCounts",
    "MemoryStore",
    "Mode",
    "Picture",
    "Problem",
    "Pruned",
    "Record",
    "RecordKind",
    "Records",
    "Stats",
    "Store",
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
    "visible",
    "worth",
]
