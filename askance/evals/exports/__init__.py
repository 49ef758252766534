"""Runs for other tools: CSV, JSON lines, Parquet, data frames, logs of Inspect, stores of MLflow, data sets."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.evals.exports.frames import pandas_frame, polars_frame
    from askance.evals.exports.write import FORMS, Form, export

_HOMES = {"FORMS": "write", "Form": "write", "export": "write", "pandas_frame": "frames", "polars_frame": "frames"}
"""Names by the modules that have them: whoever opens a run needs none of what writes it."""

__all__ = ["FORMS", "Form", "export", "pandas_frame", "polars_frame"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"askance.evals.exports.{_HOMES[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
