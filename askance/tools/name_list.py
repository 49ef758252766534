"""Names that a reply in words lists, and no guess at names in prose.

A list is declared by a heading (`Objects: bottle, feather`, `The objects are …`); else the whole reply must be the
list, remarks in paragraphs of their own aside. Its items are short: one that is a sentence, or is denied or doubted, or
a second list that differs, leaves the reply unread. The words that this takes stand in `name_words.yaml`.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from askance.documents import read_yaml
from askance.nodes import Unreadable
from askance.nodes.reply import is_sentence, plain_text, strip_boxes, strip_markup, strip_quotes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST_NAME = 80
"""Most characters of a name; a longer text may be text from the picture that is addressed to a model."""


@cache
def _words(*kinds: str) -> frozenset[str]:
    """The words of `name_words.yaml` of these kinds, in all languages."""
    form: Mapping[str, Mapping[str, list[str]]] = read_yaml(Path(__file__).with_name("name_words.yaml"), what="words")
    return frozenset(word for kind in kinds for words in form[kind].values() for word in words)


def names_in(text: str, noun: str) -> list[str]:
    """The names that a reply in words lists, in their order.

    Args:
        text: the reply.
        noun: what is named, in messages.

    Raises:
        Unreadable: it lists none, or different ones, or says something else as well.
    """
    plain = plain_text(_STAR.sub("- ", _ROW.sub(_cell, strip_boxes(text).strip())))
    blocks = [[" ".join(line.split()) for line in block.splitlines()] for block in re.split(r"\n\s*\n", plain)]
    remarks = {block[0] for block in blocks if len(block) == 1 and _is_remark(block[0])}
    relevant = [block for block in blocks if remarks.isdisjoint(block)] or blocks[:1]
    lists: list[list[str]] = [[]]
    for line in (line for block in relevant for line in block if any(map(str.isalnum, line))):
        if (rest := _behind_heading(line)) is not None:
            lists.append([])
        lists[-1] += filter(None, [line if rest is None else rest])
    candidates = {tuple(_items(lines)) for lines in lists if lines}
    names = [*candidates.pop()] if len(candidates) == 1 else []
    prose = len(names) == 1 and any(is_sentence(line) for lines in lists for line in lines)
    if prose or not all(map(_is_name, names)) or any(_holds(remark, "taken_back") for remark in remarks):
        raise unnamed(noun)
    return names


def unnamed(noun: str) -> Unreadable:
    """What is raised where a reply names nothing."""
    return Unreadable(f"no {noun} is named; name at least one")


def denies_picture(text: str) -> bool:
    """Whether a line says of the picture, in another language than English, that it is not seen or lacks something."""
    unspaced = any(part in text for part in _words("unspaced"))
    pictured = any(word in text.casefold() for word in _words("picture"))
    return pictured and (unspaced or _holds(text, "doubt"))


def _is_name(item: str) -> bool:
    """Whether an item names something: it is short, and no sentence, and nothing in it denies or doubts it."""
    if len(item) > LONGEST_NAME or _NO_NAME.search(item) or any(part in item for part in _words("unspaced")):
        return False
    named = any(not _LETTER.fullmatch(word) for word in _of(item.rstrip("0123456789")) if word not in _words("empty"))
    return named and not _holds(item, "sentence", "doubt", "taken_back")


def _items(lines: Sequence[str]) -> list[str]:
    """The items of a list, without bullets, quotes, remarks in brackets and what describes them."""
    if len(lines) > 1 and all(map(_BULLET.match, lines)):
        items = [_DESCRIBED.sub(r"\1", _BULLET.sub("", line)) for line in lines]
    else:
        line = _OUTER.sub(r"\1", strip_quotes(", ".join(lines).rstrip(".")))
        items = [item for item in _COMMA.split(line) if item]
        before_last = rf"{_any_of('and')}\s+"
        if len(items) > 1 and (last := re.match(before_last, items[-1])):
            items[-1] = items[-1][last.end() :]
        elif len(lines) == 1:
            items = [each for item in items for each in re.split(rf"\s+{before_last}|\s+&\s+", item)]
    items = [_bare(item) for item in items]
    return [item for item in items if item and item.casefold() not in _words("rest")]


def _bare(item: str) -> str:
    """An item without bullet, quotes, brackets and what says where it is seen."""
    item = _SEEN.sub("", _BRACKETS.sub("", strip_markup(_BULLET.sub("", _EMOJI.sub("", item).strip()))))
    return strip_quotes(item.strip().rstrip(".,;!").strip("[]"))


def _behind_heading(line: str) -> str | None:
    """What stands behind the heading or the courtesy that begins a line; None where none does."""
    if courtesy := re.match(rf"{_any_of('courtesy')}\s*[!.,:]\s*", line, re.IGNORECASE):
        line = line[courtesy.end() :]
        return line if (rest := _behind_heading(line)) is None else rest
    heading = _words("heading", "verb")
    label, colon, rest = line.partition(":")
    if (words := _of(label)) and heading.issuperset(words) and (colon or _holds(label, "empty")):
        return rest.strip()
    begins = takewhile(lambda word: word[0].casefold() in heading, _WORD.finditer(line))
    verbs = [word.end() for word in begins if word.start() and _holds(word[0], "verb")]
    return line[verbs[-1] :].strip(" ,:") if verbs else None


def _is_remark(line: str) -> bool:
    """Whether a paragraph of one line is a sentence beside the list."""
    return line[-1:] in ".!?" and (is_sentence(line) or _holds(line, "sentence"))


def _holds(text: str, *kinds: str) -> bool:
    return not _words(*kinds).isdisjoint(_of(text))


def _of(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _WORD.findall(text.casefold())


@cache
def _any_of(kind: str) -> str:
    return f"(?:{'|'.join(map(re.escape, sorted(_words(kind))))})"


def _cell(row: re.Match[str]) -> str:
    """The first cell of a table's row that is more than a number, as an item; nothing for the head of the table."""
    cells = [cell.strip() for cell in row["cells"].strip("| \t").split("|")]
    names = [cell for cell in cells if any(map(str.isalpha, cell))]
    return "" if row["head"] or not names else f"- {names[0]}"


_MARKS = "\u064b-\u0652\u0900-\u0dff\u0e30-\u0e4e"
"""Vowel signs of Arabic, of India and of Thai, which stand within words."""
_WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+(?:['-][^\W_]+)*")
_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")
_STAR = re.compile(r"^[ \t]*[*+][ \t]+", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*\|(?P<cells>.*)$(?P<head>\n[ \t]*\|[-:| \t]+$)?", re.MULTILINE)
_BULLET = re.compile(r"^(?:[^\w\s\"'(\[{]+\s+|\(?\d{1,2}(?:[.):]\)?| -)\s+|\(?[a-h]\)\s+|[\u2460-\u2473]\s*)+")
_COMMA = re.compile(r" ?[,;|\u060c] ?| [/+] ")
_DESCRIBED = re.compile(r"^([^:]{1,80}?)(?::\s| - ).*$")
_OUTER = re.compile(r"^[\[({]([^\[\](){}]*)[\])}]$")
_BRACKETS = re.compile(r" ?\([^()]*\)")
_SEEN = re.compile(
    r"\s+(?:visible |present |shown |seen )*(?:in|on) (?:the|this) (?:image|picture|photo|ad\w*)\.?$", re.IGNORECASE
)
_NO_NAME = re.compile(r"[:?!;{}<>\"=]|/.*/|[.]\s|^\W*$")
_LETTER = re.compile("[a-z]|[0-9]+")
