"""The grid of Sherlock that ships, whole, over the made-up data set and a scorer that knows what is true."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from askance.evals import Run, evaluate
from askance.evals.analysis.grid import GridRun, GridRunner, grid_tables, read_grid
from askance.evals.published_figures import find_published_table
from askance.evals.report import build_report
from askance.evals.sherlock import InferenceComparison, Localization, Retrieval
from askance.evals.tables import FORMATS, rendered
from askance.evals.task_catalog import find_task
from askance.images import Image, RegionView
from askance.models import Engine
from askance.replay import MemoryStore
from tests.evals.sherlock import corpus

GRID = read_grid("sherlock")


class Eye:
    """A scorer to which the longer of two texts is the more plausible; what it was shown is kept."""

    def __init__(self, identity: str) -> None:
        self.id = identity
        self.shows: set[str] = set()
        self.texts: set[str] = set()

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        return await self.score_view(image, texts, RegionView())

    async def score_view(self, _: Image, texts: Sequence[str], view: RegionView) -> Sequence[float]:
        self.shows.add(view.show)
        self.texts |= {*texts}
        return [float(len(text)) for text in texts]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.write(tmp_path_factory.mktemp("sherlock"))


@pytest.fixture(scope="module")
def eyes() -> dict[str, Any]:
    return {name: Eye(name) for name in GRID.models}


@pytest.fixture(scope="module")
def made(data: Path, eyes: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> GridRun:
    runner = GridRunner(
        GRID.with_models({name: name for name in GRID.models}),
        out=tmp_path_factory.mktemp("runs"),
        engine=Engine(records=MemoryStore()),
        find=find_task,
        options={"data": data},
    )
    runner.models |= eyes
    return asyncio.run(runner.run())


def test_every_cell_has_a_run_of_its_own_figure(made: GridRun) -> None:
    missing = [
        (cell.table, cell.label, cell.head, cell_run.reason)
        for cell in made.grid.cells
        if (cell_run := made.found[cell.asked]).run is None or cell_run.run.figure(cell.metric).value is None
    ]

    assert missing == []
    assert made.whole


def test_each_ablation_shows_what_its_row_says(made: GridRun, eyes: dict[str, Any]) -> None:
    shown = {name: eye.shows for name, eye in eyes.items()}
    ablated = {"position": "position", "no region": "whole", "no context": "blackout", "only context": "hide"}

    assert shown == {name: {ablated.get(name, "highlight")} for name in GRID.models}
    clues = {clue for scene in corpus.SCENES for *_, clue, _, _ in scene.regions}
    assert eyes["RN50x64-clue"].texts == eyes["multitask, clues"].texts == clues
    assert not eyes["only clues"].texts & clues
    assert made.whole


def test_a_model_stands_in_each_table_with_one_run_of_a_task(made: GridRun) -> None:
    runs = {(cell.table, cell.head): made.found[cell.asked].run for cell in made.grid.cells if cell.label == "ViT-B/16"}

    assert runs["table-2", "P@1"] is runs["table-2", "im→txt"] is runs["figure-5a", "P@1"]
    assert runs["table-2", "human accuracy val"] is runs["figure-5a", "human accuracy val"]


def test_the_published_rows_are_there_but_for_people() -> None:
    for spec in GRID.tables.values():
        table = find_published_table(spec.published or "")
        assert {*spec.columns} == {*table.columns} - {"human accuracy"}
        asked = {row.published for row in spec.rows if row.published is not None}
        assert asked == {row.names for row in table.rows} - {("people",)}


def test_published_figures_stand_beside_and_every_form_is_written(made: GridRun) -> None:
    tables = grid_tables(made)

    assert tables["table-2"].rows[4][-6:] == (19.9, 21.6, 30.6, 85.3, 38.6, 20.1)
    assert tables["table-3"].rows[-1][-4:] == (5.4, 57.5, 95.3, 54.3)
    assert [row[-2:] for row in tables["figure-5a"].rows][3] == (24.8, 18.1)
    for table in tables.values():
        for form in FORMATS:
            assert "nan" not in rendered(table, form).lower()


def run(kind: Any, data: Path, out: Path, **options: Any) -> Run:
    task = kind(data=data, scorer=Eye("eye"), engine=Engine(records=MemoryStore()), **options)
    return evaluate(task, out=out)


def beside(made: Run) -> list[tuple[str, str]]:
    """By table the published rows that stand beside a run."""
    return [(each.title.partition(":")[0], head) for each in build_report([made]).runs[0].beside for head in each.heads]


def test_a_run_stands_beside_published_figures_of_the_same_setting(data: Path, tmp_path: Path) -> None:
    comparison = beside(run(InferenceComparison, data, tmp_path / "comparison"))
    hidden = beside(run(InferenceComparison, data, tmp_path / "hidden", region="hide"))

    assert ("Table 2", "CLIP ViT-B/16") in comparison
    assert ("Fig. 5a", "Trained w/ only Clues") in comparison
    assert ("Fig. 5a", "Only context") not in comparison
    assert hidden == [("Fig. 5a", "Only context")]
    assert beside(run(Retrieval, data, tmp_path / "chunk", chunk=0)) == []
    clues = beside(run(Localization, data, tmp_path / "clues", text="clue", boxes="auto"))
    assert [*dict(clues)] == ["Table 3"]
