"""What commands print: plans, a table of what has no answer with the ways out; and new files for a user."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.amounts import duration, many, money
from askance.cli.columns import WIDTH, aligned, filled, shortened, terminal_width
from askance.errors import UsageError
from askance.prompts.word_diff import marked
from askance.terminal import printable

if TYPE_CHECKING:
    from askance.chains import LinkPlan, Plan
    from askance.chains.prompt_change import PromptChange
    from askance.chat import JsonObject
    from askance.models import Engine
    from askance.models.token_estimate import Range


def plan_text(plan: Plan, engine: Engine) -> str:
    """The plan as a table and what it comes to."""
    made = f"{plan.hits:,} on record, {plan.calls:,} to be made"
    lines = [f"{many(plan.images, plan.unit)}, {many(plan.hits + plan.calls, 'call')}: {made}.", ""]
    lines += _table(plan) if plan.links else []
    if plan.calls:
        lines += ["", *_costs(plan), f"time        {_time(plan, engine)}"]
    lines += [f"· {note}" for note in _notes(plan)]
    return filled("\n".join([*lines, *_changed_prompts(plan)]), width=terminal_width())


def _changed_prompts(plan: Plan) -> Iterator[str]:
    """The prompt files whose edit is why calls are made anew, with the words that changed."""
    for change in plan.changed_prompts:
        yield f"· {_file(change)} has other words than when {', '.join(change.links)} was recorded:"
        yield from (filled(f"    {printable(marked(each))}", width=WIDTH) for each in change.changes)


def _file(change: PromptChange) -> str:
    """What a prompt file is called: its place, or whose it is."""
    if not change.overlay:
        return f"The package's prompt {change.file.name}"
    here = Path.cwd()
    return str(change.file.relative_to(here) if change.file.is_relative_to(here) else change.file)


def plan_form(plan: Plan, engine: Engine) -> JsonObject:
    """The plan as one JSON object."""
    batch = plan.batch_dollars
    return {
        "images": plan.images,
        "unusable": plan.unusable,
        "troubles": list(plan.troubles),
        "hits": plan.hits,
        "calls": plan.calls,
        "tokens": {"input": _form(plan.input, 0), "output": _form(plan.output, 0)},
        "dollars": None if plan.dollars is None else _form(plan.dollars, 6),
        "batch_dollars": None if batch is None else _form(batch, 6),
        "unpriced": dict(plan.unpriced),
        "prices": list(plan.price_dates),
        "seconds": round(_seconds(plan, engine), 1),
        "probes": plan.probes,
        "changed_prompts": [
            {"file": str(each.file), "links": list(each.links), "changes": [marked(one) for one in each.changes]}
            for each in plan.changed_prompts
        ],
        "links": {link.link: _link_form(link) for link in plan.links},
    }


def left_text(plan: Plan) -> str:
    """The work that is left, and what it would cost."""
    parts = [many(plan.images, plan.unit), many(plan.calls, "call")]
    if plan.calls and plan.dollars is not None:
        amount = _dollars(plan.dollars)
        parts.append(amount if amount.startswith("less") else f"about {amount}")
    unpriced = [f"no price is known for {model}" for model in plan.unpriced]
    return f"Left: {', '.join([*parts, *unpriced])}."


def _table(plan: Plan) -> Iterator[str]:
    width = terminal_width()
    rows = [("link", "model", "on record", "to make", "tokens in", "tokens out")]
    rows += [
        _plan_row(link.link, str(link.model), link.hits, link.calls, link.input, link.output) for link in plan.links
    ]
    rows.append(_plan_row("", "", plan.hits, plan.calls, plan.input, plan.output))
    if width is not None:
        taken = max(map(len, aligned(rows, left=(0, 1))))
        room = max(map(len, (row[1] for row in rows))) + width - taken
        short = _short_models([row[1] for row in rows], room)
        rows = [(row[0], short[row[1]], *row[2:]) for row in rows]
    yield from aligned(rows, left=(0, 1), width=width)


_LEAST_NAME = 16
"""Characters of a model's name at least."""


