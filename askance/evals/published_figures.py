"""Figures that papers print of a suite, to be shown beside one's own.

They are read from `docs/reference/SUITE.yaml`, whose first lines explain the fields. A wheel carries the same files in
the folder `published` beside this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from askance.documents import read_yaml, validation_message
from askance.errors import UsageError

PERCENT = "percent"
"""The unit of a column that names no other."""

_FOLDERS = (Path(__file__).with_name("published"), Path(__file__).resolve().parents[2] / "docs" / "reference")
"""Where the files are in a wheel, and in a clone."""

TableKey: TypeAlias = int | str
"""The number of a published table; or another name, such as `Fig. 5a`."""
Names: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]
Number: TypeAlias = Annotated[float, Field(strict=True)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PublishedSet(_Form):
    """The samples that figures were computed over."""

    n: int | None
    """How many samples; None if the source does not say."""
    what: str
    note: str | None = None


class PublishedRow(_Form):
    """One row of a published table."""

    names: Names = Field(alias="row")
    """Such as the model and the context; `PublishedTable.rows_by` says which names these are."""
    values: Annotated[tuple[Number | None, ...], Field(min_length=1)]
    """One for each column; None if the cell is printed but could not be read."""
    set: str | None = None
    """Name of its set, if it is not that of the table."""
    inferred: Mapping[str, Number] = Field(default_factory=dict[str, float])
    """By column, values of unreadable cells that follow from other places of the source."""
    average_differs: Number | None = None
    """The mean of the row's own figures, if the printed average is another number."""
    note: str | None = None


class PublishedTable(_Form):
    """One published table."""

    key: TableKey
    title: str
    source: str
    """That of the file, unless the table names its own."""
    set: str
    rows_by: Names
    columns: Names
    units: Mapping[str, str] = Field(default_factory=dict[str, str])
    """By column, units other than `PERCENT`."""
    average: Mapping[str, Names] = Field(default_factory=dict[str, Names], max_length=1)
    """The column that is a plain mean, and the columns that it is the mean of."""
    rows: Annotated[tuple[PublishedRow, ...], Field(min_length=1)]
    note: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        named = {*self.units, *self.average, *(name for names in self.average.values() for name in names)}
        named |= {name for row in self.rows for name in row.inferred}
        if unknown := sorted(named - {*self.columns}):
            raise ValueError(f"there is no column {unknown[0]!r}")
        for row in self.rows:
            if len(row.names) != len(self.rows_by):
                raise ValueError(f"the row {row.names} has not as many names as `rows_by`")
            if len(row.values) != len(self.columns):
                raise ValueError(f"the row {row.names} has not as many values as there are columns")
        return self

    @property
    def name(self) -> str:
        """What it is called in its source: `Table 3`, `Fig. 5a`."""
        return self.key if isinstance(self.key, str) else f"Table {self.key}"

    def row(self, *names: str) -> PublishedRow | None:
        """The row with exactly these names, if there is one."""
        return next((row for row in self.rows if row.names == names), None)

    def figures(self, row: PublishedRow) -> dict[str, float | None]:
        """The figures of a row, by column."""
        return dict(zip(self.columns, row.values, strict=True))

    def unit(self, column: str) -> str:
        """The unit of a column."""
        return self.units.get(column, PERCENT)

    def value(self, *names: str, column: str) -> float | None:
        """A printed figure; None if the table has no such row, or if the cell could not be read.

        Raises:
            UsageError: the table has no such column.
        """
        if column not in self.columns:
            raise UsageError(f"{self.name} has no column {column!r}.", hint=f"It has {', '.join(self.columns)}.")
        row = self.row(*names)
        return self.figures(row)[column] if row else None


class PublishedRemark(_Form):
    """A figure that the source prints in its text only, and in no table."""

    section: str
    set: str
    row: Names
    figure: str
    value: Number
    unit: str = PERCENT


class PublishedFigures(_Form):
    """All published figures of one suite."""

    suite: str
    source: str
    sets: Mapping[str, PublishedSet]
    tables: Mapping[TableKey, PublishedTable]
    in_text: tuple[PublishedRemark, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _named(cls, form: Any) -> Any:
        """Gives each table its key in the file, and the source of the file where it names none."""
        tables: Any = form.get("tables")
        if not isinstance(tables, dict):
            return form
        each, source = cast("dict[Any, Any]", tables), form.get("source")
        return {**form, "tables": {key: {"source": source, **table, "key": key} for key, table in each.items()}}

    @model_validator(mode="after")
    def _names_sets(self) -> Self:
        for table in self.tables.values():
            for name in (table.set, *(row.set for row in table.rows)):
                if name is not None and name not in self.sets:
                    raise ValueError(f"there is no set {name!r}, which table {table.key} names")
        return self


@cache
def published_files() -> Mapping[str, Path]:
    """The files with published figures, by suite."""
    return {path.stem: path for folder in _FOLDERS[::-1] for path in sorted(folder.glob("*.yaml"))}


@cache
def read_published(suite: str) -> PublishedFigures:
    """The published figures of `suite`.

    Raises:
        UsageError: there is no file for that suite, or it is malformed.
    """
    path = published_files().get(suite)
    if path is None:
        raise UsageError(
            f"No published figures are known of {suite!r}.", hint=f"There are some of {', '.join(published_files())}."
        )
    return read_published_file(path)


def find_published_table(name: str) -> PublishedTable:
    """One published table, by its suite and key: `pittads/3`, `sherlock/Fig. 5a`.

    Raises:
        UsageError: as `read_published`, or there is no such table.
    """
    suite, slash, key = name.partition("/")
    if not slash or suite not in published_files():
        raise UsageError(f"No published table is called {name!r}.", hint="Write suite and number, such as pittads/3.")
    tables = read_published(suite).tables
    table = tables.get(int(key) if key.isdecimal() else key)
    if table is None:
        raise UsageError(f"{suite} has no published table {key}.", hint=f"It has {', '.join(map(str, tables))}.")
    return table


def read_published_file(path: Path) -> PublishedFigures:
    """The published figures in the file at `path`.

    Raises:
        UsageError: the file is malformed; the message has its name and the place.
    """
    try:
        return PublishedFigures.model_validate(read_yaml(path, what="published figures"))
    except ValidationError as error:
        raise UsageError(f"{path.name} is malformed: {validation_message(error)}.", hint="Mend it there.") from error
