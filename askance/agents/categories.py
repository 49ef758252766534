"""The five labels of an atypicality classification, and the reader of `[{'1': TR1, '2': OIO}]` and of its JSON form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from askance.agents.choose import Choice
from askance.atypicality import DEFINITIONS, NAMES, RELATIONS
from askance.nodes import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Label = Literal["TR1", "TR2", "OIO", "OR", "NA"]
"""One of the four relations, or `NA`: not atypical (section 3.1)."""
LABELS: tuple[Label, ...] = get_args(Label)

LINES = tuple(f"{relation} ({NAMES[relation]}): {DEFINITIONS[relation]}" for relation in RELATIONS)
"""The four relations, each with its name and its definition, as a model is told them."""

_NAMED: dict[str, Label] = {
    **{NAMES[relation].casefold(): relation for relation in RELATIONS},
    **{label.casefold(): label for label in LABELS},
    "object inside objects": "OIO",  # as the caption of Fig. 1 has it
    "no atypicality": "NA",
    "not atypical": "NA",
    "none": "NA",
    "n/a": "NA",
}
_ANSWER = re.compile(r"^.*\banswers?\b\s*(?:is\b\s*:?|are\b\s*:?|[:=])", re.IGNORECASE | re.DOTALL)
_OBJECT = re.compile(r"\{([^{}]*)\}")
_LEAD = re.compile(r"^\s*(?:[-*•]\s*)?(?:['\"]?\d{1,2}['\"]?\s*[:.)]|\(\d{1,2}\))\s*")
_SEPARATOR = re.compile(r"[,;\n]|\band\b")
_CODE = re.compile(r"(TR1|TR2|OIO|OR|NA)\s*[(:–—-]")
"""A code before its name or a reason; in capitals, since `or` is a word."""
_IN_BRACKETS = re.compile(r"[^()]*\((TR1|TR2|OIO|OR|NA)\)")


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
    """The labels in a reply to the text protocol (Listing 6): `[{'1': 'TR1', '2': 'OIO'}]`, or a bare list of them.

    Long names are read as well as codes, and `NA` beside others is kept: annotators disagree too.

    Raises:
        Unreadable: there is no label, or something else stands where one should.
    """
    plain = re.sub(r"[*`_]+", "", text).strip()
    objects = _OBJECT.findall(plain)
    listed = objects[-1] if objects else _ANSWER.sub("", plain)
    pieces = [_LEAD.sub("", piece).strip(" \t'\"[]{}.") for piece in _SEPARATOR.split(listed)]
    return _atypicalities(piece for piece in pieces if piece)


def read_category_list(data: Mapping[str, Any], field: str) -> Atypicalities:
    """The labels in field `field` of a JSON reply.

    Raises:
        Unreadable: as `read_categories`.
    """
    found: Any = data.get(field)
    names: list[Any] = found if isinstance(found, list) else [None]  # pyright: ignore[reportUnknownVariableType]
    if not all(isinstance(name, str) for name in names):
        raise Unreadable(f"`{field}` must hold a list of categories, each one of {', '.join(LABELS)}")
    return _atypicalities(name.strip() for name in names)


def _atypicalities(names: Iterable[str]) -> Atypicalities:
    labels: list[Label] = [_label(name) for name in names]
    if not labels:
        raise Unreadable("no category is given; where none applies the answer is NA")
    return Atypicalities.of(labels)


def _label(name: str) -> Label:
    found = _NAMED.get(" ".join(name.casefold().split()))
    if found is not None:
        return found
    coded = _CODE.match(name) or _IN_BRACKETS.fullmatch(name)
    if coded is None:
        raise Unreadable(f"{name[:60]!r} is none of the categories {', '.join(LABELS)}")
    return _NAMED[coded[1].casefold()]
