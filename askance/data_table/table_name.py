"""Which names are those of tables. Nothing that reads a table is loaded for it."""

from __future__ import annotations

import os
from pathlib import Path

HUB = "hf:"
"""What the name of a data set of Hugging Face begins with."""
TEXT_SUFFIXES = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
ARROW_SUFFIXES = frozenset({".parquet", ".arrow"})
SUFFIXES = TEXT_SUFFIXES | ARROW_SUFFIXES
"""Endings of files that are tables."""
STATE, SPLITS = "state.json", "dataset_dict.json"
"""Files of a folder that `datasets` saved: of one split, and of several."""


def names_data_table(source: str) -> bool:
    """Whether `source` names a table, by its ending, its `hf:` or what is in the folder; no file is read for it."""
    path = Path(source)
    return (
        source.startswith(HUB)
        or path.suffix.lower() in SUFFIXES
        or any(os.path.isfile(path / name) for name in (STATE, SPLITS))  # noqa: PTH113  # false for a name too long
    )
