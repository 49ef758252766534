from __future__ import annotations

from collections.abc import Callable

import pytest

from askance.models.encoders.towers import parts_of


def words(most: int) -> Callable[[str], bool]:
    """Fits texts of so many words, each of at most ten letters."""
    return lambda text: len(text.split()) <= most and all(len(word) <= 10 for word in text.split())


SPLIT: dict[str, tuple[int, str, tuple[str, ...]]] = {
    "fits": (9, " A cup.  Of bricks. ", (" A cup.  Of bricks. ",)),
    "between sentences": (3, "A cup. Of bricks. On a table.", ("A cup.", "Of bricks.", "On a table.")),
    "sentences stay together": (4, "A cup. Of bricks. On a table.", ("A cup. Of bricks.", "On a table.")),
    "between words": (2, "A cup of bricks. Good!", ("A cup", "of bricks.", "Good!")),
    "lines": (2, "A cup\nof bricks\n\non a", ("A cup", "of bricks", "on a")),
    "quotes": (4, 'It says "Drink tea!" It is red.', ('It says "Drink tea!"', "It is red.")),
    "within a word": (2, "www.address.of.a.shop good", ("www.addres", "s.of.", "a.shop", "good")),
    "no full stop": (3, "3.5 of 4.5 cups", ("3.5 of 4.5", "cups")),
}


@pytest.mark.parametrize(("most", "text", "parts"), SPLIT.values(), ids=SPLIT)
def test_long_texts_are_split_where_they_can_be(most: int, text: str, parts: tuple[str, ...]) -> None:
    assert parts_of(text, words(most)) == parts


def test_no_word_is_lost_or_doubled() -> None:
    text = " ".join(f"Word{number}{'.' if number % 7 == 0 else ''}" for number in range(200))

    parts = parts_of(text, words(5))

    assert " ".join(parts) == text
    assert all(words(5)(part) for part in parts)


def test_a_character_that_does_not_fit_is_a_part_all_the_same() -> None:
    assert parts_of("ab", lambda text: False) == ("a", "b")
