"""Which records a run rests on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from askance.errors import StoreError, UsageError
from askance.evals.blame_files import LINES
from askance.evals.run_folder import SAMPLES, records_of


def keys_used(folder: Path) -> frozenset[str]:
    """Keys of the records that a run folder refers to, finished or not, and those of its blame.

    A last line that a kill tore does not count.

    Raises:
        UsageError: the folder holds no run, or a line of it is none.
        StoreError: a file of the run cannot be read.
    """
    if not (folder / "run.json").is_file():
        raise UsageError(f"The folder {str(folder)!r} holds no run.", hint="Name the folder that `--out` named.")
    keys = set[str]()
    try:
        for file in (folder / SAMPLES, folder / LINES):
            if file.exists():
                *whole, _ = file.read_text(encoding="utf-8").split("\n")
                keys.update(key for line in whole for key in _keys_of(line, file))
    except OSError as error:
        raise StoreError(
            f"The run folder {str(folder)!r} cannot be read: {error.strerror}.",
            hint="Check the path and its permissions.",
        ) from error
    return frozenset(keys.union(records_of(folder).keys()))


def _keys_of(line: str, file: Path) -> list[str]:
    try:
        links = cast("dict[str, Any]", json.loads(line)["links"])
        return [str(key) for link in links.values() for key in link["calls"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"A line of {str(file)!r} is no sample of a run.",
            hint="Name a run that can be read; nothing is removed before all of them were.",
        ) from error
