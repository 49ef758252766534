"""`solver=investigator`: tasks of the suites, answered by an agent that looks around with tools."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest, ChatResponse
from askance.errors import UsageError
from askance.evals import Run, aevaluate, compare, evaluate, rescore
from askance.evals.analysis.pack import open_pack, write_pack
from askance.evals.analysis.pack_check import check_pack
from askance.evals.analysis.rescore import read_again
from askance.evals.run_plan import planning
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.task import evaluation_of
from askance.evals.task_catalog import find_task
from askance.evals.whoops import Identify
from askance.models import Engine, Model, ScriptedModel, get_model, run_sync
from askance.replay import MemoryStore
from askance.retrieval import Index, IndexEntry
from tests.evals.whoops import files
from tests.evals.whoops.files import IDS
from tests.evals.whoops.worlds import of_pictures
from tests.golden.task_worlds import WORLDS
from tests.golden.tasks import CASES
from tests.instances import instance
from tests.investigator.agents import CALLS_TOOLS, USAGE, call, said

ODD = IDS[:2]
"""Rows whose pictures the eye calls odd."""


def eye(engine: Engine) -> Model:
    """Says of a picture whether it is odd."""

    def reply(request: ChatRequest) -> ChatResponse:
        row = of_pictures().get(request.images[0].shown.image.sha256, "")
        return ChatResponse(text=json.dumps({"answer": "odd" if row in ODD else "plain"}), usage=USAGE)

    return get_model(ScriptedModel(reply, identity="eye", capabilities=CALLS_TOOLS), engine=engine)


def agent(engine: Engine) -> Model:
    """Asks whether anything is odd, and answers by what it is told; of what is plain it has not seen enough."""

    def reply(request: ChatRequest) -> Any:
        told = [message.text for message in request.messages if message.role == "tool"]
        if not told:
            return said(call("ask", question="Is anything odd?"))
        odd = "odd" in told[-1]
        form = next(dict(tool.parameters) for tool in request.tools if tool.name == "answer")
        value = instance(form["properties"]["value"], root=form)
        value = {"answer": "weird" if odd else "normal"} if value.get("answer") in {"weird", "normal"} else value
        return said(call("answer", value=value, confidence=90 if odd else 20, evidence=[1], enough=odd))

    return get_model(ScriptedModel(reply, identity="agent", capabilities=CALLS_TOOLS), engine=engine)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three pairs of pictures; of each one is weird."""
    folder = files.first_release(tmp_path / "data")
    files.pairs(folder / "pairs")
    return folder


def identify(data: Path, engine: Engine | None = None, **options: Any) -> Identify:
    own = engine or Engine(records=MemoryStore())
    given = {"solver": "investigator", "calls": 5, "tools": "ask,zoom", "llm": agent(own), **options}
    return Identify(data=data, vlm=eye(own), **given)


def test_a_task_is_answered_by_looking_and_has_the_figures_of_abstention(data: Path) -> None:
    run = evaluate(identify(data, abstain=True), out="run")

    figures = {each.metric: each.value for each in run.figures}
    assert (figures["accuracy"], figures["coverage"]) == (pytest.approx(2 / 6), pytest.approx(2 / 6))
    assert figures["accuracy among answered"] == 1
    first = next(each.prediction for each in run.answers if each.prediction.value == "weird")
    assert (first.value, first.abstained, first.confidence) == ("weird", False, 0.9)
    assert [step["tool"] for step in first.links["reply"]["trace"]["steps"]] == ["ask", "answer"]
    assert run.label == "agent (investigator, 5 calls, tools ask+zoom, abstains)"
    assert run.options["solver"] == {"name": "investigator"}
    assert {name: run.options[name] for name in ("calls", "tools", "abstain", "eyes", "context")} == {
        "calls": 5,
        "tools": "ask,zoom",
        "abstain": True,
        "eyes": False,
        "context": "I",
    }


def test_without_abstain_every_answer_counts(data: Path) -> None:
    run = evaluate(identify(data), out="run")

    assert run.figure("accuracy").value == pytest.approx(5 / 6)
    assert run.figure("coverage").value == 1


def test_a_run_is_replayed_read_and_scored_again_from_its_folder(data: Path) -> None:
    run = evaluate(identify(data, abstain=True), out="run")
    replaying = Engine(mode="replay", records=run.records)

    again = evaluate(identify(data, engine=replaying, abstain=True), out="again")
    reread = run_sync(read_again(Run.open("run"), Identify))
    rescored = run_sync(rescore(Run.open("run"), Identify, reread=True))

    assert [replace(each.prediction, meta={}) for each in again.answers] == [
        replace(each.prediction, meta={}) for each in run.answers
    ]
    assert [*reread.ids] == ["same"]
    assert rescored.run.figures == run.figures


async def test_a_pack_of_a_run_follows_from_its_records_without_pictures(data: Path, tmp_path: Path) -> None:
    run = await aevaluate(identify(data, abstain=True), out=tmp_path / "run")
    packed = write_pack([run], tmp_path / "run.pack")
    shutil.rmtree(data)
    shutil.rmtree(run.path)

    with open_pack(packed.path) as pack:
        check = await check_pack(pack, tasks={Identify.name: Identify}, again=True)

    assert check.sound
    assert check.runs[0].again == {"same": 6}


