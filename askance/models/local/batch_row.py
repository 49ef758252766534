"""From a request to a row of a batch: the tokens and pixels of its prompt, and how its answer is sampled."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from askance.chat import (
    ChatRequest,
    ChatResponse,
    FinishReason,
    Usage,
    canonical_json,
)
from askance.errors import BadRequest, ContextExceeded, ImagesRejected
from askance.images import Image
from askance.models.local.prompt_writer import split_special_tokens
from askance.models.replies import split_thinking

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.models.local.prompt_writer import PromptWriter
    from askance.models.local.transformers_model import TransformersModel

MAX_TOKENS = 1024
"""Tokens of an answer to a request without a limit of its own, if the context has room for them."""

_NUMBERS = ("min_p", "repetition_penalty", "top_k")
EXTRAS = frozenset({"chat_template_kwargs", *_NUMBERS})
"""Extras that a model on this machine takes."""

_TOKEN_TYPES = ("token_type_ids", "mm_token_type_ids")


# --- how the next token is chosen ---


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the next token is chosen."""

    temperature: float = 0.0
    """0 takes the likeliest."""
    top_p: float = 1.0
    top_k: int = 0
    """0 is without a limit."""
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0

    @classmethod
    def of(cls, request: ChatRequest, defaults: Mapping[str, Any]) -> SamplingParams:
        """As `request` says; where it leaves that open, as the model's `defaults` do.

        Without a seed from the caller the draws cannot be repeated.

        Raises:
            BadRequest: an extra is not known here, or is no number.
        """
        unknown = request.extra.keys() - EXTRAS
        if unknown:
            raise BadRequest(
                f"A model on this machine has no setting {min(unknown)!r}.",
                hint=f"Known in `extra`: {', '.join(map(repr, sorted(EXTRAS)))}.",
            )
        extra = {name: _number(request.extra[name], name) for name in _NUMBERS if name in request.extra}
        sampling, samples = request.sampling, bool(defaults.get("do_sample"))
        used = {name: defaults[name] for name in defaults if samples or name == "repetition_penalty"}
        temperature = sampling.temperature
        if temperature is None:
            temperature = float(used.get("temperature") or 1.0) if samples else 0.0
        seed = seed_of(request)
        return cls(
            temperature=temperature,
            top_p=float(sampling.top_p if sampling.top_p is not None else used.get("top_p") or 1.0),
            top_k=int(extra.get("top_k", used.get("top_k") or 0)),
            min_p=float(extra.get("min_p", used.get("min_p") or 0.0)),
            repetition_penalty=float(extra.get("repetition_penalty", used.get("repetition_penalty") or 1.0)),
            seed=secrets.randbits(63) if seed is None else seed,
        )


def seed_of(request: ChatRequest) -> int | None:
    """63 bits made from the caller's seed and the index of the draw: draws differ, and can be repeated."""
    seed = request.sampling.seed
    if seed is None:
        return None
    return int.from_bytes(sha256(f"{seed} {request.draw}".encode()).digest()[:8], "big") >> 1


