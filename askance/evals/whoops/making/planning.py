"""What making questions would ask and cost, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from askance.evals.rehearsing import Rehearsal
from askance.evals.whoops.making.run import captions_of
from askance.models.scope import Pending

if TYPE_CHECKING:
    from askance.chains import Plan
    from askance.evals.whoops.entries import Entry
    from askance.evals.whoops.making.gates import Pair, QuestionMaker


async def planned(entries: Sequence[Entry], maker: QuestionMaker) -> Plan:
    """What making questions from the captions of `entries` would ask; nothing is asked.

    Of a caption whose answers are not known yet, as many are counted as it may have, and each goes through all gates:
    what comes is no more than that.

    Raises:
        UsageError: no entry has a caption.
    """
    captions = captions_of(entries)
    rehearsal = Rehearsal(unit="caption")
    twin = maker.rehearsed(rehearsal)
    with rehearsal.walking():
        for caption in captions.values():
            found = await twin.find(caption)
            if found.error == Pending.__name__:
                _behind(rehearsal, "writer", count=maker.finder.count)
            for answer in () if found.value is None else found.value.texts:
                pair = await twin.pair(caption, answer)
                if pair.failed:
                    _behind(rehearsal, _waiting(pair), count=1)
    return rehearsal.plan(len(captions))


_CALLS: tuple[str, ...] = ("writer", "reader", "judge", "blind", "judge")
"""Who is asked about a pair, in their order."""


def _waiting(pair: Pair) -> str:
    """Who is asked next about a pair that waits for an answer; empty for nobody."""
    match pair.stopped:
        case "question":
            return "reader"
        case "answered from the caption":
            return "blind" if pair.from_caption else "judge"
        case _:
            return "" if pair.blindly else "last"


def _behind(rehearsal: Rehearsal, role: str, *, count: int) -> None:
    """Counts the calls of `count` pairs from that of `role` on."""
    if role:
        for each in _CALLS[-1:] if role == "last" else _CALLS[_CALLS.index(role) :]:
            rehearsal.behind(each, count)
