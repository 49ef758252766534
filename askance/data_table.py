"""Rows of a table that lies somewhere: CSV, JSON lines, Parquet, Arrow, or a data set of Hugging Face.

```python
table = open_data_table("ads.csv")
for row in table.rows({"image": "path", "options": "choices"}):
    print(row.where, row["image"], as_list(row["options"]))
```

| source | what it is |
|---|---|
| `ads.csv`, `ads.tsv` | the first line names the columns |
| `ads.jsonl`, `ads.ndjson` | a JSON object a line |
| `ads.parquet`, `ads.arrow` | one file, read by pyarrow (extra `arrow`) |
| a folder | that `datasets` saved, with one split; read by pyarrow |
| `hf:owner/name` | a data set of the hub or a folder that `datasets` loads (extra `hf`) |

`hf:owner/name?split=test&config=en&revision=abc` says which split, configuration and revision. What is downloaded, or
streamed where only the first rows are wanted, lies in the cache of Hugging Face. No code of a data set is run.

Whoever wrote a table is a stranger: rows are read one after the other, within limits of lines, rows, depth and memory.
"""

from __future__ import annotations

import codecs
import csv
import math
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, time
from functools import cached_property, partial
from hashlib import sha256
from importlib import import_module
from itertools import chain, islice
from itertools import count as counted
from pathlib import Path
from typing import Any, Protocol, TextIO, cast
from urllib.parse import parse_qsl

from askance.amounts import first_few
from askance.arrow_sizes import unpacked_sizes
from askance.documents import UnreadableDocument, parse_json, read_yaml
from askance.errors import BadData, MissingExtra, UsageError
from askance.packed_size import packed_size

MOST_ROWS = 1_000_000
MOST_LINE = 1_000_000
"""Most characters of a line of text."""
MOST_GROUP = 4_000_000_000
"""Most bytes, unpacked, of what is read of a Parquet file at a time: one row group."""
MOST_UNPACKED, MOST_RATIO = 500_000_000, 20
"""Most bytes, unpacked, of what is read of a file of Parquet or Arrow in all; or so many times the file's own."""
MOST_AT_ONCE = 256_000_000
"""Most bytes of a batch, unpacked, of which the values may be longer than is known before it is read."""
MOST_COLUMNS = 10_000
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

HUB = "hf:"
"""What the name of a data set of Hugging Face begins with."""

TEXT_SUFFIXES = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
ARROW_SUFFIXES = frozenset({".parquet", ".arrow"})
SUFFIXES = TEXT_SUFFIXES | ARROW_SUFFIXES
"""Endings of files that are tables."""

_STATE, _SPLITS = "state.json", "dataset_dict.json"
"""Files of a folder that `datasets` saved: of one split, and of several."""


@dataclass(frozen=True, slots=True)
class DataRow(Mapping[str, Any]):
    """One row: its values by column; what the row leaves empty it does not have.

    Values are texts, numbers, booleans, lists, maps, and bytes (a picture). Those of a CSV file are all texts.
    """

    number: int
    """Counted from 1."""
    where: str
    """The place, for messages: `'ads.csv', line 3`."""
    cells: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.cells[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)


class DataTable(Protocol):
    """A table, opened; it can be gone through several times."""

    @property
    def source(self) -> str:
        """As it was named."""
        ...

    @property
    def home(self) -> Path | None:
        """The folder that paths in the rows are meant from; None for what was downloaded."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; for JSON lines those of the first row."""
        ...

    def rows(self, columns: Mapping[str, str] | None = None) -> Iterator[DataRow]:
        """The rows in order, read as they are asked for.

        Args:
            columns: which columns are read, by the names that the rows are to have for them; None reads all.

        Raises:
            BadData: a column that is not there, a row that cannot be read, no row at all, or more than `MOST_ROWS`.
        """
        ...


