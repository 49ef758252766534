"""A closed set of answers, a reply that could not be read as one of them, and what was extracted from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from askance.nodes.answer import TypedAnswer, TypedInput


@dataclass(frozen=True, slots=True)
class ClosedSet:
    """The answers that a question has."""

    options: Mapping[str, str]
    """What each answer says, by the label that the question gave it: a number, a letter or a name."""
    several: bool = False
    """Whether several may be chosen."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in order."""
        return (*self.options,)

    @property
    def lines(self) -> Sequence[str]:
        """Each answer behind its label; a label that says all stands alone."""
        return [label if text in {"", label} else f"{label}: {text}" for label, text in self.options.items()]


class UnreadReply(TypedInput):
    """A reply that could not be read, and the answers that there were."""

    reply: str
    choices: ClosedSet


class Extraction(TypedAnswer):
    """What a reply chooses: places of answers, from 1, in its order; none where it chooses none."""

    places: tuple[int, ...]
    quote: str
    """The words of the reply that choose them; empty where it chooses none."""