def _number(value: object, name: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise BadRequest(f"The value {value!r} of {name!r} is no number.", hint="Mend `extra`.")


# --- tokens and pixels ---


@dataclass(kw_only=True, eq=False)
class BatchRow:
    """A request as tokens and pixels."""

    request: ChatRequest
    ids: list[int]
    """The prompt; a picture stands in it as placeholders, and behind it the text that is given to be weighed."""
    given: int | None = None
    """Tokens of that text; None where an answer is wanted."""
    types: Mapping[str, list[int]] = field(default_factory=dict[str, list[int]])
    """By the model's name for them: the type of each token."""
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What goes with the prompt, pixels above all: tensors whose first axis counts pictures."""
    pictures: tuple[str, ...] = ()
    """Digests of the pictures as prepared, in order."""
    picture_tokens: int = 0
    picture_end: int = 0
    """Index behind the last placeholder of a picture; 0 without one."""
    limit: int
    """Most tokens of the answer."""
    params: SamplingParams
    abandoned: bool = False
    """Set when the caller no longer waits for the answer."""

    @property
    def schema(self) -> JsonObject | None:
        """The JSON Schema that the answer is held to, if it is."""
        form = self.request.response
        if form is None:
            return None
        return dict(form.schema) if form.schema is not None else {"type": "object"}

    @property
    def shape(self) -> str:
        """Equal for rows whose inputs go into one batch."""
        return canonical_json({name: list(value.shape[1:]) for name, value in self.inputs.items() if not is_text(name)})


def is_text(name: str) -> bool:
    """Whether the input called `name` is as long as some text, so that it is padded."""
    return name.endswith(("input_ids", "attention_mask"))


def decoded(request: ChatRequest) -> list[Any]:
    """The pictures of a request as prepared, as PIL has them, in order.

    Raises:
        BadImage: a picture cannot be used.
    """
    return [_opened(part.shown.prepare().data) for part in request.images]


def _opened(data: bytes) -> Any:
    return Image.from_bytes(data).open().convert("RGB")


def to_row(request: ChatRequest, model: TransformersModel, writer: PromptWriter) -> BatchRow:
    """The row that asks `request`.

    Raises:
        ImagesRejected: the model takes no pictures, or not so many.
        ContextExceeded: the prompt is longer than the model reads.
        BadRequest: see `PromptWriter.text` and `SamplingParams.of`.
        BadImage: a picture cannot be used.
    """
    params = SamplingParams.of(request, model.defaults)
    _check_pictures(request, model)
    prepared = [part.shown.prepare().data for part in request.images]
    text = writer.text(request)
    start = model.tokenizer.bos_token
    # A template writes the token that begins a prompt itself.
    begun = writer.template is not None and (not start or text.startswith(start) or model.processor is None)
    how: dict[str, Any] = {"return_tensors": "pt", "add_special_tokens": not begun}
    if model.processor is None:
        inputs = dict(model.tokenizer(text, **how))
    else:
        inputs = dict(model.processor(text=text, images=list(map(_opened, prepared)) or None, **how))
    ids: list[int] = inputs.pop("input_ids")[0].tolist()
    given = None if request.given is None else _given_ids(request.given, model, writer)
    ids += given or []
    # Each given token is of the type 0: text.
    behind = [0] * len(given or [])
    inputs.pop("attention_mask", None)
    places = [place for place, token in enumerate(ids) if token == model.picture_token] if prepared else []
    return BatchRow(
        request=request,
        ids=ids,
        given=None if given is None else len(given),
        types={name: inputs.pop(name)[0].tolist() + behind for name in _TOKEN_TYPES if name in inputs},
        # Without a picture nothing reads what goes with one, such as the words for InstructBLIP's Q-Former.
        inputs=inputs if prepared else {},
        pictures=tuple(sha256(data).hexdigest() for data in prepared),
        picture_tokens=len(places),
        picture_end=places[-1] + 1 if places else 0,
        limit=_limit(request, len(ids), model),
        params=params,
    )


def _given_ids(text: str, model: TransformersModel, writer: PromptWriter) -> list[int]:
    """Tokens of a text that stands behind a prompt.

    Raises:
        BadRequest: it has none.
    """
    ids: list[int] = model.tokenizer(split_special_tokens(text, writer.special_tokens), add_special_tokens=False)[
        "input_ids"
    ]
    if not ids:
        raise BadRequest("The text that is to be weighed is empty.", hint="Give a text with a word in it.")
    return ids


def _check_pictures(request: ChatRequest, model: TransformersModel) -> None:
    count = len(request.images)
    if count and model.processor is None:
        raise ImagesRejected(
            f"The model {str(request.model)!r} ({model.kind}) is of text alone and was given a picture.",
            hint="Ask a vision-language model about pictures.",
        )
    if count > 1 and model.architecture.single:
        raise ImagesRejected(
            f"The model {str(request.model)!r} ({model.kind}) looks at one picture and was given {count}.",
            hint="Ask about one picture at a time, or give a model that looks at several.",
        )


def _limit(request: ChatRequest, prompt: int, model: TransformersModel) -> int:
    """Tokens that the answer may have.

    Raises:
        ContextExceeded: there is room for none.
    """
    wanted = request.sampling.max_tokens or MAX_TOKENS
    if model.model.config.is_encoder_decoder:
        return wanted
    room = model.context - prompt
    if room < 1:
        raise ContextExceeded(
            f"The prompt has {prompt} tokens, and {str(request.model)!r} reads {model.context}, its answer included.",
            hint="Ask with less, or take a model with a longer context.",
        )
    return min(wanted, room)


# --- the answer ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What the model wrote for one row."""

    text: str
    tokens: int
    """The one that ends the answer counts."""
    finish: FinishReason
    logprobs: tuple[Mapping[str, Any], ...] = ()
    reused: int = 0
    """Tokens of the prompt that were computed for another row before."""


def to_response(row: BatchRow, completion: Completion, *, model: str) -> ChatResponse:
    """The answer in the values of this package."""
    thinking, text = split_thinking(completion.text)
    usage = Usage(
        input=len(row.ids),
        output=completion.tokens,
        cached=completion.reused or None,
        image=row.picture_tokens or None,
    )
    return ChatResponse(
        text=text,
        thinking=thinking,
        finish=completion.finish,
        usage=usage,
        model=model,
        logprobs=completion.logprobs,
    )
