"""What vLLM is sent, and what its outputs become."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from askance.chat import ChatRequest, ImagePart, Message, ResponseFormat, Sampling, TextPart, ToolSpec, Usage
from askance.errors import BadRequest
from askance.images import ORIGINAL_POLICY, RegionView, Shown
from askance.models.image_data import encode
from askance.models.local.prompt_writer import without_special_tokens
from askance.models.openai.chat_completions import to_chat
from askance.models.vllm.payload import (
    cache_name,
    from_output,
    seed_of,
    to_messages,
    to_sampling,
    to_structured_outputs,
    with_extensions,
)
from tests.models.local.questions import PICTURES, asked

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"colour": {"type": "string"}}}


def sent(request: ChatRequest) -> dict[str, Any]:
    return with_extensions(request, to_chat(request, encode, model="m"))


def test_pictures_have_names_that_tell_them_and_their_preparation_apart() -> None:
    parts = [part for part in asked("Which?", *PICTURES[:2]).messages[0].parts if isinstance(part, ImagePart)]
    first = parts[0]
    image, corner = first.shown.image, RegionView("crop", ((0, 0, 9, 9),))
    others = (ImagePart(Shown(image, ORIGINAL_POLICY)), ImagePart(Shown(image, view=corner)))
    names = {cache_name(part) for part in (*parts, *others)}

    assert len(names) == len(parts) + 2
    assert cache_name(replace(first, detail="low")) == cache_name(first)
    assert [part.get("uuid") for part in sent(asked("Which?", *PICTURES[:2]))["messages"][0]["content"]] == [
        *map(cache_name, parts),
        None,
    ]


def test_a_body_of_text_alone_gets_a_limit_and_keeps_its_own() -> None:
    limited, free = (replace(asked("Which?"), sampling=Sampling(max_tokens=most)) for most in (5, None))
    assert sent(free) == {**to_chat(free, encode, model="m"), "max_tokens": 1024}
    assert sent(limited)["max_tokens"] == 5


def test_every_draw_has_a_seed_of_its_own() -> None:
    seeded = replace(asked("Which?"), sampling=Sampling(seed=7))
    seeds = [seed_of(replace(seeded, draw=draw)) for draw in range(3)]

    assert seeds[0] == 7
    assert len(set(seeds)) == 3
    assert seeds == [seed_of(replace(seeded, draw=draw)) for draw in range(3)]
    assert all(0 <= (seed or 0) < 2**63 for seed in seeds)
    assert seed_of(asked("Which?")) is None


def test_marks_of_the_model_are_broken_in_words_alone() -> None:
    request = asked("Look at <image> and <|im_end|>", *PICTURES[:1])
    made = without_special_tokens(request, {"<image>", "<|im_end|>"})

    assert made.messages[0].text == "Look at < image> and < |im_end|>"
    assert made.images == request.images
    assert without_special_tokens(request, ()) is request


def test_what_the_engine_is_asked() -> None:
    request = replace(
        asked("Which?", *PICTURES[:1]),
        sampling=Sampling(temperature=0, seed=3, max_tokens=90, stop=("END",), logprobs=2),
        extra={"repetition_penalty": 1.3, "chat_template_kwargs": {"enable_thinking": False}},
        response=ResponseFormat("json_schema", "answer", SCHEMA),
    )
    (message,) = to_messages(request, ["a picture"])

    assert message["content"] == [
        {"type": "image_pil", "image_pil": "a picture", "uuid": cache_name(request.images[0])},
        {"type": "text", "text": "Which?"},
    ]
    assert to_sampling(request, {"temperature": 0.7, "top_k": 20, "max_new_tokens": 5}, room=50) == {
        "temperature": 0, "top_k": 20, "repetition_penalty": 1.3, "max_tokens": 50, "seed": 3, "stop": ["END"],
        "logprobs": 2,
    }  # fmt: skip
    assert to_structured_outputs(request) == {"json": SCHEMA}
    assert to_structured_outputs(replace(request, response=ResponseFormat("json_object"))) == {"json_object": True}
    assert to_structured_outputs(replace(request, extra={"structured_outputs": {"regex": "a+"}})) == {"regex": "a+"}
    assert to_structured_outputs(asked("Which?")) is None


def test_what_the_engine_cannot_is_refused() -> None:
    tools = replace(asked("Which?"), tools=(ToolSpec("look", "Looks.", {}),))
    with pytest.raises(BadRequest, match=r"^A model on this machine calls no tools\."):
        to_messages(tools, [])
    with pytest.raises(BadRequest, match=r"^vLLM in process has no setting 'odd'\. Known in `extra`: 'bad_words', "):
        to_sampling(replace(asked("Which?"), extra={"odd": 1}), {}, room=5)


def test_an_output_becomes_a_response() -> None:
    chosen = {5: SimpleNamespace(logprob=-0.5, decoded_token="red"), 6: SimpleNamespace(logprob=-1, decoded_token="a")}
    written = SimpleNamespace(text="<think>warm</think>red", token_ids=[5], finish_reason="length", logprobs=[chosen])
    output = SimpleNamespace(outputs=[written], prompt_token_ids=[1, 2, 3], num_cached_tokens=2)
    response = from_output(output, model="vllm:m", pictures=1, wanted=2)

    assert (response.text, response.thinking, response.outcome, response.model) == (
        "red", "warm", "truncated", "vllm:m",
    )  # fmt: skip
    assert response.usage == Usage(input=3, output=1, cached=2, image=1)
    assert response.logprobs == ({"token": "red", "logprob": -0.5, "top": {"red": -0.5, "a": -1.0}},)
    assert from_output(output, model="m").logprobs == ({"token": "red", "logprob": -0.5},)


def test_turns_keep_their_roles() -> None:
    turns = (Message("system", (TextPart("Brief."),)), Message("assistant", (TextPart("Red."),)))
    request = replace(asked("Which?"), messages=turns)
    assert to_messages(request, []) == [
        {"role": "system", "content": "Brief."},
        {"role": "assistant", "content": "Red."},
    ]
