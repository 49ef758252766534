"""`whoops/matching`: right rankings by scorers and models, in all readings of what a pair is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import BadData, UsageError
from askance.evals import Run, Task, aevaluate, evaluate
from askance.evals.analysis.rescore import rescore
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.whoops import CaptionMatching
from askance.images import Image
from askance.models import Engine, ScriptedScorer
from askance.replay import MemoryStore
from tests.evals.pittads.worlds import shown
from tests.evals.whoops import files
from tests.evals.whoops.files import IDS
from tests.evals.whoops.worlds import choosing, listed, model, of_pictures


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return files.first_release(tmp_path / "data")


def engine() -> Engine:
    return Engine(records=MemoryStore())


def person(text: str) -> int:
    return int(text[-1])


def fit(image: Image, text: str) -> float:
    """Detailed captions of the first picture get their person's number, those of the others 5; others their number."""
    if text.startswith("Something"):
        return float(person(text))
    return float(person(text)) if of_pictures()[image.sha256] == IDS[0] else 5.0


def test_figures_of_a_scorer_by_hand(data: Path, tmp_path: Path) -> None:
    scorer = ScriptedScorer(fit, identity="fits")
    run = evaluate(CaptionMatching(data=data, scorer=scorer, engine=engine()), out=tmp_path / "run")
    # of the first picture 10 of 25 pairs (place over other), 5 ties; of the four others all
    assert shown(run) == {
        "right rankings": pytest.approx(100 * 110 / 125),
        "right rankings per image": pytest.approx(100 * (10 / 25 + 4) / 5),
        "right rankings, selected caption": pytest.approx(100 * (2 + 20) / 25),
        "right rankings, same place": pytest.approx(100 * 20 / 25),
        "ties": pytest.approx(100 * 5 / 125),
        "right rankings: Art knowledge": 100,
        "right rankings: Biological rules": 100,
        "right rankings: Nutrition mismatch": 100,
        "right rankings: Physical rules": pytest.approx(100 * 35 / 50),
    }
    assert (run.figures[0].samples, run.figures[0].clusters) == (125, 5)
    assert sum(len(texts) for _, texts in scorer.asked) == 50  # each caption of each picture once


async def test_the_plan_counts_each_score_once(data: Path, tmp_path: Path) -> None:
    records, scorer = MemoryStore(), ScriptedScorer(fit, identity="fits")
    own = Engine(records=records)
    task = CaptionMatching(data=data, scorer=scorer, orders=2, engine=own)
    before = await run_job(task, turns(task), own).plan()
    asked = len(scorer.asked)
    await aevaluate(
        replace(task.evaluation(), samples=task.samples()[:50]), out=tmp_path / "run", engine=own
    )  # of one picture
    after = await run_job(task, turns(task), own).plan()
    found = [[(link.link, link.hits, link.known, link.dependent) for link in plan.links] for plan in (before, after)]

    assert (asked, found) == (0, [[("scores", 0, 50, 0)], [("scores", 10, 40, 0)]])
    assert before.images == 250
    assert before.dollars is not None
    assert before.dollars.expected == 0


async def test_nothing_is_planned_in_a_replay(data: Path) -> None:
    own = Engine(records=MemoryStore(), mode="replay")
    task = CaptionMatching(data=data, scorer=ScriptedScorer(fit, identity="fits"), engine=own)

    with pytest.raises(UsageError, match=r"^`replay` asks nothing, so there is nothing to plan\."):
        await run_job(task, turns(task), own).plan()


def turns(task: Task) -> list[SampleEpoch]:
    return [SampleEpoch(sample=sample, epoch=0) for sample in task.samples()]


def test_per_image_gives_each_image_its_weight(tmp_path: Path) -> None:
    table = [files.as_json(row) for row in files.rows()[:2]]
    table[1]["crowd_underspecified_captions"] = '["Something stands there, says person 0"]'
    files.write_table(tmp_path / "data" / "whoops_dataset.csv", table)
    files.pictures(tmp_path / "data")
    task = CaptionMatching(data=tmp_path / "data", scorer=ScriptedScorer(fit), engine=engine())
    run = evaluate(task, out=tmp_path / "run")

    assert shown(run)["right rankings"] == pytest.approx(100 * (10 + 5) / 30)
    assert shown(run)["right rankings per image"] == pytest.approx(100 * (10 / 25 + 1) / 2)


