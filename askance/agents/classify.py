"""Which categories of atypicality a picture has: from its description, or from the picture itself (MAC)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, get_args

from typing_extensions import override

from askance.agents.alternatives import Alternatives
from askance.agents.choice_fields import read_values
from askance.agents.picture_agent import PictureAgent, Subject, preset
from askance.agents.reply_ladder import ChoosingNode, NoAnswer, as_lines, read_choice
from askance.atypicality import DEFINITIONS, NAMES, RELATIONS
from askance.nodes import AnswerField, Read, TypedAnswer, Unreadable
from askance.nodes.answer import list_schema, text_schema
from askance.nodes.closed_set import ClosedSet
from askance.nodes.reply import final_text, says_none

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

AtypicalityLabel = Literal["TR1", "TR2", "OIO", "OR", "NA"]
"""One of the four relations, or `NA`: not atypical (section 3.1)."""
LABELS: tuple[AtypicalityLabel, ...] = get_args(AtypicalityLabel)

LINES = tuple(f"{relation} ({NAMES[relation]}): {DEFINITIONS[relation]}" for relation in RELATIONS)
"""The four relations, each with its name and its definition, as a model is told them."""

_NOTHING = (
    "NA",
    "N/A",
    "not applicable",
    "no atypicality",
    "not atypical",
    "none",
    *(f"none of {those}" for those in ("the above", "the categories", "these categories", "these", "them")),
)
_ALTERNATIVES = Alternatives(
    (
        *((relation, NAMES[relation]) for relation in RELATIONS[:2]),
        ("OIO", NAMES["OIO"], "Object Inside Objects"),  # as the caption of Fig. 1 has it
        ("OR", NAMES["OR"]),
        _NOTHING,
    ),
    numbered=False,
)
_RANKED = re.compile(r"\[?\{[^{}]*\}(?:,?\s*\{[^{}]*\})*\]?")
"""A list of dictionaries, or one without its brackets."""
_ENTRY = re.compile(r"[{,]\s*['\"‘“]?(\d{1,2})['\"’”]?\s*:([^,{}\[\]]*)")
_AROUND = " \t\n'\"[]{}."
_EMPTY = frozenset(["", "none", "null", "-"])
_NOUNS = frozenset(["category", "categories", "atypicality", "atypicalities", "label", "labels", "applies", "apply"])
_OTHER_FIELDS = frozenset([*LABELS, "1"])
"""Fields that mark an object as an answer where the field that was asked for is missing."""


class Atypicalities(TypedAnswer):
    """The labels that a picture was given, the likeliest first."""

    labels: tuple[AtypicalityLabel, ...]

    @classmethod
    def of(cls, labels: Iterable[AtypicalityLabel]) -> Atypicalities:
        """The answer with `labels`, each once."""
        return cls(labels=tuple(dict.fromkeys(labels)))

    def __str__(self) -> str:
        return ", ".join(self.labels)


class AtypicalityClassifier(ChoosingNode[Subject, Atypicalities], PictureAgent[Subject, Atypicalities]):
    """Labels the atypicalities of a picture (MAC, section 3.1).

    It works from a description, or from the picture, which is the baseline of MAC.
    """

    prompt = "classify_atypicality"
    picture_prompt = "classify_from_picture"
    takes = Subject
    gives = Atypicalities

    @override
    def variables(self, subject: Subject) -> Mapping[str, Any]:
        return {**super().variables(subject), "definitions": list(LINES)}

    @override
    def fields(self, subject: Subject) -> Sequence[AnswerField]:
        labels = list_schema(text_schema(among=LABELS), least=1)
        return (AnswerField("categories", labels, "labels", read_category_list),)

    @override
    def read_reply(self, text: str, subject: Subject) -> Read[Atypicalities]:
        return _read(text)

    @override
    def closed_set(self, subject: Subject) -> ClosedSet:
        texts = (*LINES, "none of these; the picture is not atypical")
        return ClosedSet(dict(zip(LABELS, texts, strict=True)), several=True)

    @override
    def chosen(self, subject: Subject, places: Sequence[int]) -> Atypicalities:
        return Atypicalities.of(LABELS[place - 1] for place in places)


def read_categories(text: str) -> Atypicalities:
    """The labels in a reply to the text protocol (Listing 6): `[{'1': 'TR1', '2': 'OIO'}]`, or any other list of them.

    Codes and long names are read, and verdicts on each (`TR1: No, OIO: Yes`). `NA` beside other labels is kept, since
    annotators disagree too. A list with ranks is a declared answer wherever it stands.

    Raises:
        Unreadable: there is no label, or something else stands where one should, or different answers are given.
    """
    return _read(text).value


def _read(text: str) -> Read[Atypicalities]:
    """As `read_categories`, and which rung of the ladder read it."""
    answer = final_text(text)
    if says_none(answer, _NOUNS):
        return Read(Atypicalities(labels=("NA",)), "whole")
    try:
        places, rung = read_choice(_RANKED.sub(_boxed, answer), _ALTERNATIVES, otherwise=len(LABELS))
    except NoAnswer as error:
        raise NoAnswer(_no_category(answer), reply=text) from error
    return Read(_labelled(places), rung)


def _no_category(text: str) -> str:
    """What is wrong with a reply that gives no category."""
    names = [name for ranked in _RANKED.finditer(text) for _, name in _ENTRY.findall(ranked[0])]
    named = next((word for name in names or [text] if (word := name.strip(_AROUND))), "")
    if not named:
        return "no category is given; where none applies the answer is NA"
    return f"{named[:60]!r} is none of the categories {', '.join(LABELS)}"


def _boxed(ranked: re.Match[str]) -> str:
    """A list with ranks as a box, in which answers are declared; empty places count only where all places are empty."""
    names = [name.strip(" '\"‘’“”") for _, name in _ENTRY.findall(ranked[0])]
    filled = [name for name in names if name.casefold() not in _EMPTY]
    return f"\\boxed{{{', '.join(filled or names)}}}" if names else ranked[0]


def read_category_list(data: Mapping[str, Any], field: str) -> tuple[AtypicalityLabel, ...]:
    """The labels in field `field` of a JSON reply.

    Raises:
        Unreadable: as `read_categories`.
    """
    value: Any = data.get(field, None if _OTHER_FIELDS.isdisjoint(data) else data)
    names: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
    names = [name for name in names if name] or names
    if not all(isinstance(name, (str, dict)) for name in names):
        raise Unreadable(f"`{field}` must hold a list of categories, each one of {', '.join(LABELS)}")
    if names and all(name in LABELS for name in names):
        return Atypicalities.of(names).labels
    lines = [*map(as_lines, names)]
    if says_none("\n".join(lines), _NOUNS):
        return ("NA",)
    try:
        return _labelled(read_values(lines, _ALTERNATIVES, otherwise=len(LABELS))).labels
    except NoAnswer as error:
        raise NoAnswer(_no_category("\n".join(lines))) from error


def _labelled(places: Iterable[int]) -> Atypicalities:
    return Atypicalities.of(LABELS[place - 1] for place in places)


classify_atypicality = AtypicalityClassifier
classify_from_picture = preset(AtypicalityClassifier, sees=True)
