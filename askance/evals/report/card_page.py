"""Judges on pages: their errors beside people's labels, the reliability of their votes, and the page of a card.

Notes of judges come from folders that anybody may have written: one that does not fit its schema is not drawn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from askance.amounts import shortened
from askance.documents import schema_violation
from askance.evals.report.elements import (
    SHARES,
    Dot,
    Field,
    Intervals,
    Plot,
    ReliabilityPlot,
    ReliabilityPoint,
    Sortable,
    sortable_of,
)
from askance.evals.report.html import block, document
from askance.evals.tables import NONE, Table, shown_estimate
from askance.statistics import Interval

if TYPE_CHECKING:
    from askance.evals.judges import CorrectedRate, JudgeCard, Label, Labels
    from askance.evals.judges.verdicts import JudgedPair
    from askance.evals.report.run_part import Result

_SCHEMA = Path(__file__).with_name("judge.schema.json")

UNFOLDED = 20
"""Longest list of disagreements that is open; a longer one has to be unfolded."""
MOST_DISAGREEMENTS = 1000
"""Most disagreements that are listed."""
_LONGEST = 400
"""Characters of a text of a pair."""

_SHARES = ("accuracy", "base rate", "sensitivity", "specificity")
_LOOKS: Mapping[str, Mapping[str, Result]] = {
    "true": {"true": "right", "false": "wrong", "unclear": "partly", "unscored": "no answer"},
    "false": {"true": "wrong", "false": "right", "unclear": "partly", "unscored": "no answer"},
}
"""How verdicts look beside what people say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictBars(Plot):
    """Verdicts beside labels: a bar for each label, in parts by verdict."""

    table: Mapping[str, Mapping[str, int]]
    """Pairs by label and verdict."""
    kind: Literal["verdicts"] = "verdicts"

    @property
    def verdicts(self) -> list[str]:
        """Those that have a column."""
        rows = self.table.values()
        return [each for each in _LOOKS["true"] if each in {"true", "false"} or any(row[each] for row in rows)]

    def stack(self, truth: str) -> Iterator[tuple[str, str, str]]:
        """The bar of a label: the look of each part, where it begins, how wide it is."""
        most = max(sum(row.values()) for row in self.table.values()) or 1
        place = 0.0
        for verdict, count in self.table[truth].items():
            width = 100 * count / most
            yield _LOOKS[truth][verdict].replace(" ", "-"), f"{place:.2f}%", f"{width:.2f}%"
            place += width


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeView:
    """A judge of a report."""

    name: str
    plots: Sequence[Plot] | None
    """None without a card."""


def judge_views(notes: Sequence[Mapping[str, Any]]) -> list[JudgeView]:
    """What is known of the judges that gave scores.

    Args:
        notes: what scores say of their judges, as `JudgeNote.form` gives it.
    """
    return [JudgeView(name=str(note.get("judge", "?")), plots=_plots_of(note.get("card"))) for note in notes]


def _plots_of(card: Any) -> Sequence[Plot] | None:
    if card is None:
        return None
    return [*card_plots(card)] if _fits(card) else []


def _fits(card: Any) -> bool:
    try:
        json.dumps(card, allow_nan=False)
    except ValueError:
        return False
    return schema_violation(card, _SCHEMA) is None


def judges_table(notes: Sequence[Mapping[str, Any]]) -> Sortable:
    """The judges that gave scores, a row each."""
    rows: list[list[Field]] = []
    for note in notes:
        card: Mapping[str, Any] = note["card"] if isinstance(note.get("card"), dict) else {}
        numbers = [card.get(name) for name in ("pairs", "accuracy", "base rate", "cohen kappa")]
        cells = [(number, f"{number:,.3g}") if isinstance(number, (int, float)) else NONE for number in numbers]
        rows.append([str(note.get("judge", "?")), *cells])
    return Sortable(heads=("judge", "labelled pairs", "accuracy", "base rate", "Cohen's κ"), rows=rows)


def card_plots(card: Mapping[str, Any]) -> Iterator[Plot]:
    """The plots of a card.

    Args:
        card: as `JudgeCard.summary` gives it; what it lacks is not drawn.
    """
    dots = [dot for name in _SHARES if (dot := _dot(card, name)) is not None]
    if dots:
        yield Intervals(
            title="The judge beside people's labels",
            dots=dots,
            scale=SHARES,
            heads=("figure", "%", ""),
            note="Sensitivity is the share of what people call true that the judge does too, specificity that of what "
            "they call false; the base rate is what always giving the more frequent label would come to.",
        )
    if "table" in card:
        note = "Blue is where the judge says what people say, red where it does not."
        yield VerdictBars(title="Verdicts beside labels", table=card["table"], note=note)
    curve: Mapping[str, Any] = card.get("reliability", {"points": ()})
    points = [
        ReliabilityPoint(
            said=each["said"], count=each["pairs"], value=each["value"], interval=_interval(each.get("interval"))
        )
        for each in curve["points"]
    ]
    if points:
        who = "members of the panel" if curve["by"] == "members" else "draws"
        yield ReliabilityPlot(
            title=f"Reliability of {who}",
            points=points,
            heads=(f"{who} that say true", "pairs", "true by people, %"),
            note=f"→ share of {who} that say true, in %; ↑ share of those pairs that people call true, in %. Numbers "
            "are counts of pairs. On the dashed line as many pairs are true as votes say. Verdicts that are unclear do "
            "not say true.",
        )


