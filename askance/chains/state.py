"""The one state of every chain: what is known of a picture so far, link by link.

A `Link` declares one thing that can be known: its name, the type of its value, and how that value is read and written.
`LINKS` are those of the papers. A suite or a user declares others in the same way, and a chain that fills them in goes
through runs, plans, batches, lines, reports and blame like any other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from askance.agents import Choice, Description, Reply, check_options
from askance.atypicality import Statement
from askance.errors import BadImage, Skipped, UsageError
from askance.images import Image
from askance.nodes import Call, Failure, Result, TextAnswer, given
from askance.nodes.answer import faults
from askance.nodes.tracing import image_digest
from askance.tools import Narration, Objects, SceneText, Unusual

if TYPE_CHECKING:
    from askance.chat import Json, Outcome

V = TypeVar("V")

UNSEEN_TEXT = 300
"""Bytes of the texts of a call that cannot be known yet, where nothing like it is on record."""


def form_of(value: Any) -> Json:
    """`value` as JSON: texts as they are, models of pydantic and dataclasses by their fields, anything else as text."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, TextAnswer):
        return value.text
    if isinstance(value, Mapping):
        return {str(name): form_of(each) for name, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [form_of(each) for each in cast("Sequence[Any]", value)]
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value):
        return {each.name: form_of(getattr(value, each.name)) for each in fields(value)}
    return str(value)


