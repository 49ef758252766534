"""How many tokens a request will take: estimated, measured on recorded answers, and in the worst case.

Text counts a token for four bytes of UTF-8, which is about right for English; a token for six bytes and for two and a
half are the bounds. In the worst case every byte is a token, which no tokenizer that works on bytes exceeds.

Pictures count by their provider's published formula, a pure function of the size in pixels. Sources, read in November
2026: OpenAI, "Images and vision" (developers.openai.com/api/docs/guides/images-vision); Anthropic, "Vision"
(platform.claude.com/docs/en/build-with-claude/vision); Google, "Image understanding" and "Media resolution"
(ai.google.dev/gemini-api/docs); Qwen, the image processors of Qwen2-VL and Qwen3-VL in `transformers`.

Where calls of the same kind are on record, their token counts replace the estimate (`token_statistics`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import ceil, floor, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.chat import ChatRequest, Detail, ModelId, Usage, canonical_json
from askance.images.shown import key_of_shown
from askance.models.prices import longest_answer

if TYPE_CHECKING:
    from askance.replay import Record, Records


@dataclass(frozen=True, slots=True)
class Range:
    """Low, expected and high; sums add up bound by bound, as if all errors had one cause."""

    low: float = 0.0
    expected: float = 0.0
    high: float = 0.0

    @classmethod
    def exactly(cls, value: float) -> Range:
        """A number that is known."""
        return cls(value, value, value)

    @classmethod
    def around(cls, value: float) -> Range:
        """A number of which only the size is known: half to twice `value`."""
        return cls(value / 2, value, value * 2)

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def __mul__(self, factor: float) -> Range:
        return Range(self.low * factor, self.expected * factor, self.high * factor)


NOTHING = Range()


Formula = Callable[[int, int, Detail], int]
"""Tokens of a picture of this width and height, in pixels, at this detail."""


def tiles(width: int, height: int, detail: Detail, *, base: int, tile: int) -> int:
    """OpenAI's tiles: `base`, and `tile` for each square of 512 px.

    The picture is first fitted into 2048 × 2048 and then scaled down until its shorter side has 768 px. Low detail
    costs `base` alone. Worked by OpenAI at 85 and 170: 1024 × 1024 costs 765, 2048 × 4096 costs 1105.
    """
    if detail == "low":
        return base
    fitted = min(1.0, 2048 / max(width, height))
    scale = fitted * min(1.0, 768 / (min(width, height) * fitted))
    return base + tile * _grid(width * scale, height * scale, 512)


def patches(
    width: int, height: int, detail: Detail, *, factor: float, budget: int, whole: int | None = None, auto: bool = False
) -> int:
    """OpenAI's patches: `factor` for each square of 32 px, after scaling down to at most `budget` squares.

    Worked by OpenAI at a budget of 1536, before the factor: 1024 × 1024 has 1024 patches, 1800 × 2400 has 1452.

    Args:
        width: in pixels.
        height: in pixels.
        detail: `low` fits the picture into 512 × 512 first; `original` has the budget `whole`.
        factor: tokens a patch.
        budget: most patches at high detail.
        whole: most patches at original detail; None is without end.
        auto: whether `auto` stands for `original`, as it does in newer models.
    """
    if detail == "low":
        fitted = min(1.0, 512 / max(width, height))
        return ceil(_grid(width * fitted, height * fitted, 32) * factor)
    most = whole if detail == "original" or (detail == "auto" and auto) else budget
    count = _grid(width, height, 32)
    if most is not None and count > most:
        count = min(_shrunk(width, height, most), most)
    return ceil(round(count * factor, 6))


def _shrunk(width: int, height: int, most: int) -> int:
    """Patches after scaling down to `most`, with whole patches along each side."""
    scale = sqrt(32**2 * most / (width * height))
    across, down = width * scale / 32, height * scale / 32
    scale *= min(max(floor(side), 1) / side for side in (across, down))
    return _grid(round(width * scale, 6), round(height * scale, 6), 32)


def claude(width: int, height: int, detail: Detail = "auto", *, longest: int, budget: int) -> int:  # noqa: ARG001
    """Anthropic's: one for each square of 28 px, after scaling down to `longest` px a side and `budget` tokens.

    Worked by Anthropic: 1000 × 1000 costs 1296. The older rule of thumb, width × height / 750, is within 5 % of it.
    """
    scale = min(1.0, longest / max(width, height))
    return min(_grid(round(width * scale, 6), round(height * scale, 6), 28), budget)


def gemini(width: int, height: int, detail: Detail = "auto") -> int:  # noqa: ARG001
    """Google's up to Gemini 2.5: 258 up to 384 px a side, else 258 for each crop of the shorter side / 1.5.

    Worked by Google: 960 × 540 is cropped to 360 px, 3 × 2 of them, 1548 tokens.
    """
    if max(width, height) <= 384:
        return 258
    return 258 * _grid(width, height, min(max(floor(min(width, height) / 1.5), 256), 768))


def fixed(width: int, height: int, detail: Detail = "auto", *, tokens: int) -> int:  # noqa: ARG001
    """The same for every picture."""
    return tokens


def qwen(width: int, height: int, detail: Detail = "auto", *, side: int, most: int = 16384) -> int:  # noqa: ARG001
    """Qwen's: one for each square of `side` px, sides rounded to whole squares, 4 to `most` of them.

    A server may be set to another most (`max_pixels`). 1036 × 1036 has 37 × 37 squares of 28 px, 1369 tokens.
    """
    across, down = max(1, round(width / side)), max(1, round(height / side))
    return min(max(across * down, 4), most)


_NEW_OPENAI = {"factor": 1.2, "budget": 2500, "auto": True}

FORMULAS: tuple[tuple[str, Formula], ...] = (
    (r"gpt-4o-mini", partial(tiles, base=2833, tile=5667)),
    (r"gpt-(4\.1|5(\.\d)?)-mini", partial(patches, factor=1.62, budget=1536)),
    (r"gpt-(4\.1|5(\.\d)?)-nano", partial(patches, factor=2.46, budget=1536)),
    (r"\bo4-mini", partial(patches, factor=1.72, budget=1536)),
    (r"gpt-5\.[45]", partial(patches, **_NEW_OPENAI, whole=10_000)),
    (r"gpt-(5\.[6-9]|[6-9])", partial(patches, **_NEW_OPENAI)),
    (r"gpt-5", partial(tiles, base=70, tile=140)),
    (r"gpt-4", partial(tiles, base=85, tile=170)),
    (r"\bo[13]\b", partial(tiles, base=75, tile=150)),
    (r"claude-([a-z]+-([5-9]|\d\d)\b|opus-4[-.][789])", partial(claude, longest=2576, budget=4784)),
    (r"claude", partial(claude, longest=1568, budget=1568)),
    (r"gemini-[12]\b", gemini),
    (r"gemini", partial(fixed, tokens=1120)),
    (r"qwen-?2(\.5)?-?(vl|omni)", partial(qwen, side=28)),
    (r"qwen-?3(\.\d)?-?(vl|omni)", partial(qwen, side=32)),
    (r"llava-?(v?1\.5)", partial(fixed, tokens=576)),
)
"""By the model's name, in lower case; the first pattern found decides."""


