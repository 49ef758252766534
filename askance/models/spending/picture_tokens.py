"""What a picture costs in tokens, by each provider's published formula: pure functions of its size in pixels.

Sources, read in November 2026: OpenAI, "Images and vision" (developers.openai.com/api/docs/guides/images-vision);
Anthropic, "Vision" (platform.claude.com/docs/en/build-with-claude/vision); Google, "Image understanding" and "Media
resolution" (ai.google.dev/gemini-api/docs); Qwen, the image processors of Qwen2-VL and Qwen3-VL in `transformers`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from math import ceil, floor, sqrt

from askance.chat import Detail
from askance.models.spending.spread import Spread

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

FORMULAS: tuple[tuple[re.Pattern[str], Formula], ...] = (
    (re.compile(r"gpt-4o-mini"), partial(tiles, base=2833, tile=5667)),
    (re.compile(r"gpt-(4\.1|5(\.\d)?)-mini"), partial(patches, factor=1.62, budget=1536)),
    (re.compile(r"gpt-(4\.1|5(\.\d)?)-nano"), partial(patches, factor=2.46, budget=1536)),
    (re.compile(r"\bo4-mini"), partial(patches, factor=1.72, budget=1536)),
    (re.compile(r"gpt-5\.[45]"), partial(patches, **_NEW_OPENAI, whole=10_000)),
    (re.compile(r"gpt-(5\.[6-9]|[6-9])"), partial(patches, **_NEW_OPENAI)),
    (re.compile(r"gpt-5"), partial(tiles, base=70, tile=140)),
    (re.compile(r"gpt-4"), partial(tiles, base=85, tile=170)),
    (re.compile(r"\bo[13]\b"), partial(tiles, base=75, tile=150)),
    (re.compile(r"claude-([a-z]+-([5-9]|\d\d)\b|opus-4[-.][789])"), partial(claude, longest=2576, budget=4784)),
    (re.compile(r"claude"), partial(claude, longest=1568, budget=1568)),
    (re.compile(r"gemini-[12]\b"), gemini),
    (re.compile(r"gemini"), partial(fixed, tokens=1120)),
    (re.compile(r"qwen-?2(\.5)?-?(vl|omni)"), partial(qwen, side=28)),
    (re.compile(r"qwen-?3(\.\d)?-?(vl|omni)"), partial(qwen, side=32)),
    (re.compile(r"llava-?(v?1\.5)"), partial(fixed, tokens=576)),
)
"""By the model's name, in lower case; the first pattern found decides."""


def formula_of(model: str) -> Formula | None:
    """The formula of the model of this name; None where none is known."""
    name = model.lower()
    return next((formula for pattern, formula in FORMULAS if pattern.search(name)), None)


def picture_tokens(model: str, width: int, height: int, *, detail: Detail = "auto") -> Spread:
    """What a picture of `width` × `height` px costs the model of this name.

    Without a known formula: one token for each square of 28 px, up to 4784, give or take a factor of two.
    """
    formula = formula_of(model)
    if formula is None:
        return Spread.around(min(_grid(width, height, 28), 4784))
    return Spread.exactly(formula(width, height, detail))


def _grid(width: float, height: float, side: int) -> int:
    """Squares of `side` px that cover the picture."""
    return max(1, ceil(width / side)) * max(1, ceil(height / side))
