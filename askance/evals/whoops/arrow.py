"""Rows and pictures of Arrow files: parquet, and data sets that `datasets` keeps on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from askance.errors import BadData, MissingExtra

PICTURE = "image"
"""The column with the picture: its bytes, and the name of its file."""


class ArrowTable:
    """The rows of one or several Arrow files of one data set; pictures are read when they are needed.

    Raises:
        MissingExtra: pyarrow is not installed.
        BadData: a file that cannot be read.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        arrow = _pyarrow()
        tables = [_read(path) for path in paths]
        try:
            self._table = arrow.concat_tables(tables)
        except arrow.ArrowException as error:
            raise _unreadable(paths[0], error) from error

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._table.column_names)

    def rows(self, columns: Sequence[str]) -> list[Mapping[str, Any]]:
        """The values of those of `columns` that there are."""
        return self._table.select([name for name in self.columns if name in columns]).to_pylist()

    def picture(self, place: int) -> tuple[bytes | None, str]:
        """The bytes of a row's picture, None where there are none, and the name of its file."""
        if PICTURE not in self.columns:
            return None, ""
        found: Any = self._table.column(PICTURE)[place].as_py()
        if found is None or isinstance(found, bytes):
            return found, ""
        parts: Mapping[str, Any] = found
        return parts.get("bytes"), str(parts.get("path") or "")


def _read(path: Path) -> Any:
    """The table in a file: parquet, or the stream (or file) format of Arrow, mapped rather than read."""
    arrow = _pyarrow()
    try:
        if path.suffix == ".parquet":
            return import_module("pyarrow.parquet").read_table(str(path), memory_map=True)
        try:
            return arrow.ipc.open_stream(arrow.memory_map(str(path))).read_all()
        except arrow.ArrowInvalid:
            return arrow.ipc.open_file(arrow.memory_map(str(path))).read_all()
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> BadData:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return BadData(f"The file {str(path)!r} cannot be read as Arrow: {reason}.", hint="Fetch it again.")


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise MissingExtra("pyarrow is not installed.", hint="pip install 'askance[arrow]'") from error
