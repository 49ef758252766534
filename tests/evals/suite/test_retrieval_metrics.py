"""Figures of retrieval against other implementations, by hand and by enumeration; and what a judge takes for right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from askance.chains import Planner
from askance.errors import UsageError
from askance.evals import (
    Evaluation,
    Prediction,
    Ranking,
    Run,
    Sample,
    SampleResult,
    Scorer,
    aevaluate,
    evaluate,
    rescore,
)
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.scorer import bounds_of, figures_of
from askance.evals.solver import PlanSample, Solver
from askance.evals.suite.retrieval_metrics import (
    JUDGED_HIT,
    RESCUED,
    chance,
    chance_note,
    random_order,
    ranking_values,
    retrieval_scorer,
    with_judged_hits,
)
from askance.evals.suite.suite_task import JudgeTask
from askance.models import Engine
from askance.replay import MemoryStore
from tests.evals.pittads.worlds import shown
from tests.evals.whoops.worlds import judging, model


@st.composite
def rankings(draw: st.DrawFn) -> tuple[int, list[int]]:
    """How many entries there are, and the ranks of the true ones."""
    entries = draw(st.integers(2, 40))
    true = draw(st.integers(1, min(10, entries)))
    return entries, sorted(draw(st.permutations(range(1, entries + 1)))[:true])


# --- what a ranking is worth ---


@given(rankings())
def test_scikit_learn_says_the_same(found: tuple[int, list[int]]) -> None:
    metrics: Any = import_module("sklearn.metrics")
    entries, ranks = found
    true = np.zeros(entries)
    true[[rank - 1 for rank in ranks]] = 1
    falling = np.arange(entries, 0, -1)

    values = ranking_values(ranks, len(ranks))

    assert values["nDCG@10"] == pytest.approx(metrics.ndcg_score([true], [falling], k=10))
    assert values["MAP"] == pytest.approx(metrics.average_precision_score(true, falling))


def test_llama_index_says_the_same() -> None:
    from llama_index.core.evaluation.retrieval import metrics

    source = np.random.default_rng(0)
    for _ in range(50):
        retrieved = [str(each) for each in source.permutation(30)[:10]]
        expected = [str(each) for each in source.permutation(30)[: source.integers(1, 11)]]
        ranks = [rank for rank, name in enumerate(retrieved, start=1) if name in expected]
        ids: dict[str, Any] = {"expected_ids": expected, "retrieved_ids": retrieved}

        values = ranking_values(ranks, len(expected), depth=10)

        assert values["MRR"] == pytest.approx(metrics.MRR().compute(**ids).score)
        assert values["nDCG@10"] == pytest.approx(metrics.NDCG().compute(**ids).score)
        assert values["hit@10"] == metrics.HitRate().compute(**ids).score
        assert values["recall@10"] == pytest.approx(metrics.Recall().compute(**ids).score)


def test_values_by_hand() -> None:
    gained, ideal = 1 / math.log2(3) + 1 / math.log2(6), 1 + 1 / math.log2(3) + 1 / 2

    assert ranking_values([2, 5, 200], 4, depth=150) == {
        "recall@1": 0,
        "recall@5": 0.5,
        "recall@10": 0.5,
        "recall@100": 0.5,
        "hit@1": 0,
        "hit@5": 1,
        "hit@10": 1,
        "hit@100": 1,
        "MRR": 0.5,
        "nDCG@10": pytest.approx(gained / (ideal + 1 / math.log2(5))),
        "MAP": pytest.approx((1 / 2 + 2 / 5) / 4),
    }
    assert set(ranking_values([], 3).values()) == {0.0}
    assert ranking_values([101], 1)["recall@1000"] == 1
    assert ranking_values([101], 1)["hit@100"] == 0


@given(rankings())
def test_no_ranking_is_better_than_the_best_and_a_better_place_is_worth_no_less(found: tuple[int, list[int]]) -> None:
    _, ranks = found
    values, best = (ranking_values(each, len(ranks)) for each in (ranks, range(1, len(ranks) + 1)))

    assert all(0 <= values[name] <= best[name] <= 1 for name in values)
    if ranks[0] > 1:
        better = ranking_values([ranks[0] - 1, *ranks[1:]], len(ranks))
        assert all(better[name] >= values[name] for name in values)


# --- chance ---


@pytest.mark.parametrize("depth", [1, 3, 5, 10, 1000])
@pytest.mark.parametrize(("entries", "true"), [(1, 1), (2, 1), (5, 2), (7, 7), (9, 3), (12, 4), (13, 1)])
def test_chance_is_the_mean_over_every_order(entries: int, true: int, depth: int) -> None:
    orders = [ranking_values(ranks, true, depth=depth) for ranks in combinations(range(1, entries + 1), true)]

    found = random_order(entries, true, depth=depth)

    assert found == {name: pytest.approx(math.fsum(each[name] for each in orders) / len(orders)) for name in orders[0]}


def test_chance_among_all_statements() -> None:
    found = random_order(200_000, 3)

    assert found["recall@1000"] == 1000 / 200_000
    assert found["hit@1"] == pytest.approx(3 / 200_000)
    assert found["hit@100"] == pytest.approx(1 - math.prod((199_997 - n) / (200_000 - n) for n in range(100)))
    assert found["MRR"] == pytest.approx(3 / 200_000 * math.fsum(1 / rank for rank in range(1, 1001)), rel=0.01)


def test_chance_of_samples_is_the_mean_of_theirs() -> None:
    two = [target("a", 1), target("b", 3)]

    found = chance(two, lambda sample: 15 if sample.id == "a" else 18, depth=15)

    first, second = random_order(15, 1, depth=15), random_order(18, 3, depth=15)
    assert found == {name: pytest.approx((first[name] + second[name]) / 2) for name in first}
    assert chance([], 5) == {}
    assert chance_note(two, 200_000).startswith("Chance of a random order, exactly: recall@1 0.0005, recall@5 0.0025, ")


@pytest.mark.parametrize(("entries", "true", "depth"), [(3, 4, 10), (3, 0, 10), (0, 0, 1), (3, 1, 0)])
def test_what_cannot_be_has_no_chance(entries: int, true: int, depth: int) -> None:
    with pytest.raises(UsageError, match="There cannot be"):
        random_order(entries, true, depth=depth)


# --- the scorer ---


def target(name: str, true: int, **tags: Any) -> Sample:
    """A sample whose true entries have the texts `NAME is fine N`."""
    ids = [f"{name}{number}" for number in range(true)]
    texts = [f"{name} is fine {number}" for number in range(true)]
    return Sample(id=name, target={"true": ids, "texts": texts}, tags=tags, group=f"picture {name}")


SAMPLES = (
    target("a", 1, topic="cars"),
    target("b", 2, topic="cars"),
    target("c", 3, topic="food"),
    target("d", 1, topic="food"),
)

FIRST: dict[str, list[str]] = {
    "a": ["x", "a0"],  # a true one at 2
    "b": ["b1", "x", "b0"],  # two at 1 and 3
    "c": ["x", "like c"],  # none, but one that says the same
    "d": ["x", "y"],  # none
}


def ranked(sample: Sample) -> Prediction:
    """What stands first for a sample, then twenty fillers."""
    ids = [*FIRST[sample.id], *(f"filler {number}" for number in range(20))]
    texts = {"like c": "c, they say, is fine 1"}
    value = [{"id": name, "text": texts.get(name, f"text of {name}"), "score": 0.5} for name in ids[:15]]
    return Prediction(outcome="answered", value=value, ranking=Ranking(ids, np.linspace(1, 0, len(ids))))


def task_of(scorer: Scorer, solver: Callable[[Sample], Any] = ranked) -> Evaluation:
    return Evaluation(name="tests/retrieval", samples=SAMPLES, solver=solver, scorer=scorer)


def test_figures_by_hand(own_place: Path) -> None:
    figures = shown(evaluate(task_of(retrieval_scorer()), out=own_place / "run"))

    assert next(iter(figures)) == "recall@10"
    assert {name: figures[name] for name in ("recall@1", "recall@5", "hit@1", "hit@5", "MRR")} == {
        "recall@1": pytest.approx(100 * (1 / 2) / 4),
        "recall@5": 50,
        "hit@1": 25,
        "hit@5": 50,
        "MRR": pytest.approx(100 * (1 / 2 + 1) / 4),
    }
    assert figures["MAP"] == pytest.approx(100 * (1 / 2 + (1 + 2 / 3) / 2) / 4)
    assert figures["ceiling recall@1"] == pytest.approx(100 * (1 + 1 / 2 + 1 / 3 + 1) / 4)
    assert figures["ceiling recall@5"] == 100


def test_non_answers_are_worth_nothing_or_the_best(own_place: Path) -> None:
    def solve(sample: Sample) -> Prediction:
        return ranked(sample) if sample.id != "b" else Prediction(outcome="refused", reason="no")

    run = evaluate(task_of(retrieval_scorer(), solve), out=own_place / "run")
    recall = run.figure("recall@1")

    assert (recall.answered, recall.if_wrong, recall.if_right) == (3, 0, pytest.approx(1 / 2 / 4))
    assert run.figure("MRR").if_right == pytest.approx((1 / 2 + 1) / 4)
    assert run.figure("ceiling recall@1").value == pytest.approx((1 + 1 / 2 + 1 / 3 + 1) / 4)


def test_figures_by_tag_and_a_shorter_depth(own_place: Path) -> None:
    scorer = retrieval_scorer(depth=2, tags={"topic": ["cars", "food"]}, notes=("ours",))

    figures = shown(run := evaluate(task_of(scorer), out=own_place / "run"))

    assert {*figures} == {
        *("recall@1", "hit@1", "MRR", "nDCG@10", "MAP", "ceiling recall@1"),
        *(f"{name}: topic {topic}" for name in ("MRR", "nDCG@10") for topic in ("cars", "food")),
    }
    assert (figures["MRR: topic cars"], figures["MRR: topic food"]) == (75, 0)
    assert figures["MAP"] == pytest.approx(100 * (1 / 2 + 1 / 2) / 4)
    assert run.notes[0] == "The first 2 of a ranking count; a true one behind them is not found"
    assert "ours" in run.notes


def test_samples_of_one_picture_are_drawn_together() -> None:
    """The interval is that of whole clusters: four copies of a picture tell no more than one."""
    scorer = retrieval_scorer()
    copies = [replace(each, id=f"{each.id}{number}", group=each.id) for each in SAMPLES for number in range(4)]
    once, often = (
        figures_of(
            [scored(each, scorer, FIRST[each.cluster.removeprefix("picture ")]) for each in samples], scorer, seed=1
        )
        for samples in (SAMPLES, copies)
    )

    assert [each.clusters for each in often] == [4] * len(often)
    mrr, again = (next(each for each in figures if each.metric == "MRR") for figures in (once, often))
    assert mrr.value == again.value
    assert mrr.interval is not None
    assert again.interval is not None
    assert again.interval.high - again.interval.low == pytest.approx(mrr.interval.high - mrr.interval.low, rel=0.1)


def scored(sample: Sample, scorer: Scorer, ids: Sequence[str]) -> SampleResult:
    prediction = Prediction(outcome="answered", ranking=Ranking(ids, [0.0] * len(ids)))
    return SampleResult(
        sample=sample, epoch=0, prediction=prediction, score=cast("Any", scorer.score(sample, prediction))
    )


@pytest.mark.parametrize("true", [None, {}, {"true": []}, {"true": [1]}, {"true": ["a", "a"]}, ["a"], {"true": "a"}])
def test_a_target_without_true_ids_is_refused(true: Any) -> None:
    with pytest.raises(UsageError, match="does not say which entries are true"):
        bounds_of(Sample(id="a", target=true), retrieval_scorer())


def test_an_answer_without_a_ranking_is_refused(own_place: Path) -> None:
    with pytest.raises(UsageError, match="ranked nothing"):
        evaluate(task_of(retrieval_scorer(), lambda _: ["a0"]), out=own_place / "run")


# --- the judge ---


def same_word(reference: str, candidate: str) -> str:
    """True where both speak of the same letter, and both are fine."""
    return "true" if candidate[0] == reference[0] and "fine" in candidate else "false"


class Retrieved(JudgeTask):
    """The true entries of four queries."""

    name = "tests/retrieval"

    def samples(self) -> Sequence[Sample]:
        return SAMPLES

    def solver(self) -> Callable[[Sample], Prediction]:
        return ranked

    def scorer(self) -> Scorer:
        return retrieval_scorer(judge=self.noted_judge, question="What is fine?", tags={"topic": ["cars", "food"]})


@pytest.fixture
def judged(own_place: Path) -> Run:
    return evaluate(Retrieved(judge=model(judge_equivalence=judging(same_word))), out=own_place / "run")


def test_a_hit_that_says_the_same_counts_beside_those_that_are_true(judged: Run) -> None:
    figures = shown(judged)

    assert (figures["hit@10"], figures[JUDGED_HIT], figures[RESCUED]) == (50, 75, 25)
    assert (figures[f"{JUDGED_HIT}: topic cars"], figures[f"{JUDGED_HIT}: topic food"]) == (100, 50)
    assert judged.notes[0].startswith("Judged by scripted (rubric), which has no card")
    of_c = next(answer for answer in judged.answers if answer.sample.id == "c").score
    assert of_c is not None
    assert of_c.notes["verdicts"] == {"x": "false", "like c": "true"} | {f"filler {n}": "false" for n in range(8)}
    assert of_c.notes["ranks"] == {"c0": None, "c1": None, "c2": None}
    assert of_c.notes["judge"]["judge"] == "scripted (rubric)"
    assert len(of_c.calls) == 10 * 3
    asked = judged.records.get(of_c.calls[0])
    assert asked is not None
    assert "What is fine?" in str(asked.request)


def test_each_hit_that_is_not_true_is_held_against_each_true_text(judged: Run) -> None:
    calls = {answer.sample.id: len(answer.score.calls) for answer in judged.answers if answer.score}

    assert calls == {"a": 9 * 1, "b": 8 * 2, "c": 10 * 3, "d": 10 * 1}


async def test_a_run_is_judged_again_from_its_records(judged: Run) -> None:
    again = await rescore(Run.open(judged.path), Retrieved)

    assert again.run.figures == judged.figures


def test_a_hit_without_a_verdict_leaves_open_what_it_could_decide(own_place: Path) -> None:
    def odd(reference: str, candidate: str) -> str:
        return "perhaps" if candidate == "text of x" else same_word(reference, candidate)

    run = evaluate(Retrieved(judge=model(judge_equivalence=judging(odd))), out=own_place / "run")

    # of a and b another hit is true, of c another says the same; of d nothing is known
    assert [answer.sample.id for answer in run.answers if answer.score is None] == ["d"]
    assert (run.figure(JUDGED_HIT).if_wrong, run.figure(JUDGED_HIT).if_right) == (0.75, 1)
    assert any("1 answer has no score" in note for note in run.notes)


@pytest.mark.parametrize(
    "value", [None, ["x"], [{"id": "x"}], [{"id": "y", "text": "x"}], [{"id": 1, "text": "x"}], {}]
)
def test_a_judge_needs_the_texts_of_the_hits(value: Any, own_place: Path) -> None:
    def solve(sample: Sample) -> Prediction:
        return replace(ranked(sample), value=value)

    judge = Retrieved(judge=model(judge_equivalence=judging(same_word))).noted_judge
    assert judge is not None
    with pytest.raises(UsageError, match="has no text of the hit 'x'"):
        evaluate(task_of(with_judged_hits(retrieval_scorer(), judge), solve), out=own_place / "run")


def test_a_judge_needs_the_true_texts(own_place: Path) -> None:
    task = Retrieved(judge=model(judge_equivalence=judging(same_word))).evaluation()
    task = replace(task, samples=[Sample(id="a", target={"true": ["a0"]})])

    with pytest.raises(UsageError, match="no texts for a judge"):
        evaluate(task, out=own_place / "run")


class Planned(Solver):
    """A solver that retrieves and can be planned: no chain's answer says what the judge will be asked."""

    @override
    def plan(self, planner: Planner) -> PlanSample:
        async def count(_: Sample, __: int) -> None:
            pass

        return count

    @override
    async def answer(self, sample: Sample) -> Prediction:
        return ranked(sample)


async def test_the_questions_to_the_judge_are_planned(own_place: Path) -> None:
    engine = Engine(records=MemoryStore())
    task = Retrieved(judge=model(judge_equivalence=judging(same_word)), engine=engine).evaluation()
    task = replace(task, solver=Planned())

    plan = await run_job(task, [SampleEpoch(sample=each, epoch=0) for each in SAMPLES], engine).plan()
    run = await aevaluate(task, out=own_place / "run", engine=engine)

    asked = sum(len(answer.score.calls) for answer in run.answers if answer.score is not None)
    assert [(line.link, line.dependent) for line in plan.links] == [("judge", 10 * (1 + 2 + 3 + 1))]
    assert asked <= plan.calls


def test_figures_beyond_the_depth_are_left_out() -> None:
    names = [metric.name for metric in retrieval_scorer(depth=100).metrics]

    assert names[:5] == ["recall@10", "recall@1", "recall@5", "recall@100", "hit@1"]
