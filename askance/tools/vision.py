"""Tools of the VLM: each asks one question about one picture.

They are V (`objects`), T (`scene_text`), IN (`narration`), UH (`unusual`), the `caption`, and for cartoons the
`location` and the `entities`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

from typing_extensions import override

from askance.atypicality import distinct
from askance.images import Image
from askance.nodes import AnswerField, Node, TextAnswer, TextNode, TypedAnswer, Unreadable
from askance.nodes.answer import Texts, list_schema, text_list, text_schema
from askance.nodes.reply import (
    HEADING_WORDS,
    answer_lines,
    final_text,
    is_refusal,
    is_sentence,
    json_object,
    plain_text,
    says_none,
    strip_markup,
    strip_quotes,
)
from askance.prompts import fence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.runnables import Runnable
    from langchain_core.tools import BaseTool

Out = TypeVar("Out", bound=TypedAnswer)

MOST_OBJECTS = 5
"""The paper asks for up to five (section 3.2)."""

MOST_ENTITIES = 10
"""Entities at most; annotators of the New Yorker data gave two or three."""

LONGEST_NAME = 80
"""Most characters of a name; a longer text may be text from the picture that is addressed to a model."""

NO_TEXT = "NO TXT"
"""What the paper's protocol answers where a picture holds no text (Listing 2)."""


class Names(TypedAnswer):
    """Names of what is in a picture."""

    names: Texts

    def __str__(self) -> str:
        return ", ".join(self.names)

    @classmethod
    def of(cls, given: Any) -> Self:
        """The names in a list, or in a text with commas between them."""
        names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
        return cls(names=tuple(name for name in names if name))


class Objects(Names):
    """The main objects in a picture, most important first: at most five names, each once; none where there are none."""


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


class ImageTool(Node[Image, Out]):
    """One question about one picture; takes an `Image` or anything that `Image.load` takes but a URL."""

    takes = Image

    @override
    def accept(self, given: Any) -> Image:
        return Image.load(given)

    @override
    def pictures(self, subject: Image) -> tuple[Image, ...]:
        return (subject,)

    def as_tool(self, images: Mapping[str, Image] | Image) -> BaseTool:  # pyright: ignore[reportIncompatibleMethodOverride]  # LangChain's takes a schema; a tool of pictures takes the pictures
        """A LangChain tool that an agent can call on the pictures given here, and on no others.

        Args:
            images: one picture (the tool then takes no argument), or pictures by the names that the agent may use. A
                name is never a path: what an agent writes gives no permission to read a file.
        """
        return tool_of(self, images)


def tool_of(node: Runnable[Any, Any], images: Mapping[str, Image] | Image) -> BaseTool:
    """A tool named after `node`; an agent names one of `images`, or nothing where there is only one."""
    from langchain_core.tools import StructuredTool
    from pydantic import create_model

    description = (type(node).__doc__ or "").strip().split("\n")[0]
    if isinstance(images, Image):
        only = images

        async def ask() -> str:
            return _fenced(await node.ainvoke(only))

        def ask_sync() -> str:
            return _fenced(node.invoke(only))

        return StructuredTool.from_function(ask_sync, coroutine=ask, name=node.get_name(), description=description)
    known = dict(images)

    async def ask_about(image: str) -> str:
        return _fenced(await node.ainvoke(known[image]))

    def ask_about_sync(image: str) -> str:
        return _fenced(node.invoke(known[image]))

    arguments = create_model("Picture", image=(cast("Any", Literal)[tuple(known)], ...))
    return StructuredTool.from_function(
        ask_about_sync, coroutine=ask_about, name=node.get_name(), description=description, args_schema=arguments
    )


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
        return Entities(names=_names_in(text, _ENTITIES))


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
        return Objects(names=_names_in(text, _OBJECTS))


class SceneTextReader(ImageTool[SceneText]):
    """Reads the text that is visible in the image."""

    prompt = "scene_text"
    gives = SceneText

    @override
    def fields(self, subject: Image) -> Sequence[AnswerField]:
        return (AnswerField("lines", list_schema(text_schema()), "lines", _lines),)

    @override
    def read_text(self, text: str, subject: Image) -> SceneText:
        with suppress(Unreadable):
            return self.read_json(json_object(text, ("lines",)), subject)
        said = final_text(text).strip()
        if says_none(said, _TEXT):
            return SceneText(lines=())
        if is_refusal(said) and len(said.splitlines()) == 1 and '"' not in plain_text(said):
            raise _unread()
        lines = answer_lines(text, _TEXT_NOUNS, verbatim=True)
        lines = lines[0].split(" / ") if len(lines) == 1 else lines
        lines = [part for line in lines for part in _quoted(line)]
        if not lines or _ASKED.fullmatch(said):
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
    heading: frozenset[str]
    """Words of which a heading consists."""


