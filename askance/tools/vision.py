"""Tools of the VLM: each asks one question about one picture.

They are V (`objects`), T (`scene_text`), IN (`narration`), UH (`unusual`), the `caption`, and for cartoons the
`location` and the `entities`. V, T, IN and UH begin with the same `system:` turn, and the picture stands in front of
the question: so servers and local models use the common beginning of four requests again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar, cast

from typing_extensions import override

from askance.atypicality import distinct
from askance.errors import UsageError
from askance.images import Image
from askance.nodes import AnswerField, Node, TextAnswer, TextNode, TypedAnswer, Unreadable
from askance.nodes.answer import Texts, list_schema, text_list, text_schema
from askance.nodes.reply import (
    answer_lines,
    final_text,
    is_refusal,
    json_object,
    json_texts,
    plain_text,
    prose_words,
    says_none,
    strip_markup,
)
from askance.prompts import fence
from askance.tools.name_list import LONGEST_NAME, denies_picture, names_in, unnamed

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.runnables import Runnable
    from langchain_core.tools import BaseTool

Out = TypeVar("Out", bound=TypedAnswer)

MOST_OBJECTS = 5
"""The paper asks for up to five (section 3.2)."""

MOST_ENTITIES = 10
"""Entities at most; annotators of the New Yorker data gave two or three."""

NO_TEXT = "NO TXT"
"""What the paper's protocol answers where a picture holds no text (Listing 2)."""


class Names(TypedAnswer):
    """Names of what is in a picture."""

    names: Texts

    def __str__(self) -> str:
        return ", ".join(self.names)

    @classmethod
    def of(cls, names: Any) -> Self:
        """The names in a list, or in a text with commas between them."""
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        return cls(names=tuple(name for name in names if name))


class Objects(Names):
    """The main objects in a picture, most important first: at most five names, each once."""


class SceneText(TypedAnswer):
    """The lines of text in a picture, none where there is no text.

    Whoever made the picture wrote them: they are untrusted and enter later prompts only behind a fence.
    """

    lines: Texts

    def __str__(self) -> str:
        return "\n".join(self.lines) or NO_TEXT


class Narration(TextAnswer):
    """A detailed description of a picture (IN)."""


class Unusual(TextAnswer):
    """What is unusual about a picture (UH)."""


class Caption(TextAnswer):
    """One sentence that says what a picture shows."""


class Location(TextAnswer):
    """Where a picture takes place."""


class Entities(Names):
    """Persons, things and ideas in a picture, by their names: at most ten, each once; none where there are none."""


ToolImages: TypeAlias = "Mapping[str, Any] | Sequence[Any] | Image | str | Path"
"""Pictures that a tool of LangChain can be called on: one, several by name, or a list of files."""


class ImageTool(Node[Image, Out]):
    """One question about one picture; takes an `Image` or anything that `Image.load` takes but a URL."""

    takes = Image

    @override
    def accept(self, inputs: Any) -> Image:
        return Image.load(inputs)

    @override
    def pictures(self, subject: Image) -> tuple[Image, ...]:
        return (subject,)

    def as_tool(self, images: ToolImages) -> BaseTool:  # pyright: ignore[reportIncompatibleMethodOverride]  # LangChain's takes a schema; a tool of pictures takes the pictures
        """A LangChain tool that an agent can call on the pictures given here, and on no others.

        Args:
            images: one picture (the tool then takes no argument), or pictures by the names that the agent may use; in a
                list they go by the names of their files. A picture is anything that `Image.load` takes. A name is never
                a path: what an agent writes gives no permission to read a file.

        Raises:
            BadImage: a picture cannot be used.
            UsageError: two pictures have one name, or there is none.
        """
        return tool_of(self, images)


def tool_of(node: Runnable[Any, Any], images: ToolImages) -> BaseTool:
    """A tool named after `node`; an agent names one of `images`, or nothing where there is only one.

    Raises:
        BadImage: a picture cannot be used.
        UsageError: two pictures have one name, or there is none.
    """
    from langchain_core.tools import StructuredTool
    from pydantic import create_model

    if isinstance(images, (Mapping, list, tuple)):
        known = _by_name(images)
        arguments = create_model("Picture", image=(cast("Any", Literal)[tuple(known)], ...))
    else:
        known = {"": Image.load(cast("Image | str | Path", images))}
        arguments = create_model("Picture")

    async def ask(image: str = "") -> str:
        return _fenced(await node.ainvoke(known[image]))

    def ask_sync(image: str = "") -> str:
        return _fenced(node.invoke(known[image]))

    description = (type(node).__doc__ or "").strip().split("\n")[0]
    return StructuredTool.from_function(
        ask_sync, coroutine=ask, name=node.get_name(), description=description, args_schema=arguments
    )


