"""Rows of a table: what each table gives, whatever its format is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from askance.amounts import first_few
from askance.documents import UnreadableDocument, parse_json
from askance.errors import BadData

MOST_ROWS = 1_000_000
MOST_COLUMNS = 10_000


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


def as_list(value: Any) -> list[Any] | None:
    """A list that stands in a table: as such, or as the text of a JSON list, which is how CSV files keep one.

    Returns:
        None where it is neither.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(UnreadableDocument):
            value = parse_json(value)
    return cast("list[Any]", value) if isinstance(value, list) else None


def column_places(source: str, columns: Sequence[str], wanted: Mapping[str, str] | None) -> Mapping[str, int]:
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
            semicolons = len(columns) == 1 and ";" in columns[0]
            hint = "It is separated by semicolons: save it with commas, or with tabs as `.tsv`." if semicolons else ""
            raise BadData(f"{source!r} {has}.", hint=hint or f"It has {first_few([*map(repr, columns)], 20)}.")
    places = {column: place for place, column in enumerate(columns)}
    return {name: places[column] for name, column in wanted.items()}


def numbered_rows(source: str, rows: Iterator[tuple[str, Mapping[str, Any]]]) -> Iterator[DataRow]:
    """The rows of a table, counted, without what they leave empty.

    Raises:
        BadData: there is none, or there are more than `MOST_ROWS`.
    """
    number = 0
    for number, (where, values) in enumerate(rows, start=1):
        if number > MOST_ROWS:
            raise BadData(f"{source!r} has more than {MOST_ROWS:,} rows.", hint="Split it into several.")
        yield DataRow(number, where, {name: value for name, value in values.items() if not _empty(value)})
    if not number:
        raise BadData(f"{source!r} has no row.", hint="Is it the right file, and the right split?")


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