def _named(data: Mapping[str, Any], field: str, *, kind: _Kind) -> tuple[str, ...]:
    """The names in a JSON reply, which may give them as one text."""
    found = data.get(field)
    if isinstance(found, str):
        return _names_in(found, kind)
    names = [strip_markup(name) for name in text_list(data, field)]
    return () if found == [] or _none(names, kind) else _checked(names, kind)


def _names_in(text: str, kind: _Kind) -> tuple[str, ...]:
    """The names in a text."""
    items = answer_lines(text, kind.heading)
    if _none(items, kind):
        return ()
    if is_refusal(text) or any(map(is_refusal, items)):
        raise _unnamed(kind)
    if len(items) == 1:
        return _checked(_sentence_names(items[0]), kind)
    items = [item for item in items if not _REMARK.match(item)]
    return _checked([name for item in items for name in _split(_DESCRIBED.sub(r"\1", item), _COMMA)], kind)


def _unnamed(kind: _Kind) -> Unreadable:
    return Unreadable(f"no {kind.noun} is named; name at least one")


def _none(items: Sequence[str], kind: _Kind) -> bool:
    """Whether the one item says that there are none, a remark behind it aside."""
    if len(items) != 1:
        return False
    first, _, remark = items[0].partition("; ")
    denied = says_none(first, kind.nouns) and (not remark or is_sentence(remark))
    return denied or _ONLY_TEXT.search(items[0]) is not None


def _sentence_names(text: str) -> list[str]:
    """The names in the one line of a reply: what it introduces, between commas, with or without an "and"."""
    text = _LONG_REMARK.sub("", " ".join(text.split()))
    text = _TAIL.sub("", _OUTER.sub(r"\1", text))
    led = _LEAD.match(text)
    if led and led[0].rstrip().endswith(":"):
        text = text[led.end() :]
    elif led and (verbs := [word for word in _WORD.finditer(led[0]) if word[0].casefold() in _VERBS]):
        text = text[verbs[0].end() :].lstrip(" ,")
    text = _COUNTED.sub(", ", _OUTER.sub(r"\1", text))
    if _OXFORD.search(text):
        return _split(text, _COMMA)
    if text.count("/") > 1 and "," not in text:
        return _split(text, _SLASH)
    return [each for name in _split(_DESCRIBED.sub(r"\1", text), _COMMA) for each in _split(name, _AND)]


def _split(text: str, between: re.Pattern[str]) -> list[str]:
    names = [strip_quotes(strip_markup(name).rstrip(".;!")) for name in between.split(text)]
    return [name for name in names if name and name.casefold() != "etc"]


def _checked(names: Sequence[str], kind: _Kind) -> tuple[str, ...]:
    too_long = next((name for name in names if len(name) > LONGEST_NAME or _SENTENCE.search(name)), None)
    if any(_UNNAMED.fullmatch(name) for name in names):
        raise _unnamed(kind)
    if too_long is not None:
        raise Unreadable(
            f"{too_long[:40]!r}… is no name of an {kind.noun}; name each in at most {LONGEST_NAME} characters"
        )
    found = distinct(names)
    if not found:
        raise _unnamed(kind)
    return found[: kind.most]


def _lines(data: Mapping[str, Any], field: str) -> tuple[str, ...]:
    return _without_none(text_list(data, field))


def _without_none(lines: list[str]) -> tuple[str, ...]:
    """The lines, none where they say that there is no text."""
    first = lines[0].partition(". ")[0] if lines else ""
    said = [part for line in lines for part in _TEXT_SENTENCE.split(line) if part.strip()]
    lines = [line for line in lines if line is lines[0] or len(line.split()) < 4 or not says_none(line, _TEXT)]
    if all(says_none(part, _TEXT) for part in said) or (says_none(first, _TEXT) and len(first.split()) > 3):
        lines = []
    return tuple(lines)


def _unread() -> Unreadable:
    return Unreadable(f"the text could not be read; where there is none the answer is {NO_TEXT}")


