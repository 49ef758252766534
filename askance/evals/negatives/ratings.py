"""What raters made of a sheet: the share of true negatives, and how far the raters agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance import statistics
from askance.amounts import many
from askance.errors import BadData
from askance.evals.suite.files import read_table

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.negatives.sheet import Item, Sheet
    from askance.statistics import Agreement, Estimate

Answer: TypeAlias = Literal["right", "wrong", "unsure"]

_WORDS: Mapping[str, Answer] = {
    **dict.fromkeys(("right", "true", "yes", "correct", "positive", "1", "r"), "right"),
    **dict.fromkeys(("wrong", "false", "no", "incorrect", "negative", "0", "w"), "wrong"),
    **dict.fromkeys(("unsure", "cannot tell", "?", "unclear", "u"), "unsure"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rater:
    """One filled sheet."""

    name: str
    answers: Mapping[str, Answer]
    """By item; those without an answer are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterFigures:
    """What one rater made of the negatives."""

    name: str
    answered: int
    """Items, true statements too."""
    true_negatives: Estimate
    """Of the negatives with an answer, the share called wrong."""
    true_right: Estimate
    """Of the true statements with an answer, the share called right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What all raters made of a sheet, by the majority of those who called an item right or wrong."""

    items: int
    negatives: int
    unanswered: int
    """Negatives that nobody answered; in none of the figures."""
    undecided: int
    """Negatives without a majority: neither called wrong nor right, and so no true negatives."""
    true_negatives: Estimate
    """Of the answered negatives, the share that the majority calls wrong."""
    if_decided: float | None
    """What that would be if the undecided were all called wrong."""
    true_right: Estimate
    """Of the answered true statements, the share that the majority calls right."""
    by_kind: Mapping[str, Estimate]
    raters: tuple[RaterFigures, ...]
    agreement: tuple[Agreement, ...]
    """Over all items; empty with one rater."""
    called_right: tuple[Item, ...]
    """Negatives that the majority calls right."""

    def form(self) -> JsonObject:
        """The figures as JSON."""
        return asdict(self)


def read_ratings(paths: Sequence[Path], sheet: Sheet) -> tuple[Rater, ...]:
    """The answers in filled CSV files, one rater each.

    Args:
        paths: the files; a rater is called by the name of the file.
        sheet: what they are answers to.

    Raises:
        BadData: an item or an answer that the sheet does not have, an item twice, another sheet's answers, or none.
    """
    return tuple(_rater(path, sheet, name=_name(path, paths)) for path in paths)


def _name(path: Path, paths: Sequence[Path]) -> str:
    same = [each for each in paths if each.stem == path.stem]
    return path.stem if len(same) == 1 else str(path)


def _rater(path: Path, sheet: Sheet, *, name: str) -> Rater:
    known = {item.id for item in sheet.items}
    answers: dict[str, Answer] = {}
    seen: set[str] = set()
    for line, row in read_table(path, {"sheet": ("sheet",), "item": ("item",), "answer": ("answer",)}):
        where = f"The file {str(path)!r}, line {line}"
        item, answer = row["item"].strip(), row["answer"].strip().lower()
        if row["sheet"].strip() != sheet.id:
            raise BadData(
                f"{where}: this is of the sheet {row['sheet']!r}, not of {sheet.id!r}.", hint="Give its own key."
            )
        if item not in known or item in seen:
            what = "stands there twice" if item in seen else "is not on the sheet"
            raise BadData(f"{where}: the item {item!r} {what}.", hint="Each item of the sheet stands there once.")
        if answer and answer not in _WORDS:
            raise BadData(
                f"{where}: {row['answer']!r} is no answer.", hint="Answers: right, wrong, unsure, or nothing."
            )
        seen.add(item)
        if answer:
            answers[item] = _WORDS[answer]
    if not answers:
        raise BadData(
            f"The file {str(path)!r} has no answers.", hint="The column `answer` holds right, wrong or unsure."
        )
    return Rater(name=name, answers=answers)