def formula_of(model: str) -> Formula | None:
    """The formula of the model of this name; None where none is known."""
    name = model.lower()
    return next((formula for pattern, formula in FORMULAS if re.search(pattern, name)), None)


def picture_tokens(model: str, width: int, height: int, *, detail: Detail = "auto") -> Range:
    """What a picture of `width` × `height` px costs the model of this name.

    Without a known formula: one token for each square of 28 px, up to 4784, give or take a factor of two.
    """
    formula = formula_of(model)
    if formula is None:
        return Range.around(min(_grid(width, height, 28), 4784))
    return Range.exactly(formula(width, height, detail))


def _grid(width: float, height: float, side: int) -> int:
    """Squares of `side` px that cover the picture."""
    return max(1, ceil(width / side)) * max(1, ceil(height / side))


DEFAULT_LIMIT = 4096
"""Longest answer, in tokens, where no limit is set and the model's own is not known."""

UNSEEN_ANSWER = Range(40, 150, 500)
"""Tokens of the answer of a chain's link, without thinking, where nothing else is known."""

_BYTES = Range(1 / 6, 1 / 4, 1 / 2.5)
"""Tokens a byte of text."""
_TURN = 16
"""Most tokens that a provider puts around a turn, and around the whole."""
_TOOLS = 512
"""Most tokens that a provider puts around tools."""
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Names under which an extra may set the longest answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSize:
    """What a request is made of, as far as it costs tokens."""

    text: int
    """Bytes of UTF-8 of all texts, tools and the schema."""
    wrapping: int
    """Most tokens that the provider adds around them."""
    pictures: Range
    """Tokens of all pictures."""

    @property
    def input(self) -> Range:
        """Tokens that the request is expected to take."""
        return text_tokens(self.text) + self.pictures

    @property
    def worst_input(self) -> int:
        """Tokens that the request takes at most."""
        return self.text + self.wrapping + round(self.pictures.high)


