"""Scripted models over the made-up data set, whose answers are known for every picture and every text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from askance.chat import ChatRequest, ChatResponse, ImagePart
from askance.images import Image
from askance.models import Model, ScriptedModel
from tests.evals.whoops.files import IDS, NAMES
from tests.judges import FENCED
from tests.scripted import ENFORCED, PICTURES, model_of, name_of

REFUSAL = ChatResponse(refusal="I would rather not.")

Reply = Callable[[ChatRequest], Any]


def of_pictures() -> Mapping[str, str]:
    """Digest of each demo picture to the id of its row."""
    return {Image.from_path(PICTURES / f"{name}.jpg").sha256: key for name, key in zip(NAMES, IDS, strict=True)}


def model(**answers: Any) -> Model:
    """A model that answers from a table: JSON, a response, or a function of the request."""

    def reply(request: ChatRequest) -> str | ChatResponse:
        found = answers[name_of(request)]
        found = found(request) if callable(found) else found
        return found if isinstance(found, (str, ChatResponse)) else json.dumps(found)

    return model_of(ScriptedModel(reply, capabilities=ENFORCED, identity="scripted"))


def seen(request: ChatRequest) -> str:
    """The id of the picture that a request shows; empty for any other picture."""
    digest = next(part.shown.image.sha256 for part in request.messages[-1].parts if isinstance(part, ImagePart))
    return of_pictures().get(digest, "")


def by_picture(field: str, answers: Mapping[str, str], otherwise: str) -> Reply:
    """Answers by the picture that is shown."""
    return lambda request: {field: answers.get(seen(request), otherwise)}


def description(request: ChatRequest) -> str:
    """The description that a request quotes."""
    found = re.search(r"<<description (\w+)\n(.*?)\n\1>>", request.messages[-1].text, re.DOTALL)
    assert found is not None
    return found[2]


def listed(request: ChatRequest) -> list[str]:
    """The options of a request, as they are shown."""
    text = request.messages[-1].text.partition("Options:\n")[2]
    return [found[1] for line in text.splitlines() if (found := re.match(r"\d+\. (.*)", line))]


def choosing(wanted: Callable[[str], bool]) -> Reply:
    """A chooser that takes the first option that is wanted, else the first."""

    def reply(request: ChatRequest) -> dict[str, Any]:
        options = listed(request)
        return {"answers": [next((n for n, text in enumerate(options, start=1) if wanted(text)), 1)]}

    return reply


def judging(says: Callable[[str, str], str]) -> Reply:
    """A judge that goes by the two texts."""

    def reply(request: ChatRequest) -> dict[str, Any]:
        asked_of = next(turn.text for turn in request.messages if turn.role == "user")
        texts = {found[1]: found[3] for found in FENCED.finditer(asked_of)}
        said = says(texts["reference"], texts["candidate"])
        assert request.response is not None
        assert request.response.schema is not None
        asked: dict[str, Any] = dict(request.response.schema)["properties"]
        return {**dict.fromkeys(asked, ""), "verdict": said}

    return reply