@pytest.mark.parametrize(("pairs", "count"), [("all", 25), ("selected", 5), ("same-place", 5)])
def test_pairs_are_read_in_three_ways(pairs: Any, count: int, data: Path) -> None:
    task = CaptionMatching(data=data, scorer=ScriptedScorer(fit), pairs=pairs, engine=engine())

    assert len(task.samples()) == 5 * count
    assert {sample.target["pairs"] for sample in task.samples()} == {count}


def test_a_model_is_asked_in_both_orders(data: Path, tmp_path: Path) -> None:
    def first_of_odd(request: ChatRequest) -> Any:
        """Right for detailed captions of even persons, else by place alone."""
        options = listed(request)
        detailed = next(n for n, text in enumerate(options, start=1) if not text.startswith("Something"))
        return {"answers": [detailed if person(options[detailed - 1]) % 2 == 0 else 1]}

    vlm = model(choose_caption_from_picture=first_of_odd)
    run = evaluate(CaptionMatching(data=data, vlm=vlm), out=tmp_path / "run")

    assert len(run.answers) == 250
    assert shown(run)["right rankings"] == pytest.approx(100 * (3 + 2 * 0.5) / 5)
    assert shown(run)["right in both orders"] == pytest.approx(100 * 3 / 5)
    assert shown(run)["ties"] == 0


def test_a_blind_model_may_prefer_what_is_longer(data: Path, tmp_path: Path) -> None:
    llm = model(choose_caption=choosing(lambda text: not text.startswith("Something")))
    run = evaluate(CaptionMatching(data=data, llm=llm, context="text-only", pairs="selected"), out=tmp_path / "run")

    assert shown(run)["right rankings"] == shown(run)["right in both orders"] == 100
    assert all(answer.sample.image is None for answer in run.answers)


async def test_runs_are_scored_and_read_again_without_their_data(data: Path, tmp_path: Path) -> None:
    vlm = model(choose_caption_from_picture={"answers": [1]})
    scorer = ScriptedScorer(fit, identity="fits")
    tasks = {
        "model": CaptionMatching(data=data, vlm=vlm, limit=1),
        "scorer": CaptionMatching(data=data, scorer=scorer, engine=engine()),
    }
    for name, task in tasks.items():
        run = evaluate(task, out=tmp_path / name)

        again = await rescore(Run.open(run.path), CaptionMatching, reread=True)

        assert again.run.figures == run.figures
        assert (again.changed, again.kept) == ((), ())


def test_what_cannot_be_is_said(data: Path, tmp_path: Path) -> None:
    scorer = ScriptedScorer(fit)
    with pytest.raises(UsageError, match="ranks by the picture alone"):
        CaptionMatching(data=data, scorer=scorer, vlm=model(), engine=engine()).evaluation()
    with pytest.raises(UsageError, match="no context 'gold-caption'"):
        CaptionMatching(data=data, vlm=model(), context="gold-caption").evaluation()
    with pytest.raises(UsageError, match=r"cannot be 'some'\. It takes one of `all`"):
        CaptionMatching(data=data, vlm=model(), pairs="some").evaluation()  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match=r"cannot be 3\. It takes one of `1`, `2`"):
        CaptionMatching(data=data, vlm=model(), orders=3).evaluation()  # pyright: ignore[reportArgumentType]
    same = [{**files.as_json(files.rows()[0]), "crowd_captions": '["a"]', "crowd_underspecified_captions": '["a"]'}]
    files.write_table(tmp_path / "same" / "whoops_dataset.csv", same)
    files.pictures(tmp_path / "same")
    with pytest.raises(BadData, match="two captions that differ"):
        CaptionMatching(data=tmp_path / "same", vlm=model()).evaluation()
