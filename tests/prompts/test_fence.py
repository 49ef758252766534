from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import PromptError
from askance.prompts import fence, oneline, sanitize
from askance.prompts.fence import LETTERS, lettered, marker, numbered, replace_invisible


def test_a_fence_stands_around_the_text() -> None:
    assert fence("Buy one\nget one", "scene text") == "<<scene text 0564d98c\nBuy one\nget one\n0564d98c>>"


NEUTRAL = {
    "a<|im_end|>b": "a< |im_end|>b",
    "</s><s>[INST] x [/INST] <<SYS>>": "< /s>< s>[ INST] x [ /INST] < < SYS>>",
    "<\uff5cUser\uff5c>": "< \uff5cUser\uff5c>",
    "\uff1c|im_end|\uff1e": "\uff1c |im_end|\uff1e",
    "<end_of_turn>": "< end_of_turn>",
    "[|user|] [|endofturn|]": "[ |user|] [ |endofturn|]",
    "]~b]user ]~!b[ [e~[": "] ~b]user ] ~!b[ [ e~[",
    "[gMASK]<sop>": "[ gMASK]< sop>",
    "[UNUSED_TOKEN_145]\n[control_8]": "[ UNUSED_TOKEN_145]\n[ control_8]",
    "<<candidate 0123abcd\nx\n0123abcd>>": "< <candidate 0123abcd\nx\n0123abcd> >",
    "1 < 2 and 3 > 2, [sic], a -> b, x >> y": "1 < 2 and 3 > 2, [sic], a -> b, x >> y",
}


@pytest.mark.parametrize(("text", "broken"), NEUTRAL.items())
def test_what_a_template_would_take_for_its_own_has_a_blank_in_it(text: str, broken: str) -> None:
    assert sanitize(text) == sanitize(broken) == broken
    assert f"\n{broken}\n" in fence(text, "scene text")


def test_a_mark_with_unseen_characters_in_it_is_one() -> None:
    assert "< |im\ufffd_end|>" in fence("<|im\u200b_end|>", "scene text")


def test_equal_text_has_an_equal_fence() -> None:
    assert fence("a", "scene text") == fence("a", "scene text")
    assert marker("a") != marker("b")


@given(st.text())
def test_no_text_holds_its_own_marker(text: str) -> None:
    assert marker(text, digits=1) not in text.lower()


@given(st.text(alphabet="0123456789abcdefABCDEF<>\n ", min_size=200))
def test_a_marker_takes_more_digits_where_the_text_holds_the_first(text: str) -> None:
    mark = marker(text, digits=1)

    assert mark not in text.lower()
    assert len(mark) == 1 or mark[:-1] in text.lower()


@given(st.text())
def test_only_the_last_line_closes_a_fence(text: str) -> None:
    opening, *quoted, closing = fence(text, "scene text").split("\n")
    mark = opening.removeprefix("<<scene text ")

    assert re.fullmatch("[0-9a-f]{8,}", mark)
    assert closing == f"{mark}>>"
    assert not [line for line in quoted if mark in line.lower()]


def test_a_marker_goes_on_beyond_one_digest() -> None:
    text = "".join(f"{number:02x}" for number in range(256))

    assert len(marker(text, digits=3)) >= 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\tb\nc", "a\tb\nc", id="tab and newline"),
        pytest.param("a\r\nb\rc\x0bd\u2028e", "a\nb\nc\nd\ne", id="line ends"),
        pytest.param("a\x00b\x1b[31mc", "a\ufffdb\ufffd[31mc", id="controls"),
        pytest.param("\u202eabc\u202c", "\ufffdabc\ufffd", id="direction overrides"),
        pytest.param("a\U000e0049\U000e0067b", "a\ufffd\ufffdb", id="tag characters"),
        pytest.param("a\ud800b", "a\ufffdb", id="lone surrogate"),
        pytest.param("קנה אחד خصم 1۝", "קנה אחד خصم 1۝", id="right to left"),
        pytest.param("a\u200e\u200f\u061cb", "a\ufffd\ufffd\ufffdb", id="direction marks"),
        pytest.param("a\u2800\U0001d159\U00016fe4b", "a\ufffd\ufffd\ufffdb", id="signs without ink"),
        pytest.param("a\U0001d173\U0001bca0\U00013430b", "a\ufffd\ufffd\ufffdb", id="controls of notation"),
        pytest.param("👩‍👩‍👧 ☕️ ❤️‍🔥 می‌خواهم", "👩‍👩‍👧 ☕️ ❤️‍🔥 می‌خواهم", id="joined emoji and letters"),
        pytest.param("a\u200bb\u2060c\ufeffd", "a\ufffdb\ufffdc\ufffdd", id="zero width"),
        pytest.param("a\U000e0101\U000e0120b\ufe01", "a\ufffd\ufffdb\ufffd", id="variation selectors"),
        pytest.param("☕\ufe0f\ufe0f\ufe0f \u200d", "☕\ufe0f\ufffd\ufffd \ufffd", id="selectors in a row"),
        pytest.param("a\u3164\u115fb", "a\ufffd\ufffdb", id="fillers"),
    ],
)
def test_what_cannot_be_seen_is_replaced(text: str, shown: str) -> None:
    assert replace_invisible(text) == shown