def names_data_table(source: str) -> bool:
    """Whether `source` names a table, by its ending, its `hf:` or what is in the folder; no file is read for it."""
    path = Path(source)
    return (
        source.startswith(HUB)
        or path.suffix.lower() in SUFFIXES
        or any(os.path.isfile(path / name) for name in (_STATE, _SPLITS))  # noqa: PTH113  # false for a name too long
    )


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
        return _of_hub(named, offline=offline, stream=stream)
    path = Path(source)
    if path.is_dir():
        return _of_folder(named, path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise BadData(
            f"{named!r} is no table.", hint=f"A table ends in {', '.join(sorted(SUFFIXES))}, or is named hf:OWNER/NAME."
        )
    _check_file(path)
    if suffix in ARROW_SUFFIXES:
        return _ArrowTable(named, path.parent, ArrowFiles([path]))
    return _JsonLines(path) if suffix in {".jsonl", ".ndjson"} else _CsvTable(path)


def open_json_lines(path: Path) -> DataTable:
    """A file of JSON lines, whatever its name ends in.

    Raises:
        BadData: there is no such file.
    """
    _check_file(path)
    return _JsonLines(path)


def as_list(value: Any) -> list[Any] | None:
    """A list that stands in a table: as such, or as the text of a JSON list, which is how CSV files keep one.

    Returns:
        None where it is neither.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(UnreadableDocument):
            value = parse_json(value)
    return cast("list[Any]", value) if isinstance(value, list) else None


def picture_in(value: Any) -> bytes | str | None:
    """A picture that stands in a table: its bytes, or the path or address of it.

    Args:
        value: a text, bytes, or the map of bytes and path that `datasets` keeps.

    Returns:
        None where it is none of these.
    """
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value)
        value = parts.get("bytes") or parts.get("path")
    return value if isinstance(value, (bytes, str)) and value else None


def is_below(file: Path, folder: Path) -> bool:
    """Whether a file that a stranger names lies below a folder, links resolved; no for what can be no file."""
    try:
        return file.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: symbolic links that lead to each other
        return False


def picture_file(name: str, home: Path | None, where: str, *, allowed: Sequence[Path] = ()) -> Path:
    """The file of a picture that a row names: below the folder of its table, or below one that the user allows.

    Args:
        name: as it stands in the row.
        home: the folder that names are meant from; None where the table has none.
        where: the row, for messages.
        allowed: further folders.

    Raises:
        BadData: it lies elsewhere, also by a link, or can be no file.
    """
    if home is None and not (allowed and Path(name).is_absolute()):
        raise BadData(
            f"{where}: `image` is the name of a file, {name[:200]!r}, and the data have no folder.",
            hint="Name the column that holds the pictures themselves: `columns: {image: …}`, or --column image=NAME.",
        )
    file = (home or Path()) / name
    if not any(is_below(file, folder) for folder in (*([home] if home else ()), *allowed)):
        raise BadData(
            f"{where}: `image` leads out of the folder of its file: {name[:200]!r}.",
            hint="Mend the name, put the images beside it, or allow their folder: --allow-folder FOLDER.",
        )
    return file


# --- text ------------------------------------------------------------------------------------------------------------

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def encoding_of(start: bytes) -> str:
    """The encoding that the byte order mark at the start of a file names; else UTF-8."""
    return next((encoding for mark, encoding in _BOMS if start.startswith(mark)), "utf-8")


class _TextTable:
    """A file of text.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.source = str(path)
        self.home: Path | None = path.parent
        self._columns: tuple[str, ...] | None = None

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Each line with its number and its line end.

        Raises:
            BadData: it cannot be read, is no text, or has a line longer than `MOST_LINE`.
        """
        try:
            with self._opened() as file:
                number = 0
                while line := file.readline(MOST_LINE + 1):
                    number += 1
                    if len(line) > MOST_LINE:
                        raise BadData(
                            f"{self.source!r}, line {number}: it is longer than {MOST_LINE:,} characters.",
                            hint="Give a row a line, and pictures as files beside it.",
                        )
                    yield number, line
        except OSError as error:
            raise BadData(f"{self.source!r} cannot be read: {error.strerror}.", hint="Check the file.") from error
        except UnicodeError as error:
            raise BadData(f"{self.source!r} is no text in UTF-8: {error}.", hint="Save it as UTF-8.") from error

    def _opened(self) -> TextIO:
        with self._path.open("rb") as file:
            start = file.read(4)
        return self._path.open(encoding=encoding_of(start), newline="")


class _JsonLines(_TextTable):
    """A JSON object a line."""

    @property
    def columns(self) -> tuple[str, ...]:
        if self._columns is None:
            self._columns = next((tuple(form) for _, form in self._objects()), ())
        return self._columns

    def rows(self, columns: Mapping[str, str] | None = None) -> Iterator[DataRow]:
        def found() -> Iterator[tuple[str, Mapping[str, Any]]]:
            unseen = set((columns or {}).values())
            for where, form in self._objects():
                unseen -= form.keys()
                yield (
                    where,
                    form
                    if columns is None
                    else {name: form[column] for name, column in columns.items() if column in form},
                )
            if unseen:
                raise BadData(
                    f"{self.source!r} has {min(unseen)!r} in no row.",
                    hint=f"Its first row has {', '.join(map(repr, self.columns))}.",
                )

        return _numbered(self.source, found())

    def _objects(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for number, line in self._lines():
            if not line.strip():
                continue
            where = f"{self.source!r}, line {number}"
            try:
                form = parse_json(line, unique=True)
            except UnreadableDocument as error:
                raise BadData(f"{where} {error}.", hint="Write a JSON object a line.") from error
            if not isinstance(form, dict):
                raise BadData(f"{where} is no JSON object.", hint='A row reads like {"image": "a.jpg"}.')
            yield where, cast("dict[str, Any]", form)


_END = "\x1eend"
"""A last row that is added to a CSV file: where it does not come out again, a quotation mark was left open."""


class _CsvTable(_TextTable):
    """Values between commas; between tabs where the file ends in `.tsv`."""

    @property
    def columns(self) -> tuple[str, ...]:
        if self._columns is None:
            _, header = next(self._fields(), (0, list[str]()))
            self._columns = tuple(name.strip() for name in header)
            if not any(self._columns):
                raise BadData(f"{self.source!r} is empty.", hint="Its first line names the columns.")
        return self._columns

    def rows(self, columns: Mapping[str, str] | None = None) -> Iterator[DataRow]:
        places = _places(self.source, self.columns, columns)

        def found() -> Iterator[tuple[str, Mapping[str, Any]]]:
            fields = self._fields()
            next(fields, None)
            for line, cells in fields:
                where = f"{self.source!r}, line {line}"
                if len(cells) > len(self.columns):
                    raise BadData(
                        f"{where}: {len(cells)} fields, and the first line names {len(self.columns)}.",
                        hint="A field with a comma in it stands in double quotes.",
                    )
                yield where, {name: cells[at] for name, at in places.items() if at < len(cells) and cells[at] != ""}

        return _numbered(self.source, found())

    def _fields(self) -> Iterator[tuple[int, list[str]]]:
        delimiter = "\t" if self._path.suffix.lower() == ".tsv" else ","
        return csv_fields((line for _, line in self._lines()), self.source, delimiter=delimiter)


def csv_fields(
    lines: Iterable[str], source: str, *, delimiter: str = ",", strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """The rows of CSV as lists of fields, each with the number of the line on which it ends; empty lines are left out.

    Args:
        lines: with their line ends.
        source: what they are of, for messages.
        delimiter: between two fields.
        strict: whether text behind a closing quotation mark is refused, rather than taken for a part of the field.

    Raises:
        BadData: it is no CSV, or a quotation mark is never closed.
    """
    at_end = False

    def end() -> Iterator[str]:
        nonlocal at_end
        yield "\n"
        at_end = True
        yield f"{_END}\n"

    reader = csv.reader(chain(lines, end()), delimiter=delimiter, strict=strict)
    try:
        for cells in reader:
            if at_end and cells == [_END]:
                return
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        if not at_end:
            raise BadData(
                f"The file {source!r}, line {reader.line_num}: no CSV ({error}).", hint="Save it as CSV again."
            ) from error
    raise BadData(
        f"The file {source!r} ends within a quoted field.", hint="It is cut off, or a quotation mark is missing."
    )


def _places(source: str, columns: Sequence[str], wanted: Mapping[str, str] | None) -> Mapping[str, int]:
    """At which place each wanted column stands.

    Raises:
        BadData: one is not there, or several have its name, or there are more than `MOST_COLUMNS`.
    """
    if len(columns) > MOST_COLUMNS:
        raise BadData(f"{source!r} has more than {MOST_COLUMNS:,} columns.", hint="Is it the right file?")
    if wanted is None:
        wanted = {name: name for name in columns if name}
    counts = Counter(columns)
    for column in wanted.values():
        if (count := counts[column]) != 1:
            has = f"has no column {column!r}" if not count else f"has the column {column!r} {count} times"
            raise BadData(f"{source!r} {has}.", hint=f"It has {first_few([*map(repr, columns)], 20)}.")
    places = {column: place for place, column in enumerate(columns)}
    return {name: places[column] for name, column in wanted.items()}


def _numbered(source: str, found: Iterator[tuple[str, Mapping[str, Any]]]) -> Iterator[DataRow]:
    """The rows of a table, counted, without what they leave empty.

    Raises:
        BadData: there is none, or there are more than `MOST_ROWS`.
    """
    number = 0
    for number, (where, values) in enumerate(found, start=1):
        if number > MOST_ROWS:
            raise BadData(f"{source!r} has more than {MOST_ROWS:,} rows.", hint="Split it into several.")
        yield DataRow(number, where, {name: value for name, value in values.items() if not _empty(value)})
    if not number:
        raise BadData(f"{source!r} has no row.", hint="Is it the right file, and the right split?")


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


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


# --- Arrow -----------------------------------------------------------------------------------------------------------


class _ArrowSource(Protocol):
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
class _ArrowTable:
    """A table of Arrow."""

    source: str
    home: Path | None
    arrow: _ArrowSource

    @property
    def columns(self) -> tuple[str, ...]:
        return self.arrow.columns

    def rows(self, columns: Mapping[str, str] | None = None) -> Iterator[DataRow]:
        wanted = dict(columns) if columns is not None else {name: name for name in self.columns}
        _places(self.source, self.columns, wanted)

        def found() -> Iterator[tuple[str, Mapping[str, Any]]]:
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
            except (_arrow().ArrowException, OSError, ValueError, ArithmeticError) as error:
                raise _unreadable(self.source, error) from error

        return _numbered(self.source, found())


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
            return _open_parquet(path).schema_arrow if _is_parquet(path) else _arrow_reader(path).schema

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
        found = list[dict[str, Any]]()
        for batch in self.batches(columns):
            if len(found) > MOST_ROWS or any(_items(each) > MOST_ITEMS for each in batch.columns):
                raise BadData(
                    f"{str(self.paths[0])!r} has more than {MOST_ROWS:,} rows, or lists of too many items.",
                    hint="Is it the right file?",
                )
            found += batch.to_pylist()
        return found

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
                return [_arrow_reader(path).read_all().num_rows]
            groups = _open_parquet(path).metadata
            return [groups.row_group(place).num_rows for place in range(groups.num_row_groups)]

    def _group(self, number: int, place: int, column: str) -> Any:
        path = self.paths[number]
        with _errors_of(path):
            if not _is_parquet(path):
                mapped = _arrow_reader(path).read_all().column(column)
                mapped.validate(full=True)  # offsets as they stand in the file may lead anywhere
                return mapped
            batches = [*_bounded(path, _parquet_batches(path, [column], group=place))]
            return _arrow().Table.from_batches(batches).column(column)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def _open_parquet(path: Path, *, once_of: Sequence[str] = ()) -> Any:
    """A reader; in the columns of `once_of` a text that the file has once and many rows name is one text in memory.

    Of texts within structs and lists pyarrow cannot do that.
    """
    open_file = _library("pyarrow.parquet", "arrow").ParquetFile
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
        left -= sum(map(_size, batch.columns))
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
    arrow = _arrow()
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
    for batch in _arrow_reader(path):
        batch.validate(full=True)  # lengths and offsets as they stand in the file may lead anywhere
        wanted = batch.select(list(columns))
        yield from (wanted.slice(start, BATCH) for start in range(0, wanted.num_rows, BATCH))


_ARROW_FILE = b"ARROW1\0\0"


def _arrow_reader(path: Path) -> Any:
    """A reader of the stream format of Arrow, which its file format holds too; the file is mapped rather than read.

    Raises:
        BadData: it unpacks to too much.
    """
    arrow = _arrow()
    content = arrow.memory_map(str(path)).read_buffer()
    if content.size > len(_ARROW_FILE) and content.slice(0, len(_ARROW_FILE)).to_pybytes() == _ARROW_FILE:
        content = content.slice(len(_ARROW_FILE))
    most = _most_unpacked(path)
    for size in unpacked_sizes(arrow.ipc.MessageReader.open_stream(arrow.BufferReader(content))):
        most -= size
        if most < 0:
            raise _too_large(path)
    return arrow.ipc.open_stream(arrow.BufferReader(content))


def _size(cell: Any) -> int:
    """Bytes that the values of an array take in Python: of a text that many of them name, each time."""
    return sum(map(_size_of, _chunks(cell)))


def _size_of(chunk: Any) -> int:
    kind, types, own = chunk.type, _library("pyarrow.types", "arrow"), VALUE * len(chunk)
    if not own:
        return 0
    if types.is_struct(kind):
        return own + sum(map(_size, chunk.flatten()))
    if _is_list(kind):
        return own + _size(_in_lists(chunk))
    if _is_view(kind):
        views = memoryview(chunk.buffers()[1]).cast("i")[4 * chunk.offset : 4 * (chunk.offset + len(chunk)) : 4]
        return own + sum(max(length, 0) for length in views)  # that of an empty value may be anything
    compute = _library("pyarrow.compute", "arrow")
    try:
        lengths = compute.binary_length(chunk.dictionary if types.is_dictionary(kind) else chunk)
    except _arrow().ArrowException:  # numbers, moments and the like
        return own
    named = lengths.take(chunk.indices) if types.is_dictionary(kind) else lengths
    return own + (compute.sum(named).as_py() or 0)


def _items(cell: Any) -> int:
    """Items of all lists in an array of one row."""
    return sum(_items_of(chunk) for chunk in _chunks(cell) if len(chunk))


def _items_of(chunk: Any) -> int:
    if _library("pyarrow.types", "arrow").is_struct(chunk.type):
        return sum(map(_items, chunk.flatten()))
    if not _is_list(chunk.type):
        return 0
    items = _in_lists(chunk)
    return len(items) if len(items) > MOST_ITEMS else len(items) + _items(items)


def _chunks(cell: Any) -> Iterator[Any]:
    """The parts of an array, each as it is stored: an extension is a name for another type."""
    for chunk in getattr(cell, "chunks", [cell]):
        stored = chunk
        while isinstance(stored.type, _arrow().BaseExtensionType):
            stored = stored.storage
        yield stored


def _is_list(kind: Any) -> bool:
    types = _library("pyarrow.types", "arrow")
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or types.is_map(kind)


def _in_lists(chunk: Any) -> Any:
    """The items of all lists (or maps) in an array."""
    if _library("pyarrow.types", "arrow").is_fixed_size_list(chunk.type):
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
    types = _library("pyarrow.types", "arrow")
    if types.is_dictionary(kind):
        return bool(_kinds_in(kind.value_type)) or _is_view(kind.value_type)
    strange = types.is_run_end_encoded, types.is_union, types.is_list_view, types.is_large_list_view
    return any(is_such(kind) for is_such in strange)


def _is_view(kind: Any) -> bool:
    types = _library("pyarrow.types", "arrow")
    return types.is_string_view(kind) or types.is_binary_view(kind)


def _kinds_in(kind: Any) -> list[Any]:
    """The types that a type is made of."""
    if isinstance(kind, _arrow().BaseExtensionType):
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


def _arrow() -> Any:
    return _library("pyarrow", "arrow")


def _library(name: str, extra: str) -> Any:
    """An optional library.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingExtra(f"{package} is not installed.", hint=f"pip install 'askance[{extra}]'") from error


# --- data sets of Hugging Face ---------------------------------------------------------------------------------------


def _of_folder(source: str, folder: Path) -> DataTable:
    """The table in a folder that `datasets` saved.

    Raises:
        BadData: it is none, or holds several splits.
    """
    if (folder / _SPLITS).is_file():
        splits = sorted(each.name for each in folder.iterdir() if (each / _STATE).is_file())
        if len(splits) == 1:
            return _of_folder(source, folder / splits[0])
        raise BadData(
            f"The folder {source!r} holds the splits {', '.join(splits)}.",
            hint=f"Name one: {str(folder / (splits[0] if splits else 'test'))!r}.",
        )
    if not (folder / _STATE).is_file():
        raise BadData(
            f"The folder {source!r} is no data set that `datasets` saved.",
            hint=f"`hf:{source}` has `datasets` load a folder of Parquet, CSV or picture files.",
        )
    return _ArrowTable(source, folder, ArrowFiles(_saved_files(folder)))


def _saved_files(folder: Path) -> list[Path]:
    """The Arrow files that the state of a saved data set names, in order.

    Raises:
        BadData: it names none, or one that is not in the folder.
    """
    try:
        state: Any = parse_json((folder / _STATE).read_bytes())
        names = [str(each["filename"]) for each in state["_data_files"]]
        mapped = state.get("_indices_data_files")
    except (OSError, UnreadableDocument, KeyError, TypeError, AttributeError) as error:
        raise BadData(f"{str(folder / _STATE)!r} names no files.", hint="Save the data set again.") from error
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


_OF_HUB = re.compile(r"(?!buckets/)[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*", re.ASCII)
"""The name of a data set of the hub."""
_BUILDERS = frozenset({"arrow", "cache", "csv", "imagefolder", "json", "parquet", "text", "webdataset"})
"""Builders of `datasets` that are used: they read data, and unpickle nothing. `cache` reads what one of them made."""


@dataclass(frozen=True)
class _HubName:
    """`hf:owner/name?split=…&config=…&revision=…`, taken apart."""

    name: str
    split: str | None = None
    config: str | None = None
    revision: str | None = None

    @property
    def path(self) -> str:
        """The name as `datasets` takes it: a folder's in full, since a short one may be that of a builder."""
        return str(Path(self.name).resolve()) if Path(self.name).is_dir() else self.name

    @classmethod
    def parse(cls, source: str) -> _HubName:
        name, _, query = source.removeprefix(HUB).partition("?")
        try:
            pairs = parse_qsl(query, strict_parsing=True) if query else []
            found = dict(pairs)
            known = found.keys() <= {"split", "config", "revision"} and len(found) == len(pairs)
        except ValueError:
            found, known = {}, False
        if not known or (not (Path(name).is_dir() if name else False) and _OF_HUB.fullmatch(name) is None):
            raise BadData(
                f"{source!r} is no name of a data set.",
                hint="Write hf:OWNER/NAME, hf:OWNER/NAME?split=test or hf:FOLDER; `config` and `revision` go likewise.",
            )
        return cls(name, **found)


@dataclass(frozen=True)
class _HubRows:
    """A data set that `datasets` loaded; its rows are read as Arrow, so that nothing decodes a picture."""

    loaded: Any

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.loaded.column_names)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        return self.loaded.select_columns(list(columns)).with_format("arrow").iter(batch_size=BATCH)


