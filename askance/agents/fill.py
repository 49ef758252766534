"""Which two objects an atypicality relation holds between: the statement's template, filled in.

The relation is known; asked for are its primary and its secondary object (AOR, section 3.1), of a picture that the
model sees or of one that is described to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from askance.agents.questions import question_of
from askance.atypicality import DEFINITIONS, NAMES, RELATIONS, TEMPLATES, Relation, Statement
from askance.errors import UsageError
from askance.images import Image
from askance.nodes import Node, Unreadable
from askance.nodes.reply import plain, refuses, spoken, unquoted
from askance.tools import text_field
from askance.tools.object_list import LONGEST_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLACES = ("<object1>", "<object2>")
"""Stand in the template where the model is to fill in the primary and the secondary object (Listing 10)."""

EXAMPLES = ("<eleven>", "<meat>")
"""The objects of the example that the model is shown (Listing 10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillQuestion:
    """Between which objects `relation` holds, given a description of the picture."""

    relation: Relation
    description: str

    def __post_init__(self) -> None:
        _check(self.relation)


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureFillQuestion:
    """Between which objects `relation` holds in a picture that the model sees."""

    relation: Relation
    image: Image

    def __post_init__(self) -> None:
        _check(self.relation)
        object.__setattr__(self, "image", Image.load(self.image))


def _check(relation: str) -> None:
    if relation not in RELATIONS:
        raise UsageError(f"{relation!r} is no relation.", hint=f"The four are: {', '.join(RELATIONS)}.")


Asked = TypeVar("Asked", FillQuestion, PictureFillQuestion)


class StatementFiller(Node[Asked, Statement]):
    """What both share: the template of the relation, and how the objects are read."""

    gives = Statement

    @override
    def variables(self, subject: Asked) -> Mapping[str, Any]:
        relation = subject.relation
        return {
            "relation": NAMES[relation],
            "definition": DEFINITIONS[relation],
            "template": TEMPLATES[relation].format(primary=PLACES[0], secondary=PLACES[1]),
            "example": TEMPLATES[relation].format(primary=EXAMPLES[0], secondary=EXAMPLES[1]),
        }

    @override
    def schema(self, subject: Asked) -> Mapping[str, Any]:
        name = {"type": "string", "minLength": 1}
        return {
            "type": "object",
            "properties": {"primary": name, "secondary": name},
            "required": ["primary", "secondary"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Asked) -> Statement:
        return _statement(subject.relation, text_field(data, "primary"), text_field(data, "secondary"))

    @override
    def read_text(self, text: str, subject: Asked) -> Statement:
        return read_filled(text, subject.relation)


class DescribedStatementFiller(StatementFiller[FillQuestion]):
    """Names the two objects of a relation in a described picture."""

    prompt = "fill_statement"

    @override
    def accept(self, given: Any) -> FillQuestion:
        return question_of(FillQuestion, given)

    @override
    def variables(self, subject: FillQuestion) -> Mapping[str, Any]:
        return {"description": subject.description, **super().variables(subject)}


class PictureStatementFiller(StatementFiller[PictureFillQuestion]):
    """Names the two objects of a relation in a picture that the model sees (AOR, Listing 10)."""

    prompt = "fill_from_picture"

    @override
    def accept(self, given: Any) -> PictureFillQuestion:
        return question_of(PictureFillQuestion, given)

    @override
    def pictures(self, subject: PictureFillQuestion) -> tuple[Image, ...]:
        return (subject.image,)


_BRACKETED = re.compile(r"<([^<>\n]+)>")
_PLACE = re.compile(
    r"\s*/?(?:(?:object|answer)\s*[12]?|(?:primary|secondary|first|second)\s+object|(?:object\s+)?name|\.+|\?+|_+)\s*",
    re.IGNORECASE,
)
_NOTHING_WORDS = "none nothing null nil n/a na unknown unclear unspecified unidentified no not"
_NOTHING = frozenset(_NOTHING_WORDS.split())
"""A name that is or begins with one of these names no object."""
_AROUND = "<>\"'“”. ,;{}[]*`|"
_AND = re.compile(r"[\s,]+and\s*$", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:not|isn't|never)\W*$", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:<?\bobject\s*(?P<number>[12])\b>?|\b(?:the\s+)?(?P<role>primary|secondary)(?:[\s_]+object)?)[\"']?\s*(?:[:=|→]|-(?=\s)|\bis\b)",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"^[^:<\n]{0,60}:\s*")
_ALTERNATIVE = re.compile(r"\s(?:or|and/or)\s", re.IGNORECASE)
_BETWEEN = r"[\s,.]"


def read_filled(text: str, relation: Relation) -> Statement:
    """The statement that a reply to the text protocol fills in.

    Read are, in this order: the template with both objects in angular brackets; `<object1>: …` and `<object2>: …`
    (Listing 11), or `Primary Object: …` and `Secondary Object: …` (Fig. 2), also as JSON; any two objects in angular
    brackets; the template without brackets. The template as the question gives it, or as its example does, does not
    count; nor does one that a denial stands before.

    Raises:
        Unreadable: none of these is there, two differ, a name is none, or another relation's template is filled in.
    """
    said = plain(spoken(text))
    filled = [names for names in _filled(said, relation) if not _repeats(names)]
    if filled:
        if len({tuple(map(_folded, names)) for names in filled}) > 1:
            raise Unreadable("the template is filled in differently; fill it in once")
        return _statement(relation, *filled[-1])
    labelled = _labelled(said)
    if labelled is not None:
        return _statement(relation, *labelled)
    for other in RELATIONS:
        if other != relation and _filled(said, other):
            raise _other(other, relation)
    named = [name for name in _BRACKETED.findall(said) if not _PLACE.fullmatch(name)]
    if len(named) > 2:
        named = list(dict.fromkeys(named))
    if len(named) == 2 and not _repeats(named):
        return _statement(relation, *named)
    return _sentence(unquoted(said), relation)


def _filled(text: str, relation: Relation) -> list[tuple[str, str]]:
    """The names of every filled-in template in `text` that is not denied."""
    found = _template(relation).finditer(text)
    return [(each[1], each[2]) for each in found if not _DENIED.search(text[max(0, each.start() - 12) : each.start()])]


def _repeats(names: Sequence[str]) -> bool:
    """Whether the names are the places to be filled in, or those of the example."""
    return any(map(_PLACE.fullmatch, names)) or [f"<{_folded(name)}>" for name in names] == [*EXAMPLES]


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def _other(found: Relation, relation: Relation) -> Unreadable:
    return Unreadable(f"the statement is of {NAMES[found]}, and one of {NAMES[relation]} was asked for")


def _template(relation: Relation) -> re.Pattern[str]:
    """The template with names in angular brackets, its blanks and commas free."""
    head, middle, tail = (_loose(part) for part in re.split(r"\{\w+\}", TEMPLATES[relation]))
    name = _BRACKETED.pattern
    parts = [*([head] if head else []), name, middle, name, tail]
    return re.compile(f"{_BETWEEN}*".join(parts), re.IGNORECASE)


def _loose(words: str) -> str:
    return f"{_BETWEEN}+".join(map(re.escape, re.findall(r"[\w-]+", words)))


def _labelled(text: str) -> tuple[str, str] | None:
    """What stands behind the labels of the two objects, each up to the end of its line.

    Raises:
        Unreadable: one label stands before different names.
    """
    labels = [*_LABEL.finditer(text)]
    found: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for label, following in zip_longest(labels, labels[1:]):
        end = following.start() if following else len(text)
        name = _AND.sub("", " ".join(text[label.end() : end].strip().partition("\n")[0].split()))
        second = label["number"] == "2" or (label["role"] or "").casefold() == "secondary"
        found[second].setdefault(_folded(name.strip(_AROUND)), name)
    if not all(found):
        return None
    if any(len(names) > 1 for names in found):
        raise Unreadable("an object is named differently; name each once")
    return next(iter(found[0].values())), next(iter(found[1].values()))


def _sentence(text: str, relation: Relation) -> Statement:
    unmarked = Unreadable(f"the two objects have to stand in angular brackets, such as {' and '.join(EXAMPLES)}")
    try:
        found = Statement.parse(_LABELLED.sub("", text))
    except UsageError:
        raise unmarked from None
    if _repeats([found.primary.strip("<>"), found.secondary.strip("<>")]):
        raise unmarked
    if found.relation != relation:
        raise _other(found.relation, relation)
    return _statement(relation, found.primary, found.secondary)


def _statement(relation: Relation, primary: str, secondary: str) -> Statement:
    return Statement(relation, _name(primary, "primary"), _name(secondary, "secondary"))


def _name(written: str, role: str) -> str:
    """A name without what stands around it."""
    name = " ".join(written.split()).strip(_AROUND)
    if not name or _PLACE.fullmatch(name) or _NOTHING.intersection(name.casefold().split()[:1]):
        raise Unreadable(f"the {role} object has no name")
    if _ALTERNATIVE.search(name):
        raise Unreadable(f"the {role} object is one or another; name one")
    if len(name) > LONGEST_NAME or refuses(name):
        raise Unreadable(f"{name[:40]!r}… is no name of an object; name it in at most {LONGEST_NAME} characters")
    return name


fill_statement = DescribedStatementFiller
fill_from_picture = PictureStatementFiller
