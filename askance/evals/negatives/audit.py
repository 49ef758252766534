"""The audit of hard negatives: column by column what may be wrong with each, and what becomes of it by the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from math import hypot
from operator import mul
from typing import TYPE_CHECKING, Protocol

from askance.agents.negatives import normal
from askance.chains.stream import in_order
from askance.errors import UsageError
from askance.evals.negatives.audited import Audit, Audited
from askance.evals.negatives.blind import ORDERS, Blind, ask_blind
from askance.evals.negatives.giveaways import give_aways
from askance.evals.negatives.rules import Rule, Rules
from askance.evals.negatives.wording import change, nearest, sameness

if TYPE_CHECKING:
    from askance.agents.judging import Judge, Verdict
    from askance.evals.negatives.files import OptionSet
    from askance.models import Engine, ModelLike

QUESTION = "What should I do according to the image, and why?"
"""What true statements and negatives answer, as the judge is told."""
EMBEDDED = 256
"""Texts that are embedded at a time."""


class Embeds(Protocol):
    """Turns texts into vectors, one each."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """The vectors, in the order of the texts."""
        ...


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Whom an audit asks beside the texts themselves; what is None leaves its column out."""

    judge: Judge | None = None
    question: str = QUESTION
    embedder: Embeds | None = None
    blind: ModelLike | None = None
    orders: int = ORDERS
    engine: Engine | None = None
    """For `blind`, and for how many verdicts are asked for at once."""
    wording: bool = True
    """Whether classifiers of wording are trained, which needs scikit-learn."""


async def aaudit(
    sets: Sequence[OptionSet], asked: Asked | None = None, *, rules: Rules | None = None, seed: int = 0
) -> Audit:
    """Audits every negative of `sets`.

    Args:
        sets: options by image, as `read_negatives` gives them.
        asked: judge, embedder and blind model; by default none, and texts alone are looked at.
        rules: what becomes of what is found; by default `DEFAULTS`.
        seed: of orders, folds and bootstraps.

    Raises:
        UsageError: there is no negative.
        MissingExtra: wording is to be looked at, and scikit-learn is not installed.
        CallError: a model cannot be asked at all.
    """
    asked, rules = asked or Asked(), rules or Rules()
    full = [each for each in sets if each.negatives]
    if not full:
        raise UsageError(
            "There is no negative to audit.", hint="Options that are not among the true ones are negatives."
        )
    rows = [row for each in full for row in _looked_at(each, rules)]
    found = give_aways(full, seed=seed, train=asked.wording)
    verdicts: Mapping[int, tuple[Verdict, ...]] = (
        {} if asked.judge is None else await _judged(rows, full, asked, judge=asked.judge)
    )
    cosines: Mapping[int, float] = {} if asked.embedder is None else await _similarities(rows, asked.embedder)
    blind = None
    if asked.blind is not None:
        blind = await ask_blind(full, asked.blind, orders=asked.orders, seed=seed, engine=asked.engine)
    telling = found.probability
    whole = [
        _with_columns(
            row,
            verdicts=verdicts.get(place, ()),
            similarity=cosines.get(place),
            blind=blind,
            telling=telling.get((row.negative.key, row.negative.text)),
        )
        for place, row in enumerate(rows)
    ]
    return Audit(
        rows=tuple(_ruled(row, rules, gives_away=found.found) for row in whole),
        rules=rules,
        give_aways=found,
        blind=blind,
        judge=None if asked.judge is None else _name(asked.judge),
        embedder=None if asked.embedder is None else _name(asked.embedder),
    )


def _name(seam: object) -> str:
    model: object = getattr(seam, "model", seam)
    return str(getattr(model, "id", None) or type(seam).__name__)


def _looked_at(each: OptionSet, rules: Rules) -> list[Audited]:
    """The columns that are always there: what the texts themselves say."""
    limits = rules.thresholds
    rows: list[Audited] = []
    seen: set[str] = set()
    for negative in each.negatives:
        place, alike = nearest(negative.text, each.true)
        same = {sameness(true, negative.text, near=limits.spelling) for true in each.true}
        rows.append(
            Audited(
                negative=negative,
                same=next(value for value in ("exact", "near", "none") if value in same),
                nearest=each.true[place],
                alike=alike,
                repeats=normal(negative.text) in seen,
                change=change(negative.source, negative.text, negative.kind, limits=limits),
            )
        )
        seen.add(normal(negative.text))
    return rows


async def _judged(
    rows: Sequence[Audited], sets: Sequence[OptionSet], asked: Asked, *, judge: Judge
) -> Mapping[int, tuple[Verdict, ...]]:
    """The verdicts on each row; one that has the words of a true statement needs none."""
    true = {each.key: each.true for each in sets}
    pairs = [
        (place, reference)
        for place, row in enumerate(rows)
        if row.same != "exact"
        for reference in true[row.negative.key]
    ]

    async def ask(pair: tuple[int, str]) -> tuple[int, Verdict]:
        place, reference = pair
        return place, await judge.judge(reference, rows[place].negative.text, question=asked.question)

    verdicts: dict[int, tuple[Verdict, ...]] = {}
    async with aclosing(in_order(ask, pairs, room=_room(asked.engine))) as found:
        async for place, verdict in found:
            verdicts[place] = (*verdicts.get(place, ()), verdict)
    return verdicts


def _room(engine: Engine | None) -> Callable[[], int]:
    return lambda: 16 if engine is None else engine.places


async def _similarities(rows: Sequence[Audited], embedder: Embeds) -> Mapping[int, float]:
    """The cosine of each row with the statement that it was made from."""
    texts = [*dict.fromkeys(text for row in rows for text in (row.negative.source, row.negative.text))]
    vectors: dict[str, Sequence[float]] = {}
    for start in range(0, len(texts), EMBEDDED):
        some = texts[start : start + EMBEDDED]
        vectors.update(zip(some, await embedder.embed(some), strict=True))
    return {place: _cosine(vectors[row.negative.source], vectors[row.negative.text]) for place, row in enumerate(rows)}


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    size = hypot(*one) * hypot(*other)
    return sum(map(mul, one, other)) / size if size else 0.0


def _with_columns(
    row: Audited,
    *,
    verdicts: tuple[Verdict, ...],
    similarity: float | None,
    blind: Blind | None,
    telling: float | None,
) -> Audited:
    image = None if blind is None else blind.images[row.negative.key]
    return replace(
        row,
        verdicts=verdicts,
        similarity=similarity,
        chosen=None if image is None else image.chosen.get(row.negative.text),
        solved=None if image is None else image.solved,
        telling=telling,
    )


def _ruled(row: Audited, rules: Rules, *, gives_away: bool) -> Audited:
    """The row with the rules that it breaks and what becomes of it."""
    limits = rules.thresholds
    cosine = row.similarity if row.negative.kind != "random" else None
    breaks: Mapping[Rule, bool] = {
        "duplicate": row.same == "exact",
        "near duplicate": row.same == "near",
        "repeated": row.repeats,
        "equivalent": row.equivalent == "true",
        "unclear": row.equivalent == "unclear",
        "unscored": row.equivalent == "unscored",
        "part": row.change.only is False,
        "similarity": cosine is not None and not limits.least_similar <= cosine <= limits.most_similar,
        "solvable": row.solved is True,
        "telling": gives_away and row.telling is not None and row.telling >= limits.telling,
    }
    broken: tuple[Rule, ...] = tuple(rule for rule, is_broken in breaks.items() if is_broken)
    return replace(row, broken=broken, decision=rules.decision(broken))