@dataclass(frozen=True)
class _StreamedRows:
    """Rows of a data set of the hub, fetched as they are asked for; what was fetched is kept, and read by a replay.

    They are kept in files of `BATCH` rows. One with fewer is the last.
    """

    source: str
    folder: Path
    rows: Any
    """The data set, streamed by `datasets`; None offline."""

    @staticmethod
    def folder_of(library: Any, asked: _HubName) -> Path:
        """The folder with one folder of files for each state of a data set, in the cache of `datasets`."""
        return Path(library.config.HF_DATASETS_CACHE) / "askance" / sha256(repr(asked).encode()).hexdigest()[:32]

    @property
    def columns(self) -> tuple[str, ...]:
        return next((file.columns for file in self._files()), ())

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for file in self._files():
            yield from file.batches(columns)

    def _files(self) -> Iterator[ArrowFiles]:
        """The files in order; one that is not there is fetched.

        Raises:
            BadData: it cannot be fetched.
        """
        fetched: Iterator[Any] | None = None
        for number in counted():
            path = self._path(number)
            if not path.is_file():
                fetched = self._fetched(number) if fetched is None else fetched
                table = _loading(self.source, partial(next, fetched, None))
                if table is None:
                    if not number:
                        return
                    table = _arrow_reader(self._path(number - 1)).schema.empty_table()
                _write_arrow(path, table)
            yield ArrowFiles([path])
            if _arrow_reader(path).read_all().num_rows < BATCH:
                return

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.arrow"

    def _fetched(self, number: int) -> Iterator[Any]:
        """Tables of `BATCH` rows from that of a number on.

        Raises:
            BadData: nothing may be fetched.
        """
        if self.rows is None:
            raise BadData(
                f"Of {self.source!r} only {number * BATCH:,} rows are kept, and a replay fetches none.",
                hint="Run it once without `--replay`.",
            )
        yield from self.rows.skip(number * BATCH).iter(batch_size=BATCH)


