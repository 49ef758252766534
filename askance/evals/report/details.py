"""Everything that is known of one answer, as JSON for the page: what was asked and said at every link, in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from askance.evals.report.row import kinds_of_options, options_of, places_in, true_places

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.report.report import RunPart
    from askance.evals.run import Answer
    from askance.replay import Record

_SHORTEST = 80
"""Characters from which on a text that comes again is kept once."""
_SHOWN_TRACE = frozenset({"verbalization", "statement", "statement_reason", "answers"})


class Texts:
    """Texts that calls have in common, such as instructions: each is written once and referred to by number.

    A text becomes common with its second call, so that it is looked for before anything is written.
    """

    def __init__(self, parts: Sequence[RunPart]) -> None:
        seen: dict[str, int] = {}
        for part in parts:
            for record in part.run.records:
                for text in _texts_of(record):
                    seen[text] = seen.get(text, 0) + 1
        common = (text for text, count in seen.items() if count > 1 and len(text) >= _SHORTEST)
        self.numbers = {text: number for number, text in enumerate(common)}

    def form(self, text: str) -> str | int:
        """The number of a common text, any other text itself."""
        return self.numbers.get(text, text)


def _texts_of(record: Record) -> Iterator[str]:
    for message in record.request.get("messages", ()):
        yield from (part["text"] for part in message.get("parts", ()) if isinstance(part.get("text"), str))


def detail_of(answer: Answer) -> JsonObject:
    """One answer: what was asked of it, what is true, what was said on the way, what it is worth."""
    sample, prediction = answer.sample, answer.prediction
    options = options_of(sample)
    true, chosen = true_places(sample, options), places_in(prediction.value, options)
    trace = dict(prediction.trace)
    form: JsonObject = {
        "group": sample.cluster if sample.cluster != sample.id else None,
        "image": None if sample.image is None else {"name": sample.image.name, "sha256": sample.image.sha256},
        "inputs": {name: value for name, value in sample.inputs.items() if name != "options"},
        "tags": dict(sample.tags),
        "options": options,
        "true": true,
        "chosen": chosen if prediction.answered else None,
        "kinds": kinds_of_options(sample, options),
        "target": None if true is not None else sample.target,
        "value": None if chosen is not None and prediction.answered else prediction.value,
        "reason": prediction.reason,
        "verbalization": _there(trace.get("verbalization")),
        "statement": trace.get("statement"),
        "trace": {name: value for name, value in trace.items() if name not in _SHOWN_TRACE},
        "links": [_link(name, link, prediction.meta) for name, link in prediction.links.items()],
        "tries": prediction.meta.get("tries") or {},
    }
    if answer.score is not None:
        form["score"] = answer.score.form()
    elif answer.unscored:
        form["unscored"] = answer.unscored
    return {name: value for name, value in form.items() if value not in (None, [], {})}


def _link(name: str, link: JsonObject, meta: Mapping[str, Any]) -> JsonObject:
    failed = meta.get("failed", {}).get(name)
    return {"name": name, **link, **({} if failed is None else {"failed": failed})}


def _there(verbalization: Any) -> JsonObject:
    links = cast("dict[str, Any]", verbalization) if isinstance(verbalization, dict) else {}
    return {name: value for name, value in links.items() if value is not None}


def calls_of(part: RunPart, answer: Answer, texts: Texts) -> Mapping[str, JsonObject]:
    """The calls that an answer and its score rest on, by key; what is not in the folder is left out."""
    records = {key: part.run.records.get(key) for key in answer.keys}
    return {key: call_of(record, texts) for key, record in records.items() if record is not None}


def call_of(record: Record, texts: Texts) -> JsonObject:
    """One call: to whom, every message and the reply in full, and whatever else was asked."""
    request, response = dict(record.request), dict(record.response)
    form: JsonObject = {"kind": record.kind, "model": record.model, "at": record.at}
    if record.kind != "chat":
        return {**form, "request": _short(request), "response": _short(response)}
    messages: list[Any] = request.pop("messages", [])
    request.pop("model", None)
    form["messages"] = [_message(message, texts) for message in messages]
    form["reply"] = response
    return {**form, "asked": request} if request else form


def _message(message: Mapping[str, Any], texts: Texts) -> JsonObject:
    parts = [texts.form(part["text"]) if "text" in part else {"part": part} for part in message.get("parts", ())]
    rest = {name: value for name, value in message.items() if name not in {"role", "parts"}}
    return {"role": message.get("role"), "parts": parts, **({"rest": rest} if rest else {})}


def _short(form: Mapping[str, Any]) -> JsonObject:
    """`form` with long lists of numbers cut, such as vectors."""
    return {name: _cut(value) for name, value in form.items()}


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 4000:
        return f"{value[:200]}… ({len(value):,} characters)"
    if isinstance(value, list) and len(cast("list[Any]", value)) > 64:
        several = cast("list[Any]", value)
        return [*several[:8], f"… {len(several):,} in all"]
    return cast("Any", value)
