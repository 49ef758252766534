"""Names that a reply in words lists, and no guess at names in prose.

A list is declared by a heading (`Objects: bottle, feather`, `The objects are …`); else the whole reply must be the
list, remarks in paragraphs of their own aside. Its items are short: one that is a sentence, or is denied or doubted, or
a second list that differs, leaves the reply unread. The words that this takes stand in `name_words.yaml`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from askance.documents import read_yaml
from askance.nodes import Unreadable
from askance.nodes.reply import is_sentence, plain_text, strip_boxes, strip_markup, strip_quotes

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

LONGEST_NAME = 80
"""Most characters of a name; a longer text may be text from the picture that is addressed to a model."""

LONGEST_HEADING = 12
"""Most words of a heading."""


@dataclass(frozen=True, slots=True)
class _Words:
    """The lists of `name_words.yaml`, without their languages; phrases stand as one text."""

    heading: frozenset[str]
    empty: frozenset[str]
    verb: frozenset[str]
    courtesy: frozenset[str]
    and_: frozenset[str]
    rest: frozenset[str]
    sentence: frozenset[str]
    doubt: frozenset[str]
    unspaced: frozenset[str]
    taken_back: frozenset[str]
    picture: frozenset[str]


@cache
def _words() -> _Words:
    form = read_yaml(Path(__file__).with_name("name_words.yaml"), what="lists of words")

    def all_of(name: str) -> frozenset[str]:
        languages: dict[str, list[str]] = form[name.rstrip("_")]
        return frozenset(word for words in languages.values() for word in words)

    return _Words(**{field.name: all_of(field.name) for field in fields(_Words)})


def names_in(text: str, noun: str) -> list[str]:
    """The names that a reply in words lists, in their order.

    Args:
        text: the reply.
        noun: what is named, in messages.

    Raises:
        Unreadable: it lists none, or different ones, or says something else as well.
    """
    said = plain_text(_STAR.sub("- ", _ROW.sub(_cell, strip_boxes(text).strip())))
    blocks = [[" ".join(line.split()) for line in block.splitlines()] for block in re.split(r"\n\s*\n", said)]
    remarks = {block[0] for block in blocks if len(block) == 1 and _is_remark(block[0])}
    kept = [block for block in blocks if remarks.isdisjoint(block)] or blocks[:1]
    lists: list[list[str]] = [[]]
    for line in (line for block in kept for line in block if any(map(str.isalnum, line))):
        if (rest := _behind_heading(line)) is not None:
            lists.append([])
        lists[-1] += filter(None, [line if rest is None else rest])
    found = {tuple(_items(lines)) for lines in lists if lines}
    names = [*found.pop()] if len(found) == 1 else []
    prose = len(names) == 1 and any(is_sentence(line) for lines in lists for line in lines)
    if prose or not all(map(_is_name, names)) or any(_holds(remark, _words().taken_back) for remark in remarks):
        raise unnamed(noun)
    return names


def unnamed(noun: str) -> Unreadable:
    """What is raised where a reply names nothing."""
    return Unreadable(f"no {noun} is named; name at least one")


def denies_picture(text: str) -> bool:
    """Whether a line says of the picture, in another language than English, that it is not seen or lacks something."""
    words, line = _words(), text.casefold()
    pictured = _holds(line, words.picture) or any(word in line for word in words.picture if not word.isascii())
    return pictured and (_holds(line, words.doubt) or any(part in line for part in words.unspaced))


def _is_name(item: str) -> bool:
    """Whether an item names something: it is short, and no sentence, and nothing in it denies or doubts it."""
    words = _words()
    if len(item) > LONGEST_NAME or _NO_NAME.search(item) or any(part in item for part in words.unspaced):
        return False
    if _holds(item, words.sentence | words.doubt | words.taken_back):
        return False
    return any(word not in words.empty and not _LETTER.fullmatch(word) for word in _of(item.rstrip("0123456789")))


def _items(lines: Sequence[str]) -> list[str]:
    """The items of a list, without bullets, quotes, remarks in brackets and what describes them."""
    words = _words()
    if len(lines) > 1 and all(map(_BULLET.match, lines)):
        items = [_DESCRIBED.sub(r"\1", _BULLET.sub("", line)) for line in lines]
    else:
        line = _OUTER.sub(r"\1", strip_quotes(", ".join(lines).rstrip(".")))
        items = [item for item in _COMMA.split(line) if item]
        before_last = rf"{_any_of(words.and_)}\s+"
        if len(items) > 1 and (last := re.match(before_last, items[-1])):
            items[-1] = items[-1][last.end() :]
        elif len(lines) == 1:
            items = [each for item in items for each in re.split(rf"\s+{before_last}|\s+&\s+", item)]
    items = [_bare(item) for item in items]
    return [item for item in items if item and item.casefold() not in words.rest]


def _bare(item: str) -> str:
    """An item without bullet, quotes, brackets and what says where it is seen."""
    item = _SEEN.sub("", _BRACKETS.sub("", strip_markup(_BULLET.sub("", item.strip()))))
    return strip_quotes(item.strip().rstrip(".,;!"))


def _behind_heading(line: str) -> str | None:
    """What stands behind the heading or the courtesy that begins a line; None where none does."""
    words = _words()
    if courtesy := re.match(rf"{_any_of(words.courtesy)}\s*[!.,:]\s*", line, re.IGNORECASE):
        line = line[courtesy.end() :]
        return line if (rest := _behind_heading(line)) is None else rest
    label, colon, rest = line.partition(":")
    said = _of(label)
    heads = 0 < len(said) <= LONGEST_HEADING and {*said} <= words.heading | words.verb
    if heads and (colon or _holds(label, words.empty)):
        return rest.strip()
    begins = takewhile(lambda word: word[0].casefold() in words.heading | words.verb, _WORD.finditer(line))
    verbs = [word.end() for word in begins if word.start() and word[0].casefold() in words.verb]
    return line[verbs[-1] :].strip(" ,:") if verbs else None


def _is_remark(line: str) -> bool:
    """Whether a paragraph of one line is a sentence beside the list."""
    return line[-1:] in ".!?" and (is_sentence(line) or _holds(line, _words().sentence))


def _holds(text: str, words: Collection[str]) -> bool:
    return not {*_of(text)}.isdisjoint(words)


def _of(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _WORD.findall(text.casefold())


def _any_of(words: Collection[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, sorted(words)))})"


def _cell(row: re.Match[str]) -> str:
    """The first cell of a table's row that is more than a number, as an item; nothing for the head of the table."""
    cells = [cell.strip() for cell in row["cells"].strip("| \t").split("|")]
    names = [cell for cell in cells if any(map(str.isalpha, cell))]
    return "" if row["head"] or not names else f"- {names[0]}"


_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_STAR = re.compile(r"^[ \t]*[*+][ \t]+", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*\|(?P<cells>.*)$(?P<head>\n[ \t]*\|[-:| \t]+$)?", re.MULTILINE)
_BULLET = re.compile(r"^(?:[^\w\s\"'(\[{]+\s+|\(?\d{1,2}[.):]\)?\s+|[\u2460-\u2473]\s*)+")
_COMMA = re.compile(r" ?[,;|\u060c] ?| / ")
_DESCRIBED = re.compile(r"^([^:]{1,80}?)(?::\s| - ).*$")
_OUTER = re.compile(r"^[\[({]([^\[\](){}]*)[\])}]$")
_BRACKETS = re.compile(r" ?\([^()]*\)")
_SEEN = re.compile(
    r"\s+(?:visible |present |shown |seen )*(?:in|on) (?:the|this) (?:image|picture|photo|ad\w*)\.?$", re.IGNORECASE
)
_NO_NAME = re.compile(r"[:?!;{}<>\"=]|/.*/|[.]\s|^\W*$")
_LETTER = re.compile("[a-z]|[0-9]+")
