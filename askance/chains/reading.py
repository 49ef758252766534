"""A reading: what a chain knows of one picture so far, link by link.

Every chain starts from a reading and fills in its links. What is given to a chain becomes a reading here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast, overload

from askance.agents import Choice, Description, Reply, check_options
from askance.amounts import shortened
from askance.chains.link import (
    ANSWERS,
    DESCRIPTION,
    LINKS_BY_NAME,
    NARRATION,
    OBJECTS,
    REPLY,
    SCENE_TEXT,
    STATEMENT,
    UNUSUAL,
    Link,
)
from askance.chains.notebook import cell_text, html_table
from askance.chains.output_line import VERBALIZED, calls_meta, link_form
from askance.errors import BadImage, Skipped, UsageError
from askance.images import Image
from askance.images.image import image_digest
from askance.nodes import Call, Example, Failure, Result
from askance.nodes.example import examples_of

if TYPE_CHECKING:
    from askance.atypicality import Statement
    from askance.chat import JsonObject, Outcome
    from askance.tools import Narration, Objects, SceneText, Unusual

V = TypeVar("V")


_PRINTED = 50
"""Characters of a value where a reading is printed."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reading:
    """What a chain knows of one picture."""

    name: str
    """Name of the picture, for people."""
    image: Image | None = None
    problem: str | None = None
    """Why the picture cannot be used, where it cannot."""
    options: tuple[str, ...] | None = None
    question: str | None = None
    """What is asked about the picture, where that is not the same for all pictures."""
    examples: tuple[Example, ...] = ()
    """Questions with their answers, shown to the model that fills in the target before it is asked."""
    target: Link[Any] = ANSWERS
    """The link that the chain is to find out; its outcome is the reading's."""
    links: Mapping[str, Result[Any]] = field(default_factory=dict[str, Result[Any]])
    """By name, the links that were asked for or given, in the order of `known`."""
    known: Mapping[str, Link[Any]] = field(default_factory=lambda: LINKS_BY_NAME, repr=False, compare=False)
    """By name, every link that the chain has a place for; each stands after those that it needs."""

    def get(self, link: Link[V]) -> Result[V] | None:
        """The result of `link`; None where it was neither asked for nor given."""
        return self.links.get(link.name)

    @overload
    def __getitem__(self, link: Link[V]) -> Result[V]: ...
    @overload
    def __getitem__(self, link: str) -> Result[Any]: ...
    def __getitem__(self, link: Link[Any] | str) -> Result[Any]:
        """The result of a link, or of the link of that name.

        Raises:
            KeyError: it was neither asked for nor given.
        """
        return self.links[str(link)]

    def value(self, link: Link[V]) -> V | None:
        """The value of `link`; None where it has no answer."""
        result = self.get(link)
        return None if result is None else result.value

    def require(self, link: Link[V]) -> V:
        """The value of `link`: `reading.require(STATEMENT).text`.

        Raises:
            Skipped: it was neither asked for nor given.
            CallError: of the class that stands for its outcome, where it has no answer.
        """
        result = self.get(link)
        if result is None:
            raise Skipped(f"{link} is neither asked nor given")
        return result.unwrap()

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
        """Outcome of the target."""
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
        return replace(self, links={name: links[name] for name in self.known if name in links})

    def to_dict(self) -> JsonObject:
        """The reading as JSON, as a line of `askance run` has it; `Chain.get_output_jsonschema` describes it.

        The links of the papers have places of their own; the value of any other link stands with its outcome. All that
        changes from run to run, such as seconds, stands under `meta`; the rest is the same in every replay.
        """
        values = {
            link: self.known[link].write(result.value)
            for link, result in self.links.items()
            if result.value is not None
        }
        return {
            "image": self.name,
            "sha256": self.digest,
            "outcome": self.outcome,
            "reason": self.reason,
            "verbalization": {link: values.get(link) for link in VERBALIZED},
            "statement": values.get("statement"),
            "statement_reason": "not asked" if self.statement is None else self.statement.reason,
            "answers": values.get("answers"),
            **({} if self.reply is None else {"reply": values.get("reply")}),
            "links": {link: link_form(link, result, values.get(link)) for link, result in self.links.items()},
            "meta": calls_meta(self.calls, self.failures),
        }

    def _repr_html_(self) -> str:
        """A thumbnail, and a row for each link with its outcome and what it says or why it says nothing."""
        picture = cell_text(self.problem or "No picture.")
        if self.image is not None:
            picture = self.image._repr_html_()  # pyright: ignore[reportPrivateUsage]  # the name is that of notebooks
        rows: list[tuple[str, str, str]] = []
        for name, result in self.links.items():
            link = self.known[name]
            text = link.show(link.write(result.value)) if result.answered else result.reason or ""
            rows.append((link.title, "given" if result.given else result.outcome, text))
        return f"<div>{picture}{html_table(self.name, ('link', 'outcome', 'says'), rows)}</div>"

    def __repr__(self) -> str:
        """What each link says, shortened, or its outcome where it says nothing: `Reading('cup.jpg', objects='cup')`."""
        links = "".join(f", {name}={self._printed(name, result)}" for name, result in self.links.items())
        return f"Reading({self.name!r}{links})"

    def _printed(self, name: str, result: Result[Any]) -> str:
        if not result.answered:
            return result.outcome
        link = self.known[name]
        return repr(shortened(" ".join(link.show(link.write(result.value)).split()), _PRINTED))


