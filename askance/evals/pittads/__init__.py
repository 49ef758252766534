"""The persuasive ads of PittAds: their data in any layout, and the tasks over them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.evals.pittads.annotations import Annotations, read_annotations
    from askance.evals.pittads.aor import Aor
    from askance.evals.pittads.arr import ArrBaseline, ArrMulti, ArrSingle
    from askance.evals.pittads.arr_clip import ArrClip
    from askance.evals.pittads.asr import Asr
    from askance.evals.pittads.dataset import Ad, PittAds
    from askance.evals.pittads.layout import Pictures, statements_in
    from askance.evals.pittads.lists import (
        Descriptions,
        SymbolBox,
        read_descriptions,
        read_id_list,
        read_symbols,
        read_votes,
    )
    from askance.evals.pittads.mac import Mac
    from askance.evals.pittads.report import DataReport, Dropped, check

_HOMES = {
    "annotations": ("Annotations", "read_annotations"),
    "aor": ("Aor",),
    "arr": ("ArrBaseline", "ArrMulti", "ArrSingle"),
    "arr_clip": ("ArrClip",),
    "asr": ("Asr",),
    "report": ("DataReport", "Dropped", "check"),
    "dataset": ("Ad", "PittAds"),
    "layout": ("Pictures", "statements_in"),
    "lists": ("Descriptions", "SymbolBox", "read_descriptions", "read_id_list", "read_symbols", "read_votes"),
    "mac": ("Mac",),
}
"""Names by the modules that have them, which load when one of their names is asked for."""

__all__ = [
    "Ad",
    "Annotations",
    "Aor",
    "ArrBaseline",
    "ArrClip",
    "ArrMulti",
    "ArrSingle",
    "Asr",
    "DataReport",
    "Descriptions",
    "Dropped",
    "Mac",
    "Pictures",
    "PittAds",
    "SymbolBox",
    "check",
    "read_annotations",
    "read_descriptions",
    "read_id_list",
    "read_symbols",
    "read_votes",
    "statements_in",
]


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.evals.pittads.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
