"""Baselines without a model: random options, the longest options, and the numbers that are true most often.

They answer samples with options in `inputs["options"]`, numbered from 1. An answer is a list of numbers, the best
first, as of any solver. The target of a sample is the list of true numbers, or a mapping with that list as `true`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from math import comb, perm
from random import Random
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import override

from askance.errors import UsageError
from askance.evals.metric import Figure, Scored, figure
from askance.evals.sample import Prediction, Sample, Score
from askance.evals.solver import PlanSample, Solver, solved
from askance.models import use_draw
from askance.models.call_scope import current_scope

if TYPE_CHECKING:
    from askance.chains import Planner
    from askance.chat import JsonObject
    from askance.evals.scorer import Scorer

COUNT = 3
"""How many options an answer has, if the task does not say."""

MOST_ANSWERS = 50_000
"""How many possible answers to a sample are scored at most to compute its exact expectation."""


class BlindSolver(Solver):
    """A solver that looks at no picture and asks nobody: `answer` is all that has to be written."""

    plannable = True

    @override
    def plan(self, planner: Planner) -> PlanSample:
        async def answered(sample: Sample, draw: int) -> Prediction:
            with use_draw(draw):
                return await solved(self, sample)

        return answered


class RandomSolver(BlindSolver):
    """Chooses options at random. The choice depends on the seed, the sample's id and the epoch only.

    Args:
        count: how many options an answer has.
        seed: of the choice.
    """

    def __init__(self, *, count: int = COUNT, seed: int = 0) -> None:
        self.count = count
        self.seed = seed

    @override
    async def answer(self, sample: Sample) -> list[int]:
        """The chosen numbers."""
        options = options_of(sample)
        numbers = range(1, len(options) + 1)
        drawn = Random(f"{self.seed}\n{current_scope().draw}\n{sample.id}")
        return drawn.sample(numbers, min(self.count, len(options)))

    @override
    def form(self) -> JsonObject:
        return {"baseline": "random", "count": self.count, "seed": self.seed}


class LongestOption(BlindSolver):
    """Chooses the longest options, in characters; of equally long ones the first.

    Args:
        count: how many options an answer has.
    """

    def __init__(self, *, count: int = COUNT) -> None:
        self.count = count

    @override
    async def answer(self, sample: Sample) -> list[int]:
        """The chosen numbers."""
        lengths = {number: len(option) for number, option in enumerate(options_of(sample), start=1)}
        return sorted(lengths, key=lambda number: -lengths[number])[: self.count]

    @override
    def form(self) -> JsonObject:
        return {"baseline": "longest option", "count": self.count}


class MajoritySolver(BlindSolver):
    """Gives every sample the numbers that are true most often; of equally frequent ones the lowest.

    It counts in the samples that it is scored on, so no constant answer can get more.

    Args:
        samples: the samples to count in.
        count: how many numbers an answer has.
    """

    def __init__(self, samples: Iterable[Sample], *, count: int = COUNT) -> None:
        counts = Counter(number for sample in samples for number in true_of(sample))
        self.numbers = sorted(counts, key=lambda number: (-counts[number], number))[:count]
        if not self.numbers:
            raise UsageError("No sample has a true number.", hint="Give samples with targets.")

    @override
    async def answer(self, sample: Sample) -> list[int]:
        """The same numbers, as far as the sample has them."""
        options = sample.inputs.get("options")
        most = len(options) if options is not None else max(self.numbers)
        return [number for number in self.numbers if number <= most] or [1]

    @override
    def form(self) -> JsonObject:
        return {"baseline": "majority", "numbers": self.numbers}


def chance(options: int, true: int, *, count: int = COUNT) -> dict[str, float]:
    """The exact expectation of a random answer of `count` different options: `p@1` … and `acc@1` … `acc@count`.

    Precision@k is min(k, true options in the answer) / k; top-k accuracy is whether one of the first k is true. The
    number of true options in the answer is hypergeometric.

    Args:
        options: how many options there are.
        true: how many of them are true.
        count: how many options an answer has; fewer if there are fewer options.

    Raises:
        UsageError: no options, or more true ones than options.
    """
    if not 0 <= true <= options or options < 1 or count < 1:
        raise UsageError(
            f"There cannot be {true} true ones among {options} options, of which {count} are chosen.",
            hint="Give at least one option, no more true ones than options, and choose at least one.",
        )
    drawn = min(count, options)
    ways = {hits: comb(true, hits) * comb(options - true, drawn - hits) for hits in range(drawn + 1)}
    all_ways = comb(options, drawn)
    figures: dict[str, float] = {}
    for k in range(1, count + 1):
        hits = sum(Fraction(min(k, hits) * number, k * all_ways) for hits, number in ways.items())
        first = min(k, drawn)
        figures[f"p@{k}"] = float(hits)
        figures[f"acc@{k}"] = float(1 - Fraction(comb(options - true, first), comb(options, first)))
    return figures


def expected_score(sample: Sample, scoring: Scorer, *, count: int = COUNT) -> Score:
    """What a random answer to `sample` is worth on average, exactly: the mean over every answer that there could be.

    Of a value that only some answers have, it is the mean over those.

    Args:
        sample: with options.
        scoring: how an answer is scored; it must ask nobody.
        count: options of an answer.

    Raises:
        UsageError: there are too many possible answers, or scoring them asks somebody.
    """
    total = len(options_of(sample))
    answers = perm(total, min(count, total))
    if answers > MOST_ANSWERS:
        raise UsageError(
            f"The sample {sample.id!r} has {answers:,} possible answers, more than can be tried.",
            hint=f"At most {MOST_ANSWERS:,}: draw some with `RandomSolver`.",
        )
    sums, seen = Counter[str](), Counter[str]()
    for numbers in permutations(range(1, total + 1), min(count, total)):
        for name, value in _scored(scoring.score, sample, list(numbers)).values.items():
            sums[name] += value  # pyright: ignore[reportArgumentType]  # a Counter adds up any numbers
            seen[name] += 1
    return Score(values={name: sums[name] / seen[name] for name in sums})


def _scored(score: Callable[[Sample, Any], Any], sample: Sample, value: list[int]) -> Score:
    scored = score(sample, value)
    if not isinstance(scored, Score):
        scored.close()
        raise UsageError("An answer whose score asks somebody has no exact expectation.", hint="Use `RandomSolver`.")
    return scored


def expected_figures(
    samples: Sequence[Sample],
    scoring: Scorer,
    *,
    count: int = COUNT,
    alike: Callable[[Sample], Hashable] | None = None,
    seed: int = 0,
) -> tuple[Figure, ...]:
    """The figures of random answers: each sample has the score that a random answer gets on average.

    Only metrics that are means are given: for others, the metric of expectations is not the expectation of the metric.

    Args:
        samples: samples with options.
        scoring: the scorer of the task.
        count: how many options an answer has.
        alike: gives equal values for samples with equal expectations, which are then computed once.
        seed: of the bootstraps.

    Raises:
        UsageError: as `expected_score`.
    """
    known: dict[Hashable, Score] = {}
    rows: list[Scored] = []
    for sample in samples:
        name = sample.id if alike is None else alike(sample)
        if name not in known:
            known[name] = expected_score(sample, scoring, count=count)
        rows.append(_scored_of(sample, known[name], scoring))
    metrics = [metric for metric in scoring.metrics if metric.statistic is None and metric.of_sums is None]
    return tuple(figure(metric, rows, seed=seed) for metric in metrics)


def _scored_of(sample: Sample, score: Score, scoring: Scorer) -> Scored:
    return Scored(
        cluster=sample.cluster,
        score=score,
        if_wrong=scoring.if_wrong(sample),
        if_right=scoring.if_right(sample),
    )


def options_of(sample: Sample) -> Sequence[str]:
    """The options of a sample.

    Raises:
        UsageError: it has none.
    """
    options: Any = sample.inputs.get("options")
    if not options:
        raise UsageError(f"The sample {sample.id!r} has no options to choose from.", hint="Put them into its inputs.")
    return options


def true_of(sample: Sample) -> Iterator[int]:
    """The true numbers of a sample.

    Raises:
        UsageError: its target does not say them.
    """
    target: Any = sample.target
    numbers = cast("Mapping[str, Any]", target).get("true") if isinstance(target, Mapping) else target
    if not isinstance(numbers, list):
        raise UsageError(
            f"The target of the sample {sample.id!r} does not say which numbers are true.",
            hint="It is a list of them, or a mapping with `true`.",
        )
    return iter(cast("list[int]", numbers))
