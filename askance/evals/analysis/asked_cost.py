"""What the answers of a run cost as they were asked: every call at its list price, also where it was on record."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance.models.prices import record_cost

if TYPE_CHECKING:
    from askance.evals.run import Run
    from askance.evals.sample import SampleResult


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCost:
    """What one answer cost, in US dollars."""

    dollars: float | None
    """By list prices of today; None where one of its calls has no known price."""
    uncached: float | None
    """The same as if no input had been read from a provider's cache."""


def asked_costs(run: Run, answers: Iterable[SampleResult]) -> Iterator[AskedCost]:
    """What each of a run's answers cost, from the records of the chat models' calls that it rests on.

    A call that answers several samples counts for each of them. Calls of encoders and of judges do not count. Where a
    call has no list price, what the run says of the sample stands, if it made all of its calls itself.

    Args:
        run: with its records.
        answers: some of its answers.
    """
    cost_of, uncached_cost_of = record_cost(()), record_cost((), cached=False)
    for answer in answers:
        keys = [str(key) for link in answer.prediction.links.values() for key in link["calls"]]
        records = run.records.get_all(keys)
        chats = [record for record in records.values() if record.kind == "chat"]
        costs = [cost_of(record) for record in chats]
        if keys and records.keys() == {*keys} and None not in costs:
            yield AskedCost(dollars=_total(costs), uncached=_total(map(uncached_cost_of, chats)))
        else:
            own = _own_cost(answer)
            yield AskedCost(dollars=own, uncached=own)


def sum_of(costs: Iterable[float | None]) -> float | None:
    """The sum of costs; None where one of them is not known."""
    known = [*costs]
    return None if None in known else _total(known)


def paid(answers: Sequence[SampleResult]) -> float | None:
    """What a run paid for its answers, in US dollars, by their lines; None where that is not known of one of them."""
    return sum_of(answer.prediction.meta.get("cost") for answer in answers)


def _total(costs: Iterable[float | None]) -> float:
    return math.fsum(cost for cost in costs if cost is not None)


def _own_cost(answer: SampleResult) -> float | None:
    """The cost in the answer's line, where all of its calls were made for it; an answer without any calls is free."""
    meta = answer.prediction.meta
    free = not any(link["calls"] for link in answer.prediction.links.values())
    return None if meta.get("replayed") or meta.get("shared") else meta.get("cost", 0.0 if free else None)
