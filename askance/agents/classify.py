"""Which categories of atypicality a picture has: from its description, or from the picture itself (MAC)."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from typing_extensions import override

from askance.agents.answer_grammar import Alternatives, as_lines, choices, names_one
from askance.agents.picture_agent import PictureAgent, Subject
from askance.atypicality import DEFINITIONS, NAMES, RELATIONS
from askance.nodes import AnswerField, TypedAnswer, Unreadable
from askance.nodes.answer import list_schema, text_schema
from askance.nodes.closed_set import ClosedSet
from askance.nodes.reply import final_text, plain_text, says_none

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
_RANKED = re.compile(r"\[?\{[^{}]*\}(?:,\s*\{[^{}]*\})*\]?")
"""A list of dictionaries, or one without its brackets."""
_ENTRY = re.compile(r"[{,]\s*['\"]?(\d{1,2})['\"]?\s*:([^,{}\[\]]*)")
_EMPTY = frozenset(["", "none", "null", "-"])
_NOUNS = frozenset(["category", "categories", "atypicality", "atypicalities", "label", "labels", "applies", "apply"])
_OTHER_FIELDS = frozenset([*LABELS, "1"])
"""Fields that mark an object as an answer where the field that was asked for is missing."""
_RANK = re.compile(r"^\W*\d{1,2}\W+")


class Atypicalities(TypedAnswer):
    """The labels that a picture was given, the likeliest first."""

    labels: tuple[AtypicalityLabel, ...]

    @classmethod
    def of(cls, labels: Iterable[AtypicalityLabel]) -> Atypicalities:
        """The answer with `labels`, each once."""
        return cls(labels=tuple(dict.fromkeys(labels)))

    def __str__(self) -> str:
        return ", ".join(self.labels)


class AtypicalityClassifier(PictureAgent[Subject, Atypicalities]):
    """Labels the atypicalities of a picture (MAC, section 3.1).

    It works from a description, or from the picture, which is the baseline of MAC.
    """

    prompt = "classify_atypicality"
    picture_prompt = "classify_from_picture"
    takes = Subject
    gives = Atypicalities
    chooses = True

    @override
    def variables(self, subject: Subject) -> Mapping[str, Any]:
        return {**super().variables(subject), "definitions": list(LINES)}

    @override
    def fields(self, subject: Subject) -> Sequence[AnswerField]:
        labels = list_schema(text_schema(among=LABELS), least=1)
        return (AnswerField("categories", labels, "labels", read_category_list),)

    @override
    def read_text(self, text: str, subject: Subject) -> Atypicalities:
        return read_categories(text)

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
    annotators disagree too. Of several lists with ranks the last counts.

    Raises:
        Unreadable: there is no label, or something else stands where one should, or different answers are given.
    """
    said = plain_text(final_text(text))
    parts: list[str] = []
    end = 0
    names: list[str] = []
    for ranked in _RANKED.finditer(said):
        if entries := _ENTRY.findall(ranked[0]):
            goes_on = names and entries[0][0] != "1" and not said[end : ranked.start()].strip(" \n,;")
            named = [_bare(entry) for _, entry in entries]
            names = [*names, *named] if goes_on else named
            parts = [*(parts[:-1] if goes_on else [*parts, said[end : ranked.start()]]), _answer(names)]
            end = ranked.end()
    return Atypicalities(labels=_labels(names, "".join([*parts, said[end:]]) if names else said))


def _answer(names: Sequence[str]) -> str:
    """A ranked list as an answer; empty places count only where all places are empty."""
    filled = [name for name in names if name.casefold() not in _EMPTY]
    return f" Answer: {', '.join(filled or names)}.\n"


def read_category_list(data: Mapping[str, Any], field: str) -> tuple[AtypicalityLabel, ...]:
    """The labels in field `field` of a JSON reply.

    Raises:
        Unreadable: as `read_categories`.
    """
    found: Any = data.get(field, None if _OTHER_FIELDS.isdisjoint(data) else data)
    names: list[Any] = found if isinstance(found, list) else [found]  # pyright: ignore[reportUnknownVariableType]
    names = [name for name in names if name is not None] or names
    if not all(isinstance(name, (str, dict)) for name in names):
        raise Unreadable(f"`{field}` must hold a list of categories, each one of {', '.join(LABELS)}")
    if names and all(name in LABELS for name in names):
        return Atypicalities.of(names).labels
    return _labels(lines := [as_lines(name) for name in names], "\n".join(lines))


def _labels(names: Sequence[str], text: str) -> tuple[AtypicalityLabel, ...]:
    """The labels that `text` chooses; its answer consists of `names`, and each of them must name a label."""
    if not names and says_none(text, _NOUNS):
        return ("NA",)
    for name in names or [text]:
        if (word := _bare(plain_text(name))) and not names_one(name, _ALTERNATIVES):
            raise Unreadable(f"{word[:60]!r} is none of the categories {', '.join(LABELS)}")
    places = choices(text, _ALTERNATIVES, apart=False, otherwise=len(LABELS))
    if not places:
        raise Unreadable("no category is given; where none applies the answer is NA")
    return tuple(dict.fromkeys(LABELS[place - 1] for place in places))


def _bare(name: str) -> str:
    """A name without a rank before it and without quotes and brackets around it."""
    return _RANK.sub("", name).strip(" \t\n'\"[]{}.")


classify_atypicality = AtypicalityClassifier
classify_from_picture = partial(AtypicalityClassifier, sees=True)
