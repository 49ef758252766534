"""Published figures, to be shown beside one's own.

They are read from `docs/reference/SUITE.yaml`, which says at its top what its fields mean; a wheel carries the same
files beside this module.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from askance.errors import UsageError

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Suite = Literal["pittads", "whoops"]

PERCENT = "percent"
"""The unit of a column that names no other."""

_SCHEMA = Path(__file__).with_name("reference.schema.json")
_FOLDERS = (Path(__file__).with_name("published"), Path(__file__).resolve().parents[2] / "docs" / "reference")
"""Where the files lie in a wheel, and in a clone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSet:
    """What a figure was computed over."""

    name: str
    n: int | None
    """Samples, where the source says how many."""
    what: str
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRow:
    """One row of a published table."""

    names: tuple[str, ...]
    """Such as the model and the context; `ReferenceTable.rows_by` says of what."""
    values: Mapping[str, float | None]
    """By column; None where the cell is printed but could not be read."""
    set: str
    inferred: Mapping[str, float]
    """What other places of the source give away of cells that could not be read."""
    average_differs: float | None = None
    """The mean of the row's own figures, where the average that is printed is another."""
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCell:
    """One published figure."""

    table: int
    row: tuple[str, ...]
    column: str
    value: float
    unit: str
    set: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceTable:
    """One published table."""

    number: int
    title: str
    set: str
    rows_by: tuple[str, ...]
    columns: tuple[str, ...]
    units: Mapping[str, str]
    """By column."""
    rows: tuple[ReferenceRow, ...]
    average: tuple[str, tuple[str, ...]] | None = None
    """The column that is a plain mean, and the columns it is the mean of."""
    note: str | None = None

    def row(self, *names: str) -> ReferenceRow | None:
        """The row with just these names, if there is one."""
        return next((row for row in self.rows if row.names == names), None)

    def value(self, *names: str, column: str) -> float | None:
        """A printed figure; None where the table has no such row, or the cell could not be read.

        Raises:
            UsageError: the table has no such column.
        """
        if column not in self.columns:
            msg = f"Table {self.number} has no column {column!r}."
            raise UsageError(msg, hint=f"It has {', '.join(self.columns)}.")
        row = self.row(*names)
        return row.values[column] if row else None

    def cells(self) -> Iterator[ReferenceCell]:
        """Every figure that could be read, row by row."""
        for row in self.rows:
            for column, value in row.values.items():
                if value is not None:
                    yield ReferenceCell(
                        table=self.number,
                        row=row.names,
                        column=column,
                        value=value,
                        unit=self.units[column],
                        set=row.set,
                    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRemark:
    """A figure that the source prints in its running text alone."""

    section: str
    set: str
    row: tuple[str, ...]
    figure: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Everything published of one suite."""

    suite: str
    source: str
    sets: Mapping[str, ReferenceSet]
    tables: Mapping[int, ReferenceTable]
    in_text: tuple[ReferenceRemark, ...]


@cache
def read_reference(suite: Suite) -> Reference:
    """The published figures of `suite`.

    Raises:
        UsageError: there is no file of that suite, or it is not of the form that is expected.
    """
    path = next((path for folder in _FOLDERS if (path := folder / f"{suite}.yaml").is_file()), None)
    if path is None:
        msg = f"No published figures are known of {suite!r}."
        raise UsageError(msg, hint="They lie in docs/reference, one file for each suite.")
    return read_reference_file(path)


def reference_table(suite: Suite, number: int) -> ReferenceTable:
    """One published table of `suite`.

    Raises:
        UsageError: as `read_reference` says, or there is no such table.
    """
    tables = read_reference(suite).tables
    if number not in tables:
        msg = f"{suite} has no published table {number}."
        raise UsageError(msg, hint=f"It has {', '.join(map(str, sorted(tables)))}.")
    return tables[number]


def read_reference_file(path: Path) -> Reference:
    """The published figures in the file at `path`.

    Raises:
        UsageError: it is not YAML of the form that is expected; the message has the file and the place.
    """
    import yaml

    try:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{path.name} cannot be read: {' '.join(str(error).split())}."
        raise UsageError(msg, hint="Install askance anew.") from error
    _check(form, path)
    return Reference(
        suite=form["suite"],
        source=form["source"],
        sets={name: ReferenceSet(name=name, **fields) for name, fields in form["sets"].items()},
        tables={
            number: _table(number, fields, sets=form["sets"], path=path) for number, fields in form["tables"].items()
        },
        in_text=tuple(_remark(fields) for fields in form.get("in_text", [])),
    )


def _check(form: Any, path: Path) -> None:
    # JSON's keys are text, and tables are numbered.
    error = next(_validator().iter_errors(json.loads(json.dumps(form, default=str))), None)
    if error is not None:
        place = "/".join(map(str, error.absolute_path)) or "the top"
        msg = f"{path.name} is not of the expected form at {place}: {error.message}."
        raise UsageError(msg, hint="Mend it there.")


@cache
def _validator() -> Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(_SCHEMA.read_text(encoding="utf-8")))


def _table(number: object, form: dict[str, Any], *, sets: dict[str, Any], path: Path) -> ReferenceTable:
    columns: tuple[str, ...] = tuple(form["columns"])
    average = next(((name, tuple(of)) for name, of in form.get("average", {}).items()), None)
    rows = tuple(_row(row, columns, form["set"]) for row in form["rows"])
    named = {*form.get("units", {}), *(name for row in rows for name in row.inferred)}
    named |= {average[0], *average[1]} if average else set()
    odd = {
        "a table's number": [] if isinstance(number, int) else [number],
        "a column": sorted(named - set(columns)),
        "a set": sorted({row.set for row in rows} - set(sets)),
        "as many names as `rows_by`": [row.names for row in rows if len(row.names) != len(form["rows_by"])],
        "as many values as columns": [row["row"] for row in form["rows"] if len(row["values"]) != len(columns)],
    }
    for wanted, found in odd.items():
        if found:
            msg = f"In table {number!r} of {path.name} {found[0]!r} is not, or has not, {wanted}."
            raise UsageError(msg, hint="Mend it there.")
    return ReferenceTable(
        number=int(str(number)),
        title=form["title"],
        set=form["set"],
        rows_by=tuple(form["rows_by"]),
        columns=columns,
        units={column: form.get("units", {}).get(column, PERCENT) for column in columns},
        rows=rows,
        average=average,
        note=form.get("note"),
    )


def _row(form: dict[str, Any], columns: tuple[str, ...], set_name: str) -> ReferenceRow:
    return ReferenceRow(
        names=tuple(form["row"]),
        values=dict(zip(columns, form["values"], strict=False)),
        set=form.get("set", set_name),
        inferred=form.get("inferred", {}),
        average_differs=form.get("average_differs"),
        note=form.get("note"),
    )


def _remark(form: dict[str, Any]) -> ReferenceRemark:
    return ReferenceRemark(
        section=form["section"],
        set=form["set"],
        row=tuple(form["row"]),
        figure=form["figure"],
        value=form["value"],
        unit=form.get("unit", PERCENT),
    )
