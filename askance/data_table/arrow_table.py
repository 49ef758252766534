"""Tables of Arrow: Parquet, the formats of Arrow, and folders that `datasets` saved; read by pyarrow, in batches."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, cast

from askance.data_table.arrow_sizes import unpacked_sizes
from askance.data_table.row import MOST_COLUMNS, MOST_ROWS, DataRow, DataTable, column_places, numbered_rows
from askance.data_table.table_name import SPLITS, STATE
from askance.documents import UnreadableDocument, parse_json
from askance.errors import BadData, optional_library

MOST_GROUP = 4_000_000_000
"""Most bytes, unpacked, of what is read of a Parquet file at a time: one row group."""
MOST_UNPACKED, MOST_RATIO = 500_000_000, 20
"""Most bytes, unpacked, of what is read of a file of Parquet or Arrow in all; or so many times the file's own."""
MOST_AT_ONCE = 256_000_000
"""Most bytes of a batch, unpacked, of which the values may be longer than is known before it is read."""
MOST_FILES = 10_000
"""Most files of one table."""
DEEPEST_TYPE = 20
"""Lists and structs within each other that a column of Arrow may have."""
MOST_ITEMS = 1_000_000
"""Most items of the lists of one row."""
VALUE = 32
"""Bytes that a value takes in Python, beside those of its text."""
BATCH = 64
"""Rows of an Arrow table that are made Python values at a time; pictures may be among them."""


class ArrowSource(Protocol):
    """Batches of Arrow, from files or from a data set that `datasets` loaded."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches (or tables) of at most `BATCH` rows with these columns.

        Raises:
            BadData: they unpack to too much.
        """
        ...


@dataclass(frozen=True)
class ArrowTable:
    """A table of Arrow."""

    source: str
    home: Path | None
    arrow: ArrowSource

    @property
    def columns(self) -> tuple[str, ...]:
        return self.arrow.columns

    def rows(self, columns: Mapping[str, str] | None = None) -> Iterator[DataRow]:
        wanted = dict(columns) if columns is not None else {name: name for name in self.columns}
        column_places(self.source, self.columns, wanted)

        def located_rows() -> Iterator[tuple[str, Mapping[str, Any]]]:
            number = 0
            try:
                for batch in self.arrow.batches(list(dict.fromkeys(wanted.values()))):
                    for at in range(batch.num_rows):
                        row = batch.slice(at, 1)  # a value may stand in many rows and be there once
                        if any(_items(each) > MOST_ITEMS for each in row.columns):
                            raise BadData(
                                f"{self.source!r}, row {number + 1} has a list of too many items.",
                                hint="Write it shorter.",
                            )
                        (form,) = cast("list[dict[str, Any]]", row.to_pylist())
                        number += 1
                        where = f"{self.source!r}, row {number}"
                        yield where, {name: _plain(form[column]) for name, column in wanted.items()}
            except (arrow_library().ArrowException, OSError, ValueError, ArithmeticError) as error:
                raise _unreadable(self.source, error) from error

        return numbered_rows(self.source, located_rows())


