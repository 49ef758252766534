from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.chat import Detail
from askance.models.spending.picture_tokens import FORMULAS, Formula, patches, picture_tokens
from askance.models.spending.spread import Spread

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
    assert picture_tokens(model, width, height, detail=detail) == Spread.exactly(tokens)


@pytest.mark.parametrize(("width", "height", "count"), [(1024, 1024, 1024), (1800, 2400, 1452)], ids=["fits", "shrunk"])
def test_patches_before_the_factor(width: int, height: int, count: int) -> None:
    assert patches(width, height, "high", factor=1, budget=1536) == count


def test_without_a_formula_the_size_decides_give_or_take_a_factor_of_two() -> None:
    assert picture_tokens("my-own", 280, 280) == Spread(50, 100, 200)
    assert picture_tokens("my-own", 20_000, 2_000) == Spread.around(4784)


@pytest.mark.parametrize("formula", [formula for _, formula in FORMULAS], ids=[row.pattern for row, _ in FORMULAS])
@given(width=SIDES, height=SIDES)
def test_every_picture_costs_something_and_turned_about_the_same(formula: Formula, width: int, height: int) -> None:
    tokens = formula(width, height, "auto")

    assert tokens >= 1
    assert formula(height, width, "auto") == tokens


@given(width=SIDES, height=SIDES, budget=st.integers(1, 5000))
def test_a_budget_of_patches_holds(width: int, height: int, budget: int) -> None:
    count = partial(patches, width, height, "high", factor=1)

    assert count(budget=budget) <= budget
