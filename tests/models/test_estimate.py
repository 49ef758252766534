from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.chat import (
    ChatRequest,
    ChatResponse,
    Detail,
    ImagePart,
    Message,
    ModelId,
    ResponseFormat,
    Sampling,
    TextPart,
    ToolSpec,
    Usage,
)
from askance.images import Image, Shown
from askance.models.token_estimate import (
    DEFAULT_LIMIT,
    FORMULAS,
    Formula,
    Range,
    answer_limit,
    mean_range,
    patches,
    picture_tokens,
    size_of,
    text_tokens,
    token_statistics,
    worst_case,
)
from askance.replay import MemoryStore, Record
from tests.images.samples import encoded, photo


def picture(width: int, height: int) -> Image:
    return Image.from_bytes(encoded(photo((width, height)), "PNG"))


GPT_4O = ModelId("openai", "gpt-4o")


def asking(text: str, *pictures: ImagePart, **fields: Any) -> ChatRequest:
    return ChatRequest(model=GPT_4O, messages=(Message("user", (*pictures, TextPart(text))),), **fields)


def test_text_is_counted_in_bytes() -> None:
    assert text_tokens(60) == Range(10, 15, 24)
    assert size_of(asking("a" * 60)).input == Range(10, 15, 24)
    assert size_of(asking("猫" * 20)).input == Range(10, 15, 24)


def test_pictures_tools_and_schema_count() -> None:
    shown = ImagePart(Shown(picture(1024, 1024)))
    tool = ToolSpec("look", "Looks.", {"type": "object"})
    schema = ResponseFormat("json_schema", "answer", {"type": "object"})

    plain, rich = size_of(asking("words")), size_of(asking("words", shown, tools=(tool,), response=schema))

    assert rich.pictures == Range.exactly(765)
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


SIDES = st.integers(1, 20_000)

# Worked by the provider in its documentation, or counted by its endpoint (the sizes up to 4032 × 3024 px).
WORKED: list[tuple[str, int, int, Detail, int]] = [
    ("gpt-4o", 1024, 1024, "high", 765),
    ("gpt-4o", 2048, 4096, "high", 1105),
    ("gpt-4o", 4096, 8192, "low", 85),
    ("gpt-4o-mini", 512, 512, "auto", 8500),
    ("gpt-4.1-mini", 1024, 1024, "auto", 1659),
    ("gpt-5", 1024, 1024, "auto", 630),
    ("o1", 1024, 1024, "auto", 675),
    ("gpt-6-astra", 256, 256, "auto", 77),
    ("gpt-6-astra", 1920, 1080, "auto", 2448),
    ("gpt-6-astra", 2560, 1440, "high", 2931),
    ("gpt-6-astra", 4032, 3024, "auto", 14364),
    ("gpt-6-astra", 4032, 3024, "high", 2942),
    ("gpt-6-astra", 4032, 3024, "low", 231),
    ("gpt-5.5", 4032, 3024, "auto", 11868),
    ("claude-haiku-4-5", 1000, 1000, "auto", 1296),
    ("claude-haiku-4-5", 4032, 3024, "auto", 1568),
    ("claude-sonnet-4-20250514", 512, 512, "auto", 361),
    ("claude-opus-5-5", 1920, 1080, "auto", 2691),
    ("gemini-2.5-flash", 300, 384, "auto", 258),
    ("gemini-2.5-flash", 960, 540, "auto", 1548),
    ("gemini-3.5-flash", 4032, 3024, "auto", 1120),
    ("Qwen/Qwen2-VL-7B-Instruct", 1036, 1036, "auto", 1369),
    ("Qwen/Qwen3-VL-8B-Instruct", 1024, 1024, "auto", 1024),
    ("llava-hf/llava-1.5-13b-hf", 640, 480, "auto", 576),
]


@pytest.mark.parametrize(
    ("model", "width", "height", "detail", "tokens"),
    WORKED,
    ids=[f"{row[0]} {row[1]}x{row[2]} {row[3]}" for row in WORKED],
)
def test_worked_examples(model: str, width: int, height: int, detail: Detail, tokens: int) -> None:
    assert picture_tokens(model, width, height, detail=detail) == Range.exactly(tokens)


@pytest.mark.parametrize(("width", "height", "count"), [(1024, 1024, 1024), (1800, 2400, 1452)], ids=["fits", "shrunk"])
def test_patches_before_the_factor(width: int, height: int, count: int) -> None:
    assert patches(width, height, "high", factor=1, budget=1536) == count


def test_without_a_formula_the_size_decides_give_or_take_a_factor_of_two() -> None:
    assert picture_tokens("my-own", 280, 280) == Range(50, 100, 200)
    assert picture_tokens("my-own", 20_000, 2_000) == Range.around(4784)


@pytest.mark.parametrize("formula", [formula for _, formula in FORMULAS], ids=[pattern for pattern, _ in FORMULAS])
@given(width=SIDES, height=SIDES)
def test_every_picture_costs_something_and_turned_about_the_same(formula: Formula, width: int, height: int) -> None:
    tokens = formula(width, height, "auto")

    assert tokens >= 1
    assert formula(height, width, "auto") == tokens


@given(width=SIDES, height=SIDES, budget=st.integers(1, 5000))
def test_a_budget_of_patches_holds(width: int, height: int, budget: int) -> None:
    count = partial(patches, width, height, "high", factor=1)

    assert count(budget=budget) <= budget


MODEL = ModelId("openai", "gpt-4o")


def record(text: str, usage: Usage, *, name: str | None = "objects", model: ModelId = MODEL) -> Record:
    response = None if name is None else ResponseFormat("json_schema", name, {"type": "object"})
    request = ChatRequest(model=model, messages=(Message("user", (TextPart(text),)),), response=response)
    return Record.make("chat", request.canonical(), ChatResponse(text="{}", usage=usage).canonical())


def test_answers_of_one_kind_tell_their_length_and_how_far_estimates_are_off() -> None:
    other = ModelId("openai", "gpt-5")
    store = MemoryStore(
        [
            record("a" * 400, Usage(input=200, output=10)),
            record("b" * 400, Usage(input=220, output=30)),
            record("uncounted", Usage()),
            record("unnamed", Usage(input=1, output=1), name=None),
            record("another's", Usage(input=1, output=1), model=other),
        ]
    )

    (kind, found), *others = token_statistics(store, [MODEL]).items()

    assert (kind, others) == ((MODEL, "objects"), [])
    assert (len(found.input), sum(found.output)) == (2, 40)
    assert found.factor is not None
    assert 1 < found.factor < 2


@pytest.mark.parametrize(
    ("values", "spread"),
    [([], None), ([100], Range(50, 100, 200)), ([100] * 4, Range(90, 100, 110)), ([50, 150], Range(0, 100, 200))],
    ids=["none", "one", "alike", "apart"],
)
def test_a_mean_and_how_far_off_it_may_be(values: list[float], spread: Range | None) -> None:
    assert mean_range(values) == spread
