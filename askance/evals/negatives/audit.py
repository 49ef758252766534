"""The audit of hard negatives: what may be wrong with each, and whether the rules keep, flag or drop it.

`audit_text` shows an audit to people, `Audit.form` gives it as JSON, and `apply` writes the file without what it drops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from askance.agents.judge import EquivalenceJudge
from askance.agents.negative_writer import normal
from askance.errors import UsageError
from askance.evals.job import Job, OnProgress
from askance.evals.negatives.annotation_artifacts import (
    CHANCE,
    ORDERS,
    ask_blind,
    blind_choosers,
    blind_job,
    find_artifacts,
)
from askance.evals.negatives.edits import Sameness, StatementChange, change, nearest, sameness
from askance.evals.negatives.option_sets import HardNegative, OptionSet, own_sidecar, write_options
from askance.evals.negatives.rules import RULES, Decision, Rule, Rules
from askance.evals.run_folder import write_lines
from askance.models import cosine, get_model

if TYPE_CHECKING:
    from askance.agents.verdict import Judge, Verdict
    from askance.chat import JsonObject
    from askance.evals.negatives.annotation_artifacts import AnnotationArtifacts, BlindAnswers
    from askance.models import Embedder, Engine, ModelLike
    from askance.statistics import Interval

QUESTION = "What should I do according to the image, and why?"
"""The question that true statements and negatives answer, as the judge is told."""
EMBEDDED = 256
"""Texts that are embedded at a time."""

Equivalence: TypeAlias = Literal["true", "false", "unclear", "unscored"]


# --- what an audit finds ---


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One negative, and what the audit found about it."""

    negative: HardNegative
    same: Sameness
    """Whether its words are those of a true statement of its image."""
    nearest: str
    """The true statement that is nearest in wording."""
    alike: float
    """How similar the two are in letters, from 0 to 1."""
    repeats: bool
    """Whether an earlier negative of the image has the same words, but for case and punctuation."""
    change: StatementChange
    verdicts: tuple[Verdict, ...] = ()
    """Of the judge, one for each true statement of the image; empty without a judge."""
    similarity: float | None = None
    """Cosine with the statement that it was made from; None without an embedder."""
    chosen: float | None = None
    """How often a blind model chose it, as a share of its answers; None without a blind model."""
    solved: bool | None = None
    """Whether a blind model chose its image's true options, and no others, in every order."""
    telling: float | None = None
    """Probability of being a negative by wording alone."""
    broken: tuple[Rule, ...] = ()
    decision: Decision = "keep"

    @property
    def equivalent(self) -> Equivalence | None:
        """Whether it means the same as any true statement; None without a judge."""
        if not self.verdicts:
            return None
        verdicts = {str(verdict) for verdict in self.verdicts}
        order: tuple[Equivalence, ...] = ("true", "unclear", "unscored", "false")
        return next(value for value in order if value in verdicts)

    def form(self) -> JsonObject:
        """The negative and its columns as JSON."""
        return {
            **self.negative.form(),
            "decision": self.decision,
            "broken": list(self.broken),
            "same": self.same,
            "nearest": self.nearest,
            "alike": round(self.alike, 4),
            "repeats": self.repeats,
            "edits": [{"replaced": edit.replaced, "replacement": edit.replacement} for edit in self.change.edits],
            "parts": list(self.change.parts),
            "changed_part_only": self.change.only,
            "equivalent": self.equivalent,
            "verdicts": [
                {"verdict": str(each), "outcome": each.outcome, "reason": each.reason, "calls": list(each.calls)}
                for each in self.verdicts
            ],
            "similarity": self.similarity,
            "blind_chosen": self.chosen,
            "blind_solved": self.solved,
            "telling": self.telling,
        }


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What an audit found."""

    rows: tuple[AuditRow, ...]
    rules: Rules
    artifacts: AnnotationArtifacts
    blind: BlindAnswers | None = None
    judge: str | None = None
    """Name of the judge, if there was one."""
    embedder: str | None = None
    decisions: Counter[Decision] = field(init=False)
    broken: Counter[Rule] = field(init=False)
    """How many negatives break each rule; one may break several."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "decisions", Counter(row.decision for row in self.rows))
        object.__setattr__(self, "broken", Counter(rule for row in self.rows for rule in row.broken))

    def dropped(self) -> Mapping[str, frozenset[str]]:
        """Texts to be taken out, by image."""
        texts: dict[str, set[str]] = {}
        for row in self.rows:
            if row.decision == "drop":
                texts.setdefault(row.negative.key, set()).add(row.negative.text)
        return {key: frozenset(dropped_texts) for key, dropped_texts in texts.items()}

    def form(self) -> JsonObject:
        """The audit as JSON: every negative with its columns, the figures over all, and the rules of the audit."""
        return {
            "decisions": dict(sorted(self.decisions.items())),
            "broken": dict(sorted(self.broken.items())),
            "rules": self.rules.form(),
            "judge": self.judge,
            "embedder": self.embedder,
            "blind": None if self.blind is None else self.blind.form(),
            "give_aways": self.artifacts.form(),
            "negatives": [row.form() for row in self.rows],
        }


