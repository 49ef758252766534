"""Gain, harm and net of looking: what tools change in the answers to the same samples, and for how many dollars.

A *gain* is a sample that is wrong without tools and right with them, a *harm* the other way round, *net* the
difference. Where answers can be partly right, each counts by how much better or worse it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from askance.amounts import many, money
from askance.statistics import Comparison, Interval, bootstrap_ratio, compare_paired, mean_estimate

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.sample import SampleResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One of gain, harm and net."""

    value: float | None
    """Mean over samples, as a share."""
    interval: Interval | None
    per_dollar: float | None
    """Samples for each dollar that looking costs more; None where that is not known, or where it costs no more."""
    per_dollar_interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookingGain:
    """What a run with tools changes in the answers of one without."""

    without: str
    """Name of the run without tools."""
    looking: str
    """Name of the run with tools."""
    metric: str
    gained: int
    """Samples that are better with tools."""
    harmed: int
    """Samples that are worse with tools."""
    gain: Change
    harm: Change
    net: Change
    comparison: Comparison
    """With tools against without; its difference is the net."""
    more_dollars: float | None
    """What the run with tools cost more on these samples; None where a call of either run has no known price."""

    def sentences(self) -> Iterator[str]:
        """Gain, harm and net in plain words."""
        verdict = self.comparison.verdict
        word = "tied" if verdict == "tied" else f"{verdict} with tools"
        yield (
            f"Looking ({self.looking}) against not looking ({self.without}), by {self.metric} over "
            f"{many(self.comparison.n, 'sample')}: gain {self.gained:,} ({_shown(self.gain)}), harm {self.harmed:,} "
            f"({_shown(self.harm)}), net {_shown(self.net, sign='+')}: {word}."
        )
        if self.more_dollars is None:
            yield "What looking costs is not known: a call of either run has no known price."
        elif self.more_dollars <= 0:
            less = f": {money(-self.more_dollars)} less" if self.more_dollars else ""
            yield f"Looking costs no more here{less} at list price as asked."
        else:
            yield (
                f"Looking costs {money(self.more_dollars)} more at list price as asked; a dollar: gain "
                f"{_per_dollar(self.gain)}, harm {_per_dollar(self.harm)}, net {_per_dollar(self.net)}."
            )

    def form(self) -> JsonObject:
        """The same as JSON."""
        return asdict(self)


def _shown(change: Change, *, sign: str = "") -> str:
    if change.value is None:
        return "–"
    value = f"{100 * change.value:{sign}.2f} {'points' if sign else '%'}"
    interval = change.interval
    if interval is None:
        return value
    low, high = (f"{100 * end:{sign}.2f}" for end in (interval.low, interval.high))
    return f"{value}, {100 * interval.level:.0f} % interval {low} to {high}"


def _per_dollar(change: Change) -> str:
    if change.per_dollar is None:
        return "–"
    interval = change.per_dollar_interval
    limits = "" if interval is None else f" ({interval.low:.3g} to {interval.high:.3g})"
    return f"{change.per_dollar:.3g} samples{limits}"


def looks(answer: SampleResult) -> bool:
    """Whether an answer came about by looking with tools: its trace, or that of a link, has steps."""
    prediction = answer.prediction
    traces: list[Mapping[str, Any]] = [prediction.trace, *(link.get("trace", {}) for link in prediction.links.values())]
    return any(trace.get("steps") for trace in traces)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOfAnswers:
    """What one sample is worth without and with tools, from 0 to 1, and what the two answers cost."""

    cluster: str
    without: float
    looking: float
    more_dollars: float | None


def looking_gain(
    pairs: Sequence[PairOfAnswers], *, without: str, looking: str, metric: str, seed: int = 0
) -> LookingGain:
    """Gain, harm and net over samples, with intervals from whole clusters.

    Args:
        pairs: the samples, of which more is better.
        without: name of the run without tools.
        looking: name of the run with tools.
        metric: by which samples are worth so much.
        seed: of the resampling.
    """
    clusters = [each.cluster for each in pairs]
    one, other = [each.looking for each in pairs], [each.without for each in pairs]
    binary = all(value in {0.0, 1.0} for value in (*one, *other))
    ends = ([0.0] * len(pairs), [1.0] * len(pairs))
    comparison = compare_paired(one, other, clusters, seed=seed, binary=binary, bounds=lambda: ends)
    moves = [more - less for more, less in zip(one, other, strict=True)]
    more = [each.more_dollars for each in pairs if each.more_dollars is not None]
    dollars = math.fsum(more) if len(more) == len(pairs) else None

    def change(values: Sequence[float], interval: Interval | None) -> Change:
        rate = dollars is not None and dollars > 0
        return Change(
            value=math.fsum(values) / len(values) if values else None,
            interval=interval,
            per_dollar=math.fsum(values) / dollars if rate and dollars else None,
            per_dollar_interval=bootstrap_ratio(values, more, clusters, seed=seed) if rate else None,
        )

    def share(values: Sequence[float]) -> Change:
        return change(values, mean_estimate(values, clusters, binary=binary, bounds=lambda: ends, seed=seed).interval)

    return LookingGain(
        without=without,
        looking=looking,
        metric=metric,
        gained=sum(move > 0 for move in moves),
        harmed=sum(move < 0 for move in moves),
        gain=share([max(move, 0.0) for move in moves]),
        harm=share([max(-move, 0.0) for move in moves]),
        net=change(moves, comparison.interval),
        comparison=comparison,
        more_dollars=dollars,
    )
