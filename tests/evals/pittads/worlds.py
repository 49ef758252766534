"""Small made-up data sets with real pictures, and scripted models whose answers are known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from askance.chat import ChatRequest, ChatResponse, ImagePart
from askance.evals import Run
from askance.models import Model, ScriptedModel
from tests.evals.pittads.files import Row, key_of, release_b, row, write, write_csv
from tests.images import samples as pictures
from tests.scripted import ENFORCED, model_of, name_of

SAID: dict[str, Any] = {
    "objects": {"objects": ["cup", "brick"]},
    "scene_text": {"lines": ["BUY"]},
    "narration": {"description": "NARRATED."},
    "unusual": {"unusual": "ODD."},
    "combine": {"description": "COMBINED."},
    "detect_statement": {"statement": 1},
}
DETECTED = "The surface of cup mimics the texture of brick, while retaining its original structure."


def writer() -> ScriptedModel:
    """Writes hard negatives; each is another text."""

    def reply(request: ChatRequest) -> str:
        statement = f"I should skip it because of {request.key}"
        return json.dumps({"negatives": [{"replaced": "", "replacement": "", "statement": statement}]})

    return ScriptedModel(reply, capabilities=ENFORCED, identity="writer")


Reply = Callable[[ChatRequest], Any]


def numbers(count: int) -> range:
    """Numbers of images, each of which is a key of its own."""
    return range(11, 11 + count)


def statements(key: str, true: int, wrong: int) -> list[list[str]]:
    """A record of release B: `true` and `wrong` statements that say which they are."""
    right = [f"I should buy {key} because reason {place} is right" for place in range(true)]
    return [right, [*(f"I should skip {key} because of {place}" for place in range(wrong)), *right]]


def world(
    folder: Path, *, true: Sequence[int] = (3, 3, 3), wrong: int = 12, rows: Sequence[Sequence[Row]] | None = None
) -> Path:
    """A folder with one image for each number in `true`, which says how many of its statements are true."""
    keys = [key_of(number) for number in numbers(len(true))]
    release_b(folder, {key: statements(key, count, wrong) for key, count in zip(keys, true, strict=True)})
    plain = [[row(key, "1", f"bottle {place}", f"feather {place}")] for place, key in enumerate(keys)]
    write_csv(folder / "final_csv.csv", [line for lines in (rows or plain) for line in lines])
    for number, key in zip(numbers(len(true)), keys, strict=True):
        write(folder / "train_images" / key, pictures.encoded(pictures.photo(seed=number), "PNG"))
    return folder


def model(**answers: Any) -> Model:
    """A model that says `SAID` of every picture but for `answers`: JSON, a response, an error, or a function."""
    table = {**SAID, **answers}

    def reply(request: ChatRequest) -> str | ChatResponse | BaseException:
        found = table[name_of(request)]
        found = found(request) if callable(found) else found
        return found if isinstance(found, (str, ChatResponse, BaseException)) else json.dumps(found)

    return model_of(ScriptedModel(reply, capabilities=ENFORCED, identity="scripted"))


def requests_of(asked: list[ChatRequest], **answers: Any) -> Model:
    """As `model`, and notes what it is asked."""
    told = {name: _noting(asked, answer) for name, answer in {**SAID, **answers}.items()}
    return model(**told)


def _noting(asked: list[ChatRequest], answer: Any) -> Reply:
    def reply(request: ChatRequest) -> Any:
        asked.append(request)
        return answer(request) if callable(answer) else answer

    return reply


def listed(request: ChatRequest) -> list[str]:
    """The options of a request, as they are shown."""
    text = request.messages[-1].text.partition("Options:\n")[2]
    return [found[1] for line in text.splitlines() if (found := re.match(r"\d+\. (.*)", line))]


def picture_of(request: ChatRequest) -> str:
    """Digest of the picture that a request shows."""
    return next(part.shown.image.sha256 for part in request.messages[-1].parts if isinstance(part, ImagePart))


def choosing(wanted: Callable[[str], Any], *, field: str = "answers", count: int = 3) -> Reply:
    """A chooser that goes by the texts alone: the options that `wanted` puts first, equals by their text."""

    def reply(request: ChatRequest) -> dict[str, Any]:
        options = listed(request)
        ranked = sorted(range(len(options)), key=lambda at: (wanted(options[at]), options[at]))
        chosen = [at + 1 for at in ranked[:count]]
        return {field: chosen if field == "answers" else chosen[0]}

    return reply


def is_wrong(text: str) -> bool:
    """What a perfect chooser puts last."""
    return not text.endswith("is right")


REFUSAL = ChatResponse(refusal="I would rather not.")


def shown(run: Run) -> dict[str, float | None]:
    """The figures of a run by name, in percent where they are shares, rounded to nine places."""
    return {
        each.metric: None if each.value is None else round(each.value * (100 if each.percent else 1), 9)
        for each in run.figures
    }