# --- the audit ---


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """What an audit looks at beside the texts; the column of a model that is not given is left out."""

    judge: Judge | None = None
    question: str = QUESTION
    embedder: Embedder | None = None
    blind: ModelLike | None = None
    orders: int = ORDERS
    engine: Engine | None = None
    """For `blind`, and for how many verdicts are asked for at once."""
    wording: bool = True
    """Whether classifiers of wording are trained, which needs scikit-learn."""


async def aaudit(
    sets: Sequence[OptionSet],
    options: AuditOptions | None = None,
    *,
    rules: Rules | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Audit:
    """Audits every negative of `sets`.

    Args:
        sets: options by image, as `read_negatives` gives them.
        options: judge, embedder and blind model; by default none, and only texts are looked at.
        rules: which findings drop or flag a negative; by default `DEFAULTS`.
        seed: of orders, folds and bootstraps.
        on_progress: called after every verdict, and after every blind answer.

    Raises:
        UsageError: there is no negative.
        MissingExtra: classifiers of wording are to be trained, and scikit-learn is not installed.
        CallError: a model cannot be asked at all.
    """
    options, rules = options or AuditOptions(), rules or Rules()
    full = _with_negatives(sets)
    rows = [row for each in full for row in _text_columns(each, rules)]
    wording = find_artifacts(full, seed=seed, train=options.wording)
    verdicts: dict[int, tuple[Verdict, ...]] = {}
    if options.judge is not None:
        if isinstance(options.judge, EquivalenceJudge):
            await options.judge.model.output_mode()
        judging = _judging(rows, full, options, judge=options.judge)
        judging.tell(on_progress, "verdicts")
        for place, verdict in await judging.run():
            verdicts[place] = (*verdicts.get(place, ()), verdict)
    cosines: Mapping[int, float] = {} if options.embedder is None else await _similarities(rows, options.embedder)
    blind = None
    if options.blind is not None:
        blind = await ask_blind(
            full,
            options.blind,
            orders=options.orders,
            seed=seed,
            engine=options.engine,
            on_progress=on_progress,
        )
    whole = [
        replace(row, verdicts=verdicts.get(place, ()), similarity=cosines.get(place)) for place, row in enumerate(rows)
    ]
    return Audit(
        rows=tuple(_decided(row, rules, artifacts=wording, blind=blind) for row in whole),
        rules=rules,
        artifacts=wording,
        blind=blind,
        judge=None if options.judge is None else _name(options.judge),
        embedder=None if options.embedder is None else _name(options.embedder),
    )


def audit_jobs(
    sets: Sequence[OptionSet], options: AuditOptions, *, rules: Rules | None = None, seed: int = 0
) -> tuple[Job[Any, Any, Any], ...]:
    """What the judge and the blind model of an audit are asked, as jobs to be planned; vectors are no calls.

    Args:
        sets: options by image.
        options: judge and blind model.
        rules: their thresholds decide which negatives need no judge.
        seed: of orders.

    Raises:
        UsageError: there is no negative, or the calls of the judge cannot be counted.
    """
    full, judge, jobs = _with_negatives(sets), options.judge, list[Job[Any, Any, Any]]()
    if judge is not None:
        if not isinstance(judge, EquivalenceJudge):
            raise UsageError(
                f"The calls of the judge {judge} cannot be counted: it is no model.", hint="Plan with a model."
            )
        rows = [row for each in full for row in _text_columns(each, rules or Rules())]
        jobs.append(replace(_judging(rows, full, options, judge=judge), roles=[("judge", judge)]))
    if options.blind is not None:
        choosers = blind_choosers(full, get_model(options.blind, engine=options.engine))
        jobs.append(blind_job(full, choosers, orders=options.orders, seed=seed))
    return tuple(replace(job, units=len(full)) for job in jobs)


def _with_negatives(sets: Sequence[OptionSet]) -> list[OptionSet]:
    full = [each for each in sets if each.negatives]
    if not full:
        raise UsageError(
            "There is no negative to audit.", hint="Options that are not among the true ones are negatives."
        )
    return full


def _name(seam: object) -> str:
    model: object = getattr(seam, "model", seam)
    return str(getattr(model, "id", None) or type(seam).__name__)


def _text_columns(each: OptionSet, rules: Rules) -> list[AuditRow]:
    """The columns that need only the texts."""
    limits = rules.thresholds
    rows: list[AuditRow] = []
    seen: set[str] = set()
    for negative in each.negatives:
        place, alike = nearest(negative.text, each.true)
        same = {sameness(true, negative.text, near=limits.spelling) for true in each.true}
        rows.append(
            AuditRow(
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


def _judging(
    rows: Sequence[AuditRow], sets: Sequence[OptionSet], options: AuditOptions, *, judge: Judge
) -> Job[tuple[int, str], tuple[int, Verdict], tuple[int, Verdict]]:
    """Asks for the verdicts on each row, by its place; a row that has the words of a true statement needs none."""
    true = {each.key: each.true for each in sets}
    pairs = [
        (place, reference)
        for place, row in enumerate(rows)
        if row.same != "exact"
        for reference in true[row.negative.key]
    ]

    async def ask(pair: tuple[int, str]) -> tuple[int, Verdict]:
        place, reference = pair
        return place, await judge.judge(reference, rows[place].negative.text, question=options.question)

    engine = options.engine
    return Job(items=pairs, answer=ask, room=lambda: 16 if engine is None else engine.places)


async def _similarities(rows: Sequence[AuditRow], embedder: Embedder) -> Mapping[int, float]:
    """The cosine of each row with the statement that it was made from."""
    texts = [*dict.fromkeys(text for row in rows for text in (row.negative.source, row.negative.text))]
    vectors: dict[str, Sequence[float]] = {}
    for start in range(0, len(texts), EMBEDDED):
        some = texts[start : start + EMBEDDED]
        vectors.update(zip(some, await embedder.embed(some), strict=True))
    return {place: cosine(vectors[row.negative.source], vectors[row.negative.text]) for place, row in enumerate(rows)}


def _decided(row: AuditRow, rules: Rules, *, artifacts: AnnotationArtifacts, blind: BlindAnswers | None) -> AuditRow:
    """The row with the results for its wording and its image, the rules that it breaks, and the decision."""
    negative, image = row.negative, None if blind is None else blind.images[row.negative.key]
    row = replace(
        row,
        chosen=None if image is None else image.chosen.get(negative.text),
        solved=None if image is None else image.solved,
        telling=artifacts.probability.get((negative.key, negative.text)),
    )
    limits = rules.thresholds
    cosine = row.similarity if negative.kind != "random" else None
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
        "telling": artifacts.found and row.telling is not None and row.telling >= limits.telling,
    }
    broken: tuple[Rule, ...] = tuple(rule for rule, is_broken in breaks.items() if is_broken)
    return replace(row, broken=broken, decision=rules.decision(broken))


# --- the audit as text, and the file without what it drops ---

_FEATURES = {"words": "words", "form": "length, capitals, marks", "all": "both"}


def audit_text(audit: Audit) -> str:
    """The audit for people: negatives by kind, the rules that they break, and the artifacts of all of them."""
    return "\n".join([*_kinds_text(audit), "", *_broken_text(audit), "", *_figures_text(audit)])


def _kinds_text(audit: Audit) -> list[str]:
    names = list(dict.fromkeys(row.negative.kind or "unknown" for row in audit.rows))
    lines = [f"{'kind':<12}{'negatives':>10}{'keep':>8}{'flag':>8}{'drop':>8}"]
    for name in (*names, "all") if len(names) > 1 else names:
        some = [row for row in audit.rows if name in {"all", row.negative.kind or "unknown"}]
        counts = Counter(row.decision for row in some)
        columns = "".join(f"{counts[decision]:>8,}" for decision in ("keep", "flag", "drop"))
        lines.append(f"{name:<12}{len(some):>10,}{columns}")
    return lines


def _broken_text(audit: Audit) -> list[str]:
    if not audit.broken:
        return ["No rule is broken."]
    lines = [f"{'rule':<16}{'broken by':>10}  {'then':<6}what it says of a negative"]
    lines += [
        f"{rule:<16}{audit.broken[rule]:>10,}  {audit.rules.actions[rule]:<6}{description}"
        for rule, description in RULES.items()
        if audit.broken[rule]
    ]
    return lines


def _figures_text(audit: Audit) -> list[str]:
    artifacts = audit.artifacts
    lengths = artifacts.lengths
    length = (
        f"Length: {lengths.true:.1f} words in true statements, {lengths.wrong:.1f} in negatives "
        f"({_signed(lengths.difference.value)} within an image{_between(lengths.difference.interval, percent=False)}); "
        f"the longest option is true {_percent(lengths.longest_true.value)} of the time"
        f"{_between(lengths.longest_true.interval)}, chance {_percent(lengths.chance)}."
    )
    lines = [length]
    lines += [
        f"Known by {_FEATURES[each.features]}{f', {each.kind} alone' if each.kind else ''}: {_percent(each.accuracy)}"
        f"{_between(each.interval)}, chance {_percent(CHANCE)}{': above it' if each.above_chance else ''}."
        for each in artifacts.accuracies
    ]
    if artifacts.reason is not None:
        lines.append(f"No classifier of wording was trained: {artifacts.reason}.")
    if artifacts.found:
        lines.append(f"Words that tell a negative: {', '.join(artifacts.wrong_words)}.")
    blind = audit.blind
    if blind is not None:
        solved = sum(image.solved for image in blind.images.values())
        lines.append(
            f"Without the image {blind.model} chooses true options {_percent(blind.precision.value)} of the time"
            f"{_between(blind.precision.interval)}, chance {_percent(blind.chance)}"
            f"{': above it' if blind.above_chance else ''}; {solved:,} of {len(blind.images):,} images are solved in "
            f"all {blind.orders} orders; {blind.unanswered:,} of {blind.calls:,} calls have no answer."
        )
    return lines


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}%"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f}"


def _between(interval: Interval | None, *, percent: bool = True) -> str:
    if interval is None:
        return ""
    if percent:
        return f" [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    return f" [{interval.low:+.1f}, {interval.high:+.1f}]"


def apply(sets: Sequence[OptionSet], audit: Audit, out: Path) -> Mapping[str, int]:
    """Writes the options without the dropped negatives, in their order, and a sidecar of the others.

    An image is left out if it keeps no negative.

    Returns:
        How many negatives stay (`kept`) or do not (`dropped`), and how many images (`images`, `gone`).
    """
    dropped = audit.dropped()
    left = [(each, [text for text in each.options if text not in dropped.get(each.key, ())]) for each in sets]
    whole = [(each, options) for each, options in left if any(text not in each.true for text in options)]
    written = write_options(out, ((each.key, _true_among(each, options), options) for each, options in whole))
    remaining = [row.negative.form() for row in audit.rows if row.decision != "drop"]
    write_lines(own_sidecar(out), remaining)
    return {
        "kept": len(remaining),
        "dropped": audit.decisions["drop"],
        "images": written,
        "gone": len(sets) - written,
    }


def _true_among(each: OptionSet, options: Iterable[str]) -> list[str]:
    """The true statements that are among the options."""
    texts = {*options}
    return [text for text in each.true if text in texts]
