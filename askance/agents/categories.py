"""The five labels of an atypicality classification, and the reader of `[{'1': TR1, '2': OIO}]` and of its JSON form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from askance.agents.answers import Alternatives, as_lines, choices, names_one
from askance.agents.choose import Choice
from askance.atypicality import DEFINITIONS, NAMES, RELATIONS
from askance.nodes import Unreadable
from askance.nodes.reply import plain, says_none, spoken

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Label = Literal["TR1", "TR2", "OIO", "OR", "NA"]
"""One of the four relations, or `NA`: not atypical (section 3.1)."""
LABELS: tuple[Label, ...] = get_args(Label)

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
"""Fields by which an object without the one that was asked for is known as an answer."""
_RANK = re.compile(r"^\W*\d{1,2}\W+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Atypicalities(Choice):
    """The labels that a picture was given: a choice among `LABELS`, the likeliest first."""

    def __post_init__(self) -> None:
        Choice.__post_init__(self)
        if not all(1 <= number <= len(LABELS) for number in self.numbers):
            msg = f"{self.numbers!r} are no numbers of {', '.join(LABELS)}"
            raise ValueError(msg)

    @classmethod
    def of(cls, labels: Iterable[Label]) -> Atypicalities:
        """The choice of `labels`, each once."""
        return cls(numbers=tuple(dict.fromkeys(LABELS.index(label) + 1 for label in labels)))

    @property
    def labels(self) -> tuple[Label, ...]:
        """What the numbers stand for."""
        return tuple(LABELS[number - 1] for number in self.numbers)

    def __str__(self) -> str:
        return ", ".join(self.labels)


def read_categories(text: str) -> Atypicalities:
    """The labels in a reply to the text protocol (Listing 6): `[{'1': 'TR1', '2': 'OIO'}]`, or any other list of them.

    Long names are read as well as codes, verdicts on each (`TR1: No, OIO: Yes`) by what they say, and `NA` beside
    others is kept: annotators disagree too. Of several lists with ranks the last counts.

    Raises:
        Unreadable: there is no label, or something else stands where one should, or different answers are given.
    """
    said = plain(spoken(text))
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
    return _atypicalities(names, "".join([*parts, said[end:]]) if names else said)


def _answer(names: Sequence[str]) -> str:
    """A ranked list as an answer; places of it that are left empty count only where all are."""
    filled = [name for name in names if name.casefold() not in _EMPTY]
    return f" Answer: {', '.join(filled or names)}.\n"


def read_category_list(data: Mapping[str, Any], field: str) -> Atypicalities:
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
        return Atypicalities.of(names)
    return _atypicalities(lines := [as_lines(name) for name in names], "\n".join(lines))


def _atypicalities(names: Sequence[str], text: str) -> Atypicalities:
    """The labels that `text` chooses; each of `names`, of which its answer consists, holds one."""
    if not names and says_none(text, _NOUNS):
        return Atypicalities(numbers=(len(LABELS),))
    for name in names or [text]:
        if (bare := _bare(plain(name))) and not names_one(name, _ALTERNATIVES):
            raise Unreadable(f"{bare[:60]!r} is none of the categories {', '.join(LABELS)}")
    places = choices(text, _ALTERNATIVES, apart=False, otherwise=len(LABELS))
    if not places:
        raise Unreadable("no category is given; where none applies the answer is NA")
    return Atypicalities(numbers=tuple(dict.fromkeys(places)))


def _bare(name: str) -> str:
    """A name without a rank before it and without what surrounds it."""
    return _RANK.sub("", name).strip(" \t\n'\"[]{}.")
