"""Two runs held against each other: pairs, families, conventions, and what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.errors import Refused, UsageError
from askance.evals import Metric, Run, Sample, Score, Scoring, Task, compare, evaluate, mean, task
from askance.evals.comparing import differences, paired
from askance.evals.solving import Solver
from askance.statistics import compare_paired, compare_statistics, compare_totals, holm


def share(matrix: Any) -> float:
    return float(matrix[:, 0].sum() / matrix.sum())


def score(sample: Sample, value: Any) -> Score:
    right = float(value == sample.target)
    return Score(values={"right": right, "size": abs(value) / 10, "one": right, "other": 1 - right})


def fixed(right: float) -> Score:
    return Score(values={"right": right, "size": 0.0, "one": right, "other": 1 - right})


SCORING = Scoring(
    score=score,
    metrics=(
        mean("right", name="accuracy"),
        mean("size"),
        Metric(name="share", columns=("one", "other"), statistic=share),
        Metric(name="by sums", columns=("one", "other"), of_sums=lambda sums: sums[0] / sum(sums)),
        Metric(name="length", columns=("size",), better="neither"),
    ),
    if_wrong=lambda _: fixed(0.0),
    if_right=lambda _: fixed(1.0),
)


def by_position(*answers: int | None) -> Solver:
    def solve(sample: Sample) -> int:
        answer = answers[int(sample.id)]
        if answer is None:
            raise Refused("no")
        return answer

    return solve


@task("tests/compared", scoring=SCORING)
def compared(answers: list[int | None], groups: str = "") -> Task:
    """Numbers, all of which are truly 1."""
    samples = [Sample(id=str(place), target=1, group=groups[place] if groups else "") for place in range(len(answers))]
    return Task(samples=samples, solver=by_position(*answers), options={"answers": answers})


def run(name: str, *answers: int | None, groups: str = "", **options: Any) -> Run:
    return evaluate(compared(answers=[*answers], groups=groups), out=name, **options)


def test_right_and_wrong_of_independent_samples_is_mcnemars() -> None:
    a, b = run("a", 1, 1, 1, 0), run("b", 1, 0, 0, 0)

    (found,) = compare(a, b, "accuracy")

    assert found.comparison == compare_paired([1, 1, 1, 0], [1, 0, 0, 0], list("0123"), seed=0, binary=True)
    assert found.comparison.test == "mcnemar exact"
    assert (found.comparison.difference, found.comparison.discordant, found.cluster) == (0.5, (2, 0), "group")


def test_samples_of_one_group_are_tossed_together() -> None:
    a, b = run("a", 1, 1, 1, 0, groups="xxyz"), run("b", 1, 0, 0, 0, groups="xxyz")

    (found,) = compare(a, b, "accuracy")

    assert (found.comparison.test, found.comparison.n, found.comparison.n_clusters) == ("sign flip", 4, 3)


def test_a_figure_of_a_set_is_compared_as_one() -> None:
    a, b = run("a", 1, 1, 1, 0), run("b", 1, 0, 0, 0)

    (found,) = compare(a, b, "share")

    pairs = [(1.0, 0.0), (0.0, 1.0)]
    one, other = ([pairs[wrong] for wrong in answers] for answers in ([0, 0, 0, 1], [0, 1, 1, 1]))
    assert found.comparison == compare_statistics(
        lambda rows: sum(row[0] for row in rows) / len(rows), one, other, seed=0, clusters=list("0123")
    )


def test_a_figure_of_sums_is_compared_by_them() -> None:
    a, b = run("a", 1, 1, 1, 0), run("b", 1, 0, 0, 0)

    (found,) = compare(a, b, "by sums")

    rows = [[1.0, 0.0], [0.0, 1.0]]
    one, other = ([rows[wrong] for wrong in answers] for answers in ([0, 0, 0, 1], [0, 1, 1, 1]))
    assert found.comparison == compare_totals(
        lambda sums: sums[..., 0] / sums.sum(axis=-1), one, other, seed=0, clusters=list("0123")
    )


def test_several_metrics_are_a_family() -> None:
    a, b = run("a", *[1] * 12), run("b", *[0] * 11, 1)

    alone = [compare(a, b, name)[0].comparison for name in ("accuracy", "size", "share", "by sums")]
    family = [each.comparison for each in compare(a, b)]

    assert [each.metric for each in compare(a, b)] == ["accuracy", "size", "share", "by sums"]
    assert tuple(each.p for each in family) == holm([each.p or 0 for each in alone])
    assert {each.family for each in family} == {4}


def test_non_answers_are_wrong_or_left_out() -> None:
    a, b = run("a", 1, None, 1, 1), run("b", 1, 1, None, 0)

    (wrong,), (answered,) = compare(a, b, "accuracy"), compare(a, b, "accuracy", convention="answered")

    assert (wrong.comparison.figure_a, wrong.comparison.figure_b, wrong.comparison.n) == (0.75, 0.5, 4)
    assert (answered.comparison.figure_a, answered.comparison.figure_b, answered.comparison.n) == (1.0, 0.5, 2)
    assert paired(a, b).answered == (2, 1, 1)


def test_only_samples_of_both_are_compared_and_epochs_are_pairs_of_their_own() -> None:
    a, b = run("a", 1, 1, 1, epochs=2), run("b", 1, 0)

    (found,) = compare(a, b, "accuracy")
    pairing = paired(a, b)

    assert (found.comparison.n, len(pairing.pairs), pairing.only_a, pairing.only_b) == (2, 2, 4, 0)


def test_the_sentence_names_the_runs() -> None:
    a, b = run("a", 1, 1), run("b", 1, 1)

    (found,) = compare(a, b, "accuracy")

    assert found.sentence("A", "B") == (
        "A and B are tied on accuracy at this size: 100.00 % against 100.00 %, a difference of +0.00 points "
        "(not one sample differs), over 2 samples. So few samples, or such, can show no difference at all."
    )


def test_a_run_against_itself_is_tied_on_everything() -> None:
    a = run("a", 1, 0, None, 1)

    assert {each.comparison.verdict for each in compare(a, a)} == {"tied"}
    assert [*differences(a, a)] == []


def test_what_differs_is_told_by_its_place() -> None:
    a, b = run("a", 1, 1), run("b", 1, 0)

    assert [*differences(a, b)] == [("options.answers", [1, 1], [1, 0])]


def other_task() -> Run:
    samples = [Sample(id="0", target=1)]
    return evaluate(Task(samples=samples, solver=by_position(1), scoring=SCORING, name="other"), out="other")


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "tasks": (other_task, None, "The runs are of different tasks, 'tests/compared' and 'other'"),
    "no pairs": (lambda: without_samples("b"), None, "have no sample in common"),
    "metric": (
        lambda: run("b", 1),
        "f1",
        "It has accuracy, size, share, by sums, length",
    ),
    "neither": (lambda: run("b", 1), "length", "No value of 'length' is better than another"),
}


def without_samples(name: str) -> Run:
    found = run(name, 1)
    Path(name, "samples.jsonl").write_text("", encoding="utf-8")
    return Run.open(found.path)


@pytest.mark.parametrize(("other", "metric", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_compared_is_told(other: Any, metric: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compare(run("a", 1), other(), metric)