def _dot(card: Mapping[str, Any], name: str) -> Dot | None:
    if card.get(name) is None:
        return None
    limits = card.get("intervals", {}).get(name)
    return Dot(name=name, value=float(card[name]), interval=None if name == "base rate" else _interval(limits))


def _interval(limits: Sequence[float] | None) -> Interval | None:
    return None if limits is None else Interval(low=limits[0], high=limits[1], method="cluster bootstrap")


# --- tables ---


def figures_table(card: JudgeCard) -> Table:
    """The figures of a card with their intervals."""
    level = next((100 * figure.interval.level for figure in card.figures if figure.interval), 95)
    rows = tuple(
        (each.name, *shown_estimate(each.value, each.interval, percent=each.share), each.pairs) for each in card.figures
    )
    return Table(columns=("figure", "value", f"{level:.0f} % interval", "pairs"), rows=rows)


def rates_table(rate: CorrectedRate) -> Table:
    """The rate of a run, corrected in several ways."""
    rows = tuple(
        (name, *shown_estimate(each.value, each.interval, percent=True), each.n) for name, each in rate.ways.items()
    )
    return Table(columns=("rate of the run", "value", "95 % interval", "answers"), rows=rows)


# --- the page of a card ---


def card_page(card: JudgeCard, *, rate: CorrectedRate | None = None, labels: Labels | None = None) -> str:
    """The page of a card; equal cards give equal pages.

    Args:
        card: of the judge.
        rate: of a run that it has scored, corrected; None is without one.
        labels: that the card is of, whose texts the page shows where judge and people disagree; None is without them.
    """
    return document(
        "card.html",
        title=card.judge,
        blocks=[block("index", {"runs": [], "kind": "card", "words": {}, "sorts": []})],
        labels=card.labels["name"],
        pairs=len(card.labelled),
        groups=len({case.group for case in card.labelled}),
        truths=sum(bool(case.truth) for case in card.labelled),
        notes=(*card.notes, *(() if rate is None else rate.notes)),
        plots=[*card_plots(card.summary())],
        disagreements=disagreements(card, labels),
        figures=sortable_of(figures_table(card), "All figures; shares in %"),
        rates=None if rate is None else sortable_of(rates_table(rate), "The rate of the run, corrected, in %"),
    )


def disagreements(card: JudgeCard, labels: Labels | None = None) -> Sortable | None:
    """The pairs on which the judge does not say what people say, in the order of the labels; None where there is none.

    Args:
        card: of the judge.
        labels: with the texts of the pairs; None, or labels of another card, shows ids alone.
    """
    same = labels is not None and labels.digest == card.labels["sha256"] and len(labels.rows) == len(card.pairs)
    rows: Sequence[Label | None] = labels.rows if labels is not None and same else [None] * len(card.pairs)
    wrong = [
        (place, pair) for place, pair in enumerate(card.pairs) if pair.truth is not None and pair.says != pair.truth
    ]
    if not wrong:
        return None
    shown = [_disagreement(place, pair, rows[place]) for place, pair in wrong[:MOST_DISAGREEMENTS]]
    more = f"; the first {MOST_DISAGREEMENTS:,} of them" if len(wrong) > MOST_DISAGREEMENTS else ""
    return Sortable(
        heads=("pair", "reference", "candidate", "people", "judge"),
        rows=shown,
        summary=f"The {len(wrong):,} pairs one by one{more}" if len(wrong) > UNFOLDED else "",
    )


def _disagreement(place: int, pair: JudgedPair, label: Label | None) -> list[Field]:
    question = f"{shortened(label.question, _LONGEST)} · " if label is not None and label.question else ""
    return [
        pair.id or str(place + 1),
        NONE if label is None else f"{question}{shortened(label.reference, _LONGEST)}",
        f"sha256 {pair.candidate[:12]}" if label is None else shortened(label.candidate, _LONGEST),
        _verdict_with_votes(
            str(pair.truth).lower(), [None if vote is None else str(vote).lower() for vote in pair.votes]
        ),
        _verdict_with_votes(
            pair.verdict or f"unscored: {shortened(pair.reason, _LONGEST)}", pair.members or pair.verdicts
        ),
    ]


def _verdict_with_votes(verdict: str, votes: Sequence[str | None]) -> str:
    """A verdict, and how many of several votes it has."""
    agreed = sum(vote == verdict for vote in votes)
    return f"{verdict} ({agreed:,} of {len(votes):,})" if len(votes) > 1 else verdict
