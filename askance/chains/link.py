"""Links: what a chain can know of a picture, each declared once.

A `Link` declares one thing that can be known: its name, the type of its value, and how that value is read and written.
`LINKS` are those of the papers. A suite or a user declares others in the same way, and a chain that fills them in goes
through runs, plans, batches, lines, reports and blame like any other. `askance.chains.reading` holds what is known.

There is no registry of links: a step carries its link, a chain the links of its steps, a reading those of its chain.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from pydantic import PydanticUserError, TypeAdapter

from askance.agents import Choice, Description, Reply
from askance.atypicality import RELATIONS, Statement
from askance.errors import UsageError
from askance.nodes import Result, TextAnswer
from askance.nodes import given as given_result
from askance.nodes.answer import faults
from askance.tools import Names, Narration, Objects, SceneText, Unusual

if TYPE_CHECKING:
    from askance.chat import Json, JsonObject

V = TypeVar("V")
Named = TypeVar("Named", bound=Names)

TYPICAL_BYTES = 300
"""Bytes of the texts of a call, as a plan takes them where they are not known yet and nothing like it is on record."""


def as_json(value: Any) -> Json:
    """`value` as JSON: texts as they are, models of pydantic and dataclasses by their fields, anything else as text."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, TextAnswer):
        return value.text
    if isinstance(value, Mapping):
        return {str(name): as_json(each) for name, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in cast("Sequence[Any]", value)]
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value):
        return {each.name: as_json(getattr(value, each.name)) for each in fields(value)}
    return str(value)


def as_words(form: Json) -> str:
    """JSON as a person reads it: a text as it is, a list of texts with commas, anything else as JSON."""
    if isinstance(form, str):
        return form
    if isinstance(form, list) and all(isinstance(each, str) for each in form):
        return ", ".join(cast("list[str]", form))
    return json.dumps(form, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Link(Generic[V]):
    """One thing that a chain can know of a picture.

    Args:
        name: a Python identifier; names the link in what a chain is given, in lines and in tasks.
        kind: type of the value.
        read: makes the value of what a caller or a caller's own node gives: plain text, lists, JSON. By default a
            mapping gives the fields of `kind`, and anything else is passed to `kind` as it is. It may raise `TypeError`
            and `ValueError`.
        write: gives the value as JSON, which `read` takes again.
        answer: gives the value as JSON where it is the answer of a solver; by default as `write` does.
        schema: JSON Schema of what `read` takes; by default that of `kind`.
        show: makes one line for people of what `write` gives.
        label: what the link holds, in words; by default the name.
        short: short name, such as the one of a paper; by default the name.
        typical_bytes: bytes of the texts of a typical call for this link. A plan takes them where the call depends on
            answers that are not there yet, and nothing like it is on record.
        chooses: whether the value has `numbers`, chosen among the options of the input.
    """

    name: str
    kind: type[V]
    _: KW_ONLY
    read: Callable[[Any], V] | None = None
    write: Callable[[V], Json] = as_json
    answer: Callable[[V], Json] | None = None
    schema: JsonObject | None = field(default=None, compare=False, repr=False)
    show: Callable[[Any], str] = as_words
    label: str = ""
    short: str = ""
    typical_bytes: int = TYPICAL_BYTES
    chooses: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.heading)
        object.__setattr__(self, "short", self.short or self.name)

    def __str__(self) -> str:
        return self.name

    @property
    def heading(self) -> str:
        """The name without underscores."""
        return self.name.replace("_", " ")

    @property
    def title(self) -> str:
        """The short name and the label."""
        return self.label if self.short == self.name else f"{self.short} · {self.label}"

    def value(self, source: Any) -> V:
        """The value that `source` stands for.

        Raises:
            UsageError: it is none that the link can hold.
        """
        if isinstance(source, self.kind):
            return source
        try:
            return (self.read or self._make)(source)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{source!r} cannot stand for the link {self.name!r}.", hint=faults(error)) from error

    def result(self, source: Any) -> Result[V]:
        """The value that `source` stands for, as a result that nobody was asked for; a `Result` stays as it is.

        Raises:
            UsageError: it is none that the link can hold.
        """
        return cast("Result[V]", source) if isinstance(source, Result) else given_result(self.value(source))

    def input_schema(self) -> JsonObject:
        """JSON Schema of what can be given for the link; an empty one where nobody can tell."""
        if self.schema is not None or self.read is not None:
            return self.schema or {}
        try:
            own = TypeAdapter(self.kind).json_schema()
        except PydanticUserError:
            return {}
        return {"anyOf": [{"type": "string"}, own]} if issubclass(self.kind, TextAnswer) else own

    def __reduce__(self) -> tuple[Any, ...]:
        """A link of the papers is pickled by its name; another by what it is declared with.

        Raises:
            UsageError: a function of it cannot be pickled.
        """
        if LINKS_BY_NAME.get(self.name) is self:
            return link_named, (self.name,)
        form = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, part in form.items():
            check_pickle(part, f"`{name}` of the link {self.name!r}")
        return partial(Link, **form), ()

    def _make(self, source: Any) -> V:
        make: Any = self.kind
        if isinstance(source, Mapping):
            return make(**cast("Mapping[str, Any]", source))
        return cast("V", make(text=str(source)) if issubclass(make, TextAnswer) else make(source))


