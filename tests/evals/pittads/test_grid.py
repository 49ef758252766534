"""The grid that ships, whole, over a made-up data set and models whose answers are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.evals.catalog import find_task
from askance.evals.figures import Figure
from askance.evals.grid import Grid, read_grid
from askance.evals.gridded import GridRun, GridRunner, published_figure, tables_of
from askance.evals.tables import Table, rendered
from askance.models import Engine
from tests.evals.pittads.worlds import choosing, is_wrong, model, world

GRID = Path(__file__).parents[3] / "askance" / "evals" / "pittads" / "grid.yaml"


def test_every_row_and_column_has_its_published_figure_or_says_so() -> None:
    grid = read_grid(GRID)
    for spec in grid.tables.values():
        for row in spec.rows:
            assert spec.published is not None
            assert row.published is not None
            for head in spec.columns:
                value = published_figure(spec.published, row.published, head)
                assert value is None or 0 <= value <= 100


def test_a_cell_is_behind_many_tables_and_run_once() -> None:
    grid = read_grid(GRID)
    cells = list(grid.cells)
    assert len({cell.asked for cell in cells}) < len(cells) / 2
    assert [*grid.tables] == [f"table-{number}" for number in (1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13)]
