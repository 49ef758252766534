"""The one state of every chain: what is known of a picture so far, link by link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from askance.agents import Choice, Description, Reply, check_options
from askance.atypicality import Statement
from askance.errors import BadImage, UsageError
from askance.images import Image
from askance.nodes import Call, Failure, Result, given
from askance.nodes.telling import digest
from askance.tools import Narration, Objects, SceneText, TextValue, Unusual

if TYPE_CHECKING:
    from askance.chat import Outcome

Link = Literal["objects", "scene_text", "narration", "unusual", "description", "statement", "answers", "reply"]
LINKS: tuple[Link, ...] = get_args(Link)
"""V, T, IN, UH, T_V (or another context), ŝ, the chosen options or a free answer, in the order in which a picture
travels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a chain knows of one picture; each link is a `Result`, or None where it was not asked for."""

    name: str
    """Name of the picture, for display."""
    image: Image | None = None
    problem: str | None = None
    """Why the picture cannot be used, where it cannot."""
    options: tuple[str, ...] | None = None
    question: str | None = None
    """What is asked about the picture, where that is not the same for all pictures."""
    target: Link = "answers"
    """The link that the chain is after; its outcome is the reading's."""
    objects: Result[Objects] | None = None
    scene_text: Result[SceneText] | None = None
    narration: Result[Narration] | None = None
    unusual: Result[Unusual] | None = None
    description: Result[Description] | None = None
    statement: Result[Statement] | None = None
    answers: Result[Choice] | None = None
    reply: Result[Reply] | None = None

    @property
    def digest(self) -> str | None:
        """sha256 of the picture's bytes; None where there is no picture or it cannot be read."""
        return None if self.image is None else digest(self.image)

    @property
    def links(self) -> dict[Link, Result[Any]]:
        """The links that were asked for or given, in order."""
        return {link: result for link in LINKS if (result := getattr(self, link)) is not None}

    @property
    def outcome(self) -> Outcome:
        """Outcome of the link that the chain is after."""
        result = getattr(self, self.target)
        return "skipped" if result is None else result.outcome

    @property
    def reason(self) -> str | None:
        """Why there is no answer: the reason of the first link that failed, else of the target."""
        if self.outcome == "answered":
            return None
        for link, result in self.links.items():
            if result.outcome not in {"answered", "skipped"}:
                return result.reason if link == self.target else f"{link}: {result.reason}"
        target = getattr(self, self.target)
        return None if target is None else target.reason

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every request that was made for this reading, in the order of the links."""
        return tuple(call for result in self.links.values() for call in result.calls)

    @property
    def failures(self) -> Mapping[Link, Failure]:
        """The calls that were tried and ended without an answer, by the link that they were made for."""
        return {link: result.failure for link, result in self.links.items() if result.failure is not None}

    def with_links(self, links: Mapping[Link, Result[Any]]) -> Reading:
        """This reading with `links` in the place of its own."""
        return Reading(
            name=self.name,
            image=self.image,
            problem=self.problem,
            options=self.options,
            question=self.question,
            target=self.target,
            **cast("dict[str, Any]", links),
        )

    def _repr_links(self) -> str:
        return ", ".join(f"{link}={result.outcome}" for link, result in self.links.items())

    def __str__(self) -> str:
        return f"Reading({self.name!r}, {self._repr_links()})"


Given: TypeAlias = "Reading | Image | str | Path | bytes | Mapping[str, Any]"
"""What a chain takes: a picture, or a mapping with `image`, `options`, `question` and any link that is known."""


def reading_of(source: Given, target: Link) -> Reading:
    """The state that a chain starts from.

    Args:
        source: a picture (anything that `Image.load` takes), a mapping with `image`, `name`, `options`, `question`
            and given links, or a `Reading` whose answered links are kept.
        target: the link that the chain is after.

    Raises:
        UsageError: a key that is no link, or a value that is none for its link.
        BadOptions: options that cannot be chosen from.
    """
    if isinstance(source, Reading):
        kept = {link: result if result.answered else None for link, result in source.links.items()}
        return replace(source, target=target, **kept)
    fields: dict[str, Any] = dict(source) if isinstance(source, Mapping) else {"image": source}
    image, problem = _picture(fields.pop("image", None))
    name = fields.pop("name", None) or (image.name if image else _name(source))
    options = fields.pop("options", None)
    options = None if options is None else check_options(options)
    question = fields.pop("question", None)
    if question is not None and not isinstance(question, str):
        raise UsageError(f"{question!r} is no question.", hint="Give a text.")
    unknown = [key for key in fields if key not in LINKS]
    if unknown:
        known = ", ".join(("image", "name", "options", "question", *LINKS))
        raise UsageError(f"{', '.join(map(repr, unknown))} is no part of a reading.", hint=f"Use {known}.")
    links = {link: as_link(link, value) for link, value in fields.items() if value is not None}
    _check_answers(links.get("answers"), options)
    return Reading(
        name=name,
        image=image,
        problem=problem,
        options=options,
        question=question,
        target=target,
        **links,
    )


def _check_answers(given: Result[Choice] | None, options: tuple[str, ...] | None) -> None:
    if given is None or given.value is None or options is None:
        return
    beyond = [number for number in given.value.numbers if not 1 <= number <= len(options)]
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


def as_link(link: str, value: Any) -> Result[Any]:
    """`value` as a given result of `link`.

    Raises:
        UsageError: it is none that `link` can hold.
    """
    return cast("Result[Any]", value) if isinstance(value, Result) else given(as_value(link, value))


def as_value(link: str, value: Any) -> Any:
    """`value` as the type of `link`: plain texts and lists are taken for what they are.

    Raises:
        UsageError: it is none that `link` can hold.
    """
    try:
        return _READERS[link](value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{value!r} cannot stand for the link {link!r}.", hint=str(error)) from error


def _objects(value: Any) -> Objects:
    if isinstance(value, Objects):
        return value
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else list(value)
    return Objects(names=tuple(name for name in names if name))


def _scene_text(value: Any) -> SceneText:
    if isinstance(value, SceneText):
        return value
    lines: Sequence[str] = value.splitlines() if isinstance(value, str) else list(value)
    return SceneText(lines=tuple(line for line in lines if line.strip()))


def _text(kind: type[TextValue], value: Any) -> TextValue:
    return value if isinstance(value, kind) else kind(text=str(value))


def _statement(value: Any) -> Statement:
    if isinstance(value, Statement):
        return value
    return Statement(**value) if isinstance(value, Mapping) else Statement.parse(value)  # pyright: ignore[reportUnknownArgumentType]


def _choice(value: Any) -> Choice:
    return value if isinstance(value, Choice) else Choice(numbers=tuple(value))


_READERS: dict[str, Any] = {
    "objects": _objects,
    "scene_text": _scene_text,
    "narration": partial(_text, Narration),
    "unusual": partial(_text, Unusual),
    "description": partial(_text, Description),
    "statement": _statement,
    "answers": _choice,
    "reply": partial(_text, Reply),
}
