"""Statements of atypicality: detected among all that the objects allow, chosen among given ones, or filled in.

A statement says which relation holds between which two objects. `detect_statement` gives ŝ of the chains.
`choose_statement` answers the task ASR, and `fill_statement`, which is given the relation, the task AOR.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack, override

from askance.agents.alternatives import alternatives_of
from askance.agents.choice_fields import read_numbers
from askance.agents.choose import Chooser, OptionsQuestion, check_options
from askance.agents.picture_agent import PictureAgent, PictureOptions, Subject, preset
from askance.agents.reply_ladder import ChoosingNode, read_choice
from askance.atypicality import (
    DEFINITIONS,
    NAMES,
    RELATIONS,
    TEMPLATES,
    Relation,
    Statement,
    statement_at,
    statement_texts,
)
from askance.errors import UsageError
from askance.nodes import AnswerField, Read, Result, Unreadable, skipped
from askance.nodes.answer import Texts, TypedInput, number_schema, text_field, text_schema
from askance.nodes.closed_set import ClosedSet
from askance.nodes.reply import final_text, is_refusal, plain_text, strip_quotes
from askance.tools.name_list import LONGEST_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from askance.models import ModelLike

PLACES = ("<object1>", "<object2>")
"""Placeholders in the template for the primary and the secondary object (Listing 10)."""

EXAMPLES = ("<eleven>", "<meat>")
"""The objects of the example that the model is shown (Listing 10)."""


class StatementQuestion(TypedInput):
    """Which atypicality statement over `objects` holds, given a description of the picture."""

    description: str
    objects: Texts


class FillQuestion(Subject):
    """Between which objects of a picture `relation` holds."""

    relation: Relation


class StatementDetector(ChoosingNode[StatementQuestion, Statement]):
    """Chooses the atypicality statement that holds, of every relation over every ordered pair of objects.

    Section 3.2, step ii, of the paper. With fewer than two different objects no statement is possible: the outcome is
    `skipped`, no call is made, and what depends on the statement goes on without it.
    """

    prompt = "detect_statement"
    takes = StatementQuestion
    gives = Statement

    @override
    def unasked(self, subject: StatementQuestion) -> Result[Statement] | None:
        if statement_texts(subject.objects):
            return None
        seen = ", ".join(subject.objects) or "none"
        return skipped(f"no statement is possible with fewer than two objects (seen: {seen})", absent=True)

    @override
    def variables(self, subject: StatementQuestion) -> Mapping[str, Any]:
        return {"description": subject.description, "options": statement_texts(subject.objects)}

    @override
    def fields(self, subject: StatementQuestion) -> Sequence[AnswerField]:
        options = statement_texts(subject.objects)
        read = partial(read_numbers, count=len(options), single=True, options=options)
        return (AnswerField("statement", number_schema(len(options)), "numbers", read),)

    @override
    def answer(self, subject: StatementQuestion, **values: Any) -> Statement:
        (number,) = values["numbers"]
        return statement_at(subject.objects, number - 1)

    @override
    def read_reply(self, text: str, subject: StatementQuestion) -> Read[Statement]:
        numbers, rung = read_choice(text, alternatives_of(statement_texts(subject.objects)), single=True)
        return Read(self.answer(subject, numbers=numbers), rung)

    @override
    def closed_set(self, subject: StatementQuestion) -> ClosedSet:
        statements = enumerate(statement_texts(subject.objects), start=1)
        return ClosedSet({str(number): statement for number, statement in statements})

    @override
    def chosen(self, subject: StatementQuestion, places: Sequence[int]) -> Statement:
        return self.answer(subject, numbers=places)


class StatementChooser(Chooser):
    """Chooses the one of some given statements that holds in a picture (ASR, section 3.1).

    It is chosen from a description, or from the picture: the baseline of ASR.
    """

    prompt = "detect_statement"
    picture_prompt = "choose_statement_from_picture"

    def __init__(self, model: ModelLike, **options: Unpack[PictureOptions]) -> None:
        super().__init__(model, mode="single", **options)

    @override
    def fields(self, subject: OptionsQuestion) -> Sequence[AnswerField]:
        return (AnswerField("statement", number_schema(len(subject.options)), "numbers", self._reader(subject)),)

    @override
    def variables(self, subject: OptionsQuestion) -> Mapping[str, Any]:
        described = {} if self.sees else {"description": subject.description}
        return {**described, "options": check_options(subject.options)}


class StatementFiller(PictureAgent[FillQuestion, Statement]):
    """Names the primary and the secondary object of a relation, in the template of its statement (AOR, Listing 10)."""

    prompt = "fill_statement"
    picture_prompt = "fill_from_picture"
    takes = FillQuestion
    gives = Statement

    @override
    def variables(self, subject: FillQuestion) -> Mapping[str, Any]:
        relation = subject.relation
        return {
            **super().variables(subject),
            "relation": NAMES[relation],
            "definition": DEFINITIONS[relation],
            "template": TEMPLATES[relation].format(primary=PLACES[0], secondary=PLACES[1]),
            "example": TEMPLATES[relation].format(primary=EXAMPLES[0], secondary=EXAMPLES[1]),
        }

    @override
    def fields(self, subject: FillQuestion) -> Sequence[AnswerField]:
        return tuple(AnswerField(role, text_schema(least=1), role, text_field) for role in ("primary", "secondary"))

    @override
    def answer(self, subject: FillQuestion, **values: Any) -> Statement:
        return _statement(subject.relation, **values)

    @override
    def read_text(self, text: str, subject: FillQuestion) -> Statement:
        return read_filled(text, subject.relation)


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

    These forms are looked for, in this order:

    - the template with both objects in angle brackets;
    - `<object1>: …` and `<object2>: …` (Listing 11), or `Primary Object: …` and `Secondary Object: …` (Fig. 2), also
      as JSON;
    - any two objects in angle brackets;
    - the template without brackets.

    Copies of the question's template or of its example do not count, nor does a template after a denial.

    Raises:
        Unreadable: no form is found, two differ, an object has no name, or another relation's template is filled in.
    """
    plain = plain_text(final_text(text))
    filled = [names for names in _filled(plain, relation) if not _repeats(names)]
    if filled:
        if len({tuple(map(_folded, names)) for names in filled}) > 1:
            raise Unreadable("the template is filled in differently; fill it in once")
        return _statement(relation, *filled[-1])
    labelled = _labelled(plain)
    if labelled is not None:
        return _statement(relation, *labelled)
    for other in RELATIONS:
        if other != relation and _filled(plain, other):
            raise _other(other, relation)
    named = [name for name in _BRACKETED.findall(plain) if not _PLACE.fullmatch(name)]
    if len(named) > 2:
        named = list(dict.fromkeys(named))
    if len(named) == 2 and not _repeats(named):
        return _statement(relation, *named)
    return _sentence(strip_quotes(plain), relation)


