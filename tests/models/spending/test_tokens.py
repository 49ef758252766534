from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from askance.chat import ChatRequest, ImagePart, Message, ModelId, ResponseFormat, Sampling, TextPart, ToolSpec, Usage
from askance.images import CLEAN, ORIGINAL, Image
from askance.models.spending.spread import Spread
from askance.models.spending.tokens import DEFAULT_LIMIT, answer_limit, sent_size, size_of, text_tokens, worst_case
from tests.images.samples import encoded, photo


def picture(width: int, height: int) -> Image:
    return Image.from_bytes(encoded(photo((width, height)), "PNG"))


GPT_4O = ModelId("openai", "gpt-4o")


def asking(text: str, *pictures: ImagePart, **fields: Any) -> ChatRequest:
    return ChatRequest(model=GPT_4O, messages=(Message("user", (*pictures, TextPart(text))),), **fields)


def test_text_is_counted_in_bytes() -> None:
    assert text_tokens(60) == Spread(10, 15, 24)
    assert size_of(asking("a" * 60)).input == Spread(10, 15, 24)
    assert size_of(asking("猫" * 20)).input == Spread(10, 15, 24)


def test_pictures_tools_and_schema_count() -> None:
    shown = ImagePart(picture(1024, 1024))
    tool = ToolSpec("look", "Looks.", {"type": "object"})
    schema = ResponseFormat("json_schema", "answer", {"type": "object"})

    plain, rich = size_of(asking("words")), size_of(asking("words", shown, tools=(tool,), response=schema))

    assert rich.pictures == Spread.exactly(765)
    assert rich.text > plain.text
    assert rich.wrapping > plain.wrapping


def test_the_worst_case_of_text_is_a_token_a_byte() -> None:
    assert worst_case(asking("a" * 60, sampling=Sampling(max_tokens=7))) == Usage(input=60 + 2 * 16, output=7)


@pytest.mark.parametrize(
    ("request_", "limit"),
    [
        (asking("", sampling=Sampling(max_tokens=7)), 7),
        (asking("", extra={"max_completion_tokens": 9}), 9),
        (asking("", extra={"extra_body": {"max_output_tokens": 9}}, sampling=Sampling(max_tokens=7)), 9),
        (asking(""), 16_384),
        (replace(asking(""), model=ModelId("openai", "mine", "http://localhost:8000/v1")), DEFAULT_LIMIT),
    ],
    ids=["set", "extra", "both", "listed", "unknown"],
)
def test_longest_answer(request_: ChatRequest, limit: int) -> None:
    assert answer_limit(request_) == limit


@pytest.mark.parametrize(
    ("part", "size"),
    [
        (ImagePart(picture(300, 100)), (300, 100)),
        (ImagePart(picture(300, 100), replace(CLEAN, max_side=30)), (30, 10)),
        (ImagePart(picture(300, 100), replace(ORIGINAL, max_side=30)), (300, 100)),
    ],
    ids=["fits", "scaled down", "original"],
)
def test_size_as_sent(part: ImagePart, size: tuple[int, int]) -> None:
    assert sent_size(part) == size
