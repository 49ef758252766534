from __future__ import annotations

import pytest

from askance.terminal import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[2Jgone\r\x00\x7f", r"\x1b[2Jgone\x0d\x00\x7f"),
        ("\x9b31m", r"\x9b31m"),
        ("abc\u202egpj.\u202c", r"abc\u202egpj.\u202c"),
        ("\u2066\u200f\u061c\u2028", r"\u2066\u200f\u061c\u2028"),
        ("a\U000e0041", r"a\U000e0041"),
        ("half \ud83d", r"half \ud83d"),
        ("שלום 你好 👩\u200d🎨 نمی\u200cرسم", "שלום 你好 👩\u200d🎨 نمی\u200cرسم"),
    ],
    ids=["plain", "escape", "c1", "override", "isolates", "tags", "surrogate", "scripts"],
)
def test_what_could_deceive_the_eye_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
