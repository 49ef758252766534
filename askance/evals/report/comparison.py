"""Runs sample by sample, as a value: what the pairs say of them, and which samples changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

from askance.evals.report.build import part_of

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.comparing import RunsComparison
    from askance.evals.report.values import Row, RunPart
    from askance.evals.run import Answer

Change = Literal["better", "worse", "other", "same"]
"""Of one run against another on one sample; `other`: another answer that is worth as much."""

CHANGES: tuple[Change, ...] = ("better", "worse", "other", "same")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One sample in every run."""

    rows: tuple[Row, ...]
    answers: tuple[int, ...]
    """By run, a number that is the same where the answers are."""
    asked: tuple[int, ...]
    """By run, a number that is the same where the very same was asked."""

    def change(self, a: int, b: int) -> Change:
        """What became of the sample from run `a` to run `b`; better is `a`'s."""
        one, other = (_worth(self.rows[place]) for place in (a, b))
        if one != other:
            return "better" if one > other else "worse"
        return "same" if self.answers[a] == self.answers[b] else "other"

    @property
    def changed(self) -> bool:
        """Whether not all answers are the same."""
        return len({*self.answers}) > 1

    def form(self) -> JsonObject:
        """The sample as JSON."""
        first = self.rows[0]
        return {"id": first.id, "epoch": first.epoch, "runs": [row.form() for row in self.rows]}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What runs on the same samples say of each other."""

    comparison: RunsComparison
    parts: tuple[RunPart, ...]
    rows: tuple[ChangeRow, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What the runs are called."""
        return self.comparison.names

    def changes(self) -> Mapping[tuple[int, int], Mapping[Change, int]]:
        """By pair of runs, how many samples changed in which way."""
        pairs = combinations(range(len(self.parts)), 2)
        counts = {pair: Counter(row.change(*pair) for row in self.rows) for pair in pairs}
        return {pair: {change: found[change] for change in CHANGES} for pair, found in counts.items()}


def build_difference(comparison: RunsComparison) -> Difference:
    """What runs of one task say of each other, sample by sample.

    Args:
        comparison: what `askance.evals.compare` found.

    Raises:
        UsageError: a folder holds lines that are none.
    """
    parts = tuple(part_of(run, name=name) for run, name in zip(comparison.runs, comparison.names, strict=True))
    return Difference(comparison=comparison, parts=parts, rows=tuple(_rows(comparison, parts)))


def _rows(comparison: RunsComparison, parts: Sequence[RunPart]) -> Iterator[ChangeRow]:
    several = [{(row.id, row.epoch): row for row in part.rows} for part in parts]
    for answers in comparison.matching.rows:
        key = (answers[0].sample.id, answers[0].epoch)
        yield ChangeRow(
            rows=tuple(each[key] for each in several),
            answers=_numbered(map(_said, answers)),
            asked=_numbered(answer.sample.form() for answer in answers),
        )


def _said(answer: Answer) -> Any:
    return [answer.prediction.outcome, answer.prediction.value]


def _numbered(values: Iterator[Any]) -> tuple[int, ...]:
    """Equal values by one number, counted from 0 in the order in which they come."""
    numbers: dict[str, int] = {}
    return tuple(numbers.setdefault(json.dumps(value, sort_keys=True), len(numbers)) for value in values)


def _worth(row: Row) -> float:
    """For ranks alone: a sample without a score stands below all others only where there is no answer."""
    return 0.0 if row.worth is None else row.worth
