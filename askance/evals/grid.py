"""Grids: a file that names the runs behind one or more tables, row by row.

```yaml
models:
  LLaVA: openai:llava-13b@http://localhost:8000/v1
  GPT-4: openai:gpt-4o
tables:
  table-3:
    title: Action-reason retrieval
    task: pittads/arr-multi
    columns: {"P@1": p@1, "P@3": p@3}
    rows:
      - {label: "LLaVA, I", vlm: LLaVA, context: I}
      - {label: "GPT-4, T_V", vlm: LLaVA, llm: GPT-4, context: T_V}
```

Rows that ask for the same are one run, in whatever tables they stand; and calls that rows share are made once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from askance.errors import UsageError
from askance.evals.task import ROLES
from askance.evals.yaml_files import read_yaml


class Row(BaseModel):
    """One run of a table; what is no field here is an option of its task, with models by their names in the grid."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    label: str
    task: str | None = None
    """None is the table's."""
    published: tuple[str, ...] | None = None
    """The row of the published table that stands beside it."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Options of the task."""
        return self.model_extra or {}


class TableSpec(BaseModel):
    """One table of a grid."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    title: str
    task: str | None = None
    columns: Annotated[Mapping[str, str], Field(min_length=1)]
    """Heads, and the metrics under them; published figures stand under the same heads."""
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    options: Mapping[str, Any] = {}
    """Of all rows; a row's own go before them."""
    published: str | None = None
    """The published table that it stands beside, such as `pittads/3`."""
    notes: tuple[str, ...] = ()


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
            raise UsageError(f"The grid has no model {unknown[0]!r}.", hint=f"It has {', '.join(self.models)}.")
        return self.model_copy(update={"models": {**self.models, **models}})

    def task_of(self, table: TableSpec, row: Row) -> str:
        """Name of the task behind a row.

        Raises:
            UsageError: neither the row nor its table names one.
        """
        name = row.task or table.task
        if name is None:
            raise UsageError(
                f"Nothing says which task the row {row.label!r} is of.", hint="Give it, or its table, a `task`."
            )
        return name

    def options_of(self, table: TableSpec, row: Row) -> Mapping[str, Any]:
        """Options of a row's task, with the specs of its models.

        Raises:
            UsageError: it names a model that nothing stands for.
        """
        options = {**self.options, **table.options, **row.options}
        return {name: self._spec(value) if name in ROLES else value for name, value in options.items()}

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
        raise UsageError(f"The grid {str(path)!r} cannot be used: {place}: {first['msg']}.") from error
