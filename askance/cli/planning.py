"""What a run would cost, in words: `--plan`, and what a budget left undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.amounts import duration, many
from askance.models.spending.budget import shown_dollars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from askance.chains import LinkPlan, Plan
    from askance.chat import JsonObject
    from askance.models import Engine
    from askance.models.spending.spread import Spread


def plan_text(plan: Plan, engine: Engine) -> str:
    """The plan as a table and what it comes to."""
    made = f"{plan.hits:,} on record, {plan.calls:,} to be made"
    lines = [f"{many(plan.images, plan.unit)}, {many(plan.hits + plan.calls, 'call')}: {made}.", ""]
    lines += _table(plan)
    if plan.calls:
        lines += ["", *_costs(plan), f"time        {_time(plan, engine)}"]
    return "\n".join([*lines, *(f"· {note}" for note in _notes(plan))])


def plan_form(plan: Plan, engine: Engine) -> JsonObject:
    """The plan as one JSON object."""
    batch = plan.batch_dollars
    return {
        "images": plan.images,
        "unusable": plan.unusable,
        "hits": plan.hits,
        "calls": plan.calls,
        "tokens": {"input": _form(plan.input, 0), "output": _form(plan.output, 0)},
        "dollars": None if plan.dollars is None else _form(plan.dollars, 6),
        "batch_dollars": None if batch is None else _form(batch, 6),
        "unpriced": dict(plan.unpriced),
        "prices": list(plan.price_dates),
        "seconds": round(_seconds(plan, engine), 1),
        "probes": plan.probes,
        "links": {link.link: _link_form(link) for link in plan.links},
    }


def left_text(plan: Plan) -> str:
    """What is left to do, and what that would cost."""
    parts = [many(plan.images, plan.unit), many(plan.calls, "call")]
    if plan.calls and plan.dollars is not None:
        parts.append(f"about {_dollars(plan.dollars)}")
    unpriced = [f"no price is known for {model}" for model in plan.unpriced]
    return f"Left: {', '.join([*parts, *unpriced])}."


def _table(plan: Plan) -> Iterator[str]:
    width = max(len(str(link.model)) for link in plan.links)
    head = f"{'link':<12}{'model':<{width}}{'on record':>11}{'to make':>9}{'tokens in':>13}{'tokens out':>12}"
    yield head
    for link in plan.links:
        yield _row(link.link, str(link.model), width, (link.hits, link.calls, link.input, link.output))
    yield _row("", "", width, (plan.hits, plan.calls, plan.input, plan.output))


def _row(link: str, model: str, width: int, counts: tuple[int, int, Spread, Spread]) -> str:
    hits, calls, tokens_in, tokens_out = counts
    numbers = f"{hits:>11,}{calls:>9,}{round(tokens_in.expected):>13,}{round(tokens_out.expected):>12,}"
    return f"{link:<12}{model:<{width}}{numbers}"


def _costs(plan: Plan) -> Iterator[str]:
    if plan.dollars is None:
        yield "cost        not known"
        return
    yield f"online      {_dollars(plan.dollars)}"
    if plan.batch_dollars is not None:
        yield f"by batch    {_dollars(plan.batch_dollars)}"


def _notes(plan: Plan) -> Iterator[str]:
    for model, calls in plan.unpriced.items():
        yield f"No price is known for {model}, its {many(calls, 'call')} come on top: set `price` in askance.toml."
    for date in plan.price_dates:
        yield f"List prices as of {date}; a `price` in askance.toml goes before them."
    guessed = dict.fromkeys(link.link for link in plan.links if link.calls and not link.measured)
    if guessed:
        yield f"Lengths of answers are estimates, for nothing like them is on record: {', '.join(guessed)}."
    if plan.probes:
        yield f"What {many(plan.probes, 'endpoint')} can do is asked first, in a few small calls."
    if plan.elsewhere:
        yield f"Work that asks no model here is not counted: {', '.join(plan.elsewhere)}."
    if plan.unusable:
        yield f"{many(plan.unusable, plan.unit)} cannot be used."


def _dollars(spread: Spread) -> str:
    expected, low, high = (shown_dollars(value) for value in (spread.expected, spread.low, spread.high))
    return expected if low == high else f"{expected} ({low} to {high})"


def _time(plan: Plan, engine: Engine) -> str:
    pace = [f"{engine.places} calls at once"]
    pace += [f"{engine.rpm:g} calls a minute"] if engine.rpm else []
    pace += [f"{engine.tpm:g} tokens a minute"] if engine.tpm else []
    return f"about {duration(_seconds(plan, engine))} ({', '.join(pace)})"


def _seconds(plan: Plan, engine: Engine) -> float:
    return plan.seconds(concurrency=engine.places, rpm=engine.rpm, tpm=engine.tpm)


def _form(spread: Spread, digits: int) -> JsonObject:
    return {name: round(getattr(spread, name), digits or None) for name in ("low", "expected", "high")}


def _link_form(link: LinkPlan) -> JsonObject:
    return {
        "model": str(link.model),
        "hits": link.hits,
        "known": link.known,
        "below": link.below,
        "measured": link.measured,
        "tokens": {"input": _form(link.input, 0), "output": _form(link.output, 0)},
        "dollars": None if link.dollars is None else _form(link.dollars, 6),
    }
