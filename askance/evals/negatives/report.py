"""What an audit found, as a table for people, as JSON, and as a file without what was dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from askance.evals.negatives.files import write_lines, write_options
from askance.evals.negatives.giveaways import CHANCE
from askance.evals.negatives.rules import RULES
from askance.evals.negatives.sidecar import own_sidecar

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.negatives.audited import Audit, Audited
    from askance.evals.negatives.blind import Blind
    from askance.evals.negatives.files import OptionSet
    from askance.evals.negatives.giveaways import GiveAways
    from askance.statistics import Interval

_LOOKS = {"words": "words", "form": "length, capitals, marks", "all": "both"}


def audit_form(audit: Audit) -> JsonObject:
    """The audit as JSON: every negative with its columns, the figures over all, and the rules it went by."""
    return {
        "decisions": dict(sorted(audit.decisions.items())),
        "broken": dict(sorted(audit.broken.items())),
        "rules": audit.rules.form(),
        "judge": audit.judge,
        "embedder": audit.embedder,
        "blind": _blind_form(audit.blind),
        "give_aways": _give_aways_form(audit.give_aways),
        "negatives": [row_form(row) for row in audit.rows],
    }


def row_form(row: Audited) -> JsonObject:
    """One negative and its columns as JSON."""
    return {
        **row.negative.form(),
        "decision": row.decision,
        "broken": list(row.broken),
        "same": row.same,
        "nearest": row.nearest,
        "alike": round(row.alike, 4),
        "repeats": row.repeats,
        "edits": [{"replaced": edit.replaced, "replacement": edit.replacement} for edit in row.change.edits],
        "parts": list(row.change.parts),
        "changed_part_only": row.change.only,
        "equivalent": row.equivalent,
        "verdicts": [
            {"verdict": str(each), "outcome": each.outcome, "reason": each.reason, "calls": list(each.calls)}
            for each in row.verdicts
        ],
        "similarity": row.similarity,
        "blind_chosen": row.chosen,
        "blind_solved": row.solved,
        "telling": row.telling,
    }


def _blind_form(blind: Blind | None) -> JsonObject | None:
    if blind is None:
        return None
    return {
        "model": blind.model,
        "orders": blind.orders,
        "precision": asdict(blind.precision),
        "chance": blind.chance,
        "above_chance": blind.above_chance,
        "calls": blind.calls,
        "unanswered": blind.unanswered,
        "images": [{**asdict(image), "solved": image.solved} for image in blind.images.values()],
    }


def _give_aways_form(found: GiveAways) -> JsonObject:
    return {
        "found": found.found,
        "reason": found.reason,
        "lengths": asdict(found.lengths),
        "chance": CHANCE,
        "tells": [{**asdict(tell), "above_chance": tell.above_chance} for tell in found.tells],
        "wrong_words": list(found.wrong_words),
        "true_words": list(found.true_words),
    }


def audit_text(audit: Audit) -> str:
    """The audit as a table: negatives by kind, what is wrong with them, and what gives all of them away."""
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
        f"{rule:<16}{audit.broken[rule]:>10,}  {audit.rules.actions[rule]:<6}{said}"
        for rule, said in RULES.items()
        if audit.broken[rule]
    ]
    return lines


def _figures_text(audit: Audit) -> list[str]:
    found = audit.give_aways
    lengths = found.lengths
    length = (
        f"Length: {lengths.true:.1f} words in true statements, {lengths.wrong:.1f} in negatives "
        f"({_signed(lengths.difference.value)} within an image{_between(lengths.difference.interval, percent=False)}); "
        f"the longest option is true {_percent(lengths.longest_true.value)} of the time"
        f"{_between(lengths.longest_true.interval)}, chance {_percent(lengths.chance)}."
    )
    lines = [length]
    lines += [
        f"Known by {_LOOKS[tell.look]}{f', {tell.kind} alone' if tell.kind else ''}: {_percent(tell.accuracy)}"
        f"{_between(tell.interval)}, chance {_percent(CHANCE)}{': above it' if tell.above_chance else ''}."
        for tell in found.tells
    ]
    if found.reason is not None:
        lines.append(f"No classifier of wording was trained: {found.reason}.")
    if found.found:
        lines.append(f"Words that tell a negative: {', '.join(found.wrong_words)}.")
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
    """Writes the options without the dropped negatives, in their order, and the sidecar of those that stay.

    An image that no negative is left for is left out.

    Returns:
        How many negatives stay (`kept`) and do not (`dropped`), and how many images do (`images`, `gone`).
    """
    dropped = audit.dropped()
    left = [(each, [text for text in each.options if text not in dropped.get(each.key, ())]) for each in sets]
    whole = [(each, options) for each, options in left if any(text not in each.true for text in options)]
    written = write_options(out, ((each.key, _true(each, options), options) for each, options in whole))
    kept = [row.negative.form() for row in audit.rows if row.decision != "drop"]
    write_lines(own_sidecar(out), kept)
    return {
        "kept": len(kept),
        "dropped": audit.decisions["drop"],
        "images": written,
        "gone": len(sets) - written,
    }


def _true(each: OptionSet, options: Iterable[str]) -> list[str]:
    """The true statements as the options have them."""
    there = {*options}
    return [text for text in each.true if text in there]