def _short_models(names: Sequence[str], room: int) -> Mapping[str, str]:
    """Names of models that fit so many columns: without their addresses, or else without their middle.

    They are left as they are where they could not be told apart any more.
    """
    full = dict.fromkeys(names)
    if max(map(len, full)) <= room:
        return {name: name for name in full}
    for short in (
        {name: name.partition("@")[0] for name in full},
        {name: shortened(name.partition("@")[0], max(room, _LEAST_NAME)) for name in full},
    ):
        if max(map(len, short.values())) <= room and len({*short.values()}) == len(full):
            return short
    return {name: name for name in full}


def _plan_row(  # the cells in their order
    link: str, model: str, hits: int, calls: int, tokens_in: Range, tokens_out: Range
) -> tuple[str, str, str, str, str, str]:
    counts = (f"{hits:,}", f"{calls:,}", f"{round(tokens_in.expected):,}", f"{round(tokens_out.expected):,}")
    return (link, model, *counts)


def _costs(plan: Plan) -> Iterator[str]:
    if plan.dollars is None:
        yield "cost        not known"
        return
    yield f"online      {_dollars(plan.dollars)}"
    if plan.batch_dollars is not None:
        yield f"by batch    {_dollars(plan.batch_dollars)}"


def _notes(plan: Plan) -> Iterator[str]:
    for model, calls in plan.unpriced.items():
        come = "comes" if calls == 1 else "come"
        yield f"No price is known for {model}, its {many(calls, 'call')} {come} on top: set `price` in askance.toml."
    for date in plan.price_dates:
        yield f"List prices of {date}; a `price` in askance.toml goes before them."
    guessed = dict.fromkeys(link.link for link in plan.links if link.calls and not link.measured)
    if guessed:
        yield f"Lengths of answers are estimates, for nothing like them is on record: {', '.join(guessed)}."
    at_most = [link.link for link in plan.links if link.at_most]
    if at_most:
        yield (
            "The most that there can be, for each answer decides what is asked next; all of them counted as calls of "
            f"the dearest model that may be asked: {', '.join(at_most)}."
        )
    if plan.probes:
        yield f"What {many(plan.probes, 'endpoint')} can do is asked first, in a few small calls."
    if plan.without_model:
        yield f"Work that asks no model here is not counted: {', '.join(plan.without_model)}."
    if plan.unusable:
        more = " …" if plan.unusable > len(plan.troubles) else ""
        yield f"{many(plan.unusable, plan.unit)} cannot be used: {' '.join(plan.troubles)}{more}"


def _dollars(spread: Range) -> str:
    expected, low, high = (money(value) for value in (spread.expected, spread.low, spread.high))
    return expected if low == high else f"{expected} ({low} to {high})"


def _time(plan: Plan, engine: Engine) -> str:
    pace = [f"{engine.places} calls at once"]
    pace += [f"{engine.rpm:g} calls a minute"] if engine.rpm else []
    pace += [f"{engine.tpm:g} tokens a minute"] if engine.tpm else []
    return f"about {duration(_seconds(plan, engine))} ({', '.join(pace)})"


def _seconds(plan: Plan, engine: Engine) -> float:
    return plan.seconds(concurrency=engine.places, rpm=engine.rpm, tpm=engine.tpm)


def _form(spread: Range, digits: int) -> JsonObject:
    return {name: round(getattr(spread, name), digits or None) for name in ("low", "expected", "high")}


def _link_form(link: LinkPlan) -> JsonObject:
    return {
        "model": str(link.model),
        "hits": link.hits,
        "known": link.known,
        "below": link.dependent,
        **({"at_most": True} if link.at_most else {}),
        "measured": link.measured,
        "tokens": {"input": _form(link.input, 0), "output": _form(link.output, 0)},
        "dollars": None if link.dollars is None else _form(link.dollars, 6),
    }


SHOWN = 20
"""Pictures listed at most; `--json` has them all."""
_NAMES = 36
"""Columns for a name at most."""