def validate(sheet: Sheet, raters: Sequence[Rater], *, seed: int = 0) -> Validation:
    """What the answers come to; intervals by drawing whole images.

    Args:
        sheet: what was asked.
        raters: at least one.
        seed: of the bootstraps.
    """
    verdicts: dict[str, Answer | None] = {
        item.id: _majority([rater.answers.get(item.id) for rater in raters]) for item in sheet.items
    }
    answered = [item for item in sheet.items if any(item.id in rater.answers for rater in raters)]
    negatives = [item for item in answered if not item.true]
    undecided = sum(verdicts[item.id] is None for item in negatives)
    called_wrong = sum(verdicts[item.id] == "wrong" for item in negatives)
    total = sum(not item.true for item in sheet.items)
    kinds = dict.fromkeys(item.kind for item in negatives if item.kind is not None)
    return Validation(
        items=len(sheet.items),
        negatives=total,
        unanswered=total - len(negatives),
        undecided=undecided,
        true_negatives=_share(negatives, verdicts, "wrong", seed=seed),
        if_decided=(called_wrong + undecided) / len(negatives) if negatives else None,
        true_right=_share([item for item in answered if item.true], verdicts, "right", seed=seed),
        by_kind={
            kind: _share([item for item in negatives if item.kind == kind], verdicts, "wrong", seed=seed)
            for kind in kinds
        },
        raters=tuple(_figures(sheet, rater, seed=seed) for rater in raters),
        agreement=_agreement(sheet, raters, seed=seed) if len(raters) > 1 else (),
        called_right=tuple(item for item in negatives if verdicts[item.id] == "right"),
    )


def _majority(answers: Sequence[Answer | None]) -> Answer | None:
    """What more of those who decided say; None for a tie, and where nobody decided."""
    counts = Counter(answer for answer in answers if answer in {"right", "wrong"})
    if counts["right"] == counts["wrong"]:
        return None
    return "right" if counts["right"] > counts["wrong"] else "wrong"


def _share(items: Sequence[Item], verdicts: Mapping[str, Answer | None], wanted: Answer, *, seed: int) -> Estimate:
    values = [float(verdicts[item.id] == wanted) for item in items]
    return statistics.mean_estimate(values, [item.key for item in items], seed=seed, binary=True)


def _figures(sheet: Sheet, rater: Rater, *, seed: int) -> RaterFigures:
    answered = [item for item in sheet.items if item.id in rater.answers]
    return RaterFigures(
        name=rater.name,
        answered=len(answered),
        true_negatives=_share([item for item in answered if not item.true], rater.answers, "wrong", seed=seed),
        true_right=_share([item for item in answered if item.true], rater.answers, "right", seed=seed),
    )


def _agreement(sheet: Sheet, raters: Sequence[Rater], *, seed: int) -> tuple[Agreement, ...]:
    votes = [[rater.answers.get(item.id) for rater in raters] for item in sheet.items]
    how = statistics.Resampling(seed=seed, clusters=[item.key for item in sheet.items])
    found = [
        statistics.pairwise_agreement(votes, resampling=how),
        statistics.krippendorff_alpha(votes, resampling=how),
    ]
    if len(raters) == 2:
        found.append(statistics.cohen_kappa([row[0] for row in votes], [row[1] for row in votes], resampling=how))
    return tuple(found)


def validation_text(validation: Validation) -> str:
    """The figures for people."""
    called = f"{len(validation.called_right):,} called right, {validation.undecided:,} undecided"
    unanswered = f"{validation.unanswered:,} of {validation.negatives:,} unanswered"
    lines = [
        f"True negatives: {_said(validation.true_negatives)} by majority; {called}, {unanswered}.",
        f"True statements called right: {_said(validation.true_right)}.",
    ]
    lines += [f"  {kind}: {_said(share)}" for kind, share in validation.by_kind.items()]
    lines += [
        f"Rater {rater.name}: {rater.answered:,} of {validation.items:,} items; negatives called wrong "
        f"{_said(rater.true_negatives)}, true statements called right {_said(rater.true_right)}."
        for rater in validation.raters
    ]
    lines += [
        f"Agreement, {each.measure}: {_number(each)} over {many(each.items, 'item')}." for each in validation.agreement
    ]
    lines += [f"Called right: {item.key} [{item.kind or 'unknown'}] {item.text!r}" for item in validation.called_right]
    return "\n".join(lines)


def _said(share: Estimate) -> str:
    if share.value is None:
        return "none"
    interval = "" if share.interval is None else f" [{100 * share.interval.low:.2f}, {100 * share.interval.high:.2f}]"
    return f"{100 * share.value:.2f}%{interval} of {share.n:,}"


def _number(agreement: Agreement) -> str:
    if agreement.value is None:
        return "not defined"
    interval = agreement.interval
    return f"{agreement.value:.3f}" + (f" [{interval.low:.3f}, {interval.high:.3f}]" if interval else "")
