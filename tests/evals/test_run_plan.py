"""The plan of a run counts each of its judges as itself: its model, its price, its answers on record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from askance.agents import Judge, JudgeForm, judge_equivalence, judge_panel
from askance.chains import Plan, verbalize
from askance.evals import ChainSolver, Evaluation, Sample, aevaluate
from askance.evals.job import plan_of
from askance.evals.judges import judged_scoring
from askance.evals.runner import SampleEpoch, run_job
from askance.images import Image
from askance.models import Engine, Model, Price, ScriptedModel, get_model
from askance.replay import MemoryStore
from tests.evals.odd import write_pictures
from tests.judges import Scripted
from tests.scripted import ENFORCED, scripted

VERDICT = json.dumps({"verdict": "true"})
WORTH = {"one": Price(input=1.0, output=2.0), "other": Price(input=30.0, output=40.0)}


@pytest.fixture
def engine() -> Engine:
    return Engine(records=MemoryStore())


def member(name: str, engine: Engine) -> Model:
    script = ScriptedModel(lambda _: VERDICT, identity=name, capabilities=ENFORCED)
    return get_model(script, engine=engine, price={"input": WORTH[name].input, "output": WORTH[name].output})


def described(folder: Path, judge: Judge, engine: Engine) -> Evaluation:
    """Says what is unusual about three pictures; each has two references."""
    pictures = write_pictures(folder, count=3)
    samples = [
        Sample(id=f"{place:02}", image=Image.from_path(pictures / f"{place:02}.png"), target=["bricks", f"cup {place}"])
        for place in range(3)
    ]
    chain = verbalize(get_model(scripted(), engine=engine), context="UH")
    return Evaluation(name="t", samples=samples, solver=ChainSolver(chain), scorer=judged_scoring(judge))


def turns(task: Evaluation) -> list[SampleEpoch]:
    return [SampleEpoch(sample=sample, epoch=0) for sample in task.samples]


def judges_of(plan: Plan) -> list[tuple[str, str | None, Price | None, int, int, int]]:
    links = [link for link in plan.links if link.link.startswith("judge")]
    return [(link.link, link.model.name, link.price, link.hits, link.known, link.dependent) for link in links]


async def test_each_judge_of_a_panel_is_planned_as_itself(tmp_path: Path, engine: Engine) -> None:
    one, other = (judge_equivalence(member(name, engine), form="short") for name in WORTH)
    before = await run_job(task := described(tmp_path, judge_panel(one, other), engine), turns(task), engine).plan()
    alone = replace(task, samples=task.samples[:2], scorer=judged_scoring(one))
    await aevaluate(alone, out=tmp_path / "run", engine=engine)
    after = await run_job(task, turns(task), engine).plan()

    assert judges_of(before) == [
        ("judge 1", "one", WORTH["one"], 0, 0, 6),
        ("judge 2", "other", WORTH["other"], 0, 0, 6),
    ]
    # of the two pictures that are answered, the other judge is yet to be asked
    assert judges_of(after) == [
        ("judge 1", "one", WORTH["one"], 3, 0, 2),
        ("judge 2", "other", WORTH["other"], 0, 3, 2),
    ]


FORMS: dict[str, tuple[Sequence[JudgeForm], list[int]]] = {
    "two forms of one model": (("short", "rubric"), [6, 6]),
    "twice the same": (("short", "short"), [6]),
}
"""How a model is asked, and the calls that each judge is planned with."""


@pytest.mark.parametrize(("forms", "calls"), FORMS.values(), ids=FORMS)
async def test_judges_that_ask_the_same_are_planned_once(
    forms: Sequence[JudgeForm], calls: list[int], tmp_path: Path, engine: Engine
) -> None:
    judges = [judge_equivalence(member("one", engine), form=form) for form in forms]
    task = described(tmp_path, judge_panel(*judges), engine)

    assert [link[-1] for link in judges_of(await run_job(task, turns(task), engine).plan())] == calls


async def test_judges_of_several_runs_are_told_apart(tmp_path: Path, engine: Engine) -> None:
    tasks = [described(tmp_path, judge_equivalence(member(name, engine)), engine) for name in ("one", "other", "one")]

    plan = await plan_of(run_job(task, turns(task), engine) for task in tasks)

    assert [link[:2] for link in judges_of(plan)] == [("judge 1", "one"), ("judge 2", "other")]


async def test_a_judge_that_was_planned_still_asks_what_its_endpoint_can_do(tmp_path: Path, engine: Engine) -> None:
    script = ScriptedModel(lambda _: VERDICT, identity="unknown")
    judge = judge_equivalence(get_model(script, engine=engine), form="short")
    task = described(tmp_path, judge, engine)
    by_hand = judged_scoring(Scripted(lambda _reference, _candidate: "true"))
    await aevaluate(replace(task, scorer=by_hand), out=tmp_path / "run", engine=engine)

    plan = await run_job(task, turns(task), engine).plan()
    await judge.judge("a", "b")

    assert (plan.probes, [link[3:] for link in judges_of(plan)]) == (1, [(0, 4, 0)])
    assert len(script.requests) > 1


async def test_every_epoch_is_planned(tmp_path: Path, engine: Engine) -> None:
    script = scripted()
    task = described(tmp_path, judge_equivalence(member("one", engine), form="short"), engine)
    chain = verbalize(get_model(script, engine=engine))
    task = replace(task, solver=ChainSolver(chain), scorer=judged_scoring(Scripted(lambda _r, _c: "true")))

    plan = await run_job(task, [SampleEpoch(sample=task.samples[0], epoch=epoch) for epoch in range(2)], engine).plan()
    await aevaluate(replace(task, samples=task.samples[:1]), out=tmp_path / "run", engine=engine, epochs=2)

    assert plan.calls == len(script.requests) == 2 * 5
