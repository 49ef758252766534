"""Which contests are hard: whether errors cluster by contest, in one run and between runs.

Section 3.3 of Hessel et al. (ACL 2023), question 8. A run of matching has three to six samples a contest. Its table of
contests × right or wrong is held against chance by χ². Two controls are to show nothing: the folds of the
cross-validation, and the captions that stand among the options as distractors. Two runs are held against each other:
how often they choose the same caption, whether they find the same contests hard, and whether their errors are
independent.

Expected counts of three to six samples a contest are below five, where the χ² distribution does not hold. The paper
prints its p; here a p by permutation stands beside it. A sample counts as a row of each of its four distractors, so
that rows of that table are not independent: there too the permutation is what to go by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

from askance import statistics
from askance.errors import UsageError
from askance.evals.analysis.compare import check_scores, common_samples
from askance.evals.baselines import options_of, true_of
from askance.evals.run_tables import names_of

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.run import Run
    from askance.evals.sample import Sample, SampleResult
    from askance.statistics import ChiSquared, Correlation, ErrorIndependence

TASK = "newyorker/matching"
RIGHT = "accuracy"
"""The value of a score that says whether an answer is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestAccuracy:
    """How much of a contest each run has right."""

    contest: int
    right: tuple[int, ...]
    """By run, how many samples of the contest it has right."""
    samples: tuple[int, ...]
    """By run, how many there are."""

    @property
    def accuracy(self) -> float:
        """Mean over the runs of their share of right samples."""
        return sum(right / count for right, count in zip(self.right, self.samples, strict=True)) / len(self.samples)

    def form(self) -> JsonObject:
        """The contest as JSON."""
        return {**asdict(self), "accuracy": self.accuracy}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDifficulty:
    """What makes the errors of one run."""

    name: str
    samples: int
    """Samples that count: all, or those with an answer, as in the figures of the run."""
    right: int
    unanswered: int
    """Samples without an answer."""
    contests: ChiSquared
    """Contests × right or wrong."""
    folds: ChiSquared
    """Folds × right or wrong; whole contests are dealt out."""
    distractors: ChiSquared
    """Distractor captions × right or wrong."""
    date: Correlation
    """Of the number of a contest with its accuracy: above 0 where later contests are easier."""

    def form(self) -> JsonObject:
        """The run as JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDifficulty:
    """The errors of two runs on the samples that both have."""

    a: int
    b: int
    """Places of the two runs, from 0."""
    samples: int
    unlike: int
    """How many of them were asked otherwise in the two runs: another picture, options or target."""
    same: int
    """Samples for which both chose the same caption."""
    same_right: int
    """How many of these are right."""
    contests: Correlation
    """Of the accuracy per contest."""
    errors: ErrorIndependence
    """Where A is wrong."""
    errors_of_b: ErrorIndependence
    """Where B is wrong."""

    def form(self) -> JsonObject:
        """The pair as JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class ContestDifficulty:
    """Which contests are hard for runs of matching."""

    runs: tuple[RunDifficulty, ...]
    pairs: tuple[PairDifficulty, ...]
    """Every two of the runs."""
    contests: tuple[ContestAccuracy, ...]
    """Contests that all runs have, the hardest first; of equally hard ones those with more samples first."""

    @cached_property
    def hard(self) -> tuple[ContestAccuracy, ...]:
        """The quarter of the contests that is hardest, rounded down, the hardest first."""
        return self.contests[: len(self.contests) // 4]

    @cached_property
    def easy(self) -> tuple[ContestAccuracy, ...]:
        """The quarter that is easiest, the easiest first; of equally easy ones those with more samples first."""
        ordered = sorted(self.contests, key=lambda each: (-each.accuracy, -sum(each.samples), each.contest))
        return tuple(ordered[: len(ordered) // 4])

    def form(self) -> JsonObject:
        """All of it as JSON; `hard` and `easy` are numbers of contests."""
        return {
            "runs": [each.form() for each in self.runs],
            "pairs": [each.form() for each in self.pairs],
            "hard": [each.contest for each in self.hard],
            "easy": [each.contest for each in self.easy],
            "contests": [each.form() for each in self.contests],
        }


def contest_difficulty(*runs: Run, seed: int = 0) -> ContestDifficulty:
    """Which contests are hard for runs of `newyorker/matching`, in any context; it needs no data and asks no model.

    Samples without an answer count as wrong, or are left out, as in the figures of each run.

    Args:
        runs: one or more.
        seed: of permutations and bootstraps.

    Raises:
        UsageError: there is no run, one is of another task, has no scores yet or no samples that count, one is given
            twice, or two have no sample or no contest in common.
    """
    if not runs:
        raise UsageError("There is no run to look into.", hint=f"Name the folder of a run of {TASK}.")
    scored = [_scored(run) for run in runs]
    named = [
        _of_run(run, answers, name=name, seed=seed)
        for run, answers, name in zip(runs, scored, names_of(runs), strict=True)
    ]
    pairs = [_of_pair(runs, place, seed=seed) for place in combinations(range(len(runs)), 2)]
    return ContestDifficulty(runs=tuple(named), pairs=tuple(pairs), contests=tuple(_contests(scored)))


def _scored(run: Run) -> list[tuple[SampleResult, bool]]:
    """The results that count, each with whether it is right."""
    if run.task != TASK:
        raise UsageError(
            f"The run {str(run.path)!r} is of {run.task!r}, and only matching has several samples a contest that are "
            "right or wrong.",
            hint=f"Name runs of {TASK}; `askance compare` holds runs of any task against each other.",
        )
    check_scores(run)
    counted = [each for each in run.answers if each.score is not None or run.convention == "wrong"]
    if not counted:
        raise UsageError(
            f"The run {str(run.path)!r} has no samples that count.", hint="Finish it by the command that began it."
        )
    return [(each, _is_right(each)) for each in counted]


def _is_right(answer: SampleResult) -> bool:
    return answer.score is not None and answer.score.values.get(RIGHT, 0.0) >= 1


def _of_run(run: Run, answers: Sequence[tuple[SampleResult, bool]], *, name: str, seed: int) -> RunDifficulty:
    outcomes = [right for _, right in answers]
    samples = [answer.sample for answer, _ in answers]
    contests = [contest_of(sample) for sample in samples]
    folds: list[Any] = [sample.tags.get("fold") for sample in samples]
    accuracies = _by_contest(answers)
    return RunDifficulty(
        name=name,
        samples=len(answers),
        right=sum(outcomes),
        unanswered=sum(not answer.prediction.answered for answer in run.answers),
        contests=statistics.outcomes_by_group(outcomes, [[contest] for contest in contests], seed=seed),
        # A contest of two folds, which no data of the authors have, is dealt out in two parts.
        folds=statistics.outcomes_by_group(
            outcomes,
            [[fold] for fold in folds],
            [f"{contest} {fold}" for contest, fold in zip(contests, folds, strict=True)],
            seed=seed,
        ),
        distractors=statistics.outcomes_by_group(outcomes, [_distractors(sample) for sample in samples], seed=seed),
        date=statistics.spearman([*accuracies], [right / count for right, count in accuracies.values()]),
    )


def _of_pair(runs: Sequence[Run], places: tuple[int, int], *, seed: int) -> PairDifficulty:
    a, b = places
    common = common_samples([runs[a], runs[b]])
    convention = runs[a].convention
    rows = [row for row in common.rows if convention == "wrong" or all(each.score is not None for each in row)]
    right_a, right_b = ([_is_right(row[place]) for row in rows] for place in (0, 1))
    captions = [tuple(_chosen(each) for each in row) for row in rows]
    same = [place for place, (one, other) in enumerate(captions) if one is not None and one == other]
    clusters = [str(contest_of(row[0].sample)) for row in rows]
    one, other = (
        _by_contest([(row[0], right) for row, right in zip(rows, rights, strict=True)]) for rights in (right_a, right_b)
    )
    return PairDifficulty(
        a=a,
        b=b,
        samples=len(rows),
        unlike=common.unlike,
        same=len(same),
        same_right=sum(right_a[place] for place in same),
        contests=statistics.spearman(*([right / count for right, count in each.values()] for each in (one, other))),
        errors=statistics.error_independence(right_a, right_b, clusters, seed=seed),
        errors_of_b=statistics.error_independence(right_b, right_a, clusters, seed=seed),
    )


def _contests(several: Sequence[Sequence[tuple[SampleResult, bool]]]) -> list[ContestAccuracy]:
    """The contests that all runs have, the hardest first."""
    tables = [_by_contest(answers) for answers in several]
    shared = [contest for contest in tables[0] if all(contest in table for table in tables)]
    contests = [
        ContestAccuracy(
            contest=contest,
            right=tuple(table[contest][0] for table in tables),
            samples=tuple(table[contest][1] for table in tables),
        )
        for contest in shared
    ]
    return sorted(contests, key=lambda each: (each.accuracy, -sum(each.samples), each.contest))


def _by_contest(answers: Sequence[tuple[SampleResult, bool]]) -> dict[int, tuple[int, int]]:
    """By contest, in the order of their numbers, right and all samples."""
    counts: dict[int, tuple[int, int]] = {}
    for answer, outcome in answers:
        contest = contest_of(answer.sample)
        right, count = counts.get(contest, (0, 0))
        counts[contest] = right + outcome, count + 1
    return dict(sorted(counts.items()))


def contest_of(sample: Sample) -> int:
    """The number of a sample's contest, which its tag `contest` says.

    Raises:
        UsageError: the sample has no such tag.
    """
    contest: Any = sample.tags.get("contest")
    if type(contest) is not int:
        raise UsageError(
            f"The sample {sample.id!r} does not say of which contest it is.",
            hint="Its tag `contest` is the number of the contest; the samples of the suite's own tasks have it.",
        )
    return contest


def _distractors(sample: Sample) -> list[str]:
    """The captions among the options that were written for other contests."""
    true = {*true_of(sample)}
    captions = [text for number, text in enumerate(options_of(sample), start=1) if number not in true]
    return list(dict.fromkeys(captions))


def _chosen(answer: SampleResult) -> str | None:
    """The caption that an answer chooses; None if it chooses none."""
    return next(_texts(answer), None) if answer.prediction.answered else None


def _texts(answer: SampleResult) -> Iterator[str]:
    options, value = options_of(answer.sample), answer.prediction.value
    for number in value if isinstance(value, list) else [value]:
        if type(number) is int and 1 <= number <= len(options):
            yield options[number - 1]
