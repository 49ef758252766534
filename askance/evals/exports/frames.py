"""Runs as data frames, Parquet files and data sets, by libraries that are loaded when they are asked for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.errors import MissingExtra, UsageError
from askance.evals.exports.rows import columns_of

if TYPE_CHECKING:
    from askance.evals.run import Run


def pandas_frame(run: Run) -> Any:
    """A pandas `DataFrame`, a row an answer.

    Raises:
        MissingExtra: pandas is not installed.
    """
    return library("pandas", "frames").DataFrame(columns_of(run))


def polars_frame(run: Run) -> Any:
    """A polars `DataFrame`, a row an answer.

    Raises:
        MissingExtra: polars is not installed.
    """
    return library("polars", "frames").DataFrame(columns_of(run), strict=False)


def write_parquet(run: Run, path: Path) -> None:
    """Writes the rows as a Parquet file.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    arrow, parquet = library("pyarrow", "arrow"), library("pyarrow.parquet", "arrow")
    part = path.with_name(f"{path.name}.part")
    parquet.write_table(arrow.table(columns_of(run)), part)
    part.replace(path)


def write_data_set(run: Run, path: Path) -> None:
    """Writes the rows as a folder that `datasets.load_from_disk` reads.

    Raises:
        MissingExtra: datasets is not installed.
        UsageError: the folder holds something.
    """
    datasets = library("datasets", "hf")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"There is something in {str(path)!r} already.", hint="Name a new folder: `-o FOLDER`.")
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict(columns_of(run)).save_to_disk(str(path))


def library(name: str, extra: str) -> Any:
    """An optional library.

    Raises:
        MissingExtra: it is not installed; the hint names the extra that brings it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f"This export needs {name.partition('.')[0]}, which is not installed.",
            hint=f"pip install 'askance[{extra}]'",
        ) from error
