"""What a table is opened from: a file, a folder or a data set of Hugging Face, by its name."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

from askance.data_table.arrow_table import ArrowFiles, ArrowTable, saved_table
from askance.data_table.hub_table import hub_table
from askance.data_table.table_name import ARROW_SUFFIXES, HUB, SUFFIXES
from askance.data_table.text_table import CsvTable, JsonLinesTable
from askance.errors import BadData

if TYPE_CHECKING:
    from askance.data_table.row import DataTable


def open_data_table(source: str | Path, *, offline: bool = False, stream: bool = False) -> DataTable:
    """The table that a file, a folder or `hf:NAME` holds.

    Args:
        source: see the table of this module.
        offline: whether a data set of the hub is taken from this machine alone.
        stream: whether only its first rows are wanted, so that rows are fetched as they are asked for, not all at once.

    Raises:
        BadData: it is not there, is no table, or cannot be read.
        MissingExtra: what reads it is not installed.
    """
    named = str(source)
    if named.startswith(HUB):
        return hub_table(named, offline=offline, stream=stream)
    if "://" in named:
        raise BadData(f"The table {named!r} is not on this disk.", hint="Download it first.")
    path = Path(source)
    if path.is_dir():
        return saved_table(named, path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise BadData(
            f"{named!r} is no table.", hint=f"A table ends in {', '.join(sorted(SUFFIXES))}, or is named hf:OWNER/NAME."
        )
    _check_file(path)
    if suffix in ARROW_SUFFIXES:
        return ArrowTable(named, path.parent, ArrowFiles([path]))
    return JsonLinesTable(path) if suffix in {".jsonl", ".ndjson"} else CsvTable(path)


def open_json_lines(path: Path) -> DataTable:
    """A file of JSON lines, whatever its name ends in.

    Raises:
        BadData: there is no such file.
    """
    _check_file(path)
    return JsonLinesTable(path)


def _check_file(path: Path) -> None:
    """Checks that a table is a file.

    Raises:
        BadData: there is no such file, or it is a device.
    """
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError as error:
        raise BadData(f"There is no file {str(path)!r}.", hint="Check the name.") from error
    except (OSError, ValueError) as error:
        raise BadData(f"{str(path)!r} cannot be read: {error}.", hint="Check the name.") from error
    if not regular:
        raise BadData(f"{str(path)!r} is no regular file.", hint="Name the file itself.")
