"""Questions from captions: which phrases could be answers, and a question for each (*WHOOPS!*, section 4.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents.questions import question_of
from askance.agents.replying import Reply
from askance.nodes import Node, Unreadable
from askance.nodes.reply import body, plain, refuses, says_none, unquoted
from askance.tools import TextValue, Value, text_field, text_list
from askance.tools.tool import as_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.models import ModelLike
    from askance.prompts import PromptLibrary

CANDIDATES = 5
"""Phrases of a caption at most, where the caller does not say."""
LONGEST = 100
"""Characters of a phrase at most."""

_NOUNS = frozenset(
    ["phrase", "phrases", "candidate", "candidates", "such", "thing", "place", "other", "short", "caption"]
)
_ASIDE = re.compile(r"(.*\S) \([^()]*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates(Value):
    """Phrases that a question could be answered with, each once."""

    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", as_texts(self.texts))

    def __str__(self) -> str:
        return ", ".join(self.texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerInCaption:
    """A caption, and what a question about it is to be answered with."""

    caption: str
    answer: str


class CandidateFinder(Node[str, Candidates]):
    """Finds phrases of a caption that a question could be answered with; takes the caption.

    Args:
        count: phrases at most.
    """

    prompt = "answer_candidates"
    gives = Candidates

    def __init__(
        self,
        model: ModelLike,
        *,
        count: int = CANDIDATES,
        prompt: str | None = None,
        prompts: PromptLibrary | None = None,
        name: str | None = None,
    ) -> None:
        self.count = count
        super().__init__(model, prompt=prompt, prompts=prompts, name=name)

    @override
    def accept(self, given: Any) -> str:
        return str(given.text if isinstance(given, TextValue) else given)

    @override
    def variables(self, subject: str) -> Mapping[str, Any]:
        return {"caption": subject, "count": self.count}

    @override
    def schema(self, subject: str) -> Mapping[str, Any]:
        texts = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": self.count}
        return {
            "type": "object",
            "properties": {"answers": texts},
            "required": ["answers"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: str) -> Candidates:
        return self._checked(text_list(data, "answers"))

    @override
    def read_text(self, text: str, subject: str) -> Candidates:
        lines = [line.rstrip(",;.") for line in body(text, _NOUNS)]
        if len(lines) == 1 and lines[0].casefold() not in subject.casefold():
            lines = [line.strip() for line in re.split("[,;]", lines[0])]
        if refuses(text) or (len(lines) == 1 and says_none(lines[0], _NOUNS)):
            raise Unreadable("no phrase is given; give at least one")
        return self._checked([_phrase(line, subject) for line in lines])

    def _checked(self, texts: list[str]) -> Candidates:
        found = [*dict.fromkeys(text for text in texts if text)]
        if not found:
            raise Unreadable("no phrase is given; give at least one")
        too_long = next((text for text in found if len(text) > LONGEST), None)
        if too_long is not None:
            raise Unreadable(f"{too_long[:40]!r}… is no phrase; each has at most {LONGEST} characters")
        return Candidates(texts=tuple(found[: self.count]))


def _phrase(line: str, caption: str) -> str:
    """A line without what is remarked on the phrase in it, in brackets or behind a colon."""
    if (aside := _ASIDE.fullmatch(line)) is not None:
        return aside[1]
    phrase, colon, _ = line.partition(": ")
    said = caption.casefold()
    return phrase if colon and phrase.casefold() in said and line.casefold() not in said else line


class QuestionWriter(Node[AnswerInCaption, Reply]):
    """Writes a question about an image whose caption and whose answer are known."""

    prompt = "write_question"
    gives = Reply

    @override
    def accept(self, given: Any) -> AnswerInCaption:
        return question_of(AnswerInCaption, given)

    @override
    def variables(self, subject: AnswerInCaption) -> Mapping[str, Any]:
        return {"caption": subject.caption, "answer": subject.answer}

    @override
    def schema(self, subject: AnswerInCaption) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": {"question": {"type": "string", "minLength": 1}},
            "required": ["question"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: AnswerInCaption) -> Reply:
        return self.read_text(text_field(data, "question"), subject)

    @override
    def read_text(self, text: str, subject: AnswerInCaption) -> Reply:
        question = unquoted(" ".join(plain(text).split()))
        if not question.endswith("?"):
            raise Unreadable("a question ends with a question mark")
        return Reply(text=question)


find_candidates = CandidateFinder
write_question = QuestionWriter
