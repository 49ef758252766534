"""The parts of a reading's line of JSON, as `askance run` prints it and `Reading.to_dict` gives it.

All that changes from run to run stands under `meta`; the rest is the same in every replay. Beside this module lies the
JSON Schema of a line.

What reads a line without its chain (cards, reports, exports, the blame of a folder) knows the links of the papers, and
shows any other link by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from askance.chains.link import LINKS_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from askance.chat import Json, JsonObject, Try
    from askance.nodes import Call, Failure, Result

SCHEMA = "output_line.schema.json"
"""File beside this module: the JSON Schema of a line."""

_PARTS = ("cached", "image")
"""Parts of the input tokens: those read from a prompt cache, and those that stand for pictures."""


VERBALIZED = ("objects", "scene_text", "narration", "unusual", "description")
"""Links that stand under `verbalization` in a line; null where they say nothing."""


def link_values(line: Mapping[str, Any]) -> dict[str, Json]:
    """By name, the values in a line, as JSON; links without a value are left out.

    Args:
        line: as `Reading.to_dict` gives it, or the `trace` of a prediction with its `links`.
    """
    links: dict[str, Any] = line.get("links") or {}
    values: dict[str, Json] = {
        **(line.get("verbalization") or {}),
        **{link: line.get(link) for link in ("statement", "answers", "reply")},
        **{link: form["value"] for link, form in links.items() if "value" in form},
    }
    names = dict.fromkeys([*links, *values])
    return {link: values[link] for link in names if values.get(link) is not None}


def link_form(link: str, result: Result[Any], value: Json) -> JsonObject:
    """The entry of a link in a line; the value of a link that is none of the papers' stands there, too."""
    form: JsonObject = {"outcome": result.outcome, "calls": [call.key for call in result.calls]}
    optional = {"reason": result.reason, "error": result.error, "raw": result.raw, "rung": result.output_mode}
    form |= {name: entry for name, entry in optional.items() if entry is not None}
    if result.given:
        form["given"] = True
    if result.trace:
        form["trace"] = dict(result.trace)
    if value is not None and link not in LINKS_BY_NAME:
        form["value"] = value
    return form


def calls_meta(calls: Sequence[Call], failures: Mapping[str, Failure]) -> JsonObject:
    """What changes from run to run: calls made, replayed and shared, tries, seconds, tokens, cost.

    A shared call took the answer to an equal call under way; it counts and costs where that one was made. `failed` has,
    by link, the key of a call that was tried and got no answer; its tries and their seconds count too.
    """
    live = [call for call in calls if not call.meta.replayed]
    made = [call for call in live if not call.meta.shared]
    return {
        "calls": len(made),
        "replayed": len(calls) - len(live),
        "shared": len(live) - len(made),
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
