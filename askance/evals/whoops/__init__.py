"""WHOOPS!: weird images, what people say of them, and tasks over both; in any layout of the data set."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.evals.whoops.captioning import Captioning
    from askance.evals.whoops.dataset import IMAGES, QUESTIONS, Whoops
    from askance.evals.whoops.explain import Explain
    from askance.evals.whoops.explain_choice import ExplainChoice
    from askance.evals.whoops.identify import Identify
    from askance.evals.whoops.images import WeirdImage
    from askance.evals.whoops.layout import has_rows
    from askance.evals.whoops.matching import CaptionMatching
    from askance.evals.whoops.pairs import Pair, read_pairs
    from askance.evals.whoops.report import Counted, WhoopsReport, check
    from askance.evals.whoops.vqa import Vqa

_HOMES = {
    "captioning": ("Captioning",),
    "report": ("Counted", "WhoopsReport", "check"),
    "dataset": ("IMAGES", "QUESTIONS", "Whoops"),
    "images": ("WeirdImage",),
    "explain": ("Explain",),
    "explain_choice": ("ExplainChoice",),
    "identify": ("Identify",),
    "layout": ("has_rows",),
    "matching": ("CaptionMatching",),
    "pairs": ("Pair", "read_pairs"),
    "vqa": ("Vqa",),
}
"""Names by the modules that have them, which load when one of their names is asked for."""

__all__ = [
    "IMAGES",
    "QUESTIONS",
    "CaptionMatching",
    "Captioning",
    "Counted",
    "Explain",
    "ExplainChoice",
    "Identify",
    "Pair",
    "Vqa",
    "WeirdImage",
    "Whoops",
    "WhoopsReport",
    "check",
    "has_rows",
    "read_pairs",
]


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.evals.whoops.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
