from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.chains import verbalize
from askance.errors import UsageError
from askance.evals import Evaluation, Sample, Score, Scorer, aevaluate, mean
from askance.evals.solver import solved
from askance.evals.suite.ranker import FusionContext, FusionSolver, ranked
from askance.images import Image
from askance.models import Engine, ScriptedEmbedder, ScriptedScorer
from askance.replay import MemoryStore
from tests.scripted import PICTURE, model_of, scripted

OPTIONS = ["tea", "bricks", "sleep"]
FIT = {"tea": 0.5, "bricks": 0.4, "sleep": 0.3}
"""How well each option fits the picture."""
VECTORS = {
    "tea": (1.0, 0.0, 0.0),
    "bricks": (0.0, 1.0, 0.0),
    "sleep": (0.0, 0.0, 1.0),
    "A solid start.": (0.0, 3.0, 4.0),
    "cup, bricks": (0.0, 1.0, 0.0),
    "A cup on a table.": (4.0, 3.0, 0.0),
    "The cup is made of bricks.": (0.0, 1.0, 0.0),
    "A cup made of bricks, with a slogan.": (0.0, 0.0, 2.0),
    "A solid start.\ncup, bricks": (0.0, 0.0, 1.0),
}
"""Cosines to tea, bricks and sleep by hand: scene text 0, 0.6, 0.8; objects 0, 1, 0; narration 0.8, 0.6, 0; what is
unusual 0, 1, 0; the combined description 0, 0, 1."""
SAID = {
    "scene_text": ["A solid start."],
    "objects": ["cup", "bricks"],
    "narration": "A cup on a table.",
    "unusual": "The cup is made of bricks.",
    "description": "A cup made of bricks, with a slogan.",
}


def given(**inputs: Any) -> Sample:
    return Sample(id="cup", image=Image.load(PICTURE), inputs={"options": OPTIONS, **inputs}, target=[2])


def fusing(records: MemoryStore | None = None, mode: Any = "auto", **options: Any) -> FusionSolver:
    engine = Engine(records=MemoryStore() if records is None else records, mode=mode)
    scorer = ScriptedScorer(lambda _, text: FIT[text], identity="eye")
    embedder = ScriptedEmbedder(VECTORS.__getitem__, identity="by hand")
    return FusionSolver(scorer, embedder, engine=engine, **options)


BY_HAND: dict[FusionContext, tuple[list[float], list[int]]] = {
    "I": ([0.5, 0.4, 0.3], [1, 2, 3]),
    "I+T": ([0.25, 0.2 + 0.3, 0.15 + 0.4], [3, 2, 1]),
    "I+T+V": ([0.25, 0.2 + (0.6 + 1) / 4, 0.15 + 0.8 / 4], [2, 3, 1]),
    "I+T+V+IN+UH": ([0.25 + 0.8 / 8, 0.2 + (0.6 + 1 + 0.6 + 1) / 8, 0.15 + 0.8 / 8], [2, 1, 3]),
    "I+T_V": ([0.25, 0.2, 0.15 + 0.5], [3, 1, 2]),
}


@pytest.mark.parametrize(("context", "expected"), BY_HAND.items(), ids=BY_HAND)
async def test_each_context_ranks_as_worked_out_by_hand(
    context: FusionContext, expected: tuple[list[float], list[int]]
) -> None:
    prediction = await fusing(context=context).answer(given(**SAID))

    scores, numbers = expected
    assert prediction.trace["scores"] == pytest.approx(scores, abs=1e-7)
    assert prediction.value == numbers


WEIGHED: dict[str, tuple[dict[str, Any], list[float]]] = {
    "the picture alone": ({"weight": 0.0}, [0.5, 0.4, 0.3]),
    "the texts alone": ({"weight": 1.0}, [0, 0.8, 0.4]),
    "a quarter": ({"weight": 0.25}, [0.375, 0.3 + 0.2, 0.225 + 0.1]),
    "joined": ({"texts": "joined"}, [0.25, 0.2, 0.15 + 0.5]),
}