Given: TypeAlias = "Reading | Image | str | Path | bytes | Mapping[str, Any]"
"""What a chain takes: a picture, or a mapping with `image`, `options`, `question`, `examples` and any link that is
known."""


def reading_of(source: Given, target: Link[Any], known: Mapping[str, Link[Any]]) -> Reading:
    """The reading that a chain starts from.

    Args:
        source: a picture (anything that `Image.load` takes, or the `BadImage` over it), a mapping with `image`, `name`,
            `options`, `question`, `examples` and given links, or a `Reading` whose answered links are kept.
        target: the link that the chain is to find out.
        known: by name, the links of the chain, each after those that it needs.

    Raises:
        UsageError: a key that is no link of the chain, a value that is none for its link, or what is no example.
        BadOptions: options that cannot be chosen from.
    """
    if isinstance(source, Reading):
        known = {**source.known, **known}
        answered = {link: result for link, result in source.links.items() if result.answered}
        return replace(source, target=target, known=known).with_links(answered)
    fields: dict[str, Any] = dict(source) if isinstance(source, Mapping) else {"image": source}
    image, problem = _picture(fields.pop("image", None))
    name = fields.pop("name", None) or (image.name if image else _name(source))
    options = fields.pop("options", None)
    options = None if options is None else check_options(options)
    question = fields.pop("question", None)
    if question is not None and not isinstance(question, str):
        raise UsageError(f"{question!r} is no question.", hint="Give a text.")
    examples = examples_of(fields.pop("examples", None) or ())
    unknown = [key for key in fields if key not in known]
    if unknown:
        parts = ", ".join(("image", "name", "options", "question", "examples", *known))
        raise UsageError(f"{', '.join(map(repr, unknown))} is no part of a reading.", hint=f"Use {parts}.")
    links = {key: link.result(fields[key]) for key, link in known.items() if fields.get(key) is not None}
    for link, result in links.items():
        if known[link].chooses:
            _check_numbers(result, options)
    return Reading(
        name=name,
        image=image,
        problem=problem,
        options=options,
        question=question,
        examples=examples,
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
    if source is None or isinstance(source, BadImage):
        return None, None if source is None else str(source)
    try:
        return Image.load(source), None
    except BadImage as error:
        return None, str(error)


def _name(source: Given) -> str:
    image = source.get("image") if isinstance(source, Mapping) else source
    named = isinstance(image, Path) or (isinstance(image, str) and not image.lower().startswith("data:"))
    return Path(cast("str | Path", image)).name if named else "image"


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
