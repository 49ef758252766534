"""Runs for other tools: CSV, Excel, JSON lines, Parquet, data frames, logs of Inspect, stores of MLflow, data sets."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
