"""Which answers judges prefer, as tables for terminals and pages, and as a page with plots and every pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from askance.amounts import many, shortened
from askance.evals.analysis.compare import shown_p
from askance.evals.judges.rates import NEAR
from askance.evals.report.elements import SHARES, Bars, Dot, Field, Intervals, Plot, Sortable, sortable_of
from askance.evals.report.html import block, document
from askance.evals.tables import NONE, Cell, Table, shown_estimate, shown_value

if TYPE_CHECKING:
    from askance.agents import PreferenceValue
    from askance.evals.judges import (
        AnswerPair,
        AnswerPairs,
        CardFigure,
        PreferenceAgreement,
        PreferenceCard,
        PreferenceFigures,
        PreferredPair,
        RunPreferences,
    )
    from askance.statistics import Estimate

OUTCOMES: Mapping[str, str] = {"a": "won by A", "b": "won by B", "tie": "tied"}
"""Outcomes of pairs as they are shown; the others are shown as they are."""
UNFOLDED = 20
"""Longest list of pairs that is open; a longer one has to be unfolded."""
MOST_PAIRS = 3000
"""Most pairs that a page lists."""
MOST_CHARACTERS = 1000
"""Characters of an answer that a page shows at most."""
_MAJORITY = "majority"


# --- tables ---


def counts_of(preferences: RunPreferences) -> str:
    """How many pairs there are, and what became of them."""
    by = "the majority of the judges" if len(preferences.judges) > 1 else "the judge"
    outcomes = ", ".join(
        f"{count:,} {OUTCOMES.get(name, name)}" for name, count in preferences.outcomes.items() if count
    )
    return f"{many(len(preferences.pairs), 'pair')} in {many(preferences.groups, 'group')}; by {by}: {outcomes}."


def notes_of(preferences: RunPreferences) -> Iterator[str]:
    """What is known of the pairs, and what the columns of the tables mean."""
    if preferences.card is not None:
        yield "Agrees: the judge prefers the side that most people do; its ties do not agree."
        yield "Decided: the same without the ties of the judge."
        yield "Base rate: always the side that people prefer more often. Ac1: Gwet's, of the judge and people."
    yield from preferences.notes
    if len(preferences.judges) > 1:
        yield "Majority: the side that more than half of the judges prefer who give a preference; otherwise a tie."
    yield "A's share: of the pairs that one side wins."
    yield "Flips: the same place won in both orders, which makes a tie; of these, `first` are for the first place."
    if _lost(preferences):
        yield "Bounds of A's share: if B won every pair without a preference, and if A did."
    yield "Longer: how often the answer of more words wins."
    yield f"A's, as long: A's share where the shorter answer has at most {100 * NEAR:.0f} % fewer words."


def _lost(preferences: RunPreferences) -> bool:
    """Whether a pair lacks a preference or an answer."""
    return len(preferences.judged) < len(preferences.pairs) or any(None in pair.values for pair in preferences.judged)


def _figures(preferences: RunPreferences) -> Iterator[tuple[str, PreferenceFigures]]:
    """The figures of each judge, by its number, and those of several together."""
    yield from ((str(place), figures) for place, figures in enumerate(preferences.by_judge, start=1))
    if len(preferences.judges) > 1:
        yield _MAJORITY, preferences.majority


def wins_table(preferences: RunPreferences) -> Table:
    """How many pairs each side wins by each judge, and A's share."""
    lost = _lost(preferences)
    rows: list[tuple[Cell, ...]] = []
    for name, each in _figures(preferences):
        counts, bounds = each.counts, ()
        flips = (NONE, NONE) if name == _MAJORITY else (counts["flip"], each.first)
        if lost:
            bounds = (" to ".join(shown_value(limit, percent=True) for limit in each.bounds or ()),)
        sides = (counts["a"], counts["b"], counts["tie"])
        share = _estimate_cells(each.wins)[:2]
        rows.append((name, *sides, *flips, counts["unscored"], *share, shown_p(each.p), *bounds))
    heads = ("judge", "A", "B", "tie", "flips", "first", "unscored", "A's share", "95 % interval", "p")
    return Table(columns=(*heads, "bounds") if lost else heads, rows=tuple(rows))


def lengths_table(preferences: RunPreferences) -> Table:
    """How often the longer answer wins by each judge, and A's share among pairs of one length."""
    rows = tuple(
        (name, *_estimate_cells(each.longer), *_estimate_cells(each.level)) for name, each in _figures(preferences)
    )
    heads = ("judge", "longer", "95 % interval", "pairs", "A's, as long", "95 % interval", "pairs")
    return Table(columns=heads, rows=rows)


def agreement_table(who: str, agreement: PreferenceAgreement) -> Table:
    """How far raters agree.

    Args:
        who: the head of the first column, such as `judges agree`.
        agreement: their agreement.
    """
    rows = tuple(
        (name, *shown_estimate(each.value, each.interval, percent=each.measure == "pairwise agreement"), each.items)
        for name, each in agreement.rows.items()
    )
    return Table(columns=(who, "value", "95 % interval", "pairs"), rows=rows)


def people_table(card: PreferenceCard) -> Table:
    """Each judge beside people: what it agrees in, and whether that is more than a constant answer would come to."""
    names = [*map(str, range(1, len(card.preferences.judges) + 1)), _MAJORITY]
    rows = tuple(_people_row(name, figures) for name, figures in zip(names, card.figures, strict=False))
    heads = ("judge", "agrees", "95 % interval", "pairs", "decided", "base rate", "ac1", "unscored")
    return Table(columns=heads, rows=rows)


