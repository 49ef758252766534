"""From a request to what vLLM takes beyond OpenAI's protocol, and from its outputs to a response. Pure functions.

Pictures carry a name by which vLLM's caches find them, so that it neither hashes nor prepares one again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askance.chat import ChatResponse, ImagePart, Message, TextPart, Usage, key_of
from askance.errors import BadRequest
from askance.models.local import batch_row
from askance.models.local.batch_row import MAX_TOKENS
from askance.models.local.prompt_writer import refuse_tools
from askance.models.replies import finish_of, split_thinking

if TYPE_CHECKING:
    from askance.chat import ChatRequest, JsonObject

SAMPLED = frozenset({
    "bad_words", "frequency_penalty", "ignore_eos", "logit_bias", "min_p", "min_tokens", "presence_penalty",
    "repetition_penalty", "stop_token_ids", "top_k",
})  # fmt: skip
"""Provider extras that say how a token is chosen."""

EXTRAS = SAMPLED | {"chat_template_kwargs", "structured_outputs"}
"""Provider extras that are understood in process; a server is sent whatever is given."""


def cache_name(part: ImagePart) -> str:
    """What a picture as it is sent is known by: its source, how it is prepared, and what is shown of it."""
    return key_of("image", part.shown.canonical())


def seed_of(request: ChatRequest) -> int | None:
    """The caller's seed for the first draw, and one made from it for each later draw."""
    return batch_row.seed_of(request) if request.draw else request.sampling.seed


def with_extensions(request: ChatRequest, body: JsonObject) -> JsonObject:
    """A body of chat completions with what vLLM takes besides: names of pictures, a limit, the seed of the draw."""
    for message, form in zip(request.messages, body["messages"], strict=True):
        if isinstance(form["content"], list):
            for part, sent in zip(message.parts, form["content"], strict=True):
                if isinstance(part, ImagePart):
                    sent["uuid"] = cache_name(part)
    if not {"max_tokens", "max_completion_tokens"} & body.keys():
        body["max_tokens"] = MAX_TOKENS
    if (seed := seed_of(request)) is not None:
        body["seed"] = seed
    return body


def to_messages(request: ChatRequest, pictures: Sequence[Any]) -> list[JsonObject]:
    """The turns as vLLM's engine takes them, with `pictures` as PIL has them, in order.

    Raises:
        BadRequest: it asks for tools.
    """
    refuse_tools(request, hint="Ask without them, or ask a server.")
    left = iter(pictures)
    return [{"role": message.role, "content": _content(message, left)} for message in request.messages]


def _content(message: Message, pictures: Any) -> str | list[JsonObject]:
    if not any(isinstance(part, ImagePart) for part in message.parts):
        return message.text
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, TextPart)
        else {"type": "image_pil", "image_pil": next(pictures), "uuid": cache_name(part)}
        for part in message.parts
    ]


def to_sampling(request: ChatRequest, defaults: Mapping[str, Any], *, room: int) -> JsonObject:
    """Arguments of vLLM's `SamplingParams`, but for `structured_outputs`.

    Args:
        request: what is asked.
        defaults: how the model's authors have it sampled, where the request leaves that open.
        room: tokens that the context has left.

    Raises:
        BadRequest: an extra is not known here.
    """
    unknown = request.extra.keys() - EXTRAS
    if unknown:
        raise BadRequest(
            f"vLLM in process has no setting {min(unknown)!r}.",
            hint=f"Known in `extra`: {', '.join(map(repr, sorted(EXTRAS)))}.",
        )
    sampling = request.sampling
    arguments: JsonObject = {
        **{name: value for name, value in defaults.items() if name in SAMPLED | {"temperature", "top_p"}},
        **{name: request.extra[name] for name in SAMPLED & request.extra.keys()},
        "max_tokens": max(1, min(sampling.max_tokens or MAX_TOKENS, room)),
    }
    if "logit_bias" in arguments:
        # JSON has no other keys than texts.
        arguments["logit_bias"] = {int(token): bias for token, bias in arguments["logit_bias"].items()}
    for name, value in (
        ("temperature", sampling.temperature),
        ("top_p", sampling.top_p),
        ("seed", seed_of(request)),
        ("stop", list(sampling.stop) or None),
        ("logprobs", sampling.logprobs),
    ):
        if value is not None:
            arguments[name] = value
    return arguments


def to_structured_outputs(request: ChatRequest) -> JsonObject | None:
    """Arguments of vLLM's `StructuredOutputsParams`; None where the answer is free."""
    form = request.response
    if "structured_outputs" in request.extra:
        return dict(request.extra["structured_outputs"])
    if form is None:
        return None
    return {"json_object": True} if form.schema is None else {"json": dict(form.schema)}


def from_output(output: Any, *, model: str, pictures: int | None = None, wanted: int | None = None) -> ChatResponse:
    """The response in a finished output of the engine.

    Args:
        output: vLLM's `RequestOutput`.
        model: name of the model.
        pictures: how many tokens stand for pictures.
        wanted: how many alternatives of each token were asked for.
    """
    written = output.outputs[0]
    thinking, text = split_thinking(written.text)
    usage = Usage(
        input=len(output.prompt_token_ids or ()),
        output=len(written.token_ids),
        cached=output.num_cached_tokens,
        image=pictures or None,
    )
    return ChatResponse(
        text=text,
        thinking=thinking,
        finish=finish_of([written.finish_reason or ""], refused=False, called=False),
        usage=usage,
        model=model,
        logprobs=tuple(
            _token(*pair, wanted or 0) for pair in zip(written.token_ids, written.logprobs or (), strict=False)
        ),
    )


def _token(token: int, candidates: Mapping[int, Any], most: int) -> JsonObject:
    chosen = candidates[token]
    form: JsonObject = {"token": chosen.decoded_token or "", "logprob": float(chosen.logprob)}
    likeliest = sorted(candidates.values(), key=lambda each: -each.logprob)[:most]
    if likeliest:
        form["top"] = {each.decoded_token or "": float(each.logprob) for each in likeliest}
    return form
