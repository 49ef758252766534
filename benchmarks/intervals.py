"""How often the intervals of `askance.statistics` hold the truth, as the tables of docs/statistics.md.

python -m benchmarks.intervals

Shares of independent samples, and their paired differences, are counted over all outcomes. All else is drawn, with a
fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import comb

import numpy as np

from askance.statistics import Interval, compare_paired, mean_estimate, paired_score_interval, wilson

SIZES = (2, 5, 8, 20)
RATES = (0.0, 0.02, 0.5, 0.98, 1.0)
REPETITIONS = 1000
EDGE = 1e-9
"""Limits may miss a truth of 0 or 1 by rounding."""


def _holds(interval: Interval | None, truth: float) -> bool:
    return interval is not None and interval.low - EDGE <= truth <= interval.high + EDGE


def of_share(n: int, rate: float) -> float:
    """Wilson's interval of a share, over all outcomes."""
    held = [_holds(wilson(right, n), rate) for right in range(n + 1)]
    return sum(comb(n, right) * rate**right * (1 - rate) ** (n - right) * held[right] for right in range(n + 1))


def of_difference(n: int, rate: float, other: float = 0.5) -> float:
    """Tango's interval of the difference of two systems that are right independently of each other."""
    first, second = rate * (1 - other), other * (1 - rate)
    total = 0.0
    for b, c in product(range(n + 1), repeat=2):
        if b + c <= n and _holds(paired_score_interval(b, c, n), rate - other):
            total += comb(n, b) * comb(n - b, c) * first**b * second**c * max(0.0, 1 - first - second) ** (n - b - c)
    return total


def _drawn(n: int, seed: int, held: Callable[[np.random.Generator, int], bool]) -> float:
    source = np.random.default_rng([n, seed])
    return sum(held(source, n) for _ in range(REPETITIONS)) / REPETITIONS


def _images(source: np.random.Generator, n: int, rate: float) -> list[float]:
    """Three samples of each of `n` images, which are all right or all wrong, half of the time; else each by itself."""
    together = np.repeat(source.random(n) < 0.5, 3)
    return np.where(together, np.repeat(source.random(n) < rate, 3), source.random(3 * n) < rate).astype(float).tolist()


def of_images(n: int, rate: float) -> float:
    """A share over images with three samples each."""
    clusters = np.repeat(np.arange(n), 3).tolist()

    def held(source: np.random.Generator, n: int) -> bool:
        values = _images(source, n, rate)
        return _holds(mean_estimate(values, clusters, seed=0, binary=True, draws=400).interval, rate)

    return _drawn(n, 1, held)


def of_images_difference(n: int, rate: float, other: float = 0.5) -> float:
    """The difference of two shares over images with three samples each."""
    clusters = np.repeat(np.arange(n), 3).tolist()

    def held(source: np.random.Generator, n: int) -> bool:
        a, b = _images(source, n, rate), _images(source, n, other)
        return _holds(compare_paired(a, b, clusters, seed=0, binary=True, draws=400).interval, rate - other)

    return _drawn(n, 2, held)


def of_scores(n: int, rate: float) -> float:
    """The mean of scores that are 1 at this rate, and 0.25 else."""

    def held(source: np.random.Generator, n: int) -> bool:
        values = np.where(source.random(n) < rate, 1.0, 0.25).tolist()
        found = mean_estimate(values, seed=0, bounds=lambda: ([0.0] * n, [1.0] * n), draws=400)
        return _holds(found.interval, rate + 0.25 * (1 - rate))

    return _drawn(n, 3, held)


def of_scores_difference(n: int, rate: float) -> float:
    """The mean difference to scores of 0.25."""

    def held(source: np.random.Generator, n: int) -> bool:
        a, b = np.where(source.random(n) < rate, 1.0, 0.25).tolist(), [0.25] * n
        found = compare_paired(a, b, seed=0, bounds=lambda: ([0.0] * n, [1.0] * n), draws=400)
        return _holds(found.interval, 0.75 * rate)

    return _drawn(n, 4, held)


TABLES: dict[str, Callable[[int, float], float]] = {
    "a share": of_share,
    "a difference to a share of 0.5": of_difference,
    "a difference to a share of 0.02": partial(of_difference, other=0.02),
    "a share, three samples an image": of_images,
    "a difference to 0.5, three samples an image": of_images_difference,
    "a mean of scores": of_scores,
    "a difference of scores": of_scores_difference,
}


def lines() -> Iterator[str]:
    """The table in Markdown."""
    yield f"| interval of | n | {' | '.join(f'rate {rate:g}' for rate in RATES)} |"
    yield f"|---|---:|{'---:|' * len(RATES)}"
    for name, coverage in TABLES.items():
        for n in SIZES:
            yield f"| {name} | {n} | {' | '.join(f'{100 * coverage(n, rate):.1f}' for rate in RATES)} |"


if __name__ == "__main__":
    print("\n".join(lines()))
