"""What came of a blame, in words: a table of the links, and the wrong answers one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from askance.amounts import many
from askance.evals.blamed import SHORT
from askance.evals.tables import NONE, shown_value

if TYPE_CHECKING:
    from askance.chains import Link
    from askance.evals.blamed import Blame, Blamed
    from askance.evals.figures import Figure

SHOWN = 20
"""Answers that are listed at most."""


def blame_text(blame: Blame) -> Iterator[str]:
    """What the trials come to, and whose answers came from where."""
    right = blame.samples - blame.unanswered - len(blame.wrong)
    yield (
        f"{many(blame.samples, 'answer')}: {right:,} right by {blame.metric}, {len(blame.wrong):,} wrong, "
        f"{blame.unanswered:,} without an answer."
    )
    if not blame.wrong:
        yield "There is nothing to blame."
        return
    if not blame.sums:
        yield "There is nothing to put in the place of a link."
        return
    yield f"Each link {blame.words}, and what follows from it asked again:"
    yield ""
    yield from _table(blame.sums, percent=blame.percent)
    yield ""
    for answer in blame.wrong[:SHOWN]:
        flips, guilty = blame.flips(answer), blame.guilty(answer)
        others = [SHORT[link] for link in flips if link not in guilty]
        also = f" (flipped by {', '.join(others)} too)" if others else ""
        epoch = f" (epoch {answer.epoch})" if answer.epoch else ""
        yield f"{answer.sample.id}{epoch}: {', '.join(SHORT[link] for link in guilty) or 'no single link'}{also}"
    if len(blame.wrong) > SHOWN:
        yield f"… and {len(blame.wrong) - SHOWN:,} more; `--json` has them all"


def _table(sums: Sequence[Blamed], *, percent: bool) -> Iterator[str]:
    head = ("link", "tried", "flips", "95 % interval", "to blame", "95 % interval", "change")
    rows = [head, *(_row(each, percent=percent) for each in sums)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    for row in rows:
        cells = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        yield f"{row[0]:<{widths[0]}}  {'  '.join(cells)}"


def _row(each: Blamed, *, percent: bool) -> tuple[str, ...]:
    name = SHORT[cast("Link", each.link)] if each.link in SHORT else each.link
    change = NONE if each.change.value is None else f"{each.change.value * (100 if percent else 1):+.2f}"
    return (name, f"{each.flips.samples:,}", *_share(each.flips), *_share(each.guilty), change)


def _share(figure: Figure) -> tuple[str, str]:
    interval = figure.interval
    limits = [] if interval is None else [interval.low, interval.high]
    return shown_value(figure.value, percent=True), " – ".join(
        shown_value(each, percent=True) for each in limits
    ) or NONE