def _write_arrow(path: Path, table: Any) -> None:
    """Writes a file of Arrow whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    with _arrow().ipc.new_stream(str(part), table.schema) as file:
        file.write_table(table)
    part.replace(path)


def _newest_in(folder: Path) -> Path | None:
    return max(folder.glob("*"), key=lambda each: each.stat().st_mtime, default=None)


def _can_stream(library: Any, builder: Any, split: str) -> bool:
    """Whether rows can be fetched one after the other: as tables, of a whole split, which was not loaded whole yet."""
    loaded = (Path(builder.cache_dir) / "dataset_info.json").is_file()
    return not loaded and isinstance(builder, library.ArrowBasedBuilder) and _SPLIT.fullmatch(split) is not None


_SPLIT = re.compile(r"\w+(?:\.\w+)*", re.ASCII)
"""The name of a split; `train[:100]` is none."""


def _of_hub(source: str, *, offline: bool, stream: bool) -> DataTable:
    """A data set by `datasets`: of the hub, or of a folder.

    Raises:
        BadData: it is not there, cannot be loaded, or has several splits and none is named.
        MissingExtra: `datasets` is not installed.
    """
    asked = _HubName.parse(source)
    folder = Path(asked.name)
    if any((folder / name).is_file() for name in (_STATE, _SPLITS)):
        return _of_folder(str(folder), folder / asked.split if asked.split else folder)
    library = _datasets(offline=offline)
    parts = _StreamedRows.folder_of(library, asked)
    try:
        builder = _builder(library, asked, source)
    except BadData:
        if offline and stream and (kept := _newest_in(parts)) is not None:
            return _ArrowTable(source, None, _StreamedRows(source, kept, None))
        raise
    split = asked.split or _only_split(None if offline else library, builder, asked)
    if stream and not offline and not folder.is_dir() and _can_stream(library, builder, split):
        rows = _loading(source, lambda: builder.as_streaming_dataset(split=split).with_format("arrow"))
        return _ArrowTable(source, None, _StreamedRows(source, parts / str(builder.hash), rows))
    if not Path(builder.cache_dir).is_dir():  # else it was loaded before
        _loading(source, lambda: _check_unpacked(library, builder, source))
    _loading(source, builder.download_and_prepare)
    loaded = _loading(source, lambda: builder.as_dataset(split=split))
    if len(loaded) > MOST_ROWS:
        raise BadData(
            f"{source!r} has {len(loaded):,} rows, more than {MOST_ROWS:,}.",
            hint=f"Take a part: {HUB}{asked.name}?split={split}[:1000]",
        )
    return _ArrowTable(source, folder if folder.is_dir() else None, _HubRows(loaded))


def _builder(library: Any, asked: _HubName, source: str) -> Any:
    """What loads a data set, once it is known that it reads files of the data set alone, and runs nothing.

    Raises:
        BadData: it leads elsewhere, is read by another builder than `_BUILDERS`, or cannot be loaded.
    """
    folder, revision = Path(asked.name).resolve() if Path(asked.name).is_dir() else None, asked.revision
    if folder is not None:
        _check_card(folder, source)
    elif not library.config.HF_HUB_OFFLINE:  # the data set may change between two looks at it, its commit cannot
        card = _loading(source, lambda: _card_of_hub(asked))
        _check_card(card, source)
        revision = card.name
    builder = _loading(source, lambda: library.load_dataset_builder(asked.path, asked.config, revision=revision))
    package, name = (type(builder).__module__.split(".") + [""] * 3)[1:3]
    if package != "packaged_modules" or name not in _BUILDERS:
        raise BadData(
            f"{source!r} is read by the builder {name!r}, which is not used.",
            hint=f"Used are {', '.join(sorted(_BUILDERS))}. Save the data as Parquet, CSV or JSON lines.",
        )
    for file in _files_of(builder):
        if not (is_below(Path(file), folder) if folder else file.startswith(f"hf://datasets/{asked.name}@")):
            raise _leads_out(source, file)
    return builder


def _files_of(builder: Any) -> list[str]:
    """Paths or addresses of the files that a builder reads."""
    files: Mapping[str, Iterable[Any]] = builder.config.data_files or {}
    return [str(file) for file in chain.from_iterable(files.values())]


def _check_unpacked(library: Any, builder: Any, source: str) -> None:
    """Checks what the files of a data set unpack to, since `datasets` unpacks all of them.

    Raises:
        BadData: it is too much.
    """
    named = _files_of(builder)
    fetched: list[str] = library.DownloadManager(record_checksums=False).download(named)
    files = [Path(file) for file in fetched]
    left = most = max(MOST_UNPACKED, MOST_RATIO * sum(file.stat().st_size for file in files))
    for file, name in zip(files, named, strict=True):
        if Path(name).suffix.lower() in ARROW_SUFFIXES:
            table = ArrowFiles([file])
            left -= sum(sum(map(_size, batch.columns)) for batch in table.batches(table.columns))
        else:
            left -= packed_size(file, most=left)
        if left < 0:
            raise BadData(
                f"{source!r} unpacks to more than {most:,} bytes, with {name!r}.",
                hint="Save its rows in several data sets, or its pictures as files beside it.",
            )


def _card_of_hub(asked: _HubName) -> Path:
    """A folder with the card of a data set of the hub; it is called by the commit that the card is of."""
    download = _library("huggingface_hub", "hf").snapshot_download
    patterns = [_CARD, _SETTINGS]
    return Path(download(asked.name, repo_type="dataset", revision=asked.revision, allow_patterns=patterns))


def _check_card(folder: Path, source: str) -> None:
    """Checks that the card in a folder names files of the data set alone, before any file that it names is looked for.

    Raises:
        BadData: it names an address or a place elsewhere, or cannot be read.
    """
    # By aliases of YAML a short card can name files without end.
    found = _loading(source, lambda: [*islice(_named_in_card(folder), MOST_FILES + 1)])
    if len(found) > MOST_FILES:
        raise BadData(f"The card of {source!r} names more than {MOST_FILES:,} files.", hint="Name them by a pattern.")
    for named in found:
        if _ELSEWHERE.search(named.strip()):
            raise _leads_out(source, named)


_ELSEWHERE = re.compile(r"://|::|^[/~\\]|^[A-Za-z]:|(?:^|[/\\])\.\.(?:[/\\]|$)")
"""What leads out of a folder: an address, a chain of them, a full path, a home, a way up."""


_CARD, _SETTINGS = "README.md", ".huggingface.yaml"


def _named_in_card(folder: Path) -> Iterator[str]:
    """The files and folders that the configurations in a card and in a file of settings name."""
    card, settings, forms = folder / _CARD, folder / _SETTINGS, dict[Path, Any]()
    if card.is_file():
        forms[card] = _library("huggingface_hub", "hf").DatasetCard.load(card).data.to_dict()
    if settings.is_file():
        forms[settings] = read_yaml(settings, what="settings of a data set")
    for file, form in forms.items():
        configs: Any = form.get("configs") or []
        if not isinstance(configs, list) or not all(isinstance(each, Mapping) for each in cast("list[Any]", configs)):
            raise BadData(f"{str(file)!r}: `configs` is no list of maps.", hint="Mend the file, or take it out.")
        for config in cast("list[Mapping[str, Any]]", configs):
            yield from _texts([config.get("data_files"), config.get("data_dir")])


def _texts(value: Any) -> Iterator[str]:
    """Every text in lists and maps within each other."""
    if isinstance(value, Mapping):
        yield from _texts([*cast("Mapping[Any, Any]", value).values()])
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts(each)
    elif value is not None:
        yield str(value)


def _leads_out(source: str, named: str) -> BadData:
    return BadData(
        f"{source!r} leads out of the data set: {named[:200]!r}.",
        hint="Put its files into its folder, or name the file itself.",
    )


def _only_split(library: Any | None, builder: Any, asked: _HubName) -> str:
    """The split of a data set that has one.

    Args:
        library: `datasets`; None where no server may be asked.
        builder: loads the data set.
        asked: names it.

    Raises:
        BadData: it has several, or cannot be loaded.
    """

    def names() -> list[str]:
        if library is None:  # only what was loaded whole is known here
            builder.download_and_prepare()
            return [*builder.info.splits]
        return [*library.get_dataset_split_names(asked.path, asked.config, revision=asked.revision)]

    source = f"{HUB}{asked.name}"
    splits: list[str] = _loading(source, names)
    if len(splits) == 1:
        return splits[0]
    raise BadData(
        f"{source!r} has the splits {', '.join(splits)}.", hint=f"Name one: {HUB}{asked.name}?split={splits[-1]}"
    )


def _loading(source: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except UsageError:
        raise
    except Exception as error:  # the library and those below it raise whatever they like
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadData(
            f"{source!r} cannot be loaded: {reason.rstrip('.')}.",
            hint="Check the name, the split and the network; a data set that was loaded once needs none.",
        ) from error


def _datasets(*, offline: bool) -> Any:
    """The library `datasets`, which asks no server where `offline` is set.

    Raises:
        MissingExtra: it is not installed.
    """
    if offline:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read once, when the libraries are loaded
    library = _library("datasets", "hf")
    library.config.HF_HUB_OFFLINE = offline or library.config.HF_HUB_OFFLINE
    if not sys.stderr.isatty():
        for shows_bars in (library, _library("huggingface_hub.utils", "hf")):
            shows_bars.disable_progress_bars()
    return library