class ArrowFiles:
    """Parquet files, or files in the formats of Arrow, that make one table; what nobody asks for is not read.

    Args:
        paths: of the files in order, at least one.

    Raises:
        BadData: one cannot be read, or has other columns than the first, or one of a type that is not read.
        MissingExtra: pyarrow is not installed.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        schemas = [self._schema(path) for path in paths]
        self.columns: tuple[str, ...] = tuple(schemas[0].names)
        for path, schema in zip(paths, schemas, strict=True):
            if len(schema) > MOST_COLUMNS:
                raise BadData(f"{str(path)!r} has more than {MOST_COLUMNS:,} columns.", hint="Is it the right file?")
            for name, kind in zip(schema.names, schema.types, strict=True):
                _check_kind(kind, f"{str(path)!r}: the column {name[:80]!r}")
            if {*schema.names} != {*self.columns}:
                raise BadData(
                    f"{str(path)!r} has other columns than {str(paths[0])!r}.", hint="Keep the files of one table."
                )
        self._held: tuple[tuple[int, int, str], Any] = (-1, -1, ""), None
        """A column of the row group that a cell was read from last, since cells are mostly asked for in order."""

    def _schema(self, path: Path) -> Any:
        with _errors_of(path):
            return _open_parquet(path).schema_arrow if _is_parquet(path) else arrow_reader(path).schema

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches of at most `BATCH` rows with these columns."""
        for path in self.paths:
            with _errors_of(path):
                yield from _bounded(path, (_parquet_batches if _is_parquet(path) else _arrow_batches)(path, columns))

    def rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """All rows with these columns.

        Raises:
            BadData: they cannot be read, are more than `MOST_ROWS`, or hold lists of too many items.
        """
        rows = list[dict[str, Any]]()
        for batch in self.batches(columns):
            if len(rows) > MOST_ROWS or any(_items(each) > MOST_ITEMS for each in batch.columns):
                raise BadData(
                    f"{str(self.paths[0])!r} has more than {MOST_ROWS:,} rows, or lists of too many items.",
                    hint="Is it the right file?",
                )
            rows += batch.to_pylist()
        return rows

    def cell(self, column: str, row: int) -> Any:
        """One value as Python has it. Its column is read for the row group that it is in, and kept until the next.

        Args:
            column: its name.
            row: its position in the whole table, from 0.

        Raises:
            BadData: it cannot be read, or the row group is larger than `MOST_GROUP`.
        """
        for number, groups in enumerate(self._groups):
            for place, count in enumerate(groups):
                if row < count:
                    if self._held[0] != (number, place, column):
                        self._held = (number, place, column), self._group(number, place, column)
                    return self._held[1][row].as_py()
                row -= count
        raise IndexError(row)

    @cached_property
    def _groups(self) -> list[list[int]]:
        """Of each file the rows of its row groups; those of a file of Arrow are one group, which is mapped."""
        return [self._counts(path) for path in self.paths]

    def _counts(self, path: Path) -> list[int]:
        with _errors_of(path):
            if not _is_parquet(path):
                return [arrow_reader(path).read_all().num_rows]
            groups = _open_parquet(path).metadata
            return [groups.row_group(place).num_rows for place in range(groups.num_row_groups)]

    def _group(self, number: int, place: int, column: str) -> Any:
        path = self.paths[number]
        with _errors_of(path):
            if not _is_parquet(path):
                mapped = arrow_reader(path).read_all().column(column)
                mapped.validate(full=True)  # offsets as they stand in the file may lead anywhere
                return mapped
            batches = [*_bounded(path, _parquet_batches(path, [column], group=place))]
            return arrow_library().Table.from_batches(batches).column(column)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def _open_parquet(path: Path, *, once_of: Sequence[str] = ()) -> Any:
    """A reader; in the columns of `once_of` a text that the file has once and many rows name is one text in memory.

    Of texts within structs and lists pyarrow cannot do that.
    """
    open_file = optional_library("pyarrow.parquet", "arrow").ParquetFile
    if not once_of:
        return open_file(str(path), memory_map=True)
    schema = open_file(str(path), memory_map=True).metadata.schema
    leaves = (schema.column(at) for at in range(len(schema)))
    once = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY" and leaf.path in once_of]
    return open_file(str(path), memory_map=True, read_dictionary=once)


def _is_of(leaf: str, columns: Sequence[str]) -> bool:
    """Whether a leaf of the file's schema is one of the columns, or a part of one."""
    return any(leaf == column or leaf.startswith(f"{column}.") for column in columns)


def _most_unpacked(path: Path) -> int:
    return max(MOST_UNPACKED, MOST_RATIO * path.stat().st_size)