@pytest.mark.parametrize("kept", [0, 2, 5])
def test_a_run_that_was_cut_off_is_finished_and_asks_no_call_twice(data: Path, kept: int) -> None:
    whole = evaluate(identify(data), out="whole")
    engine = Engine(records=MemoryStore())
    evaluate(identify(data, engine), out="cut")
    lines = Path("cut/samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("cut/samples.jsonl").write_text("".join(lines[:kept]), encoding="utf-8")
    Path("cut/scores.jsonl").unlink()

    finished = evaluate(identify(data, engine), out="cut")

    assert [each.prediction.value for each in finished.answers] == [each.prediction.value for each in whole.answers]
    left = {str(json.loads(line)["id"]) for line in lines[kept:]}
    assert sum(each.prediction.meta["calls"] for each in finished.answers if each.sample.id in left) == 0
    assert finished.figures == whole.figures


def test_a_task_is_answered_by_searching_an_index_of_other_texts(data: Path, tmp_path: Path) -> None:
    entries = [IndexEntry.of(text) for text in ("It is odd, for it is made of bricks.", "It is a cup of coffee.")]
    run_sync(Index.build(tmp_path / "other.index", entries, engine=Engine(records=MemoryStore())))

    def reply(request: ChatRequest) -> Any:
        told = [message.text for message in request.messages if message.role == "tool"]
        if not told:
            return said(call("similar", text="bricks"))
        value = {"answer": "weird" if "made of bricks" in told[-1] else "normal"}
        return said(call("answer", value=value, confidence=50, evidence=[1], enough=True))

    engine = Engine(records=MemoryStore())
    searching = get_model(ScriptedModel(reply, identity="agent", capabilities=CALLS_TOOLS), engine=engine)
    run = evaluate(
        identify(data, engine, tools="similar", similar_index=tmp_path / "other.index", llm=searching), out="run"
    )

    assert [each.prediction.value for each in run.answers] == ["weird"] * 6


def test_a_plan_counts_the_most_calls(data: Path) -> None:
    engine = Engine(records=MemoryStore())
    with planning():
        evaluation = evaluation_of(identify(data, engine=engine))
    plan = run_sync(
        run_job(evaluation, [SampleEpoch(sample=each, epoch=0) for each in evaluation.samples], engine).plan()
    )

    assert plan.calls == 1 + 4 * 6  # an agent that sees nothing begins alike with every picture


def test_it_is_compared_with_the_fixed_chain(data: Path) -> None:
    engine = Engine(records=MemoryStore())
    fixed = evaluate(Identify(data=data, vlm=_always_weird(engine)), out="fixed")

    (gain,) = compare(fixed, evaluate(identify(data), out="run")).gains

    assert (gain.gained, gain.harmed) == (3, 1)


def _always_weird(engine: Engine) -> Model:
    script = ScriptedModel(lambda _: '{"answer": "weird"}', identity="weird", capabilities=CALLS_TOOLS)
    return get_model(script, engine=engine)


INVESTIGATED = (
    "whoops/identify",
    "whoops/explain",
    "whoops/explain-choice",
    "whoops/matching",
    "whoops/vqa",
    "whoops/captioning",
    "newyorker/matching",
    "newyorker/ranking",
    "newyorker/explanation",
    "pittads/aor",
    "pittads/arr-multi",
    "pittads/arr-single",
    "pittads/asr",
    "pittads/mac",
)


@pytest.mark.parametrize("task", INVESTIGATED)
def test_every_task_that_asks_about_a_picture_can_be_investigated(task: str, tmp_path: Path) -> None:
    engine = Engine(records=MemoryStore())
    world = WORLDS[task.partition("/")[0]](tmp_path / "world")
    options = {name: value for name, value in CASES[task].base.items() if name != "context"}
    options |= {"vlm": None, "solver": "investigator", "calls": 4, "tools": "ask"}
    made = find_task(task)(**{**world.options(options, engine), "vlm": eye(engine), "llm": agent(engine)})

    run = evaluate(evaluation_of(made).limited(2), out="run", engine=engine)

    assert run.totals["outcomes"] == {"answered": 2}
    assert "coverage" in {each.metric for each in run.figures}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"context": "UH"}, "An investigator looks at the picture itself, and the context 'UH' says what is in it."),
        ({"shots": 1}, "An investigator takes no `shots`."),
        ({"tools": "look"}, "There is no tool 'look'"),
        ({"tools": "similar,ask"}, "The tool `similar` searches other texts"),
        ({"calls": 1}, "calls"),
        ({"solver": None}, "The option `calls` is one of an investigator."),
        ({"solver": "investigate", "calls": None, "tools": None}, "There is no solver 'investigate'."),
    ],
)
def test_options_that_do_not_go_together_are_refused(data: Path, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        identify(data, **options).evaluation()

    assert sentence in str(caught.value)


@pytest.mark.parametrize("task", ["pittads/open-arr", "sherlock/inference"])
def test_a_task_that_cannot_be_investigated_says_so_by_name(task: str, tmp_path: Path) -> None:
    engine = Engine(records=MemoryStore())
    world = WORLDS[task.partition("/")[0]](tmp_path / "world")
    options = {name: value for name, value in CASES[task].base.items() if name != "context"}
    options |= {"vlm": None, "solver": "investigator"}

    with pytest.raises(UsageError, match=f"'{task}'"):
        find_task(task)(**{**world.options(options, engine), "vlm": eye(engine)}).evaluation()