def _by_name(images: Mapping[str, Any] | Sequence[Any]) -> Mapping[str, Image]:
    if isinstance(images, Mapping):
        known = {name: Image.load(each) for name, each in images.items()}
    else:
        loaded = [Image.load(each) for each in images]
        known = {each.name: each for each in loaded}
        if len(known) < len(loaded):
            raise UsageError("Two of the pictures have one name.", hint="Give a mapping from names to pictures.")
    if not known:
        raise UsageError("There is no picture that the tool could look at.", hint="Give one.")
    return known


def _fenced(value: object) -> str:
    """The text of a picture, fenced, so that an agent does not take it for an instruction."""
    return fence(str(value), "from the image")


class Narrator(TextNode[Image, Narration], ImageTool[Narration]):
    """Describes the image in detail."""

    prompt = "narration"
    gives = Narration
    field = "description"


class UnusualHighlighter(TextNode[Image, Unusual], ImageTool[Unusual]):
    """Says what is unusual about the image."""

    prompt = "unusual"
    gives = Unusual
    field = "unusual"


class Captioner(TextNode[Image, Caption], ImageTool[Caption]):
    """Writes a caption of one sentence for the image."""

    prompt = "caption"
    gives = Caption
    field = "description"


class SceneDescriber(Narrator):
    """Describes the image."""

    prompt = "scene_description"


class LocationFinder(TextNode[Image, Location], ImageTool[Location]):
    """Says where the image takes place."""

    prompt = "location"
    gives = Location
    field = "location"


class EntityList(ImageTool[Entities]):
    """Names the entities in the image, at most ten."""

    prompt = "entities"
    gives = Entities

    @override
    def fields(self, subject: Image) -> Sequence[AnswerField]:
        names = list_schema(text_schema(least=1), most=MOST_ENTITIES)
        return (AnswerField("entities", names, "names", partial(_named, kind=_ENTITIES)),)

    @override
    def read_text(self, text: str, subject: Image) -> Entities:
        with suppress(Unreadable):
            return self.read_json(json_object(text, ("entities",)), subject)
        return Entities(names=() if says_none(text, _ENTITIES.nouns) else _listed(text, _ENTITIES))


class ObjectList(ImageTool[Objects]):
    """Lists the main objects that are visible in the image, at most five."""

    prompt = "objects"
    gives = Objects

    @override
    def fields(self, subject: Image) -> Sequence[AnswerField]:
        names = list_schema(text_schema(least=1), least=1, most=MOST_OBJECTS)
        return (AnswerField("objects", names, "names", partial(_named, kind=_OBJECTS)),)

    @override
    def read_text(self, text: str, subject: Image) -> Objects:
        with suppress(Unreadable):
            return self.read_json(json_object(text, ("objects",)), subject)
        return Objects(names=_listed(text, _OBJECTS))


class SceneTextReader(ImageTool[SceneText]):
    """Reads the text that is visible in the image."""

    prompt = "scene_text"
    gives = SceneText

    @override
    def fields(self, subject: Image) -> Sequence[AnswerField]:
        return (AnswerField("lines", list_schema(text_schema()), "lines", _text_lines),)

    @override
    def read_text(self, text: str, subject: Image) -> SceneText:
        with suppress(Unreadable):
            return self.read_json(json_object(text, ("lines",)), subject)
        answer = final_text(text).strip()
        if says_none(answer, _TEXT):
            return SceneText(lines=())
        if (
            len(answer.splitlines()) == 1
            and '"' not in plain_text(answer)
            and (is_refusal(answer) or denies_picture(answer))
        ):
            raise _unread()
        lines = answer_lines(text, _TEXT_NOUNS, verbatim=True)
        lines = lines[0].split(" / ") if len(lines) == 1 else lines
        lines = [part for line in lines for part in _quoted(line)]
        if not lines or _ASKED.search(answer):
            raise _unread()
        return SceneText(lines=_without_none(lines))


@dataclass(frozen=True, slots=True)
class _Kind:
    """What names are the names of."""

    noun: str
    most: int
    """Names at most."""
    nouns: frozenset[str]
    """Words for what is named."""


