"""Published figures for the setting of a run, from the tables of papers.

The packaged grid of a suite has the task and metric of each column of a table, and the options of each row. The models
of a published row are not compared: it is shown beside a run of any model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from askance.evals.analysis.grid import NAMED, Grid, read_grid
from askance.evals.reference import PERCENT, Suite, read_reference

if TYPE_CHECKING:
    from askance.evals.analysis.grid import CellSpec
    from askance.evals.reference import Reference, ReferenceTable
    from askance.evals.run import Run

_SETTING = ("context", "small", "step_by_step", "which", "qa", "negatives", "true", "statement", "control")
"""Options of a task that decide its setting; the others are seeds and sizes."""
_DEFAULTS: Mapping[str, Any] = {
    "small": False,
    "step_by_step": False,
    "which": "usable",
    "negatives": "easy",
    "true": "all",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """Published figures for the setting of a run: a row for each metric, a column for each published row."""

    title: str
    source: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    """Name of our metric, and the figures in percent or in the unit of their column."""


def published_beside(run: Run) -> Iterator[PublishedTable]:
    """The published tables with the setting of `run`."""
    suite: Suite | None = next((each for each in get_args(Suite) if each == run.task.partition("/")[0]), None)
    grid = _grid_of(suite)
    if suite is None or grid is None:
        return
    reference = read_reference(suite)
    for name, spec in grid.tables.items():
        number = (spec.published or "").rpartition("/")[2]
        if number.isdecimal():
            found = _table_beside(run, name, grid, reference=reference, table=reference.tables[int(number)])
            yield from () if found is None else (found,)


@cache
def _grid_of(suite: Suite | None) -> Grid | None:
    """The packaged grid of a suite; it is read once."""
    file = Path(__file__).parents[1] / f"{suite}" / "grid.yaml"
    return read_grid(file) if file.is_file() else None


def _table_beside(
    run: Run, name: str, grid: Grid, *, reference: Reference, table: ReferenceTable
) -> PublishedTable | None:
    spec = grid.tables[name]
    figures: dict[str, dict[str, float | None]] = {}
    for cell in grid.only([name]).cells:
        published = spec.rows[cell.row].published
        if published is None or not _asks_the_same(run, cell) or cell.head not in table.columns:
            continue
        value = table.value(*published, column=cell.head)
        if value is not None and any(figure.metric == cell.metric for figure in run.figures):
            unit = 100.0 if table.units[cell.head] == PERCENT else 1.0
            figures.setdefault(cell.metric, {})[", ".join(published)] = value / unit
    heads = tuple(dict.fromkeys(head for row in figures.values() for head in row))
    if not heads:
        return None
    return PublishedTable(
        title=f"Table {table.number}: {table.title}",
        source=reference.source,
        heads=heads,
        rows=tuple((metric, tuple(row.get(head) for head in heads)) for metric, row in figures.items()),
    )


def _asks_the_same(run: Run, cell: CellSpec) -> bool:
    if cell.task != run.task:
        return False
    own: Mapping[str, Any] = run.configuration.get("options", {})
    asked = {name: value for name, value in cell.options.items() if name not in NAMED}
    return all(_shown(own, name) == _shown(asked, name) for name in _SETTING) and all(
        own.get(name) == value for name, value in asked.items() if name not in _SETTING
    )


def _shown(options: Mapping[str, Any], name: str) -> Any:
    value = options.get(name, _DEFAULTS.get(name))
    return Path(value).name if name == "qa" and isinstance(value, str) else value
