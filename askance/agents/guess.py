"""Guesses: what an ad argues for, in words that nobody has read yet, to search for the statements that say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack, override

from askance.agents.negative_writer import LONGEST, normal
from askance.agents.picture_agent import PictureAgent, Subject
from askance.errors import UsageError
from askance.nodes import AnswerField, NodeOptions, TypedAnswer, Unreadable
from askance.nodes.answer import Texts, list_schema, text_list, text_schema
from askance.nodes.reply import answer_lines, is_refusal, strip_quotes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from askance.models import ModelLike

GUESSED = 3
"""Action-reasons that are guessed, where the caller does not say: as many as an ad has true statements."""

_BEGINS = "i should "
_NOUNS = frozenset(["action", "actions", "reason", "reasons", "statement", "statements", "guess", "guesses", "likely"])


class GuessQuestion(Subject):
    """An ad that is described, of which it is guessed what it argues for."""

    statement: str | None = None
    """An atypicality statement about the ad, where one is known."""


class Guesses(TypedAnswer):
    """Action-reasons that a model holds for likely, the likeliest first, each once; untrusted."""

    texts: Texts

    def __str__(self) -> str:
        return "\n".join(self.texts)


class ActionReasonGuesser(PictureAgent[GuessQuestion, Guesses]):
    """Guesses action-reasons of a described ad: "I should … because …".

    A guess is a made-up document to search with, as in *Precise Zero-Shot Dense Retrieval without Relevance Labels*
    (Gao and others, 2022): it may be wrong, and lies closer to the true statements than a description does.

    Args:
        count: how many are asked for; a reply may give fewer, and of more the first ones count.

    Raises:
        UsageError: none is asked for.
    """

    prompt = "guess_action_reasons"
    takes = GuessQuestion
    gives = Guesses

    def __init__(self, model: ModelLike, *, count: int = GUESSED, **options: Unpack[NodeOptions]) -> None:
        if count < 1:
            raise UsageError(f"{count!r} action-reasons cannot be guessed.", hint="Ask for at least 1.")
        self.count = count
        super().__init__(model, **options)

    @override
    def variables(self, subject: GuessQuestion) -> Mapping[str, Any]:
        stated = {} if subject.statement is None else {"statement": subject.statement}
        return {**super().variables(subject), **stated, "count": self.count}

    @override
    def fields(self, subject: GuessQuestion) -> Sequence[AnswerField]:
        texts = list_schema(text_schema(least=1), least=self.count, most=self.count)
        return (AnswerField("statements", texts, "texts", self._listed),)

    def _listed(self, data: Mapping[str, Any], field: str) -> tuple[str, ...]:
        return self._checked(text_list(data, field))

    @override
    def read_text(self, text: str, subject: GuessQuestion) -> Guesses:
        lines = answer_lines(text, _NOUNS, sentences=True)
        stated = [line for line in lines if line.casefold().startswith(_BEGINS)]
        if not stated and is_refusal(text):
            raise Unreadable("no statement is given; guess all the same")
        return Guesses(texts=self._checked(stated or lines))

    def _checked(self, texts: Iterable[str]) -> tuple[str, ...]:
        """The first guesses in `texts`, those that differ only in case and punctuation once.

        Raises:
            Unreadable: there is none, or one is too long to be a statement.
        """
        lines = [strip_quotes(" ".join(text.split())) for text in texts]
        distinct: dict[str, str] = {}
        for line in lines:
            if folded := normal(line):
                distinct.setdefault(folded, line)
        first = [*distinct.values()][: self.count]
        if not first:
            raise Unreadable("no statement is given; give at least one")
        if any(len(line) > LONGEST for line in first):
            raise Unreadable(f"a statement has more than {LONGEST} characters")
        return tuple(first)


guess_action_reasons = ActionReasonGuesser
