"""Which two objects an atypicality relation holds between: the statement's template, filled in.

The relation is known; asked for are its primary and its secondary object (AOR, section 3.1), of a picture that the
model sees or of one that is described to it.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from askance.agents.questions import question_of
from askance.atypicality import DEFINITIONS, NAMES, RELATIONS, TEMPLATES, Relation, Statement
from askance.errors import UsageError
from askance.images import Image
from askance.nodes import Node, Unreadable
from askance.tools import text_field
from askance.tools.object_list import LONGEST_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

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
_PLACE = re.compile(r"\s*object\s*[12]\s*", re.IGNORECASE)
_PRIMARY, _SECONDARY = (
    re.compile(rf"(?:<?\bobject\s*{number}>?|\b{role}(?:\s+object)?)\s*[:=]", re.IGNORECASE)
    for number, role in ((1, "primary"), (2, "secondary"))
)
_BETWEEN = r"[\s,.]"


def read_filled(text: str, relation: Relation) -> Statement:
    """The statement that a reply to the text protocol fills in.

    Read are, in this order: the template with both objects in angular brackets, the last one where it stands several
    times; `<object1>: …` and `<object2>: …` (Listing 11), or `Primary Object: …` and `Secondary Object: …` (Fig. 2);
    any two objects in angular brackets; the template without brackets.

    Raises:
        Unreadable: none of these is there, or a name is none.
    """
    plain = re.sub(r"[*`]+", "", html.unescape(text)).strip()
    filled = [names for names in _template(relation).findall(plain) if not any(map(_PLACE.fullmatch, names))]
    if filled:
        return _statement(relation, *filled[-1])
    labelled = _labelled(plain)
    if labelled is not None:
        return _statement(relation, *labelled)
    named = [name for name in _BRACKETED.findall(plain) if not _PLACE.fullmatch(name)]
    if len(named) > 2:
        named = list(dict.fromkeys(named))
    if len(named) == 2:
        return _statement(relation, *named)
    return _sentence(plain, relation)


def _template(relation: Relation) -> re.Pattern[str]:
    """The template with names in angular brackets, its blanks and commas free."""
    head, middle, tail = (_loose(part) for part in re.split(r"\{\w+\}", TEMPLATES[relation]))
    name = _BRACKETED.pattern
    parts = [*([head] if head else []), name, middle, name, tail]
    return re.compile(f"{_BETWEEN}*".join(parts), re.IGNORECASE)


def _loose(words: str) -> str:
    return f"{_BETWEEN}+".join(map(re.escape, re.findall(r"[\w-]+", words)))


def _labelled(text: str) -> tuple[str, str] | None:
    """What stands behind the labels of the two objects, each up to the end of its line."""
    first = _PRIMARY.search(text)
    second = None if first is None else _SECONDARY.search(text, first.end())
    if first is None or second is None:
        return None
    return _line(text[first.end() : second.start()]), _line(text[second.end() :])


def _line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _sentence(text: str, relation: Relation) -> Statement:
    try:
        found = Statement.parse(text)
    except UsageError:
        raise Unreadable(
            f"the two objects have to stand in angular brackets, such as {' and '.join(EXAMPLES)}"
        ) from None
    if found.relation != relation:
        raise Unreadable(f"the statement is of {NAMES[found.relation]}, and one of {NAMES[relation]} was asked for")
    return _statement(relation, found.primary, found.secondary)


def _statement(relation: Relation, primary: str, secondary: str) -> Statement:
    return Statement(relation, _name(primary, "primary"), _name(secondary, "secondary"))


def _name(written: str, role: str) -> str:
    """A name without what stands around it."""
    name = " ".join(written.split()).strip("<>\"'“”. ,;")
    if not name or _PLACE.fullmatch(name):
        raise Unreadable(f"the {role} object has no name")
    if len(name) > LONGEST_NAME:
        raise Unreadable(f"{name[:40]!r}… is no name of an object; name it in at most {LONGEST_NAME} characters")
    return name


fill_statement = DescribedStatementFiller
fill_from_picture = PictureStatementFiller