def check_pickle(part: object, what: str) -> None:
    """Refuses a function or a class that cannot be pickled, since no module has it by name.

    Ray, joblib and others pickle by cloudpickle, which takes these too; where it is loaded, nothing is refused.

    Raises:
        UsageError: it cannot be pickled.
    """
    while isinstance(part, partial):
        part = cast("partial[Any]", part).func
    name: str = getattr(part, "__qualname__", "")
    if "<" in name and not any(module.endswith("cloudpickle") for module in sys.modules):
        raise UsageError(
            f"{what} cannot be pickled: `{name}` is a lambda, or is defined inside a function.",
            hint="Define it by `def` or `class` at the top of a module, or pickle with cloudpickle.",
        )


def names_link(name: str, kind: type[Named], *, short: str = "") -> Link[Named]:
    """A link whose value is made of names; they are given as a list, or as a text with commas between them."""
    return Link(name, kind, read=kind.of, schema=_TEXTS, write=_write_names, answer=str, short=short)


def _write_names(value: Names) -> Json:
    return list(value.names)


def _read_scene_text(source: Any) -> SceneText:
    lines: Sequence[str] = source.splitlines() if isinstance(source, str) else list(source)
    return SceneText(lines=tuple(line for line in lines if line.strip()))


def _show_lines(form: Sequence[str]) -> str:
    return " / ".join(form) or "none"


def _write_lines(value: SceneText) -> Json:
    return list(value.lines)


def _show_statement(form: Mapping[str, str]) -> str:
    return f"{form['relation']}  {form['text']}"


def _write_numbers(value: Choice) -> Json:
    return list(value.numbers)


def _read_statement(source: Any) -> Statement:
    if not isinstance(source, Mapping):
        return Statement.parse(source)
    form = {name: each for name, each in cast("Mapping[str, Any]", source).items() if name != "text"}
    if form.keys() != {"relation", "primary", "secondary"}:
        raise ValueError("A statement is a text, or has `relation`, `primary` and `secondary`.")
    return Statement(**form)


def _read_choice(source: Any) -> Choice:
    return Choice(numbers=tuple(source))


_TEXTS: JsonObject = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

OBJECTS = names_link("objects", Objects, short="V")
SCENE_TEXT = Link(
    "scene_text",
    SceneText,
    read=_read_scene_text,
    schema=_TEXTS,
    write=_write_lines,
    answer=str,
    show=_show_lines,
    short="T",
)
NARRATION = Link("narration", Narration, short="IN")
UNUSUAL = Link("unusual", Unusual, label="what is unusual", short="UH")
DESCRIPTION = Link("description", Description, short="T_V", typical_bytes=1500)  # of four verbalizations
STATEMENT = Link(
    "statement",
    Statement,
    read=_read_statement,
    schema={
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {
                    "relation": {"enum": [*RELATIONS]},
                    "primary": {"type": "string", "minLength": 1},
                    "secondary": {"type": "string", "minLength": 1},
                    "text": {"type": "string"},
                },
                "required": ["relation", "primary", "secondary"],
                "additionalProperties": False,
            },
        ]
    },
    write=Statement.canonical,
    answer=str,
    show=_show_statement,
    short="ŝ",
    typical_bytes=8000,  # of a description and 80 statements
)
ANSWERS = Link(
    "answers",
    Choice,
    read=_read_choice,
    schema={"type": "array", "items": {"type": "integer", "minimum": 1}},
    write=_write_numbers,
    label="Answers",
    typical_bytes=1200,  # of a description and a statement
    chooses=True,
)
REPLY = Link("reply", Reply, label="Reply")

LINKS: tuple[Link[Any], ...] = (OBJECTS, SCENE_TEXT, NARRATION, UNUSUAL, DESCRIPTION, STATEMENT, ANSWERS, REPLY)
"""V, T, IN, UH, T_V (or another context), ŝ, the chosen options or a free answer, in the order in which a picture
travels."""

LINKS_BY_NAME: Mapping[str, Link[Any]] = {link.name: link for link in LINKS}
"""`LINKS` by name."""


def link_named(name: str) -> Link[Any]:
    """The link of that name as far as it is known without its chain: one of `LINKS`, or a link whose value is JSON."""
    return LINKS_BY_NAME.get(name) or Link(name, cast("type[Any]", object))