def _bounded(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    """The batches of a file, while they unpack to no more than they may."""
    left = _most_unpacked(path)
    for batch in batches:
        left -= sum(map(unpacked_size, batch.columns))
        if left < 0:
            raise _too_large(path)
        yield batch


def _too_large(path: Path) -> BadData:
    return BadData(
        f"{str(path)!r} unpacks to more than {_most_unpacked(path):,} bytes.",
        hint="Save its rows in several files, or its pictures as files beside it.",
    )


@contextmanager
def _errors_of(path: Path) -> Generator[None]:
    """Raises what Arrow raises as errors over the file.

    Raises:
        BadData: it cannot be read.
        MissingExtra: pyarrow is not installed.
    """
    arrow = arrow_library()
    try:
        yield
    except (arrow.ArrowException, OSError, ValueError, ArithmeticError) as error:
        raise _unreadable(str(path), error) from error


def _parquet_batches(path: Path, columns: Sequence[str], *, group: int | None = None) -> Iterator[Any]:
    """Batches of all row groups, or of one."""
    with _open_parquet(path, once_of=columns) as file:
        wanted = [*range(file.num_row_groups)] if group is None else [group]
        parts = [_parts_of(path, file.metadata.row_group(each), columns) for each in wanted]
        if sum(part.total_uncompressed_size for part in chain.from_iterable(parts)) > _most_unpacked(path):
            raise _too_large(path)
        inner = (part for part in chain.from_iterable(parts) if part.path_in_schema not in columns)
        # Each value within a struct may be as long as all that its row group holds of them.
        longest = max((part.total_uncompressed_size for part in inner), default=0)
        size = max(1, min(BATCH, MOST_AT_ONCE // max(1, longest)))
        yield from file.iter_batches(batch_size=size, row_groups=wanted, columns=list(columns))


def _parts_of(path: Path, group: Any, columns: Sequence[str]) -> list[Any]:
    """What a row group holds of the columns.

    Raises:
        BadData: unpacked it is more than `MOST_GROUP`.
    """
    every = (group.column(number) for number in range(group.num_columns))
    parts = [part for part in every if _is_of(part.path_in_schema, columns)]
    size = sum(part.total_uncompressed_size for part in parts)
    if size > MOST_GROUP:
        raise BadData(
            f"{str(path)!r} has a row group of {size / 1e9:,.1f} GB.", hint="Write it with smaller row groups."
        )
    return parts


def _arrow_batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    for batch in arrow_reader(path):
        batch.validate(full=True)  # lengths and offsets as they stand in the file may lead anywhere
        wanted = batch.select(list(columns))
        yield from (wanted.slice(start, BATCH) for start in range(0, wanted.num_rows, BATCH))


_ARROW_FILE = b"ARROW1\0\0"


def arrow_reader(path: Path) -> Any:
    """A reader of the stream format of Arrow, which its file format holds too; the file is mapped rather than read.

    Raises:
        BadData: it unpacks to too much.
    """
    arrow = arrow_library()
    content = arrow.memory_map(str(path)).read_buffer()
    if content.size > len(_ARROW_FILE) and content.slice(0, len(_ARROW_FILE)).to_pybytes() == _ARROW_FILE:
        content = content.slice(len(_ARROW_FILE))
    most = _most_unpacked(path)
    for size in unpacked_sizes(arrow.ipc.MessageReader.open_stream(arrow.BufferReader(content))):
        most -= size
        if most < 0:
            raise _too_large(path)
    return arrow.ipc.open_stream(arrow.BufferReader(content))


def unpacked_size(cell: Any) -> int:
    """Bytes that the values of an array take in Python: of a text that many of them name, each time."""
    return sum(map(_size_of, _chunks(cell)))


def _size_of(chunk: Any) -> int:
    kind, types, own = chunk.type, optional_library("pyarrow.types", "arrow"), VALUE * len(chunk)
    if not own:
        return 0
    if types.is_struct(kind):
        return own + sum(map(unpacked_size, chunk.flatten()))
    if _is_list(kind):
        return own + unpacked_size(_in_lists(chunk))
    if _is_view(kind):
        views = memoryview(chunk.buffers()[1]).cast("i")[4 * chunk.offset : 4 * (chunk.offset + len(chunk)) : 4]
        return own + sum(max(length, 0) for length in views)  # that of an empty value may be anything
    compute = optional_library("pyarrow.compute", "arrow")
    try:
        lengths = compute.binary_length(chunk.dictionary if types.is_dictionary(kind) else chunk)
    except arrow_library().ArrowException:  # numbers, moments and the like
        return own
    named = lengths.take(chunk.indices) if types.is_dictionary(kind) else lengths
    return own + (compute.sum(named).as_py() or 0)


def _items(cell: Any) -> int:
    """Items of all lists in an array of one row."""
    return sum(_items_of(chunk) for chunk in _chunks(cell) if len(chunk))


def _items_of(chunk: Any) -> int:
    if optional_library("pyarrow.types", "arrow").is_struct(chunk.type):
        return sum(map(_items, chunk.flatten()))
    if not _is_list(chunk.type):
        return 0
    items = _in_lists(chunk)
    return len(items) if len(items) > MOST_ITEMS else len(items) + _items(items)


def _chunks(cell: Any) -> Iterator[Any]:
    """The parts of an array, each as it is stored: an extension is a name for another type."""
    for chunk in getattr(cell, "chunks", [cell]):
        stored = chunk
        while isinstance(stored.type, arrow_library().BaseExtensionType):
            stored = stored.storage
        yield stored


def _is_list(kind: Any) -> bool:
    types = optional_library("pyarrow.types", "arrow")
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or types.is_map(kind)


def _in_lists(chunk: Any) -> Any:
    """The items of all lists (or maps) in an array."""
    if optional_library("pyarrow.types", "arrow").is_fixed_size_list(chunk.type):
        return chunk.flatten()
    start, end = chunk.offsets[0].as_py(), chunk.offsets[-1].as_py()
    return chunk.values.slice(start, end - start)


def _check_kind(kind: Any, where: str) -> None:
    """Checks the type of a column and those within it.

    Args:
        kind: the type.
        where: the column, for messages.

    Raises:
        BadData: they are nested deeper than `DEEPEST_TYPE`, or one is of those by which a small file can hold much.
    """
    level, depth = [kind], 0
    while level:
        if depth > DEEPEST_TYPE:
            raise BadData(f"{where} is nested deeper than {DEEPEST_TYPE} levels.", hint="Write it as plain columns.")
        strange = next(filter(_is_strange, level), None)
        if strange is not None:
            raise BadData(
                f"{where} is of the type {str(strange)[:80]!r}, which is not read.", hint="Write it as a plain column."
            )
        level = [each for outer in level for each in _kinds_in(outer)]
        depth += 1


def _is_strange(kind: Any) -> bool:
    """Whether a type is of those in which one value can stand for many, beyond texts that are named by numbers."""
    types = optional_library("pyarrow.types", "arrow")
    if types.is_dictionary(kind):
        return bool(_kinds_in(kind.value_type)) or _is_view(kind.value_type)
    strange = types.is_run_end_encoded, types.is_union, types.is_list_view, types.is_large_list_view
    return any(is_such(kind) for is_such in strange)


def _is_view(kind: Any) -> bool:
    types = optional_library("pyarrow.types", "arrow")
    return types.is_string_view(kind) or types.is_binary_view(kind)


def _kinds_in(kind: Any) -> list[Any]:
    """The types that a type is made of."""
    if isinstance(kind, arrow_library().BaseExtensionType):
        return [kind.storage_type]
    return [kind.field(number).type for number in range(kind.num_fields)]


def _plain(value: Any) -> Any:
    """A value of Arrow as JSON has it, but for bytes: moments and exact numbers become texts."""
    if isinstance(value, (str, int, float, bool, bytes)) or value is None:
        return value
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in cast("dict[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in cast("Sequence[Any]", value)]
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def _unreadable(source: str, error: Exception) -> BadData:
    """What is raised over a table that Arrow cannot read."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return BadData(f"The file {source!r} cannot be read as Arrow: {reason}.", hint="Fetch it again.")


def arrow_library() -> Any:
    """The library pyarrow.

    Raises:
        MissingExtra: it is not installed.
    """
    return optional_library("pyarrow", "arrow")


def saved_table(source: str, folder: Path) -> DataTable:
    """The table in a folder that `datasets` saved.

    Raises:
        BadData: it is none, or holds several splits.
    """
    if (folder / SPLITS).is_file():
        splits = sorted(each.name for each in folder.iterdir() if (each / STATE).is_file())
        if len(splits) == 1:
            return saved_table(source, folder / splits[0])
        raise BadData(
            f"The folder {source!r} holds the splits {', '.join(splits)}.",
            hint=f"Name one: {str(folder / (splits[0] if splits else 'test'))!r}.",
        )
    if not (folder / STATE).is_file():
        raise BadData(
            f"The folder {source!r} is no data set that `datasets` saved.",
            hint=f"`hf:{source}` has `datasets` load a folder of Parquet, CSV or picture files.",
        )
    return ArrowTable(source, folder, ArrowFiles(_saved_files(folder)))


def _saved_files(folder: Path) -> list[Path]:
    """The Arrow files that the state of a saved data set names, in order.

    Raises:
        BadData: it names none, or one that is not in the folder.
    """
    try:
        state: Any = parse_json((folder / STATE).read_bytes())
        names = [str(each["filename"]) for each in state["_data_files"]]
        mapped = state.get("_indices_data_files")
    except (OSError, UnreadableDocument, KeyError, TypeError, AttributeError) as error:
        raise BadData(f"{str(folder / STATE)!r} names no files.", hint="Save the data set again.") from error
    if mapped:
        raise BadData(
            f"The data set in {str(folder)!r} is a selection by row numbers.",
            hint="Save it with `dataset.flatten_indices().save_to_disk(…)`.",
        )
    if len(names) > MOST_FILES:
        raise BadData(
            f"The data set in {str(folder)!r} names {len(names):,} files, more than {MOST_FILES:,}.",
            hint="Save it again.",
        )
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise BadData(f"The data set in {str(folder)!r} names {name!r} {times:,} times.", hint="Save it again.")
    files = [folder / name for name in names]
    pairs = zip(files, names, strict=True)
    bad = next((file for file, name in pairs if file.name != name or not os.path.isfile(file)), None)  # noqa: PTH113
    if bad is not None or not files:
        raise BadData(f"The data set in {str(folder)!r} lacks {str(bad or 'its files')!r}.", hint="Save it again.")
    return files
