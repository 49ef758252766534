"""Grids: a file that names the runs behind one or more tables, row by row.

```yaml
models:
  LLaVA: openai:llava-13b@http://localhost:8000/v1
  GPT-4: openai:gpt-4o
tables:
  table-3:
    title: Action-reason retrieval
    task: pittads/arr-multi
    columns: {"P@1": p@1, "P@3": p@3, "single": {task: pittads/arr-single, metric: accuracy}}
    rows:
      - {label: "LLaVA, I", vlm: LLaVA, context: I}
      - {label: "GPT-4, T_V", vlm: LLaVA, llm: GPT-4, context: T_V}
```

A cell is a metric of the run that its row and its column ask for: the options of the grid, the table, the row and the
column, each going before those in front of it. Cells that ask for the same are one run, in whatever tables they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from askance.chat import key_of
from askance.errors import UsageError
from askance.evals.tasks import ROLES
from askance.evals.yaml_files import read_yaml

CHAT = (*ROLES, "judge")
"""Options that are chat models."""

NAMED = (*CHAT, "scorer", "embedder")
"""Options whose values may be names of the grid's models."""


class Column(BaseModel):
    """One column of a table."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    metric: str
    task: str | None = None
    """None is the row's, or else the table's."""
    options: Mapping[str, Any] = {}
    """Go before those of the row. In a text, `{name}` stands for what the row's `let` says."""


class Row(BaseModel):
    """One row of a table; what is no field here is an option of its task, with models by their names in the grid."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    label: str
    task: str | None = None
    """None is the table's."""
    published: tuple[str, ...] | None = None
    """The row of the published table that stands beside it."""
    let: Mapping[str, str] = {}
    """What `{name}` stands for in the options of columns."""
    columns: Mapping[str, Column] = {}
    """By their heads, those that are something else in this row."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Options of the task."""
        return self.model_extra or {}


class TableSpec(BaseModel):
    """One table of a grid."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    title: str
    task: str | None = None
    columns: Annotated[Mapping[str, Column], Field(min_length=1)]
    """By their heads; published figures stand under the same heads. A text is a metric."""
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    options: Mapping[str, Any] = {}
    """Of all rows."""
    published: str | None = None
    """The published table that it stands beside, such as `pittads/3`."""
    notes: tuple[str, ...] = ()

    @field_validator("columns", mode="before")
    @classmethod
    def _metrics(cls, columns: Any) -> Any:
        if not isinstance(columns, dict):
            return columns
        named = cast("dict[str, Any]", columns)
        return {head: {"metric": column} if isinstance(column, str) else column for head, column in named.items()}


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """One cell of a grid: a metric of the run of a task with options."""

    table: str
    row: int
    """Place of the row in its table, from 0."""
    head: str
    """Of the column."""
    label: str
    """Of the row."""
    metric: str
    task: str
    """Empty where nobody names one."""
    options: Mapping[str, Any]
    """Models by their names in the grid."""

    @property
    def asked(self) -> str:
        """Equal for cells that one run is behind."""
        return key_of("grid", {"task": self.task, "options": dict(self.options)})


class Grid(BaseModel):
    """What a grid file says."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    summary: str = ""
    models: Mapping[str, str | None] = {}
    """Specs by the names that rows use; null is to be filled in by whoever runs it."""
    options: Mapping[str, Any] = {}
    """Of all rows; those of a table go before them."""
    tables: Annotated[Mapping[str, TableSpec], Field(min_length=1)]

    def only(self, names: Sequence[str]) -> Grid:
        """This grid with some of its tables.

        Raises:
            UsageError: it has no table of a name.
        """
        unknown = [name for name in names if name not in self.tables]
        if unknown:
            raise UsageError(f"The grid has no table {unknown[0]!r}.", hint=f"It has {', '.join(self.tables)}.")
        return self.model_copy(update={"tables": {name: self.tables[name] for name in names}})

    def with_models(self, models: Mapping[str, str]) -> Grid:
        """This grid with specs for its models.

        Raises:
            UsageError: it has no model of a name.
        """
        unknown = [name for name in models if name not in self.models]
        if unknown:
            named = ", ".join(self.models) or "none; name it under `models` in the file"
            raise UsageError(f"The grid has no model {unknown[0]!r}.", hint=f"It has {named}.")
        return self.model_copy(update={"models": {**self.models, **models}})

    @property
    def cells(self) -> Iterator[CellSpec]:
        """Every cell, table by table and row by row."""
        for name, table in self.tables.items():
            for number, row in enumerate(table.rows):
                for head, general in table.columns.items():
                    column = row.columns.get(head, general)
                    yield CellSpec(
                        table=name,
                        row=number,
                        head=head,
                        label=row.label,
                        metric=column.metric,
                        task=column.task or row.task or table.task or "",
                        options={**self.options, **table.options, **row.options, **_filled(column.options, row)},
                    )

    def with_specs(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """`options` with the specs of models in place of their names.

        Raises:
            UsageError: nothing stands for a model.
        """
        return {name: self._spec(value) if name in NAMED else value for name, value in options.items()}

    def _spec(self, name: Any) -> Any:
        if not isinstance(name, str) or (name not in self.models and ":" in name):
            return name
        spec = self.models.get(name)
        if spec is None:
            raise UsageError(
                f"Nothing stands for the model {name!r} of the grid.",
                hint=f"Set it under `models` in the file, or with `--model {name}=openai:…`.",
            )
        return spec


def _filled(options: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """`options` with what the row lets names in braces be."""
    filled = dict(options)
    for name, value in options.items():
        for own, text in row.let.items() if isinstance(value, str) else ():
            filled[name] = filled[name].replace(f"{{{own}}}", text)
    return filled


def read_grid(path: Path) -> Grid:
    """The grid in the file `path`.

    Raises:
        UsageError: it cannot be read, or says what no grid says; the message names the place.
    """
    form = read_yaml(path, what="a grid")
    try:
        return Grid.model_validate(form)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise UsageError(
            f"The grid {str(path)!r} cannot be used: {place}: {first['msg']}.",
            hint=f"A grid takes {', '.join(map(repr, Grid.model_fields))}.",
        ) from error