@pytest.mark.parametrize(("options", "scores"), WEIGHED.values(), ids=WEIGHED)
async def test_weight_and_way_of_the_texts(options: dict[str, Any], scores: list[float]) -> None:
    prediction = await fusing(context="I+T+V", **options).answer(given(**SAID))

    assert prediction.trace["scores"] == pytest.approx(scores, abs=1e-7)


async def test_a_picture_without_scene_text_is_ranked_by_the_picture() -> None:
    prediction = await fusing(context="I+T").answer(given(scene_text=[]))

    assert (prediction.value, prediction.trace["scores"]) == ([1, 2, 3], [0.5, 0.4, 0.3])


async def test_what_is_not_given_is_asked_for() -> None:
    records = MemoryStore()
    script = scripted()
    chain = verbalize(model_of(script, records), context="V+T")

    prediction = await fusing(records, context="I+T+V", chain=chain).answer(given(scene_text=["A solid start."]))

    assert prediction.value == BY_HAND["I+T+V"][1]
    assert len(script.requests) == 1
    assert {key for link in prediction.links.values() for key in link["calls"]} == {
        record.key for record in records if record.kind != "endpoint"
    }


async def test_what_nobody_says_skips_the_sample() -> None:
    missing = await solved(fusing(context="I+T"), given())
    refused = await solved(
        fusing(context="I+T", chain=verbalize(model_of(scripted(scene_text="")), context="V+T")), given()
    )

    assert (missing.outcome, missing.reason) == (
        "skipped",
        "scene_text is not given, and there is nobody to ask for it",
    )
    assert (refused.outcome, refused.reason) == ("skipped", "scene_text has no answer (invalid)")


async def test_a_run_replays_without_encoders(tmp_path: Path) -> None:
    records = MemoryStore()
    scoring = Scorer(
        score=lambda sample, value: Score(values={"first": float(value[0] in sample.target)}),
        metrics=(mean("first"),),
        if_wrong=lambda _: Score(values={"first": 0.0}),
        if_right=lambda _: Score(values={"first": 1.0}),
    )

    def task(solver: FusionSolver) -> Evaluation:
        return Evaluation(name="fused", samples=[given(**SAID)], solver=solver, scorer=scoring)

    live = fusing(records, context="I+T+V")
    run = await aevaluate(task(live), out=tmp_path / "live", engine=live.engine)
    form = live.form()
    again = FusionSolver(
        form["scorer"],
        form["embedder"],
        context="I+T+V",
        engine=Engine(mode="replay", records=run.records),
    )
    replayed = await aevaluate(task(again), out=tmp_path / "replayed", engine=again.engine)

    assert run.figure("first").value == 1
    assert run.totals["records"] == 3 + 5
    assert replayed.figures == run.figures
    assert [answer.prediction for answer in replayed.answers] == [answer.prediction for answer in run.answers]


def test_equal_scores_keep_the_order_of_the_options() -> None:
    assert ranked([0.1, 0.3, 0.3, 0.2]) == [2, 3, 4, 1]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "context": (
        {"context": "T"},
        "Options cannot be compared with 'T'. Choose one of I, I+T, I+T+V, I+T+V+IN+UH, I+T_V.",
    ),
    "weight": ({"weight": 2.0}, "Texts cannot be weighed by 2 and taken 'apart'."),
    "texts": ({"texts": "all"}, "Texts cannot be weighed by 0.5 and taken 'all'."),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        fusing(**options)
    assert str(caught.value).startswith(message)


def test_texts_need_an_embedder() -> None:
    scorer = ScriptedScorer(lambda _, text: FIT[text])
    with pytest.raises(UsageError, match=r"^The context 'I\+T' compares options with texts\. Give an `embedder`\.$"):
        FusionSolver(scorer, context="I+T", engine=Engine(records=MemoryStore()))


async def test_without_a_picture_there_is_no_answer() -> None:
    prediction = await fusing().answer(Sample(id="cup", inputs={"options": OPTIONS}))

    assert (prediction.outcome, prediction.reason) == ("failed", "there is no picture")
