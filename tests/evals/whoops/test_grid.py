"""The grid of WHOOPS! that ships, whole, over a made-up data set and models whose answers are known."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import pytest

from askance.chat import ChatRequest, JsonObject
from askance.errors import UsageError
from askance.evals.analysis.grid import Grid, GridRun, GridRunner, grid_tables, read_grid
from askance.evals.negatives import Recipe, generate
from askance.evals.published_figures import find_published_table
from askance.evals.tables import FORMATS, rendered
from askance.evals.task_catalog import find_task
from askance.evals.whoops import Whoops
from askance.evals.whoops.explain_choice import statements
from askance.images import Image
from askance.models import Engine, Model, ScriptedModel, ScriptedScorer, get_model
from askance.replay import MemoryStore
from tests.evals.whoops import files, worlds
from tests.scripted import ENFORCED, PICTURES, name_of

SCORERS = ("CLIP", "CoCa towers", "BEM")
TUNED = "XL, fine-tuned"
UNSET = ("XXL, fine-tuned", "text only")
"""Fine-tuned models that nothing stands for, to save time."""


PAIRS = 5
"""As many as folds."""


class HalfSure:
    """Half sure of every answer."""

    id = "half-sure"

    async def score_texts(self, _: Mapping[str, str], texts: Sequence[str]) -> list[float]:
        return [0.5] * len(texts)


def fitting(_: Image, text: str) -> float:
    """How well a caption fits: the underspecified ones do not."""
    return float("Something" not in text)


def scripted(name: str, engine: Engine) -> Model:
    """A model that takes the first option, finds every picture weird, and says the same of all."""

    def reply(request: ChatRequest) -> str:
        asked = name_of(request)
        if "choose" in asked:
            return json.dumps({"answers": [1]})
        if "judge" in asked:
            return json.dumps({"verdict": "true"})
        answers: Mapping[str, object] = {
            "explain": {"explanation": "It is odd."},
            "identify": {"answer": "weird"},
            "answer": {"answer": "two"},
            "caption": {"description": "A brick cup stands on a table, says person 0"},
            "objects": {"objects": ["cup", "table"]},
            "scene_text": {"lines": []},
            "narration": {"description": "A cup."},
            "unusual": {"unusual": "The cup."},
            "combine": {"description": "An odd cup."},
        }
        return json.dumps(next(found for start, found in answers.items() if asked.startswith(start)))

    return get_model(ScriptedModel(reply, capabilities=ENFORCED, identity=name), engine=engine)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> GridRunner:
    folder, engine = tmp_path_factory.mktemp("grid"), Engine(records=MemoryStore())
    data = folder / "weird"
    files.first_release(data)
    pairs = [
        {"weird": f"w{at}.png", "normal": f"n{at}.png", "weird_caption": "A cup of bricks", "normal_caption": "A cup"}
        for at in range(PAIRS)
    ]
    files.write_table(data / "pairs" / "pairs.csv", pairs)
    for at, name in enumerate(f"{start}{at}.png" for at in range(PAIRS) for start in "wn"):
        (data / "pairs" / name).write_bytes((PICTURES / "plain-coffee.jpg").read_bytes() + bytes(at))
    files.triplets(data / "triplets", {"t1#weird": ("A cup.", False), "t1#normal": ("A cup.", True)})
    recipe = Recipe(domain="explanations", kinds=("verb", "object", "adjective", "causal"), most=1)
    generate(statements(Whoops.open(data)), negatives_writer(), out=data / "hard", recipe=recipe)
    grid = read_grid("whoops")
    named = {name: f"{name}/{{fold}}" if name == TUNED else name for name in grid.models if name not in UNSET}
    runner = GridRunner(
        grid.with_models(named),
        out=folder / "runs",
        engine=engine,
        find=find_task,
        options={"data": data},
    )
    runner.models |= {name: scripted(name, engine) for name in grid.models if name not in SCORERS}
    runner.models |= {f"{TUNED}/{fold}": scripted(f"{TUNED}/{fold}", engine) for fold in range(5)}
    runner.models["BEM"] = HalfSure()
    for name in ("CLIP", "CoCa towers"):
        runner.models[name] = ScriptedScorer(fitting, identity=name)
    return runner


def negatives_writer() -> Model:
    count = iter(range(1000))

    def written(_: ChatRequest) -> JsonObject:
        return {"negatives": [{"replaced": "", "replacement": "", "statement": f"Never {next(count)}."}]}

    return worlds.model(negative=written)


@pytest.fixture(scope="module")
def made(runner: GridRunner) -> GridRun:
    return asyncio.run(runner.run())


def test_every_cell_has_a_run_but_those_of_models_that_are_not_set(made: GridRun) -> None:
    missing = {cell.label: found.reason for cell in made.grid.cells if (found := made.found[cell.asked]).run is None}

    assert {*missing} == {"BLIP2 XXL, fine-tuned, I", "BLIP2 XXL, fine-tuned", "BLIP2 XXL, text only"}
    assert all(reason.startswith("Nothing stands for the model") for reason in missing.values())


def test_figures_are_those_of_the_answers(made: GridRun) -> None:
    values = {
        (cell.table, cell.head): run.figure(cell.metric).value
        for cell in made.grid.cells
        if (run := made.found[cell.asked].run) is not None and "scorer" not in cell.options
    }

    assert values["table-1", "identify"] == 0.5  # all are called weird
    assert values["table-1", "judge"] == 1.0
    assert values["table-2-vqa", "strict match"] == 0.5  # one of two answers is "two"
    ranked = [made.found[cell.asked].run for cell in made.grid.cells if cell.label == "CLIP"]
    assert [run.figure("right rankings").value for run in ranked if run is not None] == [1.0]


def test_a_fine_tuned_row_has_a_model_for_each_fold_and_figures_over_them(made: GridRun) -> None:
    (cell,) = (
        cell
        for cell in made.grid.cells
        if cell.table == "table-2-vqa" and cell.metric == "strict match" and cell.label == "BLIP2 XL, fine-tuned"
    )
    joined, folds = made.found[cell.asked].run, [made.found[each.asked].run for each in made.grid.runs_behind(cell)]

    assert joined is not None
    assert [run and run.models for run in folds] == [(f"XL, fine-tuned/{fold}",) for fold in range(5)]
    assert [run and run.options["fold"] for run in folds] == [*range(5)]
    asked = [answer.sample.group for run in folds if run is not None for answer in run.answers]
    assert sorted({*asked}) == sorted(files.IDS)
    figure = joined.figure("strict match")
    each = [run.figure("strict match").value for run in folds if run is not None]
    assert figure.value == pytest.approx(fmean(value for value in each if value is not None))
    assert [joined.figure(f"strict match: fold {fold}").value for fold in range(5)] == each
    assert (figure.samples, figure.answered, figure.clusters) == (len(asked), len(asked), 5)
    assert joined not in made.runs
    (row,) = (row for row in grid_tables(made)["table-2-vqa"].rows if row[0] == "BLIP2 XL, fine-tuned")
    assert row[1:3] == (len(asked), len(asked))
    assert row[3] == figure
    assert row[-2:] == (20.0, 55.0)
    notes = grid_tables(made)["table-2-vqa"].notes
    assert any(note.startswith("Figures are plain means over folds (5") for note in notes)
    assert not any("not comparable" in note for note in notes)
    assert [note for note in notes if "BLIP2 XL, fine-tuned" in note] == [
        "'BLIP2 XL, fine-tuned' is 5 runs, each of a fold and its model",
        "Each run of 'BLIP2 XL, fine-tuned': 2 questions",
        "Each run of 'BLIP2 XL, fine-tuned': 5 images of 5",
    ]
    assert "2 questions" not in notes
    assert not any("test images of fold" in note for note in notes)
    categories = [figure.metric for figure in joined.figures if figure.metric.startswith("exact match: ")]
    assert sorted(each for each in categories if "fold" not in each) == sorted(
        f"exact match: {name}" for name in {*files.CATEGORIES}
    )


def test_published_figures_stand_beside_and_every_form_is_written(made: GridRun) -> None:
    tables = grid_tables(made)

    assert [row[-2:] for row in tables["table-1"].rows if row[0] == "GPT3, ground-truth caption"] == [(74.0, 70.0)]
    assert [row[-2:] for row in tables["ads-table-14"].rows] == [(18.8, 88.0), (20.4, 65.4)]
    assert [row[-1] for row in tables["table-2-matching"].rows] == [70.0, 72.0, 77.0, 71.0, 81.0, 84.0, 94.0]
    for table in tables.values():
        for form in FORMATS:
            assert "nan" not in rendered(table, form).lower()


def test_the_published_rows_of_the_grid_are_there() -> None:
    for spec in read_grid("whoops").tables.values():
        table = find_published_table(spec.published or "")
        assert {*spec.columns} <= {*table.columns}
        for row in spec.rows:
            assert row.published is not None
            assert table.row(*row.published) is not None


def test_hard_negatives_are_looked_for_in_the_data(made: GridRun, tmp_path: Path) -> None:
    runs = {cell.head: made.found[cell.asked].run for cell in made.grid.cells if cell.table == "ads-table-14"}
    hard = runs["hard negatives"]
    assert hard is not None
    kinds = {kind for answer in hard.answers for kind in answer.sample.target["kinds"]}
    assert kinds == {"true", "verb", "object", "adjective", "causal"}

    with pytest.raises(UsageError, match="Hard negatives are not part of the data set"):
        find_task("whoops/explain-choice")(data=files.first_release(tmp_path / "weird"), vlm="demo", negatives="hard")


async def test_a_list_and_a_limit_hold_for_each_fold_of_a_fine_tuned_row(tmp_path: Path) -> None:
    data, ids, engine = files.first_release(tmp_path / "weird"), tmp_path / "ids.txt", Engine(records=MemoryStore())
    ids.write_text("\n".join(files.IDS), encoding="utf-8")
    row = {"label": "tuned", "vlm": "T", "context": "I", "fold": "each"}
    columns = {"a": "strict match"}
    table = {"title": "Questions", "task": "whoops/vqa", "columns": columns, "rows": [row]}
    grid = Grid.model_validate({"models": {"T": "T/{fold}"}, "tables": {"vqa": table}})
    options = {"data": data, "ids": ids, "limit": 1}
    runner = GridRunner(grid, out=tmp_path / "runs", engine=engine, find=find_task, options=options)
    runner.models |= {f"T/{fold}": scripted(f"T/{fold}", engine) for fold in range(5)}

    (run,) = (made := await runner.run()).runs_of("vqa")

    assert sorted({answer.sample.group for answer in run.answers}) == sorted(files.IDS)
    assert grid_tables(made)["vqa"].rows[0][:3] == ("tuned", 10, 10)
    assert run.data_notes == (
        "'tuned' is 5 runs, each of a fold and its model; the limit of 1 is that of each run",
        "Each run of 'tuned': 2 questions",
        "Each run of 'tuned': 5 listed images of 5",
    )
