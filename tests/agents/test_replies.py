"""What chat models write is read as what it says, or not at all: a wrong reading is worse than none."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.agents import OptionsQuestion
from tests.agents.reply_table import (
    ENOUGH,
    FOLDER,
    PROTOCOLS,
    TODAY,
    Contents,
    Drawn,
    Style,
    Tally,
    choosing,
    folded,
    rendered,
    replies_of,
    styles_in,
    tally,
)

MOST_UNREAD = 0.03
"""Share of the readable replies that a reader may leave unread."""
MOST_UNREAD_TODAY = 0.1
"""The same, of the styles of today's models: a sentence about the answer may stay unread."""
PROTOCOLS_TODAY = [name for name, protocol in PROTOCOLS.items() if (TODAY / f"{protocol.styles or name}.txt").exists()]


def report(found: Tally) -> str:
    """The figures, and one example of every style that is read wrongly or not at all."""
    wrong = {row.style: f"{row.reply!r} says {row.label!r}, read as {said!r}" for row, said in found.misread}
    unread = {row.style: f"{row.reply!r} says {row.label!r}, not read" for row in found.unread}
    return "\n".join([str(found), *wrong.values(), *unread.values()])


def check(found: Tally, most_unread: float = MOST_UNREAD) -> None:
    misread, unread = len(found.misread), len(found.unread)
    assert misread == 0, report(found)
    assert unread <= most_unread * found.readable, report(found)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_reply_in_every_style_is_read_right(name: str) -> None:
    check(tally(name, replies_of(name, enough=0)))


@pytest.mark.parametrize("name", PROTOCOLS_TODAY)
def test_a_reply_of_todays_models_is_never_read_as_something_else(name: str) -> None:
    check(tally(name, replies_of(name, enough=0, folder=TODAY)), MOST_UNREAD_TODAY)


def test_half_of_todays_styles_give_no_answer() -> None:
    styles = [style for path in TODAY.glob("*.txt") for style in styles_in(path)]

    assert len(styles) > 1_000
    assert 0.45 < sum(style.label is None for style in styles) / len(styles) < 0.55


@pytest.mark.slow(group="properties")
@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_whole_table_is_read_right(name: str) -> None:
    rows = replies_of(name)

    assert len(rows) >= ENOUGH
    check(tally(name, rows))


def spread(styles: list[Style], count: int) -> list[Style]:
    """`count` of the styles, from the first to the last."""
    return [styles[at * len(styles) // count] for at in range(count)]


TWENTY = spread(
    [s for s in styles_in(FOLDER / "choose_three.txt") if s.label == "{a} {b} {c}" and s.must],
    20,
)
_WORDS = "buy drink light 7up answer: 3 none yes option 12 because it's true, the wrong 50% (best) first tea no. 1 B"
WORDS = _WORDS.split()


@given(style=st.sampled_from(TWENTY), seed=st.integers(0, 1_000_000))
def test_what_is_written_in_any_of_twenty_styles_is_read_back(style: Style, seed: int) -> None:
    rng = random.Random(seed)
    options = tuple(f"I should {' '.join(rng.sample(WORDS, size))}" for size in range(2, 17))
    fields = Drawn(rng, choosing(rng, options, chosen=3))
    contents = Contents(fields, OptionsQuestion(description="A bottle.", options=options))
    assert style.label is not None

    read = PROTOCOLS["choose_three"].read(rendered(style.text, fields), contents)

    assert read == folded(rendered(style.label, fields))


def test_a_tally_tells_wrong_from_unread() -> None:
    rows = replies_of("choose_one", enough=0)
    found = tally("choose_one", rows)

    assert found.right + len(found.misread) + len(found.unread) == len(rows)
    turned = [row for row in rows if row.label is not None and row.style.must and row not in found.unread][:5]
    wrong = [replace(row, label="99") for row in turned]
    assert len(tally("choose_one", wrong).misread) == 5
    silent = [replace(row, reply="I cannot tell.") for row in turned]
    assert len(tally("choose_one", silent).unread) == 5
