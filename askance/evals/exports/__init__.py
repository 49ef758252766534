"""Runs for other tools: CSV, JSON lines, Parquet, data frames, logs of Inspect, stores of MLflow, data sets."""

from __future__ import annotations

from askance.evals.exports.frames import pandas_frame, polars_frame
from askance.evals.exports.write import FORMS, Form, export

__all__ = ["FORMS", "Form", "export", "pandas_frame", "polars_frame"]
