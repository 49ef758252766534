"""The part of a report with published figures: those that papers print for the same setting as a run's.

The grid of a suite says which task and metric each column of a published table is of, and which options each row has.
Models are not compared: a published row is shown beside a run of any model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.evals.analysis.grid import NAMED, CellSpec, Grid, read_grid
from askance.evals.published_figures import PublishedTable, find_published_table, published_files

if TYPE_CHECKING:
    from askance.evals.run import Run

_SETTING = (
    *("context", "small", "step_by_step", "which", "qa", "negatives", "true", "statement", "control"),
    *("region", "text", "boxes", "split", "chunk"),
)
"""Options that make up the setting of a run; the others are seeds and sizes."""
_DEFAULTS: Mapping[str, Any] = {
    "context": "I",
    "small": False,
    "step_by_step": False,
    "which": "usable",
    "negatives": "easy",
    "true": "all",
    "region": "highlight",
    "text": "inference",
    "boxes": "gt",
    "split": "val",
    "chunk": "all",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedBeside:
    """Figures of one published table for the setting of a run: one row a metric, one column a published row."""

    title: str
    source: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    """Name of our metric, and the published figures on its scale."""


def published_beside(run: Run) -> Iterator[PublishedBeside]:
    """The published tables that have rows with the setting of `run`."""
    suite = run.task.partition("/")[0]
    grid = _grid_of(suite) if suite in published_files() else None
    if grid is None:
        return
    for name, spec in grid.tables.items():
        if spec.published is not None and (
            beside := _table_beside(run, name, grid, table=find_published_table(spec.published))
        ):
            yield beside


@cache
def _grid_of(suite: str) -> Grid | None:
    """The grid of a suite of this package, if it has one."""
    file = Path(__file__).parents[1] / suite / "grid.yaml"
    return read_grid(file) if file.is_file() else None


def _table_beside(run: Run, name: str, grid: Grid, *, table: PublishedTable) -> PublishedBeside | None:
    spec = grid.tables[name]
    figures: dict[str, dict[str, float | None]] = {}
    for cell in grid.only([name]).cells:
        published = spec.rows[cell.row].published
        if published is None or not _asks_the_same(run, cell, grid) or cell.head not in table.columns:
            continue
        value = table.value(*published, column=cell.head)
        figure = next((figure for figure in run.figures if figure.metric == cell.metric), None)
        if value is not None and figure is not None:
            unit = 100.0 if figure.percent else 1.0
            figures.setdefault(cell.metric, {})[", ".join(published)] = value / unit
    heads = tuple(dict.fromkeys(head for row in figures.values() for head in row))
    if not heads:
        return None
    return PublishedBeside(
        title=f"{table.name}: {table.title}",
        source=table.source,
        heads=heads,
        rows=tuple((metric, tuple(row.get(head) for head in heads)) for metric, row in figures.items()),
    )


def _asks_the_same(run: Run, cell: CellSpec, grid: Grid) -> bool:
    own: Mapping[str, Any] = run.configuration.get("options", {})
    if cell.task != run.task:
        same = grid.same_setting.get(run.task)
        if same is None or cell.table not in same.tables or not same.options.items() <= own.items():
            return False
    options = {name: value for name, value in cell.options.items() if name not in NAMED}
    return all(_shown(own, name) == _shown(options, name) for name in _SETTING) and all(
        own.get(name) == value for name, value in options.items() if name not in _SETTING
    )


def _shown(options: Mapping[str, Any], name: str) -> Any:
    value = options.get(name, _DEFAULTS.get(name))
    return Path(value).name if name == "qa" and isinstance(value, str) else value
