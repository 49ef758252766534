"""The grid that ships, whole, over a made-up data set and models whose answers are known."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.atypicality import Statement
from askance.chat import ChatRequest, ChatResponse
from askance.evals import Run
from askance.evals.analysis.grid import CellSpec, GridPlan, GridRun, GridRunner, grid_tables, read_grid
from askance.evals.metric import Figure
from askance.evals.negatives import generate, read_statements
from askance.evals.pittads import statements_in
from askance.evals.published_figures import find_published_table
from askance.evals.tables import FORMATS, rendered
from askance.evals.task_catalog import find_task
from askance.images import Image
from askance.models import Engine, Model, ScriptedEmbedder, ScriptedModel, ScriptedScorer, get_model
from askance.replay import MemoryStore, RecordKind
from tests.evals.pittads.files import key_of, row
from tests.evals.pittads.worlds import REFUSAL, choosing, is_wrong, listed, numbers, picture_of, world, writer
from tests.golden.comparison import check, text_of
from tests.images import samples as pictures
from tests.scripted import ENFORCED, name_of

GRID = Path(__file__).parents[3] / "askance" / "evals" / "pittads" / "grid.yaml"

ATYPICAL, TYPICAL = 4, 2
PICTURES = {
    Image.from_bytes(pictures.encoded(pictures.photo(seed=number), "PNG")).sha256: number
    for number in numbers(ATYPICAL + TYPICAL)
}
"""By digest, the numbers of the pictures."""

BEHAVIOURS: Mapping[str, tuple[str, ...]] = {
    "right": ("GPT-4", "GPT-4V"),
    "first right": ("Vicuna", "InternLM"),
    "wrong": ("LLaVA", "LLaVA-1.6", "GPT-3.5"),
    "declines": ("InstructBLIP", "MiniGPT4", "BLIP2", "InternVL", "InternVL2"),
}
"""How the models of the grid answer. All of them see well: LLaVA verbalizes for the others."""

# Every ad shows TR1 and nothing else. A label that is never there and never said has a precision of 0 by convention.
LABELS_RIGHT = {f"{figure} with NA": 1 / 5 for figure in ("precision", "recall", "F1")} | {
    f"{figure} without NA": 1 / 4 for figure in ("precision", "recall", "F1")
}
SUBSETS = {f"subset accuracy {which} NA": 1.0 for which in ("with", "without")}
ALWAYS: Mapping[str, float | None] = {
    "AUC-ROC with NA": None,
    "AUC-ROC without NA": None,
    "AUC-PR with NA": 1 / 5,
    "AUC-PR without NA": 1 / 4,
}
"""What stands whatever is said: no label is there in some ads and not in others, so nothing can be ranked."""
WORTH: Mapping[str, Mapping[str, float]] = {
    "right": LABELS_RIGHT
    | SUBSETS
    | dict.fromkeys(("precision@1", "precision@2", "precision@3", "top-1", "top-2", "top-3", "average"), 1.0)
    | dict.fromkeys(("single accuracy", "ASR accuracy", "similarity", "> 0.7", "> 0.6", "> 0.5"), 1.0)
    | dict.fromkeys(("I", "I + s⁺", "I + ŝ", "I + s̄"), 1.0),
    "first right": LABELS_RIGHT
    | SUBSETS
    | {"precision@1": 1.0, "precision@2": 1 / 2, "precision@3": 1 / 3, "top-1": 1.0, "top-2": 1.0}
    | {"single accuracy": 1.0, "ASR accuracy": 1.0},
    "wrong": {},
    "declines": {},
}
"""What stands under each head; 0 where nothing is said."""
AVERAGES = {("first right", 5): (1 + 1 / 2 + 1 / 3 + 1 + 1) / 5, ("first right", 3): (1 + 1 / 2 + 1 / 3) / 3}
"""By the number of figures that the mean is of."""


def number_of(request: ChatRequest) -> int:
    """The number of the picture that a request shows or tells of."""
    if request.images:
        return PICTURES[picture_of(request)]
    told = re.search(r"(?:[Pp]icture|bottle) (\d+)", request.messages[-1].text)
    assert told is not None
    return int(told[1])


def seen(request: ChatRequest) -> Any:
    """What all models say where they verbalize; the number of the picture goes all the way, and who was asked what."""
    number, asked = number_of(request), request.key[:12]
    return {
        "objects": {"objects": [f"bottle {number}", f"feather {number}"]},
        "scene_text": {"lines": [f"BUY {asked}"]},
        "narration": {"description": f"Picture {number}, {asked}."},
        "unusual": {"unusual": f"Odd in picture {number}, {asked}."},
        "combine": {"description": f"Picture {number} and all that, {asked}."},
    }[name_of(request)]


def statement_in(request: ChatRequest, *, right: bool) -> Any:
    """The choice of the true statement, or of the first other one."""
    number = number_of(request)
    true = Statement("TR1", f"bottle {number}", f"feather {number}").text
    if not any(str(number) not in text for text in listed(request)):  # a detection, over the objects of the picture
        return {"statement": 5 if "all that" in request.messages[-1].text else 6}
    places = [place for place, text in enumerate(listed(request), start=1) if (text == true) is right]
    return {"statement": places[0]}


def is_right(text: str) -> bool:
    """Puts the true statements last."""
    return not is_wrong(text)


def one_right(text: str) -> tuple[bool, str]:
    """Puts one true statement first, then the wrong ones."""
    return not text.endswith("0 is right") and (is_wrong(text) is False), text


def chosen(request: ChatRequest, how: str) -> Any:
    """What a model says where it decides."""
    name, right = name_of(request), how != "wrong"
    number = number_of(request)
    if "classify" in name:
        return {"categories": ["TR1"] if right else ["NA"]}
    if "statement" in name and "fill" not in name:
        return statement_in(request, right=right)
    if "fill" in name:
        return (
            {"primary": f"bottle {number}", "secondary": f"feather {number}"}
            if right
            else {"primary": "a", "secondary": "b"}
        )
    wanted: Callable[[str], Any] = {
        "right": is_wrong,
        "first right": one_right,
        "wrong": is_right,
    }[how]
    return choosing(wanted, count=1 if single(request) else 3)(request)


def single(request: ChatRequest) -> bool:
    """Whether one option is asked for."""
    asked: Any = request.response and request.response.schema
    return asked["properties"]["answers"]["maxItems"] == 1


def scripted(name: str, how: str, engine: Engine) -> Model:
    """The model of that name, with a record of its own."""

    def reply(request: ChatRequest) -> str | ChatResponse:
        if name_of(request) in {"objects", "scene_text", "narration", "unusual", "combine"}:
            return json.dumps(seen(request))
        if how == "declines":
            return REFUSAL
        answer = chosen(request, how)
        assert request.response is not None
        asked: Any = request.response.schema
        return json.dumps({"reasoning": "Step by step."} | answer if "reasoning" in asked["properties"] else answer)

    return get_model(ScriptedModel(reply, capabilities=ENFORCED, identity=name), engine=engine)


def grid_runner(folder: Path) -> GridRunner:
    """The whole grid, ready to be run in `folder`."""
    engine = Engine(records=MemoryStore())
    keys = [key_of(number) for number in numbers(ATYPICAL + TYPICAL)]
    atypical = zip(keys[:ATYPICAL], numbers(ATYPICAL), strict=True)
    rows = [[row(key, "1", f"bottle {number}", f"feather {number}")] for key, number in atypical]
    rows += [[row(key, "Regular_Object", "", "")] for key in keys[ATYPICAL:]]
    data = world(folder / "data", true=(3,) * len(keys), rows=rows)
    generate(read_statements(statements_in(data)), writer(), out=data / "hard")
    grid = read_grid(GRID)
    runner = GridRunner(
        grid.with_models({name: name for name in grid.models}),
        out=folder / "runs",
        engine=engine,
        find=find_task,
        options={
            "data": data,
            "embedder": ScriptedEmbedder(
                lambda text: (1.0, 0.0) if re.search(r"bottle \d+.*feather \d+", text) else (0.0, 1.0), identity="e"
            ),
        },
    )
    runner.models |= {name: scripted(name, how, engine) for how, names in BEHAVIOURS.items() for name in names}
    runner.models["CLIP"] = ScriptedScorer(lambda _, text: float(not is_wrong(text)), identity="clip")
    return runner


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> GridRunner:
    """The whole grid, ready to be run."""
    return grid_runner(tmp_path_factory.mktemp("grid"))


@pytest.fixture(scope="module")
def planned(runner: GridRunner) -> GridPlan:
    """What it would ask, before anything is on record."""
    return asyncio.run(runner.plan())


@pytest.fixture(scope="module")
def made(runner: GridRunner, planned: GridPlan) -> GridRun:  # planned first
    """The whole grid, run once."""
    return asyncio.run(runner.run())


def behaviour(cell: CellSpec) -> str:
    """How the model answers that the cell is of: the VLM where it sees the picture, else the LLM."""
    options = cell.options
    if "scorer" in options:
        return "right"
    context = options["context"]
    looks = context == "I" or context.startswith("I+") or "llm" not in options
    name = options["vlm" if looks else "llm"]
    return next(how for how, names in BEHAVIOURS.items() if name in names)


def test_every_cell_is_worth_what_was_worked_out(made: GridRun) -> None:
    wrong: list[str] = []
    for cell in made.grid.cells:
        found = made.found[cell.asked]
        assert found.run is not None, (cell.table, cell.label, cell.head, found.reason)
        how = behaviour(cell)
        expected = ALWAYS.get(cell.head, WORTH[how].get(cell.head, 0.0))
        if cell.head == "average":
            expected = AVERAGES.get((how, 5 if cell.metric == "mean of five" else 3), expected)
        figure = found.run.figure(cell.metric)
        answered = 0 if how == "declines" else figure.samples
        if (figure.value, figure.answered) != (pytest.approx(expected), answered):
            wrong.append(f"{cell.table} {cell.label} {cell.head}: {figure.value} of {figure.answered}, not {expected}")
    assert wrong == []


def figures_of(made: GridRun) -> dict[str, list[float | int | None]]:
    """By table, row and column: the figure, samples, those answered, and its bounds.

    Its interval is a bootstrap's, and stands in no golden file.
    """
    found: dict[str, list[float | int | None]] = {}
    for cell in made.grid.cells:
        run = made.found[cell.asked].run
        assert run is not None
        figure = run.figure(cell.metric)
        bounds = (figure.if_wrong, figure.if_right)
        shown = [None if each is None else round(each, 9) for each in (figure.value, *bounds)]
        found[f"{cell.table} · {cell.label} · {cell.head}"] = [shown[0], figure.samples, figure.answered, *shown[1:]]
    return found


def test_the_figures_are_those_of_the_golden_table(made: GridRun) -> None:
    check("grid.json", text_of(figures_of(made)))


def test_published_figures_stand_beside_and_every_form_is_written(made: GridRun) -> None:
    tables = grid_tables(made)
    third = tables["table-3"]

    assert third.columns[3:6] == ("precision@1", "precision@2", "precision@3")
    row = next(row for row in third.rows if row[0] == "GPT-4, T_V+ŝ_IN")
    assert row[1:3] == (ATYPICAL, ATYPICAL)
    assert row[9:] == (95.54, 87.55, 74.62, 88.42, 93.40, 87.91)
    assert isinstance(row[3], Figure)
    assert row[3].interval is not None
    for table in tables.values():
        for form in FORMATS:
            assert "nan" not in rendered(table, form).lower()


def test_options_are_those_of_the_published_rows_and_every_table_says_which(made: GridRun) -> None:
    """Table 6 has the rows of the other tables as those of "18 Hard Neg."."""
    kinds: dict[str, set[str]] = {"12": set(), "18": set()}
    for cell in made.grid.cells:
        run = made.found[cell.asked].run
        assert run is not None
        if run.task.startswith("pittads/arr-"):
            shown = [kind for answer in run.answers for kind in answer.sample.target["kinds"]]
            kinds["12" if cell.label.startswith("12 Neg.") else "18"].update(shown)

    assert kinds == {
        "12": {"true", "other image"},
        "18": {"true", "action", "reason", "adjective", "object", "statement"},
    }
    hard = "Options of an image: 18, 3 of them true; wrong ones: hard negatives; large_combined_hard_"
    tables = grid_tables(made)
    for name, table in tables.items():
        assert any(note.startswith(hard) for note in table.notes) == (
            name not in {"table-1", "table-2", "table-7", "table-8"}
        )
    assert [note.partition(";")[0] for note in tables["table-6"].notes if note.startswith("Options of")] == [
        "Options of an image: 15, 3 of them true", "Options of an image: 18, 3 of them true"
    ]  # fmt: skip


def test_the_published_rows_of_the_grid_are_there() -> None:
    for spec in read_grid(GRID).tables.values():
        for row_ in spec.rows:
            assert spec.published is not None
            assert row_.published is not None
            table = find_published_table(spec.published)
            assert table.row(*row_.published) is not None
            assert {*spec.columns} <= {*table.columns}


def test_calls_that_runs_share_are_made_once(made: GridRun) -> None:
    keys = [key for run in made.runs for answer in run.answers for key in answer.keys]
    tables = {cell.asked for cell in made.grid.cells}

    assert len(made.runs) == len(tables) < len(list(made.grid.cells)) / 2
    assert len({*keys}) < len(keys) / 4


def test_the_plan_is_what_the_grid_then_asks(planned: GridPlan, made: GridRun) -> None:
    asked = {key for run in made.runs for key in calls_of(run) & {key for each in run.answers for key in each.keys}}
    calls = [link for link in planned.plan.links if not link.computed]

    assert (planned.runs, planned.plan.hits) == (len(made.runs), 0)
    assert sum(link.calls for link in calls) == len(asked)


def test_the_plan_counts_scores_and_vectors_once(planned: GridPlan, made: GridRun) -> None:
    fused = [run for run in made.runs if run.task == "pittads/arr-clip"]
    made_of = {kind: {record.key for run in fused for record in run.records.of_kind(kind)} for kind in KINDS}
    scores, vectors = (next(link for link in planned.plan.links if link.link == name) for name in ("scores", "vectors"))

    assert (scores.known, scores.dependent) == (len(made_of["score"]), 0)
    # Texts that are not said yet may turn out to be equal, or to say nothing.
    assert vectors.known < len(made_of["embed"]) <= vectors.known + vectors.dependent


KINDS: tuple[RecordKind, ...] = ("embed", "score")


def calls_of(run: Run) -> set[str]:
    return {record.key for record in run.records.of_kind("chat")}