def _people_row(name: str, figures: Sequence[CardFigure]) -> tuple[Cell, ...]:
    by_name = {figure.name: figure for figure in figures}
    agrees = by_name["agrees"]
    others = (by_name[each] for each in ("agrees, decided", "base rate", "gwet ac1", "unscored"))
    shown = (shown_value(each.value, percent=each.share) for each in others)
    return name, *shown_estimate(agrees.value, agrees.interval, percent=True), agrees.pairs, *shown


def sides_table(card: PreferenceCard) -> Table:
    """The side that people prefer, and what the majority of the judges, or the only judge, says."""
    last = len(card.names) - 1
    who = _MAJORITY if last else "judge"
    rows = tuple((side.upper(), *row.values()) for side, row in card.table(last).items())
    return Table(columns=("people", f"{who}: A", f"{who}: B", f"{who}: tie", "unscored"), rows=rows)


def people_of(card: PreferenceCard) -> str:
    """What people prefer, in a sentence."""
    wins, file = card.people.wins, (card.preferences.votes or {}).get("name", "")
    won = f"A wins {shown_value(wins.value, percent=True)} % of {wins.n:,} (p {shown_p(card.people.p)})"
    return f"People ({file}), {many(len(card.pairs), 'pair')} by majority: {won}."


def _estimate_cells(each: Estimate) -> tuple[str, str, int]:
    return *shown_estimate(each.value, None if each.value is None else each.interval, percent=True), each.n


# --- the page ---


def preference_page(preferences: RunPreferences, pairs: AnswerPairs | None = None) -> str:
    """The page of preferences; equal preferences give equal pages.

    Args:
        preferences: the preferences.
        pairs: what was judged, whose texts the page shows; None is without them.
    """
    card = preferences.card
    return document(
        "preference.html",
        title=f"{preferences.names[0]} or {preferences.names[1]}",
        blocks=[block("index", {"runs": [], "kind": "card", "words": {}, "sorts": []})],  # to the script it is a card
        names=preferences.names,
        task=preferences.task,
        judges=preferences.judges,
        sentence=preferences.sentence,
        counts=counts_of(preferences),
        notes=[*notes_of(preferences)],
        plots=[*_plots(preferences)],
        tables=[sortable_of(each, caption) for caption, each in _tables(preferences)],
        people=None if card is None else people_of(card),
        compared=[] if card is None else [sortable_of(each, caption) for caption, each in _card_tables(card)],
        pairs=_listed(preferences, {} if pairs is None else {pair.id: pair for pair in pairs.pairs}),
    )


def _tables(preferences: RunPreferences) -> Iterator[tuple[str, Table]]:
    yield "What each judge prefers", wins_table(preferences)
    yield "Length", lengths_table(preferences)
    if preferences.agreement is not None:
        yield "How far the judges agree", agreement_table("measure", preferences.agreement)


def _card_tables(card: PreferenceCard) -> Iterator[tuple[str, Table]]:
    yield "Judges beside people", people_table(card)
    yield "The sides that people prefer", sides_table(card)
    if card.people_agree is not None:
        yield "How far people agree", agreement_table("measure", card.people_agree)


def _plots(preferences: RunPreferences) -> Iterator[Plot]:
    shares = [(f"judge {name}" if name != _MAJORITY else name, each) for name, each in _figures(preferences)]
    if preferences.card is not None:
        shares.append(("people", preferences.card.people))
    dots = [
        Dot(name=name, value=each.wins.value, interval=each.wins.interval, count=f"{each.wins.n:,}")
        for name, each in shares
        if each.wins.value is not None
    ]
    if dots:
        yield Intervals(
            title="A's share of the pairs that one side wins", dots=dots, scale=SHARES, heads=("", "%", "n")
        )
    counts = [(OUTCOMES.get(name, name), count) for name, count in preferences.outcomes.items() if count]
    yield Bars(title="What became of the pairs", counts=counts, heads=("outcome", "pairs"))


def _listed(preferences: RunPreferences, texts: Mapping[str, AnswerPair]) -> Sortable:
    """Every pair with what became of it."""
    shown = preferences.pairs[:MOST_PAIRS]
    more = f"; the first {MOST_PAIRS:,} of them" if len(preferences.pairs) > MOST_PAIRS else ""
    return Sortable(
        heads=("pair", "A", "B", "outcome", "judges", *(("people",) if preferences.card is not None else ())),
        rows=[_pair_row(preferences, pair, texts.get(pair.id)) for pair in shown],
        summary=f"The {many(len(preferences.pairs), 'pair')} one by one{more}"
        if len(preferences.pairs) > UNFOLDED
        else "",
    )


def _pair_row(preferences: RunPreferences, pair: PreferredPair, answer_pair: AnswerPair | None) -> list[Field]:
    verdicts = [
        f"{place}: {_verdict_word(each.value, flipped=each.flipped)}"
        for place, each in enumerate(pair.preferences, start=1)
    ]
    words = (None if each is None else f"{each.words:,} words" for each in (pair.a, pair.b))
    a, b = (answer_pair.a, answer_pair.b) if answer_pair is not None else words
    votes = [", ".join("–" if vote is None else _verdict_word(vote) for vote in pair.votes) or NONE]
    outcome = OUTCOMES.get(pair.outcome, pair.outcome)
    return [
        pair.id,
        _answer_cell(a),
        _answer_cell(b),
        outcome,
        " · ".join(verdicts) or NONE,
        *(votes if preferences.card is not None else []),
    ]


def _verdict_word(value: PreferenceValue | None, *, flipped: bool = False) -> str:
    if flipped:
        return "flip"
    return {"a": "A", "b": "B", "tie": "tie", None: "unscored"}[value]


def _answer_cell(text: str | None) -> str:
    return "no answer" if text is None else shortened(text, MOST_CHARACTERS)
