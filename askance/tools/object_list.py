"""V: the objects in a picture."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.atypicality import distinct
from askance.nodes import Unreadable
from askance.nodes.reply import bare, body, json_object, prose, refuses, says_none, unquoted
from askance.tools.tool import ImageTool, Value, as_texts, text_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from askance.images import Image

MOST_OBJECTS = 5
"""The paper asks for up to five (section 3.2)."""

LONGEST_NAME = 80
"""Characters of a name; what is longer is no name, and may be text from the picture that speaks to a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects(Value):
    """The main objects in a picture, most important first: at most five names, each once; none where there are none."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", as_texts(self.names))

    def __str__(self) -> str:
        return ", ".join(self.names)


class ObjectList(ImageTool[Objects]):
    """Lists the main objects that are visible in the image, at most five."""

    prompt = "objects"
    gives = Objects

    @override
    def schema(self, subject: Image) -> Mapping[str, Any]:
        names = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": MOST_OBJECTS}
        return {
            "type": "object",
            "properties": {"objects": names},
            "required": ["objects"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Image) -> Objects:
        if isinstance(data.get("objects"), str):
            return _read(data["objects"])
        names = [bare(name) for name in text_list(data, "objects")]
        return Objects(names=()) if data["objects"] == [] or _none(names) else _objects(names)

    @override
    def read_text(self, text: str, subject: Image) -> Objects:
        with suppress(Unreadable):
            return self.read_json(json_object(text, ("objects",)), subject)
        return _read(text)


def _read(text: str) -> Objects:
    """The objects that a text names."""
    items = body(text, _NOUNS)
    if _none(items):
        return Objects(names=())
    if refuses(text) or any(map(refuses, items)):
        raise Unreadable("no object is named; name at least one")
    if len(items) == 1:
        return _objects(_sentence_names(items[0]))
    items = [item for item in items if not _ASIDE.match(item)]
    return _objects([name for item in items for name in _split(_DESCRIBED.sub(r"\1", item), _COMMA)])


def _none(items: Sequence[str]) -> bool:
    """Whether the one item says that there are no objects, a remark behind it aside."""
    if len(items) != 1:
        return False
    first, _, remark = items[0].partition("; ")
    return (says_none(first, _THINGS) and (not remark or prose(remark))) or _ONLY_TEXT.search(items[0]) is not None


def _sentence_names(text: str) -> list[str]:
    """The names in the one line of a reply: what it introduces, between commas, with or without an "and"."""
    text = _LONG_ASIDE.sub("", " ".join(text.split()))
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
    names = [unquoted(bare(name).rstrip(".;!")) for name in between.split(text)]
    return [name for name in names if name and name.casefold() != "etc"]


def _objects(names: Sequence[str]) -> Objects:
    too_long = next((name for name in names if len(name) > LONGEST_NAME or _SENTENCE.search(name)), None)
    if any(_UNNAMED.fullmatch(name) for name in names):
        raise Unreadable("no object is named; name at least one")
    if too_long is not None:
        raise Unreadable(f"{too_long[:40]!r}… is no name of an object; name each in at most {LONGEST_NAME} characters")
    found = distinct(names)
    if not found:
        raise Unreadable("no object is named; name at least one")
    return Objects(names=tuple(found[:MOST_OBJECTS]))


_THINGS_WORDS = "object objects thing things item items non textual"
_THINGS = frozenset(_THINGS_WORDS.split())
_NOUNS_WORDS = "object objects thing things item items non textual primary secondary 1 2 3 4 5 first second third"
_NOUNS = frozenset(_NOUNS_WORDS.split())
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
_LONG_ASIDE = re.compile(r"(?<=\w) ?\([^()]{15,}\)")
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
_ASIDE = re.compile(r"(?:these|this|those|note|let me|i hope)\b", re.IGNORECASE)
_SENTENCE = re.compile(
    r"\b(?:is|are|was|were|shows?|because|which|cannot|can't|i'm|there)\b|[{}]|<[^<>]*>", re.IGNORECASE
)

objects = ObjectList