def text_tokens(size: int) -> Range:
    """Tokens of a text of `size` bytes."""
    return _BYTES * size


def size_of(request: ChatRequest) -> RequestSize:
    """The size of `request`; only the headers of pictures are read.

    Raises:
        BadImage: a picture that cannot be used.
    """
    text, pictures = 0, NOTHING
    for message in request.messages:
        text += _bytes(message.text) + sum(_bytes(call.name + call.arguments) for call in message.tool_calls)
    for part in request.images:
        width, height = part.shown.size
        pictures += picture_tokens(request.model.model, width, height, detail=part.detail)
    for tool in request.tools:
        text += _bytes(canonical_json(tool.canonical()))
    if request.response is not None:
        text += _bytes(canonical_json(request.response.canonical()))
    text += _bytes(request.given or "")
    wrapping = _TURN * (len(request.messages) + 1) + (_TOOLS if request.tools else 0)
    return RequestSize(text=text, wrapping=wrapping, pictures=pictures)


def answer_limit(request: ChatRequest) -> int:
    """Most tokens of the answer: the limit set, else the model's own where it is listed, else `DEFAULT_LIMIT`.

    Where a text is given no answer is wanted; servers write a single token.
    """
    if request.given is not None:
        return 1
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


CallKind: TypeAlias = tuple[ModelId, str]
"""A kind of call: the model, and the name of the schema that is asked for."""

LOOKED_AT = 4000
"""Most records that are read; their order is that of their keys, which is as good as random."""
_LEAST = 0.1
"""Least error of a mean, as a part of it: other calls are not quite like the recorded ones."""


def mean_range(values: Sequence[float]) -> Range | None:
    """The mean give or take two standard errors, a tenth at least; None without a value."""
    if not values:
        return None
    count, mean = len(values), sum(values) / len(values)
    if count == 1:
        return Range.around(mean)
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    off = max(2 * sqrt(variance / count), _LEAST * mean)
    return Range(max(mean - off, 0.0), mean, mean + off)


@dataclass(slots=True)
class TokenStatistics:
    """Tokens of calls of one kind: one prompt, one model."""

    input: list[int] = field(default_factory=list[int])
    output: list[int] = field(default_factory=list[int])
    estimated: float = 0.0
    """Sum of the estimates of the inputs, in tokens; 0 is not known."""

    @property
    def factor(self) -> float | None:
        """Factor from an estimate of the input to what was counted; None where it is not known."""
        return sum(self.input) / self.estimated if self.estimated else None


def token_statistics(records: Records, models: Iterable[ModelId]) -> Mapping[CallKind, TokenStatistics]:
    """Tokens that calls on record took, by kind of call."""
    known = {canonical_json(model.canonical()): model for model in models}
    statistics: defaultdict[CallKind, TokenStatistics] = defaultdict(TokenStatistics)
    for record in islice(records.readable(), LOOKED_AT):
        model = known.get(canonical_json(record.request.get("model"))) if record.kind == "chat" else None
        name = _name(record.request)
        counts: Mapping[str, Any] = record.response.get("usage") or {}
        usage = Usage(input=counts.get("input"), output=counts.get("output"))
        if model is not None and name and usage.input is not None and usage.output is not None:
            kind = statistics[model, name]
            kind.input.append(usage.input)
            kind.output.append(usage.output)
            kind.estimated += _estimate(record, model).expected
    return statistics


def _name(request: Mapping[str, Any]) -> str | None:
    response: Mapping[str, Any] = request.get("response") or {}
    return response.get("name")


def _estimate(record: Record, model: ModelId) -> Range:
    """The estimate of the input of a recorded request."""
    size, pictures = 0, NOTHING
    for message in record.request["messages"]:
        for part in message["parts"]:
            if part["type"] == "text":
                size += len(part["text"].encode("utf-8", "surrogatepass"))
            elif (sent := record.images.get(key_of_shown(part))) is not None:
                detail = part.get("detail", "auto")
                pictures += picture_tokens(model.model, sent["width"], sent["height"], detail=detail)
    for name in ("tools", "response"):
        size += len(canonical_json(record.request[name]).encode()) if name in record.request else 0
    return text_tokens(size) + pictures
