"""Two runs held against each other: pairs, families, conventions, and what differs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from askance.errors import Refused, UsageError
from askance.evals import Evaluation, Metric, Run, Sample, Score, Scorer, Task, compare, evaluate, mean
from askance.evals.analysis.compare import Pairs, common_samples, notes_of_tests
from askance.evals.analysis.configuration import ConfigurationDifference, differences
from askance.evals.solver import SolverLike
from askance.statistics import compare_paired, compare_statistics, compare_totals, holm


def share(matrix: Any) -> float:
    return float(matrix[:, 0].sum() / matrix.sum())


def score(sample: Sample, value: Any) -> Score:
    right = float(value == sample.target)
    return Score(values={"right": right, "size": abs(value) / 10, "one": right, "other": 1 - right})


def fixed(right: float) -> Score:
    return Score(values={"right": right, "size": 0.0, "one": right, "other": 1 - right})


SCORING = Scorer(
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


def by_position(*answers: int | None) -> SolverLike:
    def solve(sample: Sample) -> int:
        answer = answers[int(sample.id)]
        if answer is None:
            raise Refused("no")
        return answer

    return solve


class Compared(Task):
    """Numbers, all of which are truly 1."""

    name = "tests/compared"
    answers: list[int | None]
    groups: str = Field(default="", exclude=True)

    def samples(self) -> list[Sample]:
        return [
            Sample(id=str(place), target=1, group=self.groups[place] if self.groups else "")
            for place in range(len(self.answers))
        ]

    def solver(self) -> Any:
        return by_position(*self.answers)

    def scorer(self) -> Scorer:
        return SCORING


def run(name: str, *answers: int | None, groups: str = "", **options: Any) -> Run:
    return evaluate(Compared(answers=[*answers], groups=groups), out=name, **options)


def test_right_and_wrong_of_independent_samples_is_mcnemars() -> None:
    a, b = run("a", 1, 1, 1, 0), run("b", 1, 0, 0, 0)

    (found,) = compare(a, b, metric="accuracy")

    assert found.comparison == compare_paired([1, 1, 1, 0], [1, 0, 0, 0], list("0123"), seed=0, binary=True)
    assert found.comparison.test == "mcnemar exact"
    assert (found.comparison.difference, found.comparison.discordant, found.cluster) == (0.5, (2, 0), "group")


def test_samples_of_one_group_are_tossed_together() -> None:
    a, b = run("a", 1, 1, 1, 0, groups="xxyz"), run("b", 1, 0, 0, 0, groups="xxyz")

    (found,) = compare(a, b, metric="accuracy")

    assert (found.comparison.test, found.comparison.n, found.comparison.n_clusters) == ("sign flip", 4, 3)


def test_a_figure_of_a_set_is_compared_as_one() -> None:
    a, b = run("a", 1, 1, 1, 0), run("b", 1, 0, 0, 0)

    (found,) = compare(a, b, metric="share")

    pairs = [(1.0, 0.0), (0.0, 1.0)]
    one, other = ([pairs[wrong] for wrong in answers] for answers in ([0, 0, 0, 1], [0, 1, 1, 1]))
    assert found.comparison == compare_statistics(
        lambda rows: sum(row[0] for row in rows) / len(rows), one, other, seed=0, clusters=list("0123")
    )


def test_a_figure_of_sums_is_compared_by_them() -> None:
    a, b = run("a", 1, 1, 1, 0), run("b", 1, 0, 0, 0)

    (found,) = compare(a, b, metric="by sums")

    rows = [[1.0, 0.0], [0.0, 1.0]]
    one, other = ([rows[wrong] for wrong in answers] for answers in ([0, 0, 0, 1], [0, 1, 1, 1]))
    assert found.comparison == compare_totals(
        lambda sums: sums[..., 0] / sums.sum(axis=-1), one, other, seed=0, clusters=list("0123")
    )


@pytest.mark.parametrize("metric", ["accuracy", "share", "by sums"])
def test_where_all_samples_agree_the_difference_has_an_interval_with_a_width(metric: str) -> None:
    (found,) = compare(run("a", *[1] * 8), run("b", *[0] * 8), metric=metric)
    interval = found.comparison.interval

    assert interval is not None
    assert (found.comparison.difference, interval.high) == (1, 1)
    assert 0.3 < interval.low < 0.4


def test_where_all_differ_alike_by_a_score_out_of_bounds_nothing_is_known_of_chance() -> None:
    (found,) = compare(run("a", *[5] * 8), run("b", *[3] * 8), metric="size")

    assert (found.comparison.interval, found.comparison.ground, found.verdict) == (None, "no spread", "tied")


def test_several_metrics_are_a_family() -> None:
    a, b = run("a", *[1] * 12), run("b", *[0] * 11, 1)

    names = ["accuracy", "size", "share", "by sums"]
    alone = [compare(a, b, metric=name).metrics[0].comparison for name in names]
    found = compare(a, b, metric=names)
    family = [each.comparison for each in found]

    assert [(each.metric, each.exploratory) for each in found] == [(name, False) for name in names]
    assert tuple(each.p for each in family) == holm([each.p or 0 for each in alone])
    assert {each.family for each in family} == {4}


def test_where_no_metric_is_named_the_tasks_own_is_the_family_and_others_are_exploratory() -> None:
    one, two, three = run("a", *[1] * 12), run("b", *[0] * 11, 1), run("c", *[0] * 12)

    found = compare(one, two, three)
    named = compare(one, two, three, metric="accuracy")
    size = compare(one, two, metric="size").metrics[0].comparison

    assert repr(named) == "RunsComparison(a, b, c: 2 comparisons over 12 common samples)"
    assert [each for each in found if not each.exploratory] == [*named]
    assert [each.comparison.family for each in named] == [2, 2]
    assert [each.metric for each in found if each.exploratory] == ["size", "share", "by sums"] * 2
    explored = next(each for each in found if each.metric == "size")
    assert (explored.comparison, explored.sentence.partition(" ")[0]) == (size, "Exploratory:")
    assert "Exploratory, p not adjusted: size, share, by sums" in [*notes_of_tests(found)]


def test_non_answers_are_wrong_or_left_out() -> None:
    a, b = run("a", 1, None, 1, 1), run("b", 1, 1, None, 0)

    (wrong,), (answered,) = compare(a, b, metric="accuracy"), compare(a, b, metric="accuracy", convention="answered")

    assert (wrong.comparison.figure_a, wrong.comparison.figure_b, wrong.comparison.n) == (0.75, 0.5, 4)
    assert (answered.comparison.figure_a, answered.comparison.figure_b, answered.comparison.n) == (1.0, 0.5, 2)
    assert (common_samples([a, b]).answered, common_samples([a, b]).by_all) == ((3, 3), 2)


def test_only_samples_of_both_are_compared_and_epochs_are_pairs_of_their_own() -> None:
    a, b = run("a", 1, 1, 1, epochs=2), run("b", 1, 0)

    (found,) = compare(a, b, metric="accuracy")
    common = common_samples([a, b])

    assert (found.comparison.n, len(common.rows), common.alone) == (2, 2, (4, 0))


def test_the_sentence_names_the_runs() -> None:
    a, b = run("a", 1, 1), run("b", 1, 1)

    (found,) = compare(a, b, metric="accuracy")

    assert found.sentence == (
        "a and b are tied on accuracy at this size: 100.00 % against 100.00 %, a difference of +0.00 points "
        "(not one sample differs; 95 % interval -65.76 to +65.76), over 2 samples. "
        "These samples can show no difference at all."
    )


def test_equal_runs_are_tied_on_everything() -> None:
    a, b = run("a", 1, 0, None, 1), run("b", 1, 0, None, 1)

    assert {each.comparison.verdict for each in compare(a, b)} == {"tied"}
    assert compare(a, b).differences == ()


def test_what_differs_is_told_by_its_place() -> None:
    runs = [run("a", 1, 1), run("b", 1, 0), run("c", 1, 0)]
    runs[2] = replace(runs[2], made_by="0.0.9")

    assert [*differences(runs)] == [
        ConfigurationDifference(place="options.answers", values=([1, 1], [1, 0], [1, 0])),
        ConfigurationDifference(place="askance", values=(runs[0].made_by, runs[0].made_by, "0.0.9")),
    ]


def three() -> tuple[Run, Run, Run]:
    return run("a", *[1] * 12), run("b", *[0] * 11, 1), run("c", *[1] * 10, None, None, 1)


PAIRS: dict[str, tuple[Pairs, list[tuple[int, int]]]] = {
    "first": ("first", [(0, 1), (0, 2)]),
    "all": ("all", [(0, 1), (0, 2), (1, 2)]),
}


@pytest.mark.parametrize(("pairs", "places"), PAIRS.values(), ids=PAIRS)
def test_several_runs_are_compared_two_by_two_as_one_family(pairs: Pairs, places: list[tuple[int, int]]) -> None:
    runs = three()
    found = compare(*runs, metric="accuracy", pairs=pairs)

    alone = [compare(runs[a], runs[b], metric="accuracy").metrics[0].comparison.p or 0 for a, b in places]
    assert [(each.a, each.b) for each in found] == places
    assert tuple(each.comparison.p for each in found) == holm(alone)
    assert {each.comparison.family for each in found} == {len(places)}
    assert [each.comparison.verdict for each in found] == ["better", "tied", "worse"][: len(places)]


def test_several_runs_are_compared_on_the_samples_that_all_have() -> None:
    found = compare(*three(), metric="accuracy")

    assert (len(found.common.rows), found.common.alone, found.common.by_all) == (12, (0, 0, 1), 10)
    assert [each.by_sample for each in found] == [(11, 0, 1), (2, 0, 10)]
    assert found.names == ("a", "b", "c")
    assert [len(each["values"]) for each in found.form()["differences"]] == [3, 3, 3]


def test_left_out_is_what_not_all_answered() -> None:
    a, b, c = run("a", 1, None, 1, 1), run("b", 1, 1, 0, 0), run("c", 1, 1, 1, None)

    found = compare(a, b, c, metric="accuracy", convention="answered", pairs="all")

    assert [each.comparison.n for each in found] == [2, 2, 2]
    assert [each.by_sample for each in found] == [(1, 0, 1), (0, 0, 2), (0, 1, 1)]


@pytest.mark.parametrize(("better", "counts"), [("higher", (2, 0, 2)), ("lower", (0, 2, 2))], ids=["higher", "lower"])
def test_better_samples_are_those_at_the_good_end(better: Any, counts: tuple[int, int, int]) -> None:
    scoring = replace(SCORING, metrics=(mean("right", name="accuracy", better=better),))
    samples = [Sample(id=str(place), target=1) for place in range(4)]
    runs = [
        evaluate(Evaluation(samples=samples, solver=by_position(*answers), scorer=scoring, name="ends"), out=name)
        for name, answers in (("a", (1, 1, 1, 0)), ("b", (1, 0, 0, 0)))
    ]

    class Ends(Compared):
        name = f"ends-{better}"

        def scorer(self) -> Scorer:
            return scoring

    assert compare(*runs, task=Ends.name).metrics[0].by_sample == counts


def of_others(name: str) -> Run:
    """A run of samples that no other has."""
    samples = [Sample(id="9", target=1)]
    made = Evaluation(
        samples=samples, solver=lambda _: 1, scorer=SCORING, name="tests/compared", options={"answers": []}
    )
    return evaluate(made, out=name)


def other_task() -> Run:
    samples = [Sample(id="0", target=1)]
    return evaluate(Evaluation(samples=samples, solver=by_position(1), scorer=SCORING, name="other"), out="other")


def without_samples(name: str) -> Run:
    found = run(name, 1)
    Path(name, "samples.jsonl").write_text("", encoding="utf-8")
    return Run.open(found.path)


def unfinished(name: str) -> Run:
    found = run(name, 1)
    form = json.loads(Path(name, "run.json").read_text(encoding="utf-8"))
    del form["finished"], form["figures"]
    Path(name, "run.json").write_text(json.dumps(form), encoding="utf-8")
    Path(name, "scores.jsonl").unlink()
    return Run.open(found.path)


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "tasks": (lambda: [other_task()], None, "The runs 'a' and 'other' are of different tasks, 'tests/compared' and "),
    "alone": (list, None, "A comparison needs at least two runs"),
    "twice": (lambda: [Run.open("b/../a")], None, "The run 'b/../a' is named twice"),
    "no samples": (lambda: [without_samples("b")], None, "The run 'b' has no samples yet"),
    "no pairs": (lambda: [run("b", 1), of_others("c")], None, "The runs 'a' and 'c' have no sample in common"),
    "not finished": (lambda: [unfinished("b")], None, "The run 'b' is not finished, and its answers have no scores "),
    "metric": (lambda: [run("b", 1)], "f1", "It has accuracy, size, share, by sums, length"),
    "neither": (lambda: [run("b", 1)], "length", "Neither higher nor lower is better for 'length'"),
}


@pytest.mark.parametrize(("others", "metric", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_compared_is_told(others: Any, metric: str | None, message: str) -> None:
    Path("b").mkdir()
    with pytest.raises(UsageError, match=message):
        compare(run("a", 1), *others(), metric=metric)
