"""Runs as data frames, Parquet and Excel files and data sets, by libraries that are loaded when they are asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.errors import UsageError, optional_library
from askance.evals.run_folder import replacing
from askance.evals.tables import spreadsheet_cell

if TYPE_CHECKING:
    from askance.evals.exports.rows import Cell, Columns

library = partial(optional_library, lacking="This export needs {}, which is not installed.")

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""When every workbook says that it was made: equal runs make equal files."""


def pandas_frame(columns: Columns) -> Any:
    """A pandas `DataFrame`, a row an answer.

    Raises:
        MissingExtra: pandas is not installed.
    """
    return library("pandas", "frames").DataFrame(columns)


def polars_frame(columns: Columns) -> Any:
    """A polars `DataFrame`, a row an answer.

    Raises:
        MissingExtra: polars is not installed.
    """
    return library("polars", "frames").DataFrame(columns, strict=False)


def write_parquet(columns: Columns, path: Path) -> None:
    """Writes the columns as a Parquet file.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    arrow, parquet = library("pyarrow", "arrow"), library("pyarrow.parquet", "arrow")
    with replacing(path) as part:
        parquet.write_table(arrow.table(columns), part)


LONGEST_CELL = 32_767
"""Characters that Excel lets a cell hold."""
MOST_ROWS = 1_048_575
"""Rows below the head that Excel lets a sheet hold."""
WIDEST = 320
"""Pixels of a column of a sheet, at most."""
_CUT = " … (cut: --to csv has it whole)"


def write_excel(columns: Columns, path: Path) -> None:
    """Writes the columns as a workbook of Excel with one sheet; no cell of it is a formula or an address.

    A text that would be computed if somebody typed it is marked as text, so that it stays one when it is edited. A text
    that is too long for a cell is cut, and says so.

    Raises:
        MissingExtra: xlsxwriter is not installed.
        UsageError: there are more rows than a sheet can hold.
    """
    count = len(next(iter(columns.values()), ()))
    if count > MOST_ROWS:
        raise UsageError(f"A sheet of Excel has no room for {count:,} rows.", hint="Use `--to csv` or `--to parquet`.")
    file = BytesIO()  # the library has errors of its own for a disk that is full
    with library("xlsxwriter", "excel").Workbook(file, {"in_memory": True}) as book:
        book.set_properties({"created": _EPOCH})
        sheet, head = book.add_worksheet("samples"), book.add_format({"bold": True})
        plain, marked = book.add_format({}), book.add_format({"quote_prefix": True})
        for place, (name, values) in enumerate(columns.items()):
            sheet.write_string(0, place, name, head)
            for row, value in enumerate(values, start=1):
                _write_cell(sheet, (row, place), value, formats=(plain, marked))
        sheet.freeze_panes(1, 1)
        sheet.autofilter(0, 0, count, max(len(columns) - 1, 0))
        sheet.autofit(WIDEST)
    with replacing(path) as part:
        part.write_bytes(file.getvalue())


def _write_cell(sheet: Any, place: tuple[int, int], value: Cell, *, formats: tuple[Any, Any]) -> None:
    """Writes a value as what it is: Excel is never left to guess what a text might mean."""
    plain, marked = formats
    if isinstance(value, bool):
        sheet.write_boolean(*place, value)
    elif isinstance(value, str):
        text = value if len(value) <= LONGEST_CELL else f"{value[: LONGEST_CELL - len(_CUT)]}{_CUT}"
        sheet.write_string(*place, text, plain if spreadsheet_cell(text) == text else marked)
    elif value is not None and isfinite(value):
        sheet.write_number(*place, value)


def write_data_set(columns: Columns, path: Path) -> None:
    """Writes the columns as a folder that `datasets.load_from_disk` reads.

    Raises:
        MissingExtra: datasets is not installed.
        UsageError: the folder holds something.
    """
    datasets = library("datasets", "hf")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"There is something in {str(path)!r} already.", hint="Name a new folder: `-o FOLDER`.")
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict(columns).save_to_disk(str(path))
