"""Means over folds, pooled figures and those of each fold; figures of the values of a tag."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from askance.errors import Refused
from askance.evals import Figure, Metric, Run, Sample, Score, Scorer, Task, compare, evaluate, mean
from askance.evals.analysis.rescore import rescore
from askance.evals.report.run_part import part_of
from askance.evals.run_tables import table_of_runs
from askance.evals.sample import Prediction, SampleResult
from askance.evals.scorer import figures_of, notes_on, right_or_wrong
from askance.evals.scorer import scored as scored_answer
from askance.evals.suite import by_tag, folds_of, over_folds
from askance.evals.suite.breakdown import joined_over_folds
from askance.evals.suite.option_orders import PairMetric, both_right

FOLDS = range(5)


def values_of(right: float) -> Score:
    return Score(values={"accuracy": right, "hits": 3 * right, "words": 4.0, "size": right / 2})


def spread(matrix: Any) -> float:
    return float(matrix[:, 0].max() - matrix[:, 0].mean())


SCORER = Scorer(
    score=lambda sample, value: values_of(float(value == sample.target)),
    metrics=(
        mean("accuracy"),
        Metric(name="by sums", columns=("hits", "words"), of_sums=lambda sums: (sums[0] / sums[1]) ** 2),
        Metric(name="spread", columns=("size",), statistic=spread, percent=False),
    ),
    if_wrong=lambda _: values_of(0.0),
    if_right=lambda _: values_of(1.0),
    notes=("a note",),
)


def result(fold: int | None, contest: int, number: int, right: bool | None) -> SampleResult:
    """An answer to an item of a contest; None is no answer."""
    sample = Sample(
        id=f"{contest}-{number}",
        target=1,
        group=f"contest {contest}",
        tags={"contest": contest} if fold is None else {"fold": fold, "contest": contest},
    )
    if right is None:
        return SampleResult(sample=sample, epoch=0, prediction=Prediction(outcome="refused"))
    return SampleResult(sample=sample, epoch=0, prediction=Prediction(outcome="answered", value=int(right)))


def scored(results: Sequence[SampleResult], scorer: Scorer) -> list[SampleResult]:
    return [
        replace(each, score=cast("Score", scorer.score(each.sample, each.prediction.value)))
        if each.prediction.answered
        else each
        for each in results
    ]


def figures(results: Sequence[SampleResult], scorer: Scorer, **options: Any) -> dict[str, Figure]:
    return {each.metric: each for each in figures_of(scored(results, scorer), scorer, **options)}


def cross_validation(contests: int = 20, *, seed: int = 1) -> list[SampleResult]:
    """Folds of unlike sizes, with three or six items a contest, the later folds easier; one answer in fifteen lacks."""
    source = np.random.default_rng(seed)
    found: list[SampleResult] = []
    for contest in range(contests):
        fold = contest % 5 if contest % 3 else 4
        for number in range(int(source.choice([3, 6]))):
            right = None if source.random() < 1 / 15 else bool(source.random() < 0.2 + 0.15 * fold)
            found.append(result(fold, contest, number, right))
    return found


def by_hand(results: Sequence[SampleResult], fold: int | None = None) -> tuple[float, float, float]:
    """The three metrics over a fold, or all samples."""
    values = [float(each.prediction.value == 1) for each in results if fold in (None, each.sample.tags.get("fold"))]
    right = float(np.mean(values))
    return right, (3 * right / 4) ** 2, max(values) / 2 - right / 2


def test_every_metric_is_the_plain_mean_of_its_folds() -> None:
    results = cross_validation()
    found = figures(results, over_folds(SCORER, FOLDS))

    for place, name in enumerate(("accuracy", "by sums", "spread")):
        each = [by_hand(results, fold)[place] for fold in FOLDS]
        assert found[name].value == pytest.approx(np.mean(each), abs=1e-12)
        assert [found[f"{name}: fold {fold}"].value for fold in FOLDS] == pytest.approx(each)
        assert found[f"{name}, pooled"].value == pytest.approx(by_hand(results)[place])
        assert found[name].value != pytest.approx(found[f"{name}, pooled"].value, abs=0.01)
        interval = found[name].interval
        assert interval is not None
        assert interval.low < (found[name].value or 0) < interval.high
    assert (found["accuracy"].samples, found["accuracy"].clusters) == (len(results), 20)
    assert [*found][:6] == ["accuracy", "by sums", "spread", "accuracy, pooled", "by sums, pooled", "spread, pooled"]


def test_the_interval_is_that_of_contests_drawn_within_their_folds() -> None:
    results = cross_validation(60, seed=3)
    found = figures(results, over_folds(SCORER, FOLDS))["accuracy"].interval
    source = np.random.default_rng(4)
    drawn: list[float] = []
    table: dict[int, dict[str, list[float]]] = {}
    for each in results:
        rows = table.setdefault(each.sample.tags["fold"], {}).setdefault(each.sample.cluster, [])
        rows.append(float(each.prediction.value == 1))
    for _ in range(3000):
        of_folds = [
            np.mean([value for name in source.choice([*fold], len(fold)) for value in fold[name]])
            for fold in table.values()
        ]
        drawn.append(float(np.mean(of_folds)))

    assert found is not None
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]).tolist(), abs=0.012)


def test_non_answers_count_within_their_fold() -> None:
    results = [
        *(result(0, 1, number, right) for number, right in enumerate((True, True, None))),
        *(result(0, 2, number, right) for number, right in enumerate((False, None, None))),
        *(result(1, 3, number, right) for number, right in enumerate((True, False))),
        result(1, 4, 0, None),
    ]
    wrong = figures(results, over_folds(SCORER, (0, 1), count=2))["accuracy"]
    answered = figures(results, over_folds(SCORER, (0, 1), count=2), convention="answered")["accuracy"]

    assert wrong.value == wrong.if_wrong == pytest.approx((2 / 6 + 1 / 3) / 2)
    assert wrong.if_right == pytest.approx((5 / 6 + 2 / 3) / 2)
    assert wrong.among_answered == answered.value == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert (wrong.samples, wrong.answered, wrong.clusters) == (9, 5, 4)


def test_a_fold_without_samples_is_left_out_of_the_mean() -> None:
    results = [result(fold, 10 * fold + place, 0, place < fold) for fold in (1, 2, 3) for place in range(4)]
    found = figures(results, over_folds(SCORER, FOLDS))

    assert found["accuracy"].value == pytest.approx((1 / 4 + 2 / 4 + 3 / 4) / 3)
    assert (found["accuracy: fold 0"].value, found["accuracy: fold 0"].samples) == (None, 0)


def test_samples_without_a_fold_are_in_the_pooled_figure_alone() -> None:
    results = [
        *(result(fold, 10 * fold + place, 0, place < 2) for fold in FOLDS for place in range(4)),
        *(result(None, 90 + place, 0, True) for place in range(5)),
    ]
    found = figures(results, over_folds(SCORER, FOLDS))

    assert (found["accuracy"].value, found["accuracy"].samples) == (0.5, 20)
    assert (found["accuracy, pooled"].value, found["accuracy, pooled"].samples) == (15 / 25, 25)


def test_a_fold_of_one_contest_leaves_no_interval() -> None:
    results = [result(fold, fold, number, number < 2) for fold in FOLDS for number in range(3)]

    assert figures(results, over_folds(SCORER, FOLDS))["by sums"].interval is None


def test_one_fold_is_what_it_was_with_a_note() -> None:
    results = [result(2, place, 0, place < 3) for place in range(5)]
    one = over_folds(SCORER, [2])

    assert one.metrics == SCORER.metrics
    assert one.notes == ("a note", "Fold 2 of 5, not comparable with means over all 5 folds")
    assert figures(results, one)["accuracy"] == figures(results, SCORER)["accuracy"]


def test_notes_name_the_folds_that_are_there() -> None:
    mean_note = over_folds(SCORER, FOLDS).notes[1]

    assert mean_note.startswith("Figures are plain means over folds")
    assert over_folds(SCORER, FOLDS).notes == ("a note", mean_note)
    assert over_folds(SCORER, (0, 3)).notes[1:] == (
        mean_note.replace("(5 where", "(2 where"),
        "Folds 0, 3 of 5, not comparable with means over all 5 folds",
    )
    assert over_folds(SCORER, ()).metrics == SCORER.metrics
    assert over_folds(SCORER, ()).notes == SCORER.notes


def test_a_scorer_that_asks_somebody_is_awaited() -> None:
    async def score(sample: Sample, value: Any) -> Score:
        await asyncio.sleep(0)
        return values_of(float(value == sample.target))

    found = asyncio.run(
        cast("Any", over_folds(replace(SCORER, score=score), FOLDS).score(result(3, 1, 1, True).sample, 1))
    )

    assert found.values["accuracy: fold 3"] == 1.0


def test_folds_are_found_in_the_samples() -> None:
    assert folds_of(
        [each.sample for each in [result(3, 1, 1, True), result(0, 2, 1, True), result(None, 4, 1, True)]]
    ) == (
        0,
        3,
    )


def test_a_tag_makes_figures_of_its_values() -> None:
    results = [result(0, place, 0, place < 3) for place in range(4)]
    found = figures(results, by_tag(SCORER, "contest", [0, 3], "accuracy", label=lambda contest: f"#{contest}"))

    assert [*found] == ["accuracy", "by sums", "spread", "accuracy: #0", "accuracy: #3"]
    assert [found[name].value for name in ("accuracy", "accuracy: #0", "accuracy: #3")] == [0.75, 1.0, 0.0]


def test_pairs_of_samples_have_means_over_folds_too() -> None:
    source = np.random.default_rng(7)
    metric = PairMetric(name="both", columns=("pair", "order", "accuracy"), of_pair=both_right)

    def score(sample: Sample, value: Any) -> Score:
        pair = {"pair": float(sample.tags["contest"]), "order": float(sample.id[-1])}
        return Score(values={**values_of(value).values, **pair})

    scorer = over_folds(replace(SCORER, score=score, metrics=(metric,)), (0, 1))
    results = [
        result(int(contest > 9), contest, order, bool(source.random() < 0.6))
        for contest in range(30)
        for order in (1, 2)
    ]
    found = figures(results, scorer)

    said = [each.prediction.value == 1 for each in results]
    right = [first and second for first, second in zip(said[::2], said[1::2], strict=True)]
    assert found["both"].value == pytest.approx((sum(right[:10]) / 10 + sum(right[10:]) / 20) / 2)
    assert found["both, pooled"].value == pytest.approx(sum(right) / 30)
    assert found["both"].interval is not None


def test_all_folds_of_a_whole_test_set_take_less_than_two_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    from askance import statistics
    from askance.statistics.estimate import DRAWS

    results = cross_validation(600)
    scorer = over_folds(replace(SCORER, metrics=SCORER.metrics[:1]), FOLDS)
    answers = scored(results, scorer)
    matrix = [[float(answer.score is not None), 1.0] for answer in answers]
    folds = [answer.sample.tags["fold"] for answer in answers]
    contests = [answer.sample.cluster for answer in answers]
    start = time.process_time()
    statistics.bootstrap_totals(
        lambda sums: sums[..., 0] / sums[..., 1], matrix, contests, strata=folds, seed=0, draws=DRAWS
    )
    statistics.bootstrap_mean([row[0] for row in matrix], contests, strata=folds, seed=0, draws=DRAWS)

    assert len(results) > 2500
    assert time.process_time() - start < 2


# --- runs ---


class Contests(Task):
    """Items of contests in five folds."""

    name = "tests/contests"
    answers: list[int]
    """Which answer each item gets; below 0 none."""
    fold: int | None = None
    """Only this fold."""
    count: int = 40
    """Items."""

    def samples(self) -> list[Sample]:
        """Two items a contest, four contests a fold."""
        return [
            each.sample
            for place in range(self.count)
            for each in [result(place // 8, place // 2, place % 2, right=True)]
            if self.fold in (None, place // 8)
        ]

    def solver(self) -> Any:
        """Says what it was told to."""

        def solve(sample: Sample) -> int:
            place: int = 2 * sample.tags["contest"] + int(sample.id[-1])
            if self.answers[place] < 0:
                raise Refused("no")
            return self.answers[place]

        return solve

    def scorer(self) -> Scorer:
        """Means over folds."""
        return over_folds(SCORER, self.kept_or("folds", lambda: folds_of(self.samples())))

    def kept(self) -> dict[str, Any]:
        """With the folds."""
        return {**super().kept(), "folds": list(self.kept_or("folds", lambda: folds_of(self.samples())))}


def run(name: str, answers: Sequence[int], **options: Any) -> Run:
    return evaluate(Contests(answers=[*answers], **options), out=name)


def test_a_run_shows_means_first_and_is_scored_again_without_the_data() -> None:
    found = run("a", [1, 1, 0, 1] * 10)

    assert found.figures[0].metric == "accuracy"
    assert found.figure("accuracy").value == 0.75
    assert found.figure("accuracy: fold 4").samples == 8
    assert "Figures are plain means over folds (5 where no note says otherwise)" in " ".join(found.notes)
    assert not [note for note in found.notes if "a mean over" in note]
    assert table_of_runs([found]).columns[3:9] == (
        *("accuracy", "by sums", "spread"),
        *("accuracy, pooled", "by sums, pooled", "spread, pooled"),
    )
    assert Run.open("a").figures == found.figures


class SomeByTheCrowd(Contests):
    """As the others, but fold 2 has no item of which the crowd decides."""

    name = "tests/contests-by-the-crowd"

    def scorer(self) -> Scorer:
        """Means over folds, also of the items of which the crowd decides."""

        def values(sample: Sample, right: float) -> Score:
            crowd = {"crowd": right} if sample.tags["fold"] != 2 else {}
            return Score(values={**values_of(right).values, **crowd})

        def score(sample: Sample, value: Any) -> Score:
            return values(sample, float(value == sample.target))

        def if_wrong(sample: Sample) -> Score:
            return values(sample, 0.0)

        def if_right(sample: Sample) -> Score:
            return values(sample, 1.0)

        metrics = (*SCORER.metrics, mean("crowd"), mean("size", better="neither"))
        scorer = Scorer(score=score, metrics=metrics, if_wrong=if_wrong, if_right=if_right)
        return over_folds(scorer, self.kept_or("folds", lambda: folds_of(self.samples())), "accuracy", "crowd")


def test_a_note_says_of_how_many_folds_a_figure_is_the_mean() -> None:
    told = "crowd is a mean over 4 of 5 folds: fold 2 has no value"
    found = evaluate(SomeByTheCrowd(answers=[1, 1, 0, 1] * 10), out="crowd")

    assert found.figure("crowd: fold 2").samples == 0
    assert [note for note in found.notes if "a mean over" in note] == [told]
    assert asyncio.run(rescore(found, SomeByTheCrowd)).run.notes == found.notes


def test_a_fold_that_nobody_answered_is_none_of_the_mean_over_answers() -> None:
    answers = [-1] * 8 + [1, 1, 0, 1] * 8
    found = evaluate(Contests(answers=answers), out="a", convention="answered")

    assert found.figure("accuracy").value == 0.75
    assert [note for note in found.notes if "over 4" in note] == [
        "accuracy and by sums and spread are means over 4 of 5 folds: fold 0 has no value"
    ]
    assert not [note for note in run("b", answers).notes if "over 4" in note]


def test_runs_are_compared_by_means_over_folds_and_contests() -> None:
    easy, hard = run("a", [1] * 8 + [1, 1, 0, 1] * 8), run("b", [1] * 8 + [0, 1, 0, 0] * 8)
    found = compare(easy, hard)

    assert [each.metric for each in found] == ["accuracy", "by sums", "spread"]
    first = found.metrics[0]
    assert (first.comparison.figure_a, first.comparison.figure_b) == pytest.approx((0.8, 0.4))
    assert (first.comparison.test, first.comparison.n_clusters, first.by_sample) == ("sign flip", 20, (16, 0, 24))
    assert first.comparison.verdict == "better"
    (asked,) = compare(easy, hard, metric="accuracy: fold 1")
    assert asked.comparison.n == 8


def test_a_report_breaks_samples_down_by_fold_as_the_run_counts_them() -> None:
    whole = run("a", [1, 0, 1, 1, -1] * 8, count=36)
    (breakdown,) = [each for each in part_of(whole, name="a").breakdowns if each.name == "fold"]

    assert breakdown.note == "mean of accuracy; samples without an answer count as 0"
    assert [share.value for share in breakdown.shares] == [
        whole.figure(f"accuracy: fold {fold}").value for fold in FOLDS
    ]
    assert [share.answered for share in breakdown.shares] == [7, 6, 7, 6, 3]


def test_a_run_of_one_fold_is_compared_over_that_fold() -> None:
    whole, one = run("a", [1] * 40), run("b", [1, 0] * 20, fold=3)
    found = compare(whole, one).metrics[0].comparison

    assert (found.n, found.figure_a, found.figure_b) == (8, 1.0, 0.5)


def test_of_metrics_that_are_not_named_a_mean_stands_alone_and_what_has_no_better_is_over_all_samples() -> None:
    said = mean("size", name="said", better="neither")
    scorer = over_folds(replace(SCORER, metrics=(*SCORER.metrics, said)), FOLDS, "accuracy")
    names = [metric.name for metric in scorer.metrics]

    assert names[:5] == ["accuracy", "by sums", "spread", "said", "accuracy, pooled"]
    assert names[5:] == [f"accuracy: fold {fold}" for fold in FOLDS]
    assert scorer.metrics[3] is said


# --- runs of single folds, joined ---


def test_withheld_answers_are_ranked_in_joined_folds_as_in_one_run() -> None:
    plain, whole = right_or_wrong(), over_folds(right_or_wrong(), FOLDS)

    def answers(scorer: Scorer, folds: Sequence[int] = FOLDS) -> list[SampleResult]:
        """Twenty samples, of which every fourth is withheld."""
        return [
            asyncio.run(scored_answer(SampleResult(sample=sample, epoch=0, prediction=prediction), scorer))
            for number in range(20)
            if number % 5 in folds
            for sample in [Sample(id=f"{number:02}", target=1, tags={"fold": number % 5})]
            for prediction in [
                Prediction(
                    outcome="answered",
                    value=1 if number % 3 else 2,
                    abstained=number % 4 == 0,
                    confidence=0.3 + 0.03 * number,
                )
            ]
        ]

    joined, of_all = joined_over_folds([plain] * 5, {fold: answers(plain, [fold]) for fold in FOLDS})

    found = figures_of(of_all, joined)
    assert found == figures_of(answers(whole), whole)
    assert {each.metric: each.samples for each in found}["risk-coverage area"] == 20


def test_joined_folds_have_the_metrics_and_notes_of_each() -> None:
    scorers = [by_tag(replace(SCORER, notes=(f"note {part}",)), "part", [part], "accuracy") for part in "ab"]
    folds = [
        [replace(result(fold, fold, 0, True), sample=Sample(id=part, target=1, tags={"part": part}))]
        for fold, part in enumerate("ab")
    ]

    joined, answers = joined_over_folds(
        scorers, {fold: scored(some, scorers[fold]) for fold, some in enumerate(folds)}, "accuracy"
    )

    values = {each.metric: (each.value, each.samples) for each in figures_of(answers, joined)}
    assert values["accuracy"] == (1.0, 2)
    assert values["accuracy: a"] == values["accuracy: b"] == (1.0, 1)
    assert joined.notes[:2] == ("note a", "note b")


def test_answers_without_a_score_are_told_of_joined_folds() -> None:
    answers = {fold: [result(fold, fold, 0, True), result(fold, fold, 1, None)] for fold in FOLDS}

    joined, of_all = joined_over_folds([SCORER] * 5, answers)

    assert notes_on(of_all, joined)[:1] == (
        "5 answers have no score and count as no answer, such as that to '0-0': the run of its fold says why",
    )