def _named(data: Mapping[str, Any], field: str, *, kind: _Kind) -> tuple[str, ...]:
    """The names in a JSON reply, which may give them as one text; none where it says so."""
    value = data.get(field)
    texts = [value] if isinstance(value, str) else text_list(data, field)
    if value == [] or (len(texts) == 1 and says_none(texts[0], kind.nouns)):
        return ()
    return _listed(value, kind) if isinstance(value, str) else _checked(texts, kind)


def _listed(text: str, kind: _Kind) -> tuple[str, ...]:
    """The names in a text, which may be a list in JSON."""
    if is_refusal(text):
        raise unnamed(kind.noun)
    texts = json_texts(text)
    return _first(names_in(text, kind.noun), kind) if texts is None else _checked(texts, kind)


def _checked(texts: Sequence[str], kind: _Kind) -> tuple[str, ...]:
    """The names in a JSON list, where each is one."""
    names = [*map(strip_markup, texts)]
    if any(_UNNAMED.fullmatch(name) for name in names):
        raise unnamed(kind.noun)
    too_long = next((name for name in names if len(name) > LONGEST_NAME or _SENTENCE.search(name)), None)
    if too_long is not None:
        raise Unreadable(
            f"{too_long[:40]!r}… is no name of an {kind.noun}; name each in at most {LONGEST_NAME} characters"
        )
    return _first(names, kind)


def _first(names: Sequence[str], kind: _Kind) -> tuple[str, ...]:
    """The first of the names, each once."""
    if not (distinct_names := distinct(names)):
        raise unnamed(kind.noun)
    return distinct_names[: kind.most]


def _text_lines(data: Mapping[str, Any], field: str) -> tuple[str, ...]:
    return _without_none(text_list(data, field))


def _without_none(lines: list[str]) -> tuple[str, ...]:
    """The lines, none where they say that there is no text."""
    first = lines[0].partition(". ")[0] if lines else ""
    if all(says_none(line, _TEXT) for line in lines) or (len(first.split()) > 3 and says_none(first, _TEXT)):
        return ()
    return tuple(line for line in lines if line is lines[0] or len(line.split()) < 4 or not says_none(line, _TEXT))


def _unread() -> Unreadable:
    return Unreadable(f"the text could not be read; where there is none the answer is {NO_TEXT}")


def _quoted(line: str) -> list[str]:
    """The texts that a line quotes where it says nothing else of its own; the line where it quotes none."""
    plain = plain_text(line)
    quotes = _TEXT_QUOTES.findall(plain)
    around = _TEXT_WORD.findall(_TEXT_QUOTES.sub(" ", plain).casefold())
    if quotes and {*around} <= {*prose_words("heading"), *_TEXT_NOUNS}:
        return [quote.strip() for quote in quotes]
    if _TOLD.match(line):
        raise _unread()
    return [line]


_TEXT_WORDS = "txt text texts textual word words letter letters writing message messages content written"
_TEXT_AROUND = "sign only reads below above top bottom sure it poster billboard banner"
_TEXT = frozenset([*_TEXT_WORDS.split(), "since", "seems", "appears", "other", "else", "additional", "more"])
_TEXT_NOUNS = frozenset([*_TEXT_WORDS.split(), *_TEXT_AROUND.split()])
_TEXT_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_TEXT_QUOTES = re.compile(r"\"([^\"\n]+)\"")
_TOLD = re.compile(
    r"the (?:only )?text (?:[io]n the (?:image|picture|photo) )?(?:is|appears|seems|reads|says)\b", re.IGNORECASE
)
_ASKED = re.compile(r"\b(?:what|which)\b[^\n]*\b(?:image|picture|photo)\?$", re.IGNORECASE)

_OBJECTS_WORDS = "object objects thing things item items non textual"
_OBJECTS = _Kind("object", MOST_OBJECTS, frozenset(_OBJECTS_WORDS.split()))
_ENTITIES_WORDS = "entity entities named person people place places thing things idea ideas concept concepts"
_ENTITIES = _Kind("entity", MOST_ENTITIES, frozenset(_ENTITIES_WORDS.split()))
_UNNAMED = re.compile(
    r"(?:(?:first|second|third|main|of|an?|the|object)[\s_]+)*(?:object|name)[\s_]*\d?|unknown|unclear|n/a|no|yes|sorry|[^\w]*|.*\?",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    r"\b(?:is|are|was|were|shows?|because|which|cannot|can't|i'm|there)\b|[{}]|<[^<>]*>", re.IGNORECASE
)

objects = ObjectList
scene_text = SceneTextReader
narration = Narrator
scene_description = SceneDescriber
unusual = UnusualHighlighter
caption = Captioner
location = LocationFinder
entities = EntityList
