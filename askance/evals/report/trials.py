"""The trials of a blame on one answer, as JSON for the page: what was replaced, and what followed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from askance.atypicality import Statement
from askance.errors import UsageError
from askance.evals.report import reading

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.report.blames import BlamePart
    from askance.evals.run import Answer

_LONGEST = 4000
"""Characters of a text that stood in a link's place, or that followed from it."""


def detail_of_blame(part: BlamePart, answer: Answer) -> JsonObject | None:
    """What was tried on one answer, as JSON for the page; None where nothing was.

    Of every trial it says what stood in the link's place, which links became otherwise for it, and the new answer.
    """
    place = (answer.sample.id, answer.epoch)
    culprits = part.answers.get(place)
    if culprits is None or not culprits.tried:
        return None
    options = reading.options_of(answer.sample)
    trials = [
        {
            "link": link,
            "worth": worth,
            "flips": link in culprits.flips,
            "guilty": link in culprits.guilty,
            **_trial(part.trials.get(place, {}).get(link, {}), answer, link=link, options=options),
        }
        for link, worth in culprits.tried.items()
    ]
    return {"words": part.words, "metric": part.metric, "was": culprits.worth, "trials": trials}


def _trial(line: Mapping[str, Any], answer: Answer, *, link: str, options: Sequence[str]) -> JsonObject:
    if not line:
        return {}
    value = line.get("value")
    chosen = reading.places_in(value, options) if value is not None else None
    now, before = _said(line.get("trace")), _said(answer.prediction.trace)
    became = {name: said for name, said in now.items() if name != link and said != before.get(name)}
    form: JsonObject = {
        "outcome": str(line.get("outcome")),
        "reason": line.get("reason"),
        "put": _text(link, line.get("put")),
        "chosen": chosen,
        "value": value if chosen is None else None,
        "became": became,
        "calls": sum(len(each.get("calls", ())) for each in _maps(line.get("links"))),
    }
    return {name: each for name, each in form.items() if each not in (None, {}, [])}


def _said(trace: Any) -> dict[str, str]:
    """What each link of a trace says, as text."""
    there = cast("dict[str, Any]", trace) if isinstance(trace, dict) else {}
    verbalized = there.get("verbalization")
    said = cast("dict[str, Any]", verbalized) if isinstance(verbalized, dict) else {}
    texts = {name: _text(name, value) for name, value in {**said, "statement": there.get("statement")}.items()}
    return {name: text for name, text in texts.items() if text is not None}


def _text(link: str, value: Any) -> str | None:
    if value is None:
        return None
    if link == "statement" and isinstance(value, dict):
        value = _statement(cast("dict[str, Any]", value))
    elif isinstance(value, list):
        value = "\n".join(reading.plain(each) for each in cast("list[Any]", value))
    text = reading.plain(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _statement(form: Mapping[str, Any]) -> Any:
    try:
        return Statement(form["relation"], form["primary"], form["secondary"]).text
    except (KeyError, TypeError, ValueError, UsageError):
        return form.get("text", dict(form))


def _maps(links: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(links, dict):
        yield from (each for each in cast("dict[str, Any]", links).values() if isinstance(each, dict))