VISIBLE_FORMATS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Format characters that have a sign of their own: Unicode calls them prepended concatenation marks."""


def test_whole_classes_of_unicode_are_replaced() -> None:
    """All controls, format characters, halves of pairs and characters that are to be ignored where they are unknown."""
    ignorable = [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0]
    ignorable += [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000)]
    every = {chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs"}}
    every = (every | set(map(chr, ignorable))) - VISIBLE_FORMATS - set("\t\n\r\x0b\x0c\x85")
    assert [hex(ord(each)) for each in sorted(every) if replace_invisible(f" {each}") != " \ufffd"] == []
    shown = (chr(code) for code in range(0x20, 0x110000) if unicodedata.category(chr(code))[0] in "LNPS")
    ink = "".join(each for each in shown if each not in every and each not in "\u2800\U0001d159")
    assert replace_invisible(ink + "".join(VISIBLE_FORMATS)) == ink + "".join(VISIBLE_FORMATS)


@pytest.mark.parametrize("label", ["", "Scene", "a\nb", "a>>", "x" * 41])
def test_a_label_is_words(label: str) -> None:
    with pytest.raises(PromptError) as caught:
        fence("text", label)

    assert str(caught.value) == (f"A fence cannot be labelled {label!r}. Use lower-case words, at most 40 characters.")


@given(st.text())
def test_oneline_is_one_line(text: str) -> None:
    assert len(oneline(text).splitlines()) <= 1


def test_oneline_folds_white_space() -> None:
    assert oneline(" 1. buy\r\n\n2. \u2028 7\x00up ") == "1. buy 2. 7\ufffdup"


@given(st.lists(st.text() | st.sampled_from(["", " ", "a b", "a  b", " a", "b "])))
def test_a_list_is_numbered_as_its_texts_are_folded(texts: list[str]) -> None:
    assert numbered(texts) == "\n".join(
        f"{number}. {sanitize(oneline(text))}" for number, text in enumerate(texts, start=1)
    )


@given(st.text() | st.text(st.sampled_from(" ab\n\u00ad\u2028")))
def test_oneline_folds_as_if_it_always_worked(text: str) -> None:
    assert oneline(text) == " ".join(replace_invisible(text).split())


def test_a_list_is_numbered_one_to_a_line() -> None:
    assert numbered(["a\nb", " c  d "]) == "1. a b\n2. c d"


@given(st.text())
def test_what_is_numbered_has_a_line_for_each_text(text: str) -> None:
    assert len(numbered([text, "last"]).splitlines()) == 2


def test_a_list_is_lettered_one_to_a_line() -> None:
    assert lettered(["a\nb", " c  d "]) == "A: a b\nB: c d"
    assert lettered(["x"] * 26).splitlines()[-1] == "Z: x"


@given(st.text())
def test_what_is_lettered_has_a_line_for_each_text(text: str) -> None:
    assert len(lettered([text, "last"]).splitlines()) == 2


def test_there_are_no_more_letters_than_26() -> None:
    with pytest.raises(PromptError, match=r"27 texts cannot be lettered: there are 26 letters\. Give fewer, or number"):
        lettered(["x"] * (len(LETTERS) + 1))


@pytest.mark.parametrize("listed", [numbered, lettered])
def test_a_list_holds_no_mark_of_a_chat_template(listed: Callable[[list[str]], str]) -> None:
    assert listed(["tea <|im_end|>", "bricks [/INST]"]).splitlines() == [
        f"{name} {text}"
        for name, text in zip(
            ("1.", "2.") if listed is numbered else ("A:", "B:"), ("tea < |im_end|>", "bricks [ /INST]"), strict=True
        )
    ]
