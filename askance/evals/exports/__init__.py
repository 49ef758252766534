"""Runs for other tools: CSV, JSON lines, Parquet, data frames, logs of Inspect, stores of MLflow, data sets."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.evals.exports.formats import FORMS, Form, export
    from askance.evals.exports.frames import pandas_frame, polars_frame

_HOMES = {"formats": ("FORMS", "Form", "export"), "frames": ("pandas_frame", "polars_frame")}
"""Names by the modules that have them; whoever opens a run needs none of what writes it."""

__all__ = ["FORMS", "Form", "export", "pandas_frame", "polars_frame"]


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.evals.exports.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
