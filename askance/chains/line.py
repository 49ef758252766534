"""A reading as one line of JSON: what is stable, and `meta` with all that is volatile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from askance.chains.reading import Reading
    from askance.chat import JsonObject, Try
    from askance.nodes import Call, Failure, Result

SCHEMA = "line.schema.json"
"""File beside this module: the JSON Schema of a line."""

_PARTS = ("cached", "image")
"""Of the tokens of input: those that were found computed, and those that stand for pictures."""


def line_of(reading: Reading) -> JsonObject:
    """The line for `reading`; replaying the same calls gives the same line but for `meta`."""
    statement = reading.statement.value if reading.statement is not None else None
    answers = reading.answers.value if reading.answers is not None else None
    return {
        "image": reading.name,
        "sha256": reading.digest,
        "outcome": reading.outcome,
        "reason": reading.reason,
        "verbalization": _verbalization(reading),
        "statement": None
        if statement is None
        else {
            "relation": statement.relation,
            "primary": statement.primary,
            "secondary": statement.secondary,
            "text": statement.text,
        },
        "statement_reason": reading.statement.reason if reading.statement is not None else "not asked",
        "answers": None if answers is None else list(answers.numbers),
        **({} if reading.reply is None else {"reply": reading.reply.value and reading.reply.value.text}),
        "links": {link: _link(result) for link, result in reading.links.items()},
        "meta": meta_of(reading),
    }


def _verbalization(reading: Reading) -> JsonObject:
    return {
        "objects": list(reading.objects.value.names) if reading.objects and reading.objects.value else None,
        "scene_text": list(reading.scene_text.value.lines) if reading.scene_text and reading.scene_text.value else None,
        "narration": reading.narration.value.text if reading.narration and reading.narration.value else None,
        "unusual": reading.unusual.value.text if reading.unusual and reading.unusual.value else None,
        "description": reading.description.value.text if reading.description and reading.description.value else None,
    }


def _link(result: Result[Any]) -> JsonObject:
    form: JsonObject = {"outcome": result.outcome, "calls": [call.key for call in result.calls]}
    for name in ("reason", "error", "raw", "rung"):
        if (value := getattr(result, name)) is not None:
            form[name] = value
    if result.given:
        form["given"] = True
    return form


def meta_of(reading: Reading) -> JsonObject:
    """What changes from run to run: how many calls were made, replayed and shared, tries, seconds, tokens, cost.

    A shared call took the answer to an equal one that was on its way, which counts and costs where it was made. A link
    whose call was tried and came to nothing has its key in `failed`; its tries and their seconds count all the same.
    """
    calls, failures = reading.calls, reading.failures
    asked = [call for call in calls if not call.meta.replayed]
    made = [call for call in asked if not call.meta.shared]
    return {
        "calls": len(made),
        "replayed": len(calls) - len(asked),
        "shared": len(asked) - len(made),
        "failed": {link: failure.key for link, failure in failures.items()},
        "seconds": round(sum(call.meta.seconds for call in made) + _seconds(failures.values()), 3),
        "tokens": {
            "input": _sum(call.usage.input for call in calls),
            "output": _sum(call.usage.output for call in calls),
            **{name: count for name in _PARTS if (count := _sum(getattr(call.usage, name) for call in calls))},
        },
        "cost": _cost(made),
        "tries": {key: [_try(one) for one in tries] for key, tries in _tries(made, failures.values()) if tries},
    }


def _tries(made: Iterable[Call], failures: Iterable[Failure]) -> Iterator[tuple[str, tuple[Try, ...]]]:
    yield from ((call.key, call.meta.tries) for call in made)
    yield from ((failure.key, failure.tries) for failure in failures)


def _seconds(failures: Iterable[Failure]) -> float:
    return sum(one.seconds for failure in failures for one in failure.tries)


def _try(one: Try) -> JsonObject:
    return {"at": one.at, "seconds": round(one.seconds, 3), "error": one.error}


def _sum(counts: Iterable[int | None]) -> int:
    return sum(count or 0 for count in counts)


def _cost(made: list[Call]) -> float | None:
    """Dollars for the calls that were made; None as soon as one has no known price."""
    costs = [call.cost for call in made]
    return None if any(cost is None for cost in costs) else round(sum(cost or 0.0 for cost in costs), 6)
