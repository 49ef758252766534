"""Filters for untrusted text in prompts: quoted between fences, folded to one line, numbered, or lettered.

A fence is two lines around the text. Both carry a marker made from the digest of the text:

    <<scene text 5f70bf18
    Buy one, get one free
    5f70bf18>>

Equal text gives an equal marker, and so an equal prompt and an equal key. The marker gets more digits until it does
not occur in the text, so whoever writes the text cannot write the line that closes the fence.

A fence does not stop a server whose tokenizer reads `<|im_end|>` within a message as the end of the message. So
`sanitize` puts a blank into each special token of a chat template and into each line that looks like a fence. Words
stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from operator import add
from string import ascii_uppercase
from typing import Final

from askance.errors import PromptError

MIN_DIGITS: Final = 8
"""Fewest hex digits of a marker."""

LABEL: Final = re.compile(r"[a-z][a-z0-9 _-]{0,39}")

LETTERS: Final = ascii_uppercase
"""What `lettered` leads texts by."""

_NUMBERS = tuple(f"{number}. " for number in range(1, 101))
_PRINTABLE_ASCII = bytes(range(32, 127))
_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    r"\u202a-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f"
    r"\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    r"|(?<![^\s\u200c\u200d\ufe0e\ufe0f])[\u200c\ufe0e\ufe0f]|(?<![^\s\u200c\u200d\ufe0e])\u200d"
)
"""Characters that a picture cannot show, by the classes of Unicode: controls, format characters (direction marks among
them) but for those with a sign of their own, halves of pairs, all that programs ignore where they do not know it
(fillers, variation selectors, tags), and signs without ink; but for one joiner or emoji selector behind a visible one.
Written out, since the classes that Python knows grow with its version, and keys may not change with it."""
_PRINTABLE_INVISIBLE = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U00016fe4\U0001d159"
    r"\U000e0100-\U000e01ef]"
)
"""Those of them that `str.isprintable` accepts, and emoji selectors."""

_ANGLE_MARK = re.compile(r"[<\uff1c](?=[|\uff5c/<A-Za-z_\ufffd][^\s<>\uff1c\uff1e]{0,60}[>\uff1e])")
"""The beginning of what looks like a special token: `<|im_end|>`, `</s>`, `<<SYS>>`, `<end_of_turn>`."""
_BRACKET_MARK = re.compile(
    r"\[(?=/?[A-Z_]{3,30}\]|\|[^\]\n]{1,40}\|\]|[gs]MASK\]|UNUSED_TOKEN_\d+\]|control_\d+\]|e~\[)|\](?=~)"
)
"""Likewise `[INST]`, `[SYSTEM_PROMPT]`, EXAONE's `[|user|]`, GLM's `[gMASK]`, InternLM's `[UNUSED_TOKEN_145]`,
Mistral's `[control_8]`, MiniMax's `]~b]` and `[e~[`."""
_FENCE_BEGIN = re.compile(r"<<(?=[a-z])")
_FENCE_END = re.compile(r"(?<=[0-9a-fA-F])>>")
"""The lines of a fence, forged or not."""
_MARK_CHARACTERS = ("<", "\uff1c", "[", "]", ">>")
"""Every special token and fence line has one of these."""


def fence(text: str, label: str) -> str:
    """`text` between two marker lines that the text cannot forge.

    Args:
        text: What is quoted. Invisible characters are replaced by U+FFFD, line ends become newlines, and special tokens
            and fence lines are broken up, as `sanitize` does.
        label: What the text is, for the reader: lower-case words such as `scene text`.

    Raises:
        PromptError: a label that is not lower-case words.
    """
    if not LABEL.fullmatch(label):
        raise PromptError(f"A fence cannot be labelled {label!r}.", hint="Use lower-case words, at most 40 characters.")
    text = sanitize(replace_invisible(text))
    mark = marker(text)
    return f"<<{label} {mark}\n{text}\n{mark}>>"


def oneline(text: str) -> str:
    """`text` with each run of white space folded to one blank and invisible characters replaced by U+FFFD."""
    return text if _on_one_line(text) else " ".join(replace_invisible(text).split())


def numbered(texts: Sequence[str]) -> str:
    """`texts` one to a line, each folded by `oneline`, sanitized and led by its number from 1."""
    joined = " ".join(texts)
    if not _on_one_line(joined) or sanitize(joined) != joined:
        texts = [sanitize(oneline(text)) for text in texts]
    numbers = _NUMBERS if len(texts) <= len(_NUMBERS) else [f"{number}. " for number in range(1, len(texts) + 1)]
    return "\n".join(map(add, numbers, texts))


def lettered(texts: Sequence[str]) -> str:
    """`texts` one to a line, each folded by `oneline`, sanitized and led by its letter from A: `A: …`.

    Raises:
        PromptError: there are more texts than letters.
    """
    if len(texts) > len(LETTERS):
        raise PromptError(
            f"{len(texts)} texts cannot be lettered: there are {len(LETTERS)} letters.",
            hint="Give fewer, or number them: `numbered` instead of `lettered`.",
        )
    return "\n".join(f"{letter}: {sanitize(oneline(text))}" for letter, text in zip(LETTERS, texts, strict=False))


def _on_one_line(text: str) -> bool:
    """Whether `oneline` has nothing to do; of texts joined by blanks: for none of them."""
    # `rfind` finds two characters twice as fast as `find` does.
    return _printable(text) and text.rfind("  ") < 0 and text[:1] != " " and text[-1:] != " "


def _printable(text: str) -> bool:
    """`text.isprintable()` and nothing invisible, several times as fast for plain ASCII."""
    if text.isascii():
        return not text.encode().translate(None, _PRINTABLE_ASCII)
    return text.isprintable() and _PRINTABLE_INVISIBLE.search(text) is None


def replace_invisible(text: str) -> str:
    """`text` with newlines as line ends and invisible characters replaced by U+FFFD."""
    return text if _printable(text.replace("\n", "")) else _INVISIBLE.sub("\ufffd", _LINE_ENDS.sub("\n", text))


def sanitize(text: str) -> str:
    """`text` with a blank put into each special token of a chat template and each line of a fence."""
    if not any(sign in text for sign in _MARK_CHARACTERS):
        return text
    text = _BRACKET_MARK.sub(lambda mark: f"{mark[0]} ", _ANGLE_MARK.sub(lambda mark: f"{mark[0]} ", text))
    return _FENCE_END.sub("> >", _FENCE_BEGIN.sub("< <", text))


def neutralize(text: str) -> str:
    """`text` without what nobody sees and what a chat template or a fence would take for its own; line ends stay.

    For text that a model or a stranger wrote where it cannot be fenced, as in a turn of the assistant.
    """
    return sanitize(text if _printable(text.replace("\n", "")) else _INVISIBLE.sub("\ufffd", text))


def marker(text: str, *, digits: int = MIN_DIGITS) -> str:
    """The shortest digest of `text`, at least `digits` hex digits, that does not occur in it."""
    lowered = text.lower()
    digest = ""
    while True:
        digest += sha256(f"{digest}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
        for end in range(digits, len(digest) + 1):
            if digest[:end] not in lowered:
                return digest[:end]