def _filled(text: str, relation: Relation) -> list[tuple[str, str]]:
    """The names of every filled-in template in `text` that is not denied."""
    matches = _template(relation).finditer(text)
    return [
        (each[1], each[2]) for each in matches if not _DENIED.search(text[max(0, each.start() - 12) : each.start()])
    ]


def _repeats(names: Sequence[str]) -> bool:
    """Whether the names are the placeholders, or the objects of the example."""
    return any(map(_PLACE.fullmatch, names)) or [f"<{_folded(name)}>" for name in names] == [*EXAMPLES]


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def _other(detected: Relation, relation: Relation) -> Unreadable:
    return Unreadable(f"the statement is of {NAMES[detected]}, and one of {NAMES[relation]} was asked for")


def _template(relation: Relation) -> re.Pattern[str]:
    """A pattern for the template with names in angle brackets, whatever its blanks and commas."""
    head, middle, tail = (_loose(part) for part in re.split(r"\{\w+\}", TEMPLATES[relation]))
    name = _BRACKETED.pattern
    parts = [*([head] if head else []), name, middle, name, tail]
    return re.compile(f"{_BETWEEN}*".join(parts), re.IGNORECASE)


def _loose(words: str) -> str:
    return f"{_BETWEEN}+".join(map(re.escape, re.findall(r"[\w-]+", words)))


def _labelled(text: str) -> tuple[str, str] | None:
    """The names after the labels of the two objects, each up to the end of its line.

    Raises:
        Unreadable: one label has different names.
    """
    labels = [*_LABEL.finditer(text)]
    names_of: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for label, following in zip_longest(labels, labels[1:]):
        end = following.start() if following else len(text)
        name = _AND.sub("", " ".join(text[label.end() : end].strip().partition("\n")[0].split()))
        second = label["number"] == "2" or (label["role"] or "").casefold() == "secondary"
        names_of[second].setdefault(_folded(name.strip(_AROUND)), name)
    if not all(names_of):
        return None
    if any(len(names) > 1 for names in names_of):
        raise Unreadable("an object is named differently; name each once")
    return next(iter(names_of[0].values())), next(iter(names_of[1].values()))


def _sentence(text: str, relation: Relation) -> Statement:
    unmarked = Unreadable(f"the two objects have to stand in angular brackets, such as {' and '.join(EXAMPLES)}")
    try:
        statement = Statement.parse(_LABELLED.sub("", text))
    except UsageError:
        raise unmarked from None
    if _repeats([statement.primary.strip("<>"), statement.secondary.strip("<>")]):
        raise unmarked
    if statement.relation != relation:
        raise _other(statement.relation, relation)
    return _statement(relation, statement.primary, statement.secondary)


def _statement(relation: Relation, primary: str, secondary: str) -> Statement:
    return Statement(relation, _name(primary, "primary"), _name(secondary, "secondary"))


def _name(written: str, role: str) -> str:
    """A name without brackets and quotes around it."""
    name = " ".join(written.split()).strip(_AROUND)
    if not name or _PLACE.fullmatch(name) or _NOTHING.intersection(name.casefold().split()[:1]):
        raise Unreadable(f"the {role} object has no name")
    if _ALTERNATIVE.search(name):
        raise Unreadable(f"the {role} object is one or another; name one")
    if len(name) > LONGEST_NAME or is_refusal(name):
        raise Unreadable(f"{name[:40]!r}… is no name of an object; name it in at most {LONGEST_NAME} characters")
    return name


detect_statement = StatementDetector
choose_statement = StatementChooser
choose_statement_from_picture = preset(StatementChooser, sees=True)
fill_statement = StatementFiller
fill_from_picture = preset(StatementFiller, sees=True)