def _quoted(line: str) -> list[str]:
    """The texts that a line quotes where it says nothing else of its own; the line where it quotes none."""
    said = plain_text(line)
    quotes = _TEXT_QUOTES.findall(said)
    around = _TEXT_WORD.findall(_TEXT_QUOTES.sub(" ", said).casefold())
    if quotes and {*around} <= {*HEADING_WORDS, *_TEXT_NOUNS}:
        return [quote.strip() for quote in quotes]
    if _IS.match(line):
        raise _unread()
    aside = _QUOTE_ASIDE.fullmatch(said) or _SAYS.fullmatch(line)
    return [aside[1]] if aside else [line]


_TEXT_WORDS = "txt text texts textual word words letter letters writing message messages content written"
_TEXT = frozenset([*_TEXT_WORDS.split(), "since", "seems", "appears", "other", "else", "additional", "more"])
_TEXT_NOUNS = frozenset(
    [*_TEXT_WORDS.split(), "sign", "only", "reads", "below", "above", "top", "bottom", "sure", "it"]
)
_TEXT_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_TEXT_QUOTES = re.compile(r"\"([^\"\n]+)\"")
_QUOTE_ASIDE = re.compile(r"\"([^\"\n]+)\" \([^()\n]*\)")
_THE_TEXT = r"the (?:only )?text (?:[io]n the (?:image|picture|photo) )?"
_SAYS = re.compile(rf"{_THE_TEXT}(?:reads|says):? (.+)", re.IGNORECASE)
_IS = re.compile(rf"{_THE_TEXT}(?:is|appears|seems)\b", re.IGNORECASE)
_TEXT_SENTENCE = re.compile(r"\.\s+|\n|,\s+(?=the answer\b)")
_ASKED = re.compile(r"(?:what|which)\b[^\n]*\b(?:image|picture|photo)\?", re.IGNORECASE)

_THINGS_WORDS = "object objects thing things item items non textual"
_OBJECT_NOUNS_WORDS = (
    "object objects thing things item items non textual primary secondary 1 2 3 4 5 first second third"
)
_OBJECTS = _Kind(
    "object", MOST_OBJECTS, nouns=frozenset(_THINGS_WORDS.split()), heading=frozenset(_OBJECT_NOUNS_WORDS.split())
)
_ENTITY_NOUNS_WORDS = "entity entities named person people place places thing things idea ideas concept concepts"
_ENTITY_NOUNS = frozenset(_ENTITY_NOUNS_WORDS.split())
_ENTITIES = _Kind("entity", MOST_ENTITIES, nouns=_ENTITY_NOUNS, heading=_ENTITY_NOUNS)
_ONLY_TEXT = re.compile(
    r"\b(?:contains?|shows?|is|but|no (?:\w+ )?objects,) only (?:the )?(?:text|words|letters)\b", re.IGNORECASE
)
_UNNAMED = re.compile(
    r"(?:(?:first|second|third|main|of|an?|the|object)[\s_]+)*(?:object|name)[\s_]*\d?|unknown|unclear|n/a|no|yes|sorry|[^\w]*|.*\?",
    re.IGNORECASE,
)
_OUTER = re.compile(r"^[\[({](.*)[\])}]\.?$")
_TAIL = re.compile(
    r"\s+(?:(?:are|is|that are) )?(?:visible |present |shown |seen )*(?:in|on) (?:the|this) "
    r"(?:image|picture|photo|ad\w*)\.?$",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_COUNTED = re.compile(r"(?<=\w)[\s,;]+\(?[2-9][.)]\s+(?=\D)")
_LONG_REMARK = re.compile(r"(?<=\w) ?\([^()]{15,}\)")
_SLASH = re.compile("/")
_VERBS_WORDS = "are is include includes show shows contain contains see depict depicts feature features"
_VERBS = frozenset(_VERBS_WORDS.split())
_LEAD = re.compile(
    r"(?:(?:the|this|these|here|there|i|can|be|seen|see|main|most|important|prominent|visible|non-textual|at|up|to|top|"
    r"five|5|objects?|items?|things?|in|of|image|picture|photo|are|is|shows?|contains?|includes?|depicts?|features?|"
    r"following|answer|as|follows|key|sure|that|which|names?)(?:[\s,!]+|(?=:)))+:?\s*",
    re.IGNORECASE,
)
_DESCRIBED = re.compile(r"^([^,:]{1,80}?)(?::| - ).*$")
_COMMA = re.compile(r"[,;](?:\s*and\s)?", re.IGNORECASE)
_OXFORD = re.compile(r",\s*and\s", re.IGNORECASE)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_REMARK = re.compile(r"(?:these|this|those|note|let me|i hope)\b", re.IGNORECASE)
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
