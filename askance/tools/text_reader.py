"""T: the text in a picture, read by a VLM."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.nodes import Unreadable
from askance.nodes.reply import HEADING, body, json_object, plain, refuses, says_none, spoken
from askance.tools.tool import ImageTool, Value, as_texts, text_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.images import Image

NO_TEXT = "NO TXT"
"""What the paper's protocol answers where a picture holds no text (Listing 2)."""

_TEXT_WORDS = "txt text texts textual word words letter letters writing message messages content written"
_TEXT = frozenset([*_TEXT_WORDS.split(), "since", "seems", "appears", "other", "else", "additional", "more"])
_NOUNS = frozenset([*_TEXT_WORDS.split(), "sign", "only", "reads", "below", "above", "top", "bottom", "sure", "it"])
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_QUOTES = re.compile(r"\"([^\"\n]+)\"")
_ASIDE = re.compile(r"\"([^\"\n]+)\" \([^()\n]*\)")
_THE_TEXT = r"the (?:only )?text (?:[io]n the (?:image|picture|photo) )?"
_SAYS = re.compile(rf"{_THE_TEXT}(?:reads|says):? (.+)", re.IGNORECASE)
_IS = re.compile(rf"{_THE_TEXT}(?:is|appears|seems)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"\.\s+|\n|,\s+(?=the answer\b)")
_ASKED = re.compile(r"(?:what|which)\b[^\n]*\b(?:image|picture|photo)\?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneText(Value):
    """The lines of text in a picture, none where there is no text.

    Whoever made the picture wrote them: they are untrusted and enter later prompts only behind a fence.
    """

    lines: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", as_texts(self.lines))

    def __str__(self) -> str:
        return "\n".join(self.lines) or NO_TEXT


class SceneTextReader(ImageTool[SceneText]):
    """Reads the text that is visible in the image."""

    prompt = "scene_text"
    gives = SceneText

    @override
    def schema(self, subject: Image) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": {"lines": {"type": "array", "items": {"type": "string"}}},
            "required": ["lines"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Image) -> SceneText:
        return scene_text_of(text_list(data, "lines"))

    @override
    def read_text(self, text: str, subject: Image) -> SceneText:
        with suppress(Unreadable):
            return self.read_json(json_object(text, ("lines",)), subject)
        said = spoken(text).strip()
        if says_none(said, _TEXT):
            return SceneText(lines=())
        if refuses(said) and len(said.splitlines()) == 1 and '"' not in plain(said):
            raise _refused()
        lines = body(text, _NOUNS, verbatim=True)
        lines = lines[0].split(" / ") if len(lines) == 1 else lines
        lines = [part for line in lines for part in _quoted(line)]
        if not lines or _ASKED.fullmatch(said):
            raise _refused()
        return scene_text_of(lines)


def scene_text_of(lines: list[str]) -> SceneText:
    """The lines, none where they say that there is no text."""
    first = lines[0].partition(". ")[0] if lines else ""
    said = [part for line in lines for part in _SENTENCE.split(line) if part.strip()]
    lines = [line for line in lines if line is lines[0] or len(line.split()) < 4 or not says_none(line, _TEXT)]
    if all(says_none(part, _TEXT) for part in said) or (says_none(first, _TEXT) and len(first.split()) > 3):
        lines = []
    return SceneText(lines=tuple(lines))


def _refused() -> Unreadable:
    return Unreadable(f"the text could not be read; where there is none the answer is {NO_TEXT}")


def _quoted(line: str) -> list[str]:
    """The texts that a line quotes where it says nothing else of its own; the line where it quotes none."""
    said = plain(line)
    quotes = _QUOTES.findall(said)
    around = _WORD.findall(_QUOTES.sub(" ", said).casefold())
    if quotes and {*around} <= {*HEADING, *_NOUNS}:
        return [quote.strip() for quote in quotes]
    if _IS.match(line):
        raise _refused()
    aside = _ASIDE.fullmatch(said) or _SAYS.fullmatch(line)
    return [aside[1]] if aside else [line]


scene_text = SceneTextReader
