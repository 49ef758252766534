"""Two texts word by word."""

from __future__ import annotations

import time

from askance.prompts.word_diff import MOST_PIECES, Stretch, excerpt, marked, word_diff


def test_changed_words_stand_between_those_that_stayed() -> None:
    found = word_diff("Describe the image in one sentence.", "Describe the image in two short sentences.")

    assert [(each.sign, each.text) for each in found] == [
        ("same", "Describe the image in "),
        ("old", "one sentence"),
        ("new", "two short sentences"),
        ("same", "."),
    ]
    assert marked(found) == "Describe the image in [-one sentence-]{+two short sentences+}."


def test_unlike_texts_are_shown_whole() -> None:
    old, new = "A cat sleeps on a red chair.", "Nobody knows what stands behind those dark trees."

    assert word_diff(old, new) == [Stretch("old", old), Stretch("new", new)]


def test_words_that_were_only_added_stand_in_their_place() -> None:
    assert (
        marked(word_diff("Look.", "Look, and look again, at all of it.")) == "Look{+, and look again, at all of it+}."
    )


def test_equal_and_empty_texts_have_no_change() -> None:
    assert (word_diff("a b", "a b"), word_diff("", "")) == ([Stretch("same", "a b")], [])
    assert word_diff("", "new words") == [Stretch("new", "new words")]


def test_an_excerpt_keeps_what_is_near_a_change() -> None:
    words = " ".join(f"word{number}" for number in range(100))
    found = excerpt(word_diff(f"{words} cat {words}", f"{words} dog {words}"), around=16)

    assert marked(found) == "… word98 word99 [-cat-]{+dog+} word0 word1 …"


def test_long_texts_take_no_long_time() -> None:
    start = time.monotonic()
    word_diff("a " * MOST_PIECES, "b a " * MOST_PIECES)

    assert time.monotonic() - start < 5
