"""What the page's script reads of samples: everything that is known of each, packed in blocks until somebody looks.

Prompts hold what earlier calls have said, and the calls of one sample in several runs are much alike. A block keeps
what belongs to a sample together and is compressed, to about an eighth; the script unpacks it when somebody looks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from askance.amounts import many
from askance.chains import LINKS
from askance.chains.line import said_in
from askance.evals.report.blame import detail_of_blame
from askance.evals.report.document import DataBlock, block, packed_block
from askance.evals.report.row import kinds_of_options, options_of, places_in, true_places

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.report.pictures import Thumbnails
    from askance.evals.report.report import RunPart
    from askance.evals.run import Answer
    from askance.evals.values import Prediction
    from askance.replay import Record

BLOCK = 50
"""Samples whose details are read together."""
PICTURE_BLOCK = 50
CALLS_MB = 200.0
"""Megabytes of prompts and replies in a page before they are compressed; the calls of samples beyond it stay in the
run's folder."""

TITLES: Mapping[str, str] = {**{link.name: link.title for link in LINKS}, "solver": "Solver"}
"""How the page calls links; others are called by their names."""

WITHOUT = "Left out of this page, which holds the calls of the first samples only; the run's folder has it."


@dataclass(kw_only=True)
class CallRoom:
    """How much of the calls a page still takes."""

    left: float = CALLS_MB * 1e6
    refused: int = 0
    """Samples whose calls had no room."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of it."""
        if not self.refused:
            return ()
        return (f"the calls of {many(self.refused, 'sample')} had no room in this page; they are in the run's folder",)

    def takes(self, form: Mapping[str, Any]) -> bool:
        """Whether there is room for `form`, which is then taken."""
        size = len(json.dumps(form, ensure_ascii=False))
        if size > self.left:
            self.refused += 1
            return False
        self.left -= size
        return True


@dataclass(kw_only=True)
class Shown:
    """Pictures by number, as rows refer to them."""

    pictures: Thumbnails
    files: Sequence[str] | None = None
    """Addresses of pictures that lie beside the page; None is within it."""
    numbers: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.numbers = {digest: number for number, digest in enumerate(self.pictures.jpegs)}

    def blocks(self) -> Iterator[DataBlock]:
        """The pictures that are within the page."""
        if self.files is None:
            uris = [self.pictures.uri(digest) for digest in self.numbers]
            for start in range(0, len(uris), PICTURE_BLOCK):
                yield block(f"pictures-{start // PICTURE_BLOCK}", uris[start : start + PICTURE_BLOCK])

    def settings(self) -> JsonObject:
        """What the script has to know of them, and how links are called."""
        form: JsonObject = {"anyPicture": bool(self.numbers), "pictureBlock": PICTURE_BLOCK, "links": dict(TITLES)}
        return {**form, "files": list(self.files)} if self.files is not None else form


def sample_blocks(
    number: int, parts: Sequence[RunPart], answers: Sequence[Sequence[Answer]], *, room: CallRoom
) -> Iterator[DataBlock]:
    """Samples with all that is known of them, block by block, each answer with the calls that it rests on.

    Args:
        number: of the list of samples on the page.
        parts: runs that are shown side by side.
        answers: by sample, what each of the runs answered.
        room: for calls.
    """
    for start in range(0, len(answers), BLOCK):
        there: set[str] = set()
        samples: list[list[JsonObject]] = []
        for several in answers[start : start + BLOCK]:
            sides: list[JsonObject] = []
            for part, answer in zip(parts, several, strict=True):
                new = {key: form for key, form in calls_of(part, answer).items() if key not in there}
                calls = new if room.takes(new) else {}
                there.update(calls)
                sides.append({"detail": {**detail_of(answer), **_blame_of(part, answer)}, "calls": calls})
            samples.append(sides)
        yield packed_block(f"d-{number}-{start // BLOCK}", samples)


def _blame_of(part: RunPart, answer: Answer) -> JsonObject:
    several = [] if part.blames is None else [detail_of_blame(each, answer) for each in part.blames.parts]
    found = [each for each in several if each is not None]
    return {"blame": found} if found else {}


_SHOWN_TRACE = frozenset({"verbalization", "statement", "statement_reason", "answers"})


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
        "verbalization": _verbalization(prediction),
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
    told = {field: value for field, value in link.items() if field != "value"}
    return {"name": name, **told, **({} if failed is None else {"failed": failed})}


def _verbalization(prediction: Prediction) -> JsonObject:
    """What the links say that have no place of their own on the page."""
    there = {"verbalization": prediction.trace.get("verbalization"), "links": prediction.links}
    return {name: value for name, value in said_in(there).items() if name != "statement"}


def calls_of(part: RunPart, answer: Answer) -> Mapping[str, JsonObject]:
    """The calls that an answer and its score rest on, by key; what is not in the folder is left out."""
    records = {key: part.run.records.get(key) for key in answer.keys}
    return {key: call_of(record) for key, record in records.items() if record is not None}


def call_of(record: Record) -> JsonObject:
    """One call: to whom, every message and the reply in full, and whatever else was asked."""
    request, response = dict(record.request), dict(record.response)
    form: JsonObject = {"kind": record.kind, "model": record.model, "at": record.at}
    if record.kind != "chat":
        return {**form, "request": _short(request), "response": _short(response)}
    messages: list[Any] = request.pop("messages", [])
    request.pop("model", None)
    form["messages"] = [_message(message) for message in messages]
    form["reply"] = response
    return {**form, "asked": request} if request else form


def _message(message: Mapping[str, Any]) -> JsonObject:
    parts = [part.get("text", {"part": part}) for part in message.get("parts", ())]
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