WAYS_OUT = {
    "invalid": "`--retry invalid` asks again for replies that could not be read; `--json` shows them as `raw`.",
    "refused": "`--retry refused` asks again for what the model declined; another wording (`askance prompts eject`) "
    "asks anew.",
    "filtered": "`--retry filtered` asks again for what a content filter stopped.",
    "truncated": "Give the model a larger `max_tokens` in askance.toml: what was cut off is then asked anew.",
    "failed": "The same command asks again for what failed and for nothing else.",
    "skipped": "Nothing could be asked: the reason says why.",
    "recorded": "Replies that others recorded are not asked for again; where a task reads them in several ways "
    "(`-T reading=`), another one may read more.",
    "BadRecord": "`askance cache verify` finds the damaged records, `askance cache prune --damaged` takes them out; "
    "the same command then asks anew.",
    "BadImage": "Mend the files that cannot be used, or leave them out.",
    "PromptTooLong": "Give the model a smaller `max_tokens` in askance.toml, so that its replies stay short: they are "
    "then asked anew.",
    "ReplayMiss": "Without `--replay` the same command asks for what is not on record.",
}
"""What a user can do, by the outcome of the failed link or by the name of its error; `recorded`: a reply of others."""

_OF_REPLIES = frozenset({"invalid", "refused", "filtered", "truncated"})
"""Outcomes that only a reply has, so that one without a call is recorded."""


def table_of(lines: Sequence[Mapping[str, Any]]) -> str:
    """Image, outcome and reason of each line, then the ways out."""
    width = terminal_width(sys.stderr) or WIDTH
    names = min(_NAMES, max(len(printable(line["image"])) for line in lines[:SHOWN]))
    text = ["Without an answer:", *_failure_lines(lines[:SHOWN], names=names, width=width)]
    if len(lines) > SHOWN:
        text.append(f"  … and {len(lines) - SHOWN:,} more")
    text += _first_difference(lines)
    ways = dict.fromkeys(_way_out(line) for line in lines)
    text += ["What to do:", *(filled(f"  → {way}", width=width, indent=4) for way in ways)]
    return "\n".join(text)


def _failure_lines(lines: Sequence[Mapping[str, Any]], *, names: int, width: int) -> Iterator[str]:
    indent = names + 4
    for line in lines:
        name, reason = printable(line["image"]), _reason(line).partition("\n")[0]
        if len(name) > names or width - indent < 40:
            yield f"  {name}"
            yield filled(" " * 6 + reason, width=width)
        else:
            yield filled(f"  {name:<{names}}  {reason}", width=width, indent=indent)


def culprit(line: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Name and form of the first link that failed; links that depend on it were skipped."""
    links: Mapping[str, Mapping[str, Any]] = line["links"]
    wrong = [(link, form) for link, form in links.items() if form["outcome"] not in {"answered", "skipped"}]
    return next(iter(wrong), ("", {"outcome": line["outcome"], "reason": line["reason"]}))


def _reason(line: Mapping[str, Any]) -> str:
    link, form = culprit(line)
    reason = printable(form.get("reason") or "")
    if form.get("error") == "BadImage":
        return reason
    return f"{link} {form['outcome']}: {reason}".lstrip()


def _way_out(line: Mapping[str, Any]) -> str:
    _, form = culprit(line)
    if form["outcome"] in _OF_REPLIES and form.get("calls") == []:
        return WAYS_OUT["recorded"]
    return WAYS_OUT.get(str(form.get("error"))) or WAYS_OUT[form["outcome"]]


def _first_difference(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What differs from the nearest record, for the first picture that a replay missed."""
    for line in lines:
        _, newline, difference = _reason(line).partition("\n")
        if newline:
            yield f"What differs, for {line['image']}:"
            yield textwrap.indent(difference, "  ")
            return


def write_new(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files into `folder`, which is made; what is there already is never written over.

    Args:
        folder: where to.
        files: content by name; a name may lead into a folder below.

    Raises:
        UsageError: a file of a name is there with another content, or a folder below is a link or no folder; then
            none is written.
        OSError: a file cannot be written.
    """
    for below in sorted({folder / part for name in files for part in Path(name).parents if part != Path()}):
        if below.is_symlink() or (below.exists() and not below.is_dir()):
            what = "a link, and nothing is written through it" if below.is_symlink() else "no folder"
            raise UsageError(f"{str(below)!r} is {what}.", hint="Take it away, or name another folder.")
    missing: list[str] = []
    for name, content in files.items():
        target = folder / name
        if not os.path.lexists(target):
            missing.append(name)
        elif not target.is_file() or target.read_bytes() != content:
            raise UsageError(f"{str(target)!r} is there already and differs.", hint="Name another folder.")
    for name in missing:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(files[name])
