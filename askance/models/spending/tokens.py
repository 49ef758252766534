"""How many tokens a request will take that was not asked yet: estimated, and in the worst case.

Text counts a token for four bytes of UTF-8, which is about right for English; a token for six bytes and for two and a
half are the bounds. In the worst case every byte is a token, which no tokenizer that works on bytes exceeds. Pictures
count by their provider's formula.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from askance.chat import ChatRequest, ImagePart, Usage, canonical_json
from askance.models.spending.picture_tokens import picture_tokens
from askance.models.spending.prices import longest_answer
from askance.models.spending.spread import NOTHING, Spread

if TYPE_CHECKING:
    from askance.chat import ModelId

DEFAULT_LIMIT = 4096
"""Tokens that stand for the longest answer where no limit is set and the model's own is not known."""

UNSEEN_ANSWER = Spread(40, 150, 500)
"""Tokens of an answer of which nothing is known but that it is one of a chain's links, thinking not counted."""

_BYTES = Spread(1 / 6, 1 / 4, 1 / 2.5)
"""Tokens a byte of text."""
_TURN = 16
"""Most tokens that a provider puts around a turn, and around the whole."""
_TOOLS = 512
"""Most tokens that a provider puts around tools."""
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Names under which an extra may set the longest answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What of a request is counted."""

    text: int
    """Bytes of UTF-8 of all texts, tools and the schema."""
    wrapping: int
    """Most tokens that the provider adds around them."""
    pictures: Spread
    """Tokens of all pictures."""

    @property
    def input(self) -> Spread:
        """Tokens that the request is expected to take."""
        return text_tokens(self.text) + self.pictures

    @property
    def worst_input(self) -> int:
        """Tokens that the request takes at most."""
        return self.text + self.wrapping + round(self.pictures.high)


def text_tokens(size: int) -> Spread:
    """Tokens of a text of `size` bytes."""
    return _BYTES * size


def size_of(request: ChatRequest) -> Size:
    """What of `request` is counted; of pictures only the header is read.

    Raises:
        BadImage: a picture that cannot be used.
    """
    text, pictures = 0, NOTHING
    for message in request.messages:
        text += _bytes(message.text) + sum(_bytes(call.name + call.arguments) for call in message.tool_calls)
    for part in request.images:
        width, height = sent_size(part)
        pictures += picture_tokens(request.model.model, width, height, detail=part.detail)
    for tool in request.tools:
        text += _bytes(canonical_json(tool.canonical()))
    if request.response is not None:
        text += _bytes(canonical_json(request.response.canonical()))
    wrapping = _TURN * (len(request.messages) + 1) + (_TOOLS if request.tools else 0)
    return Size(text=text, wrapping=wrapping, pictures=pictures)


def sent_size(part: ImagePart) -> tuple[int, int]:
    """Width and height, in pixels, in which a picture is sent, as far as its header tells.

    Raises:
        BadImage: it cannot be used.
    """
    info = part.image.info
    longest = max(info.width, info.height)
    if part.policy.name == "original" or longest <= part.policy.max_side:
        return info.width, info.height
    scale = part.policy.max_side / longest
    return max(1, round(info.width * scale)), max(1, round(info.height * scale))


def answer_limit(request: ChatRequest) -> int:
    """Most tokens of the answer: the limit set, else the model's own where it is listed, else `DEFAULT_LIMIT`."""
    extra: Mapping[str, Any] = {**request.extra, **(request.extra.get("extra_body") or {})}
    stated = [request.sampling.max_tokens, *(extra.get(name) for name in _LIMITS)]
    limits = [limit for limit in stated if isinstance(limit, int)]
    return max(limits) if limits else listed_limit(request.model)


def listed_limit(model: ModelId) -> int:
    """Most tokens of an answer of `model` where no limit is set."""
    return longest_answer(model) or DEFAULT_LIMIT


def worst_case(request: ChatRequest) -> Usage:
    """The most tokens that `request` can take.

    Raises:
        BadImage: a picture that cannot be used.
    """
    return Usage(input=size_of(request).worst_input, output=answer_limit(request))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
