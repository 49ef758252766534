"""One request as a row of a batch, and what came of it: plain values."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from askance.chat import ChatResponse, FinishReason, Usage, canonical_json
from askance.errors import BadRequest
from askance.models.replies import split_thinking

if TYPE_CHECKING:
    from askance.chat import ChatRequest, JsonObject

MOST_TOKENS = 1024
"""Tokens of an answer to a request without a limit of its own, if the context has room for them."""

EXTRAS = frozenset({"chat_template_kwargs", "min_p", "repetition_penalty", "top_k"})
"""Provider extras that are understood here."""

_NUMBERS = ("min_p", "repetition_penalty", "top_k")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
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
    def of(cls, request: ChatRequest, own: Mapping[str, Any]) -> Choice:
        """As `request` says; where it leaves that open, as the model's authors do (`own`).

        A seed is the caller's together with the index of the draw, so that draws differ and can be had again; without
        one nobody can know it.

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
        sampling = request.sampling
        drawn = own if own.get("do_sample") else {name: own[name] for name in ("repetition_penalty",) if name in own}
        temperature = sampling.temperature
        if temperature is None:
            temperature = float(drawn.get("temperature") or 1.0) if own.get("do_sample") else 0.0
        return cls(
            temperature=temperature,
            top_p=float(sampling.top_p if sampling.top_p is not None else drawn.get("top_p") or 1.0),
            top_k=int(extra.get("top_k", drawn.get("top_k") or 0)),
            min_p=float(extra.get("min_p", drawn.get("min_p") or 0.0)),
            repetition_penalty=float(extra.get("repetition_penalty", drawn.get("repetition_penalty") or 1.0)),
            seed=_seed(sampling.seed, request.draw),
        )


def _number(value: object, name: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise BadRequest(f"The value {value!r} of {name!r} is no number.", hint="Mend `extra`.")


def _seed(seed: int | None, draw: int) -> int:
    """63 bits that a generator starts from."""
    if seed is None:
        return secrets.randbits(63)
    return int.from_bytes(sha256(f"{seed} {draw}".encode()).digest()[:8], "big") >> 1


@dataclass(kw_only=True, eq=False)
class Row:
    """A request as tokens and pixels."""

    request: ChatRequest
    ids: list[int]
    """The prompt; a picture stands in it as placeholders."""
    types: Mapping[str, list[int]] = field(default_factory=dict[str, list[int]])
    """By the model's name for them: what kind each token is of."""
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What goes with the prompt, pixels above all: tensors whose first axis counts pictures."""
    pictures: tuple[str, ...] = ()
    """Digests of the pictures as prepared, in order."""
    picture_tokens: int = 0
    picture_end: int = 0
    """Index behind the last placeholder of a picture; 0 without one."""
    limit: int
    """Most tokens of the answer."""
    choice: Choice
    given_up: bool = False
    """Set by whoever no longer waits for the answer."""

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
    """Whether an input is as long as some text, so that it is padded."""
    return name.endswith(("input_ids", "attention_mask"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What the model wrote for one row."""

    text: str
    tokens: int
    """The one that ends the answer counts."""
    finish: FinishReason
    logprobs: tuple[Mapping[str, Any], ...] = ()
    reused: int = 0
    """Tokens of the prompt that were computed for another row before."""


def to_response(row: Row, written: Written, *, model: str) -> ChatResponse:
    """The answer in the values of this package."""
    thinking, text = split_thinking(written.text)
    usage = Usage(
        input=len(row.ids),
        output=written.tokens,
        cached=written.reused or None,
        image=row.picture_tokens or None,
    )
    return ChatResponse(
        text=text, thinking=thinking, finish=written.finish, usage=usage, model=model, logprobs=written.logprobs
    )
