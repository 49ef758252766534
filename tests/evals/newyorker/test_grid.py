"""The grid of the New Yorker suite that ships, whole, over a made-up data set and models whose answers are known."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping

import pytest

from askance.chat import ChatRequest, ChatResponse
from askance.evals.analysis.grid import GridPlan, GridRun, GridRunner, grid_tables, read_grid
from askance.evals.published_figures import find_published_table
from askance.evals.report.published_part import published_beside
from askance.evals.tables import FORMATS, rendered
from askance.evals.task_catalog import find_task
from askance.models import Engine, Model, ScriptedModel, ScriptedScorer, get_model
from askance.replay import MemoryStore, RecordKind
from tests.evals.newyorker import cartoons
from tests.scripted import ENFORCED, name_of

GRID = read_grid("newyorker")
TUNED = ("CLIP matching", "T5 ranking")
UNSET = ("CLIP ranking", "T5 matching", "T5 explanation", "GPT-3 matching", "GPT-3 ranking", "GPT-3 explanation")
"""Fine-tuned models that nothing stands for, to save time."""
SET = tuple(name for name in GRID.models if name not in UNSET)
KINDS: tuple[RecordKind, ...] = ("chat", "embed", "score")


class Weighing(ScriptedModel):
    """Answers as told, and finds each word of a given text half as likely as it is long."""

    async def likelihood(self, request: ChatRequest) -> ChatResponse:
        words = (request.given or "").split()
        return ChatResponse(logprobs=tuple({"token": word, "logprob": -len(word) / 2} for word in words))


def scripted(name: str, engine: Engine) -> Model:
    """A model that says the first letter, and the same of every cartoon."""

    def reply(request: ChatRequest) -> str:
        answers: Mapping[str, object] = {
            "location": {"location": "a bar"},
            "scene_description": {"description": "An animal talks."},
            "unusual": {"unusual": "It talks."},
            "entities": {"entities": ["Duck"]},
            "match": {"answer": "A"},
            "rank": {"answer": "A"},
            "explain": {"explanation": "It is a pun on the animal."},
        }
        asked = name_of(request)
        found = dict(next(found for start, found in answers.items() if asked.startswith(start)))  # type: ignore[call-overload]
        return json.dumps({"reasoning": "First.", **found} if asked.endswith("step_by_step") else found)

    return get_model(Weighing(reply, capabilities=ENFORCED, identity=name), engine=engine)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> GridRunner:
    """The whole grid, ready to be run."""
    folder, engine = tmp_path_factory.mktemp("grid"), Engine(records=MemoryStore())
    runner = GridRunner(
        GRID.with_models({name: f"{name} {{fold}}" if name in TUNED else name for name in SET}),
        out=folder / "runs",
        engine=engine,
        find=find_task,
        options={"data": cartoons.lines(folder / "data")},
    )
    named = [*SET, *(f"{name} {fold}" for name in TUNED for fold in range(5))]
    runner.models |= {name: scripted(name, engine) for name in named}
    for name in (name for name in named if name.startswith("CLIP")):
        runner.models[name] = ScriptedScorer(lambda _, text: float("joke 0" in text), identity=name)
    return runner


@pytest.fixture(scope="module")
def planned(runner: GridRunner) -> GridPlan:
    """What it would ask, before anything is on record."""
    return asyncio.run(runner.plan())


@pytest.fixture(scope="module")
def made(runner: GridRunner, planned: GridPlan) -> GridRun:  # planned first
    """The whole grid, run once."""
    return asyncio.run(runner.run())


def test_every_cell_has_a_run(made: GridRun) -> None:
    missing = {
        (cell.label, cell.head): found.reason
        for cell in made.grid.cells
        if (found := made.found[cell.asked]).run is None
    }

    assert {label for label, _ in missing} == {"CLIP (fine-tuned)", "T5-Large (fine-tuned)", "GPT-3 (fine-tuned)"}
    assert not {("CLIP (fine-tuned)", "matching"), ("T5-Large (fine-tuned)", "CrowdAcc")} & {*missing}
    assert all(reason.startswith("Nothing stands for the model") for reason in missing.values())


def test_figures_are_means_over_all_five_folds(made: GridRun) -> None:
    for cell in made.grid.cells:
        run = made.found[cell.asked].run
        if run is not None and (cell.head != "PPL" or cell.options.get("perplexity")):
            figure = run.figure(cell.metric)
            each = [run.figure(f"{cell.metric}: fold {fold}").value for fold in range(5)]
            known = [value for value in each if value is not None]
            assert figure.value == pytest.approx(sum(known) / len(known))
            assert len(known) == 5


def test_a_cell_has_the_context_and_the_examples_of_its_row(made: GridRun) -> None:
    runs = {(cell.table, cell.label, cell.head): made.found[cell.asked].run for cell in made.grid.cells}
    run = runs["table-2", "GPT-4 (5-shot)", "matching"]

    assert run is not None
    assert (run.options["context"], run.options["shots"], run.options["fold"]) == ("description", 5, "all")
    assert all(len(answer.sample.inputs["examples"]) == 5 for answer in run.answers)
    assert runs["table-2", "GPT-4 (5-shot)", "CrowdAcc"] is runs["table-2", "GPT-4 (5-shot)", "NYAcc"]


def test_the_published_rows_are_there_but_for_t5_11b_ofa_and_people() -> None:
    for spec in GRID.tables.values():
        table = find_published_table(spec.published or "")
        asked = {row.published for row in spec.rows if row.published is not None}
        assert [*spec.columns] == [*table.columns]
        assert asked == {
            row.names
            for row in table.rows
            if not any(word in " ".join(row.names) for word in ("T5-11B", "OFA", "Random", "people"))
        }


def test_each_fold_of_a_fine_tuned_row_has_the_model_of_its_task_and_fold(made: GridRun) -> None:
    asked = {
        (cell.label, cell.head): [made.found[each.asked].run for each in made.grid.runs_behind(cell)]
        for cell in made.grid.cells
        if made.found[cell.asked].run is not None
    }

    clip, t5 = asked["CLIP (fine-tuned)", "matching"], asked["T5-Large (fine-tuned)", "CrowdAcc"]
    assert t5 == asked["T5-Large (fine-tuned)", "NYAcc"]
    assert [run and run.models for run in t5] == [(f"T5 ranking {fold}",) for fold in range(5)]
    for runs in (clip, t5):
        assert [{answer.sample.tags["fold"] for answer in run.answers} for run in runs if run is not None] == [
            {fold} for fold in range(5)
        ]


def test_calls_that_tables_share_are_made_once(made: GridRun) -> None:
    cells = [*made.grid.cells]
    by_place = {(cell.table, cell.label, cell.head): cell.asked for cell in cells}

    behind = {each.asked for cell in cells for each in made.grid.runs_behind(cell) if made.found[cell.asked].run}
    assert len(made.runs) == len(behind)
    assert len({*by_place.values()}) < len(cells) / 2
    for head in ("matching", "CrowdAcc", "NYAcc"):
        assert by_place["table-4", "text-davinci-002", head] == by_place["table-2", "GPT-3 (5-shot)", head]
    for head in ("BLEU-4", "ROUGE-L", "PPL"):
        assert by_place["table-4", "text-davinci-002", head] == by_place["table-5", "GPT-3 (5-shot)", head]


def test_the_plan_is_what_the_grid_then_asks(planned: GridPlan, made: GridRun) -> None:
    records = {record.key: record for run in made.runs for kind in KINDS for record in run.records.of_kind(kind)}
    links = planned.plan.links
    calls: Counter[tuple[str, str]] = Counter()
    for link in links:
        calls[str(link.model), "score" if link.link in {"scores", "likelihood"} else "chat"] += link.calls

    assert (planned.runs, planned.plan.hits) == (len(made.runs), 0)
    assert all("Nothing stands for the model" in reason for reason in planned.left_out)
    assert calls == Counter((record.model, record.kind) for record in records.values())
    assert {link.link for link in links if link.computed} == {"scores"}
    assert {f"T5 ranking {fold}" for fold in range(5)} < {str(link.model) for link in links}


def test_published_figures_stand_beside_and_every_form_is_written(made: GridRun) -> None:
    tables = grid_tables(made)

    assert {row[0]: row[-3:] for row in tables["table-2"].rows}["GPT-4 (CoT)"] == (81.9, 66.2, 64.3)
    assert {row[0]: row[-3:] for row in tables["table-5"].rows}["GPT-4 (CoT)"] == (3.42, 19.0, None)
    assert any("T5-11B" in note for note in tables["table-5"].notes)
    for table in tables.values():
        for form in FORMATS:
            assert "nan" not in rendered(table, form).lower()


def test_a_report_shows_figures_of_the_same_number_of_examples(made: GridRun) -> None:
    runs = {(cell.table, cell.label, cell.head): made.found[cell.asked].run for cell in made.grid.cells}
    run = runs["table-2", "GPT-3 (zero-shot)", "matching"]

    assert run is not None
    (beside,) = published_beside(run)
    assert beside.heads == ("FD, GPT-3 (zero-shot)",)
    assert beside.rows == (("accuracy", (0.516,)),)
