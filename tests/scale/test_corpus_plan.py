"""What a corpus would take, projected from a pilot."""

from __future__ import annotations

import json
import math
import random
import statistics

import pytest

from askance.chains import verbalize
from askance.chat import ChatRequest, ChatResponse, Usage
from askance.errors import UsageError
from askance.evals import Run
from askance.evals.run import picture_answer
from askance.models import Engine, ScriptedModel, get_model
from askance.replay import MemoryStore
from askance.scale import Assumptions, CorpusPlan, plan_corpus
from askance.scale.corpus_plan import projected
from tests.faults.run import picture
from tests.scripted import ANSWERS, ENFORCED, name_of


def test_a_pilot_of_a_thousand_predicts_ten_thousand() -> None:
    """The interval holds the true cost of 10,000 pictures in about 95 of 100 pilots, though costs are skewed."""
    chance, held = random.Random(0), 0
    for _ in range(200):
        costs = [chance.lognormvariate(0, 0.7) for _ in range(10_000)]
        total = projected(chance.sample(costs, 1000), 10_000)
        held += total.low <= sum(costs) <= total.high

    assert 0.9 <= held / 200 <= 1.0


def test_a_projection_is_the_mean_times_the_number() -> None:
    total = projected([1.0, 2.0, 3.0], 10)

    assert total.value == pytest.approx(20)
    assert total.low == 0, "no less than nothing is spent"
    half = 4.302653 * statistics.stdev([1, 2, 3]) * math.sqrt(1 / 3 + 1 / 10)
    assert total.high == pytest.approx(10 * (2 + half), rel=1e-5)


@pytest.fixture
async def pilot() -> Run:
    """Three pictures with five calls each, of which four are shown the picture and one reads the answers."""

    def counted(request: ChatRequest) -> ChatResponse:
        number = int(request.images[0].shown.image.name[:5]) if request.images else 0
        told = {**ANSWERS, "narration": {"description": f"A cup on table {number}."}}[name_of(request)]
        return ChatResponse(text=json.dumps(told), usage=Usage(input=100 * (number + 1), output=10))

    records = MemoryStore()
    model = get_model(
        ScriptedModel(counted, identity="scripted", capabilities=ENFORCED),
        engine=Engine(records=records),
        price={"input": 1.0, "output": 2.0},
    )
    readings = [reading async for reading in verbalize(model).read_all({"image": picture(n)} for n in range(3))]
    answers = [picture_answer(reading.to_dict(), None) for reading in readings]
    return Run.unkept({"chain": "verbalize"}, answers=answers, records=records)


def test_what_was_measured_is_projected(pilot: Run) -> None:
    plan = plan_corpus(pilot, Assumptions(pictures=3_000, days=1, gpus=2, tokens_per_second=100))

    assert plan.pilot == 3
    measured = {row.what: row.per_picture for row in plan.rows if row.per_picture is not None}
    assert measured["calls"] == 5
    assert measured["input tokens"] == 4 * 200 + 100
    assert measured["output tokens"] == 50
    assert total_of(plan, "calls") == 15_000
    assert total_of(plan, "calls a second") == pytest.approx(15_000 / 86_400)
    assert total_of(plan, "GPU hours") == pytest.approx(3_000 * 950 / 100 / 3600)
    assert total_of(plan, "days of one's own GPUs") == pytest.approx(3_000 * 950 / 100 / 86_400 / 2)
    assert total_of(plan, "network, MB a second") == pytest.approx(3_000 * 4 * 0.1 / 86_400)
    size = sum(len(record.to_json().encode()) for record in pilot.records.of_kind("chat"))
    assert total_of(plan, "on record, GB") == pytest.approx(1_000 * size / 1e9)
    assert total_of(plan, "in cassettes, GB") < total_of(plan, "on record, GB") / 2
    assert total_of(plan, "pictures that end without an answer") == 0
    tokens = next(row.total for row in plan.rows if row.what == "input tokens")
    assert tokens.low < tokens.value < tokens.high


def test_copies_are_read_once(pilot: Run) -> None:
    once = plan_corpus(pilot, Assumptions(pictures=1_000, repeats=0.2))

    assert total_of(once, "calls") == 4_000
    assert next(row.assumes for row in once.rows if row.what == "calls") == "800 pictures are read"


def test_a_run_that_is_no_pilot_is_refused(pilot: Run) -> None:
    alone = Run.unkept({"chain": "verbalize"}, answers=pilot.answers[:1], records=pilot.records)
    with pytest.raises(UsageError, match=r"cannot be a pilot: it has 1 picture"):
        plan_corpus(alone, Assumptions())
    task = Run.unkept({"task": "claims", "solver": {}}, answers=pilot.answers, records=pilot.records)
    with pytest.raises(UsageError, match=r"cannot be a pilot: it is a run of the task 'claims'"):
        plan_corpus(task, Assumptions())
    lost = Run.unkept({"chain": "verbalize"}, answers=pilot.answers, records=MemoryStore())
    with pytest.raises(UsageError, match=r"0 calls on record\. Run the chain over some hundred pictures"):
        plan_corpus(lost, Assumptions())


def total_of(plan: CorpusPlan, what: str) -> float:
    (row,) = (row for row in plan.rows if row.what == what)
    return row.total.value


def test_what_cannot_be_assumed_is_named() -> None:
    with pytest.raises(UsageError, match=r"^repeats cannot be 1\. Give a share from 0 to below 1\."):
        Assumptions(repeats=1)
    with pytest.raises(UsageError, match=r"^tokens-per-second cannot be 0\. Give a number above 0\."):
        Assumptions(tokens_per_second=0)