def words_of(form: Json) -> str:
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
        read: reads what a caller gives, or a node of the caller's own: plain text, lists, JSON. By default a mapping
            gives the fields of `kind`, and anything else goes to `kind` as it is. It may raise `TypeError` and
            `ValueError`.
        write: the value as JSON, which `read` takes again.
        answer: the value as the answer of a solver, as JSON; by default as `write` has it.
        show: what `write` gives, as a person reads it in one line.
        label: what the link holds, in words; by default the name.
        short: short name, such as the one of a paper; by default the name.
        unseen: bytes of the texts of a call for this link, where the answers that it rests on are not there yet and
            nothing like it is on record; a plan takes them.
        chooses: whether the value has `numbers`, chosen among the options of the input.
    """

    name: str
    kind: type[V]
    _: KW_ONLY
    read: Callable[[Any], V] | None = None
    write: Callable[[V], Json] = form_of
    answer: Callable[[V], Json] | None = None
    show: Callable[[Any], str] = words_of
    label: str = ""
    short: str = ""
    unseen: int = UNSEEN_TEXT
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

    def value(self, said: Any) -> V:
        """What `said` stands for.

        Raises:
            UsageError: it is none that the link can hold.
        """
        if isinstance(said, self.kind):
            return said
        try:
            return (self.read or self._made)(said)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{said!r} cannot stand for the link {self.name!r}.", hint=faults(error)) from error

    def result(self, said: Any) -> Result[V]:
        """What `said` stands for, as a result that the caller brings; a `Result` is one already.

        Raises:
            UsageError: it is none that the link can hold.
        """
        return cast("Result[V]", said) if isinstance(said, Result) else given(self.value(said))

    def _made(self, said: Any) -> V:
        make: Any = self.kind
        if isinstance(said, Mapping):
            return make(**cast("Mapping[str, Any]", said))
        return cast("V", make(text=str(said)) if issubclass(make, TextAnswer) else make(said))


def _objects(said: Any) -> Objects:
    names = [name.strip() for name in said.split(",")] if isinstance(said, str) else list(said)
    return Objects(names=tuple(name for name in names if name))


def _scene_text(said: Any) -> SceneText:
    lines: Sequence[str] = said.splitlines() if isinstance(said, str) else list(said)
    return SceneText(lines=tuple(line for line in lines if line.strip()))


def _lines(form: Sequence[str]) -> str:
    return " / ".join(form) or "none"


def _statement(said: Any) -> Statement:
    if not isinstance(said, Mapping):
        return Statement.parse(said)
    form = {name: each for name, each in cast("Mapping[str, Any]", said).items() if name != "text"}
    if form.keys() != {"relation", "primary", "secondary"}:
        raise ValueError("A statement is a text, or has `relation`, `primary` and `secondary`.")
    return Statement(**form)


def _choice(said: Any) -> Choice:
    return Choice(numbers=tuple(said))


OBJECTS = Link("objects", Objects, read=_objects, write=lambda value: list(value.names), answer=str, short="V")
SCENE_TEXT = Link(
    "scene_text",
    SceneText,
    read=_scene_text,
    write=lambda value: list(value.lines),
    answer=str,
    show=_lines,
    short="T",
)
NARRATION = Link("narration", Narration, short="IN")
UNUSUAL = Link("unusual", Unusual, label="what is unusual", short="UH")
DESCRIPTION = Link("description", Description, short="T_V", unseen=1500)  # of four verbalizations
STATEMENT = Link(
    "statement",
    Statement,
    read=_statement,
    write=Statement.canonical,
    answer=str,
    show=lambda form: f"{form['relation']}  {form['text']}",
    short="ŝ",
    unseen=8000,  # of a description and 80 statements
)
ANSWERS = Link(
    "answers",
    Choice,
    read=_choice,
    write=lambda value: list(value.numbers),
    label="Answers",
    unseen=1200,  # of a description and a statement
    chooses=True,
)
REPLY = Link("reply", Reply, label="Reply")

LINKS: tuple[Link[Any], ...] = (OBJECTS, SCENE_TEXT, NARRATION, UNUSUAL, DESCRIPTION, STATEMENT, ANSWERS, REPLY)
"""V, T, IN, UH, T_V (or another context), ŝ, the chosen options or a free answer, in the order in which a picture
travels."""

BY_NAME: Mapping[str, Link[Any]] = MappingProxyType({link.name: link for link in LINKS})
"""`LINKS` by name."""


def link_named(name: str) -> Link[Any]:
    """The link of that name as far as it is known without its chain: one of `LINKS`, or a link whose value is JSON."""
    return BY_NAME.get(name) or Link(name, cast("type[Any]", object))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a chain knows of one picture."""

    name: str
    """Name of the picture, for display."""
    image: Image | None = None
    problem: str | None = None
    """Why the picture cannot be used, where it cannot."""
    options: tuple[str, ...] | None = None
    question: str | None = None
    """What is asked about the picture, where that is not the same for all pictures."""
    target: Link[Any] = ANSWERS
    """The link that the chain is after; its outcome is the reading's."""
    links: Mapping[str, Result[Any]] = field(default_factory=dict[str, Result[Any]])
    """By name, the links that were asked for or given, in the order in which a picture travels."""
    known: Mapping[str, Link[Any]] = field(default_factory=lambda: BY_NAME, repr=False, compare=False)
    """By name, every link that the chain knows, in the same order."""

    def get(self, link: Link[V]) -> Result[V] | None:
        """The result of `link`; None where it was neither asked for nor given."""
        return self.links.get(link.name)

    def __getitem__(self, link: str) -> Result[Any]:
        """The result of the link of that name.

        Raises:
            KeyError: it was neither asked for nor given.
        """
        return self.links[link]

    @property
    def objects(self) -> Result[Objects] | None:
        """V."""
        return self.get(OBJECTS)

    @property
    def scene_text(self) -> Result[SceneText] | None:
        """T."""
        return self.get(SCENE_TEXT)

    @property
    def narration(self) -> Result[Narration] | None:
        """IN."""
        return self.get(NARRATION)

    @property
    def unusual(self) -> Result[Unusual] | None:
        """UH."""
        return self.get(UNUSUAL)

    @property
    def description(self) -> Result[Description] | None:
        """T_V, or another context."""
        return self.get(DESCRIPTION)

    @property
    def statement(self) -> Result[Statement] | None:
        """The atypicality statement ŝ."""
        return self.get(STATEMENT)

    @property
    def answers(self) -> Result[Choice] | None:
        """The chosen options."""
        return self.get(ANSWERS)

    @property
    def reply(self) -> Result[Reply] | None:
        """A free answer."""
        return self.get(REPLY)

    @property
    def digest(self) -> str | None:
        """sha256 of the picture's bytes; None where there is no picture or it cannot be read."""
        return None if self.image is None else image_digest(self.image)

    @property
    def outcome(self) -> Outcome:
        """Outcome of the link that the chain is after."""
        result = self.get(self.target)
        return "skipped" if result is None else result.outcome

    @property
    def reason(self) -> str | None:
        """Why there is no answer: the reason of the first link that failed, else of the target."""
        if self.outcome == "answered":
            return None
        for link, result in self.links.items():
            if result.outcome not in {"answered", "skipped"}:
                return result.reason if link == self.target.name else f"{link}: {result.reason}"
        target = self.get(self.target)
        return None if target is None else target.reason

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every request that was made for this reading, in the order of the links."""
        return tuple(call for result in self.links.values() for call in result.calls)

    @property
    def failures(self) -> Mapping[str, Failure]:
        """The calls that were tried and ended without an answer, by the link that they were made for."""
        return {link: result.failure for link, result in self.links.items() if result.failure is not None}

    def with_links(self, links: Mapping[str, Result[Any]]) -> Reading:
        """This reading with `links` in the place of its own."""
        return Reading(
            name=self.name,
            image=self.image,
            problem=self.problem,
            options=self.options,
            question=self.question,
            target=self.target,
            links={name: links[name] for name in self.known if name in links},
            known=self.known,
        )

    def _repr_links(self) -> str:
        return ", ".join(f"{link}={result.outcome}" for link, result in self.links.items())

    def __str__(self) -> str:
        return f"Reading({self.name!r}, {self._repr_links()})"


Given: TypeAlias = "Reading | Image | str | Path | bytes | Mapping[str, Any]"
"""What a chain takes: a picture, or a mapping with `image`, `options`, `question` and any link that is known."""


def reading_of(source: Given, target: Link[Any], known: Mapping[str, Link[Any]]) -> Reading:
    """The state that a chain starts from.

    Args:
        source: a picture (anything that `Image.load` takes), a mapping with `image`, `name`, `options`, `question`
            and given links, or a `Reading` whose answered links are kept.
        target: the link that the chain is after.
        known: by name, the links of the chain in the order in which a picture travels.

    Raises:
        UsageError: a key that is no link of the chain, or a value that is none for its link.
        BadOptions: options that cannot be chosen from.
    """
    if isinstance(source, Reading):
        return Reading(
            name=source.name,
            image=source.image,
            problem=source.problem,
            options=source.options,
            question=source.question,
            target=target,
            known={**source.known, **known},
        ).with_links({link: result for link, result in source.links.items() if result.answered})
    told: dict[str, Any] = dict(source) if isinstance(source, Mapping) else {"image": source}
    image, problem = _picture(told.pop("image", None))
    name = told.pop("name", None) or (image.name if image else _name(source))
    options = told.pop("options", None)
    options = None if options is None else check_options(options)
    question = told.pop("question", None)
    if question is not None and not isinstance(question, str):
        raise UsageError(f"{question!r} is no question.", hint="Give a text.")
    unknown = [key for key in told if key not in known]
    if unknown:
        parts = ", ".join(("image", "name", "options", "question", *known))
        raise UsageError(f"{', '.join(map(repr, unknown))} is no part of a reading.", hint=f"Use {parts}.")
    links = {key: link.result(told[key]) for key, link in known.items() if told.get(key) is not None}
    for link, result in links.items():
        if known[link].chooses:
            _check_numbers(result, options)
    return Reading(
        name=name,
        image=image,
        problem=problem,
        options=options,
        question=question,
        target=target,
        links=links,
        known=known,
    )


def _check_numbers(chosen: Result[Any], options: tuple[str, ...] | None) -> None:
    if chosen.value is None or options is None:
        return
    beyond = [number for number in chosen.value.numbers if not 1 <= number <= len(options)]
    if beyond:
        numbers = ", ".join(map(str, beyond))
        raise UsageError(f"The given answer {numbers} is not among the {len(options)} options.", hint="Count from 1.")


def _picture(source: Any) -> tuple[Image | None, str | None]:
    if source is None:
        return None, None
    try:
        return Image.load(source), None
    except BadImage as error:
        return None, str(error)


def _name(source: Given) -> str:
    found = source.get("image") if isinstance(source, Mapping) else source
    named = isinstance(found, Path) or (isinstance(found, str) and not found.lower().startswith("data:"))
    return Path(cast("str | Path", found)).name if named else "image"


def required(reading: Reading, link: Link[V]) -> V:
    """The value of `link`.

    Raises:
        Skipped: the chain has no such link, or it has no answer.
    """
    result = reading.get(link)
    if result is None:
        raise Skipped(f"{link} is neither asked nor given")
    return result.unwrap()


def optional(reading: Reading, link: Link[V]) -> V | None:
    """The value of `link`, None where there is none."""
    result = reading.get(link)
    return result.value if result is not None else None


def picture(reading: Reading) -> Image:
    """The picture of `reading`.

    Raises:
        BadImage: it cannot be used, or there is none.
    """
    if reading.image is None:
        raise BadImage(
            reading.problem or f"There is no image for {reading.name!r}.",
            hint=None if reading.problem else "Give `image`.",
        )
    return reading.image
