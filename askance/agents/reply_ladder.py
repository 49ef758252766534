"""Which options a reply chooses: one reader for every reply, live or recorded, that chooses among options.

The reader is a short ladder. Where a schema was sent, its answer counts (`schema`). Else the last *declared* answer
does: a line or a sentence that begins with what an answer is called, and whose value is a list of options and nothing
else. Else the *whole* reply does, where it is such a value. Any other reply is unread: a wrong reading is worse than
none, so no rung looks for a lone letter or digit in prose, and none guesses.

- What is declared is read whole. "Answer: 3 is tempting, but 5 is best" is unread: its value is no list of options.
- Two declared answers that differ are unread, unless one is called final or the first is taken back in words.
- An answer that is taken back afterwards, an index beside another option's text, an index beyond the options, and more
  than one answer where one is asked for are unread.

The words that this takes stand in `answer_words.yaml`, in many languages.
"""

from __future__ import annotations

import re
import unicodedata
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

from typing_extensions import override

from askance.documents import read_yaml
from askance.nodes import Node, Read, Unreadable
from askance.nodes.reply import final_text, json_list, plain_text
from askance.prompts.fence import LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


In = TypeVar("In")
Out = TypeVar("Out")


# ---- Words


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of the data file, as patterns that match one of them at a place."""

    kinds: Mapping[str, frozenset[str]]
    """What each word that may stand before an answer is: `name`, `option`, `praise`, `lead` and so on."""
    head: re.Pattern[str]
    option: re.Pattern[str]
    join: re.Pattern[str]
    either: re.Pattern[str]
    through: re.Pattern[str]
    because: re.Pattern[str]
    instead_of: re.Pattern[str]
    close: re.Pattern[str]
    revise: re.Pattern[str]
    reconsider: re.Pattern[str]
    deny: re.Pattern[str]
    yes: re.Pattern[str]
    no: re.Pattern[str]
    sign: re.Pattern[str]
    courtesy: re.Pattern[str]
    rank: re.Pattern[str]
    kept: re.Pattern[str]
    """Pictures of words: ticks, crosses and medals."""
    ordinal: re.Pattern[str]
    numbers: Mapping[str, int]
    ordinals: Mapping[str, int]
    ranks: Mapping[str, int]


_HEAD_KINDS = ("name", "ranking", "option", "praise", "comparative", "final", "choose", "shown", "lead")
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Thai, Japanese, Chinese and Korean: a word may follow another without a blank."""


@cache
def _words() -> _Words:
    form = read_yaml(Path(__file__).with_name("answer_words.yaml"), what="lists of words")

    def all_of(name: str) -> list[str]:
        found: Any = form[name]
        lists = cast("dict[str, list[str]]", found if isinstance(found, dict) else {"": found})
        return [_folded(word) for words in lists.values() for word in words]

    kinds: dict[str, set[str]] = {}
    for kind in _HEAD_KINDS:
        for word in all_of(kind):
            kinds.setdefault(word, set()).add(kind)
    ranks = {word: int(rank) for rank, words in form["ranks"].items() for word in words}
    signs = {name: form[name]["signs"] for name in ("yes", "no")}
    listed = {
        name: _phrases(all_of(name))
        for name in ("option", "join", "either", "through", "because", "instead_of", "close")
    }
    taken_back = {name: _phrases(all_of(name)) for name in ("revise", "reconsider", "deny")}
    return _Words(
        kinds={word: frozenset(found) for word, found in kinds.items()},
        head=_phrases([*kinds]),
        **listed,
        **taken_back,
        **{name: _phrases([_folded(word) for word in form[name]["en"] + form[name]["signs"]]) for name in signs},
        sign=_phrases([*signs["yes"], *signs["no"]]),
        rank=_phrases([*ranks]),
        kept=_phrases([*signs["yes"], *signs["no"], *(word for word in ranks if not word[-1].isalnum())]),
        ordinal=_phrases(all_of("ordinals")),
        courtesy=_phrases(all_of("courtesies")),
        numbers={word: n for n, word in enumerate(all_of("numbers"), 1)},
        ordinals={word: n for n, word in enumerate(all_of("ordinals"), 1)},
        ranks=ranks,
    )


def _phrases(words: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of `words`, the longest first; no letter stands before or behind one that has blanks there."""
    within = rf"[^\W_{_UNSPACED}]"
    spaced = re.compile(within)
    groups: dict[tuple[bool, bool], list[str]] = {}
    for word in sorted({*words}, key=len, reverse=True):
        ends = spaced.match(word[-1]) is not None, spaced.match(word[0]) is not None
        groups.setdefault(ends, []).append(re.escape(word).replace(r"\ ", "[ ]+"))
    parts = [
        f"{f'(?<!{within})' if begins else ''}(?:{'|'.join(group)}){f'(?!{within})' if ends else ''}"
        for (ends, begins), group in sorted(groups.items())
    ]
    return re.compile("|".join(parts))


# ---- What a reply may choose


@dataclass(frozen=True, slots=True)
class Alternatives:
    """What a reply may choose from. Each alternative has one or more names; places count from 1.

    Args:
        names: the names of each alternative; case and punctuation do not matter.
        numbered: whether a number chooses the alternative at that place; otherwise numbers are ranks.
        lettered: whether they were shown with letters, A for the first; a letter then chooses, and a number does not.
    """

    names: tuple[tuple[str, ...], ...]
    numbered: bool = True
    lettered: bool = False
    letters: Mapping[str, int] = field(init=False, repr=False, compare=False)
    """The letters that choose, in lower case, each with its place; empty where no letters were shown."""
    _words: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    """The words of all names as a tree; the empty word leads to the place of the name that ends there, and its end."""

    def __post_init__(self) -> None:
        words: dict[Any, Any] = {}
        places = range(1, len(self.names) + 1)
        letters = dict(zip(LETTERS.lower(), places, strict=False)) if self.lettered else {}
        for place, name in ((n, name) for n in places for name in self.names[n - 1]):
            said = _folded(plain_text(name))
            own = _OWN_LETTER.match(said) if self.numbered and not self.lettered else None
            if own and ord(own[1]) - ord("a") + 1 == place:
                letters[own[1]] = place
                _plant(words, said[own.end() :], place)
            is_label = said in letters if self.lettered else self.numbered and said.isdecimal()
            if not is_label:
                _plant(words, said, place)
        object.__setattr__(self, "_words", words)
        object.__setattr__(self, "letters", letters if len(letters) == len(self.names) or self.lettered else {})

    def named(self, text: str, at: int) -> tuple[int, int] | None:
        """The alternative that a folded text names at a place, and where its name ends; the longest name wins."""
        node: Mapping[str, Any] = self._words
        found: tuple[int, int] | None = None
        word = _WORD.match(text, at)
        while word is not None and word[1] in node:
            node, end = node[word[1]], word.end()
            if "" in node:
                place, ending = node[""]
                found = place, end + len(ending) * text.startswith(ending, end)
            word = _FURTHER_WORD.match(text, end)
        return found

    def sign(self, place: int) -> str:
        """What the alternative at a place is called by: its letter or its number."""
        return LETTERS[place - 1] if self.lettered and place <= len(LETTERS) else str(place)


_WORD = re.compile(r"([^\W_]+(?:'[^\W_]+)*)")
_FURTHER_WORD = re.compile(rf"(?:[^\w\n]|_){{1,9}}{_WORD.pattern}")
_OWN_LETTER = re.compile(r"\s*\(?([a-z])[).:]\s+(?=\S)")


def _plant(tree: dict[Any, Any], name: str, place: int) -> None:
    """Adds a folded name to a tree of words, with the signs at its end."""
    found = [*_WORD.finditer(name)]
    for word in found:
        tree = tree.setdefault(word[0], {})
    if found:
        tree.setdefault("", (place, name[found[-1].end() :].strip()))


@lru_cache(maxsize=64)
def alternatives_of(options: tuple[str, ...], *, lettered: bool = False) -> Alternatives:
    """The alternatives that `options` are; made once, since many pictures have the same."""
    return Alternatives(tuple((option,) for option in options), lettered=lettered)


# ---- A reply as plain text

_DECLARED = "\ue000"
"""Stands before what a reply marks as its answer by a box or a tag."""
_BOX = re.compile(r"\\f?boxed\b|<\|begin_of_box\|>|<(?:final_?)?answer>", re.IGNORECASE)
_END_OF_BOX = re.compile(r"<\|end_of_box\|>|</(?:final_?)?answer>", re.IGNORECASE)
_MATHS = re.compile(r"\\[a-z]+\b|\\[^a-z\n]", re.IGNORECASE)
_TAGGED = re.compile(r"<([A-Z])>(?=[\s.,]|$)")
"""A letter in angular brackets, which is no tag of HTML."""
_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")
_CHECKED = re.compile(r"\[([xX✓✔✅ ])\](?!\()")
_ROW = re.compile(r"^[ \t]*\|(?P<cells>.*)$(?P<head>\n[ \t]*\|[-:| \t]+$)?", re.MULTILINE)
_RULE = re.compile(r"^[ \t]*[-=_~]{3,}[ \t]*$", re.MULTILINE)


def _plain(text: str) -> str:
    """A reply as plain text: no thinking, no decoration, one sign for each box."""
    said = _END_OF_BOX.sub("\n", _BOX.sub(_DECLARED, final_text(text.replace(_DECLARED, ""))))
    said = _CHECKED.sub(lambda box: "❌ " if box[1] == " " else "✅ ", said)
    said = _RULE.sub("", _ROW.sub(_cells, plain_text(_TAGGED.sub(r"(\1)", said))))
    return _EMOJI.sub(lambda sign: sign[0] if _words().kept.match(sign[0]) else "", _MATHS.sub(" ", said))


def _cells(row: re.Match[str]) -> str:
    """The cells of a table's row with colons between them; empty for the head, which a line of dashes follows."""
    return "" if row["head"] else ": ".join(cell.strip() for cell in row["cells"].strip("| \t").split("|"))


def _folded(text: str) -> str:
    """`text` in lower case, with digits and letters of every script and in circles as plain ones."""
    return "".join(map(_plain_sign, text)) if not text.isascii() else text.lower()


@lru_cache(maxsize=4096)
def _plain_sign(sign: str) -> str:
    digit = unicodedata.decimal(sign, None)
    if digit is not None:
        return str(digit)
    if unicodedata.decomposition(sign).startswith("<circle>"):
        return unicodedata.normalize("NFKC", sign).lower()
    return sign.lower()


# ---- A value: options and nothing else


class _Item(NamedTuple):
    """One option that a value names."""

    place: int
    form: Literal["label", "text", "both"]
    rank: int | None = None
    said: bool | None = None
    """What the reply says of it, yes or no; None where it says nothing."""


class _Value(NamedTuple):
    """The options of a value, and where it ends."""

    items: tuple[_Item, ...]
    end: int

    @property
    def places(self) -> frozenset[int]:
        return frozenset(item.place for item in self.items if item.said is not False)


_OPEN = re.compile(rf"(?:=>|->|[ \t\"'(\[{{<$«{_DECLARED}]|[-•·◦‣▪●∙→](?=[ \t\"'(\[])){{0,12}}")
_CLOSE = r"[ \t\"')\]}>»$]*"
_NUMBER = re.compile(rf"#?[ ]?(\d{{1,4}})(?![^\W{_UNSPACED}]|[%°/]|\.\d|[ ]%)")
_LETTER = re.compile(rf"([a-z])(?![^\W{_UNSPACED}]|['.&+#=-]\w|[+#&])")
_RANK = re.compile(r"(?:#|rank )?(\d{1,2})(?:\.\)?|[\"']?\)|[\"'\]]?:|[ ]-)(?=[ \t\"'(\[])[ \t\"'(\[]*")
_RANK_SIGN = re.compile(r"(?:[ ](?:best|choice|pick|place|option|category|answer))*[\"']?[ ]*[:.)=-]+[ \t\"'(]*")
_TO_TEXT = re.compile(r"[\"')\]}]*[ \t]*(?:[.):,;=|-]+[ \t]*)?[\"'(\[{]*")
_TO_NAME = re.compile(r"[\"'.)\]]*[ \t]*[(\[:-]+[ \t\"'(\[]*")
_TO_OPTION = re.compile(r"[ .:#(\[{}\"']*")
_TO_SAID = re.compile(r"[\"')\]]*[ \t]*[:=(\[-]+[ \t(\[\"']*")
_SCORE = re.compile(
    r"[\"')\]]*[ \t]*[:=(-]*[ \t]*\(?(?:confidence|score|probability)?:?[ ]?"
    r"(?P<score>[01]?\.\d+|\d{1,3}[ ]?%|\d{1,2}/10|(?<=: )[01])(?![\d/%]|\.\d)(?:[ ]confidence)?\)?"
)
_REMARK = re.compile(r"[\"']*[ \t]*\(([^()\n\d]{1,80})\)")
_SEPARATOR = re.compile(r"[\"')\]}$»]*(?:[ \t.]*(?:[,;&+|>→]|=>|->)+[ \t]*\n?)?[ \t]*")
_SIGN = re.compile(r"[,;&+|>→]")
_RANGE = re.compile(r"-(?=\d)")
_LINE_END = re.compile(rf"{_CLOSE}[.!。]*{_CLOSE}(?=\n|$)")
_SENTENCE_END = re.compile(rf"{_CLOSE}[.!;。]+{_CLOSE}(?<=[ \t。])|{_CLOSE}[ \t]-+[ \t]+(?=[^\W\d_])")
_REASON = re.compile(rf"{_CLOSE}[,;]?[ \t]*\(?")
_NEXT_LINE = re.compile(r"[ \t]*\n\s*")
_SPACES = re.compile(r"[ \t]*")
_LINE = re.compile(r"[^\n]*")
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=\w))*")
_FULL_STOP = re.compile(r"[.!。]")
_JOINT = re.compile(r"[,;][ \t]+")
_CLAUSE = re.compile(r"(?:^|[,;.!?…。]+[\"')\]]*\s+|。|\n\s*|[ ]-[ ])[^\w\n]*")
_START = re.compile(rf"(?={_DECLARED})|(?:^|\n|,[ ](?:but|so|thus|hence|therefore)[ ]|[.!?…][\"')\]]*[ \t]+|[。?])\s*")
_DECORATION = re.compile(rf"[^\w\n{_DECLARED}]*")
_GAP = re.compile(rf"[ \t\"',()\[\]{{}}]{{0,12}}(?P<mark>(?:[:=→>{_DECLARED}]|-(?=[ >]))[ \t\"'>]{{0,6}}){{0,6}}")

_NUMBER_ALONE = re.compile(r"\d+[.)]\s*")

_FAR = 400
"""Characters of a reason that are looked at."""
_LONGEST_HEAD = 40
"""Words before a declared answer, at most."""


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where a pattern that may match nothing ends."""
    found = pattern.match(text, at)
    return at if found is None else found.end()


@dataclass(frozen=True, slots=True)
class _Reply:
    """A reply as plain text, and what it may choose from."""

    said: str
    """The text before it was folded."""
    text: str
    alternatives: Alternatives
    beside: list[int] = field(default_factory=list[int])
    """Where an index stands beside another option's text."""

    @classmethod
    def of(cls, text: str, alternatives: Alternatives) -> _Reply:
        """A reply without thinking and decoration."""
        said = _plain(text)
        return cls(said, _folded(said), alternatives)

    def value(self, at: int, *, apart: bool) -> _Value | None:
        """The value that begins at a place; None where something else stands in it.

        Args:
            at: the place.
            apart: whether it stands on lines of its own, so that blank lines may lie between its items.
        """
        found = [self._lines(at, ranked=ranked, apart=apart) for ranked in (False, True)]
        whole = [each for each in found if each and _agree(each.items) and not self._is_cut(at, each.end)]
        return max(whole, key=lambda each: each.end, default=None)

    def _is_cut(self, at: int, end: int) -> bool:
        """Whether the reply breaks off in a value: it ends there, with a bracket open."""
        value = self.text[at:end]
        return end == len(self.text) and any(value.count(left) > value.count(right) for left, right in ("()", "[]"))

    def _lines(self, at: int, *, ranked: bool, apart: bool) -> _Value | None:
        """The items from a place on, over several lines where each holds nothing else."""
        items: list[_Item] = []
        end = at
        while (line := self._line(at, ranked=ranked)) is not None:
            more, ends, whole = line
            if items and not whole:
                break
            items += more
            end = ends
            gap = _NEXT_LINE.match(self.text, end) if whole else None
            if gap is None or (gap[0].count("\n") > 1 and not apart):
                break
            at = gap.end()
            if self.text.startswith(_DECLARED, at):
                break
        return _Value(tuple(items), end) if items else None

    def _line(self, at: int, *, ranked: bool) -> tuple[list[_Item], int, bool] | None:
        """The items of a line, where it ends, and whether it holds nothing else; None where it is no list of them."""
        items, end = self.items(at, ranked=ranked)
        if not items:
            return None
        if ends := self.closed(end):
            return items, ends, True
        if (reason := self.reason(end)) is None or self._adds(items, end, reason):
            return None
        return items, reason, False

    def items(self, at: int, *, ranked: bool = False) -> tuple[list[_Item], int]:
        """The items that stand one after another, and where the last one ends."""
        items: list[_Item] = []
        end = at
        while (found := self.item(at, ranked=ranked)) is not None:
            more, end = found
            items += more
            at = _end(_SEPARATOR, self.text, end)
            between = self.text[end:at]
            joined = None if self.label(at) else _words().join.match(self.text, at)  # E may be a letter
            if joined is not None:
                at = _end(_SPACES, self.text, joined.end())
            elif not _SIGN.search(between) and (between.strip() or not between or more[-1].form != "label"):
                break  # a blank alone stands between labels, and between nothing else
        return items, end

    def closed(self, at: int) -> int | None:
        """The end of the line, where no word stands before it that says more; else None."""
        while closing := _words().close.match(self.text, _end(_REASON, self.text, at)):
            at = closing.end()
        if (line := _LINE_END.match(self.text, at)) is not None:
            return line.end() or None
        begin = _end(_REASON, self.text, at)
        if left_out := _words().instead_of.match(self.text, begin):
            items, end = self.items(_end(_SPACES, self.text, left_out.end()))
            while items and (other := _words().either.match(self.text, _end(_SEPARATOR, self.text, end))):
                items, end = self.items(_end(_SPACES, self.text, other.end()))
            bracketed = "(" in self.text[at:begin] and ")" in self.text[begin:end]
            line = _LINE_END.match(self.text, end) if items and not bracketed else None
            return line and line.end()
        return None

    def reason(self, at: int) -> int | None:
        """Where the words begin that say more behind a list: a new sentence, or what a dash or "because" introduces."""
        while closing := _words().close.match(self.text, _end(_SPACES, self.text, at)):
            at = closing.end()
        if self.text[at - 1] in ".!?" and self.text[at : at + 1] == " " and self.is_capital(at + 1):
            return at + 1
        if sentence := _SENTENCE_END.match(self.text, at):
            return None if _words().either.match(self.text, sentence.end()) else sentence.end()
        because = _words().because.match(self.text, _end(_REASON, self.text, at))
        return because and because.end()

    def _adds(self, items: Sequence[_Item], end: int, at: int) -> bool:
        """Whether what stands behind a list names further answers, as in "3, as it is light, and 7" and "3. 7."."""
        if self.text.startswith(_DECLARED, at):
            return False  # it is declared by itself
        places = {item.place for item in items}
        line = self.text[: min(_end(_LINE, self.text, at), at + _FAR)]
        starts = [at]
        if not _FULL_STOP.search(self.text, end, at):
            starts += [joint.end() for joint in _JOINT.finditer(line, at)]
            starts += [_end(_SPACES, line, each.end()) for each in _words().join.finditer(line, at)]
        for start in starts:
            joined = _words().join.match(line, start)
            more, end = self.items(_end(_SPACES, line, joined.end()) if joined else start)
            ends = more and (_LINE_END.match(line, end) or self.reason(end) is not None)
            if ends and not places.issuperset(item.place for item in more):
                return True
        return False

    def item(self, at: int, *, ranked: bool) -> tuple[list[_Item], int] | None:
        """One item, or the items of a range, and where it ends."""
        text, words = self.text, _words()
        at = _end(_OPEN, text, at)
        said: bool | None = None
        if sign := words.sign.match(text, at):
            said, at = words.yes.match(text, at) is not None, _end(_TO_OPTION, text, sign.end())
        rank: int | None = None
        if ranked or not self.alternatives.numbered or self.alternatives.lettered:
            rank, at = self._rank(at)
            rank = rank if ranked else None
        found = self._option(at)
        if found is None:
            return None
        places, form, end = found
        for _ in range(3):
            if score := _SCORE.match(text, end):
                end = score.end()
                if not self.alternatives.numbered and (said := _verdict(score["score"])) is None:
                    return None
            elif (verdict := self._said(end)) is not None:
                said, end = verdict
            elif (remark := _REMARK.match(text, end)) and not self._turns(remark.start(1), remark.end(1)):
                end = remark.end()
            else:
                break
        return [_Item(place, form, rank, said) for place in places], end

    def _rank(self, at: int) -> tuple[int | None, int]:
        """The place in a ranking that stands before an item, and where the item begins."""
        if (number := _RANK.match(self.text, at)) and self._option(number.end()):
            counts = self.alternatives.numbered and not self.alternatives.lettered
            return int(number[1]) if counts else None, number.end()
        if word := _words().rank.match(self.text, at):
            sign = _RANK_SIGN.match(self.text, word.end())
            if sign or not word[0][-1].isalnum():
                return _words().ranks[word[0]], sign.end() if sign else _end(_SPACES, self.text, word.end())
        return None, at

    def _option(self, at: int) -> tuple[Sequence[int], Literal["label", "text", "both"], int] | None:
        """The places of one option, or of a range, what it is named by, and where it ends."""
        named, label = self.alternatives.named(self.text, at), self.label(at)
        if named is None and label is None:
            at = self._noun(at)
            named, label = self.alternatives.named(self.text, at), self.label(at)
        if named is not None and (label is None or label[1] <= named[1]):
            place, end = named
            own = self._named_again(place, end)
            if own is None:
                return None
            return (place,), "text" if own == end else "both", own
        if label is None:
            return None
        place, end = label
        if past := self._range(place, end):
            return range(place, past[0] + 1), "label", past[1]
        if text := self.alternatives.named(self.text, _end(_TO_TEXT, self.text, end)):
            if text[0] == place:
                return (place,), "both", text[1]
            self.beside.append(end)
            return None
        again = self._named_again(place, end)
        return None if again is None else ((place,), "label", again)

    def _name(self, at: int) -> tuple[int, int] | None:
        """The option that a text or a label at a place stands for, and where it ends."""
        return self.alternatives.named(self.text, at) or self.label(at)

    def _noun(self, at: int) -> int:
        """Where an option begins, behind "option", "the letter", "no." and the like."""
        for _ in range(3):
            if (noun := _words().option.match(self.text, at)) is None and (
                noun := _LEADING.match(self.text, at)
            ) is None:
                break
            at = _end(_TO_OPTION, self.text, noun.end())
        return at

    def label(self, at: int) -> tuple[int, int] | None:
        """The place that a number or a letter stands for, and where it ends."""
        text, known = self.text, self.alternatives
        if (letter := _LETTER.match(text, at)) and letter[1] in known.letters:
            return known.letters[letter[1]], letter.end()
        if not known.numbered:
            return None
        if ordinal := _words().ordinal.match(text, at):
            noun = _words().option.match(text, _end(_SPACES, text, ordinal.end()))
            return (_words().ordinals[ordinal[0]], noun.end()) if noun else None
        if known.lettered:
            return None
        if number := _NUMBER.match(text, at):
            return int(number[1]), number.end()
        word = _WORD.match(text, at)
        return (_words().numbers[word[0]], word.end()) if word and word[0] in _words().numbers else None

    def _range(self, place: int, end: int) -> tuple[int, int] | None:
        """The last place of a range that goes on at `end`, and where it ends."""
        if not self.alternatives.numbered or self.alternatives.lettered:
            return None
        dash = _RANGE.match(self.text, end) or _words().through.match(self.text, _end(_SPACES, self.text, end))
        last = self.label(_end(_SPACES, self.text, dash.end())) if dash else None
        return last if last and place < last[0] <= len(self.alternatives.names) else None

    def _named_again(self, place: int, end: int) -> int | None:
        """Where another name of the same option ends that stands behind it; None where that of another one does."""
        to = _TO_NAME.match(self.text, end)
        if to is None:
            return end
        found = next(filter(None, map(self._name, (to.end(), self._noun(to.end())))), None)
        if found is None:
            return end
        return found[1] if found[0] == place else None

    def _said(self, at: int) -> tuple[bool, int] | None:
        """Whether an item is chosen, by what is said of it, and where that ends."""
        words = _words()
        start = _end(_TO_OPTION, self.text, at)
        if sign := words.sign.match(self.text, start):
            return words.yes.match(self.text, start) is not None, sign.end()
        start = _end(_TO_SAID, self.text, at)
        for chosen, pattern in ((True, words.yes), (False, words.no)) if start > at else ():
            if found := pattern.match(self.text, start):
                return chosen, found.end()
        return None

    def _turns(self, begin: int, end: int) -> bool:
        """Whether a remark denies or doubts, or names an option."""
        if _words().deny.search(self.text, begin, end) or _words().instead_of.match(self.text, begin, end):
            return True
        return self.names_other((), begin, end)

    def names_other(self, places: Iterable[int], begin: int, end: int) -> bool:
        """Whether a part of the text names an option that is not among `places`."""
        known = {*places}
        part = _Reply(self.said, self.text[:end], self.alternatives)
        for word in _WORD.finditer(part.text, begin):
            found = part._name(word.start())
            if found is None or found[0] in known:
                continue
            is_word = word[0] in _words().numbers or (word.end() == found[1] and self._is_word(word))
            if not is_word and not _COUNT.match(part.text, max(word.start() - 1, 0)):
                return True
        return False

    def names_any(self, places: Iterable[int], begin: int, end: int) -> bool:
        """Whether a part of the text names one of `places`."""
        known = {*places}
        names = (self._name(word.start()) for word in _WORD.finditer(self.text, begin, end))
        return any(found is not None and found[0] in known for found in names)

    def _is_word(self, word: re.Match[str]) -> bool:
        """Whether a word of a sentence, such as an article, only looks like the name of an option."""
        if word[0] not in _ARTICLES:
            return False
        following = _NEXT_WORD.match(self.text, word.end())
        copula = following and "lead" in _words().kinds.get(following[1], ())
        return not self.is_capital(word.start()) or (following is not None and not copula)

    def is_capital(self, at: int) -> bool:
        """Whether the letter at a place was a capital."""
        return len(self.said) == len(self.text) and self.said[at].isupper()


_LEADING = re.compile(r"(?:the|letter)\b")
_NEXT_WORD = re.compile(r"[ ]([^\W\d_]+)")
_COUNT = re.compile(r"\n\d{1,2}[.)]\s")
_ARTICLES = frozenset(["a", "e", "i", "o", "no"])
"""Names of options that are words of their own within a sentence."""


def _agree(items: Sequence[_Item]) -> bool:
    """Whether the items of a value are one list: its ranks count from 1, and no text stands beside another's index."""
    ranks = [item.rank for item in items if item.rank is not None]
    if ranks and (len(ranks) < max(2, len(items)) or ranks != [*range(1, len(ranks) + 1)]):
        return False
    if any(item.said is False for item in items) and any(item.said is None for item in items):
        return False
    if not {item.place for item in items if item.said}.isdisjoint(item.place for item in items if item.said is False):
        return False
    labelled = {item.place for item in items if item.form != "text"}
    return all(item.form != "label" for item in items) or labelled.issuperset(item.place for item in items)


def _verdict(score: str) -> bool | None:
    """Whether a score says yes or no; None where it says neither."""
    number = float(score.rstrip("% ").removesuffix("/10")) / (100 if "%" in score else 10 if "/" in score else 1)
    return None if 0.4 < number < 0.6 else number > 0.5


# ---- The rungs


class NoAnswer(Unreadable):
    """A reply that gives no answer which can be read; other replies give several, or one that cannot be meant."""


_NEXT_QUESTION = re.compile(r"(?<=\S)\s*\n\W{0,3}(?:context|question|q)\W{0,3}:", re.IGNORECASE)
_Weight = Literal["final", "named", "said"]
_PRAISE = frozenset(["praise", "comparative"])


class _Declaration(NamedTuple):
    """A line or a sentence that begins with what an answer is called."""

    begin: int
    end: int
    value: _Value | None
    """None where it cannot be read."""
    weight: _Weight
    """Whether it is called final, is called an answer, or is a sentence about an option or of a choice."""


def read_choice(
    text: str, alternatives: Alternatives, *, single: bool = False, otherwise: int | None = None
) -> Read[tuple[int, ...]]:
    """The places of the alternatives that a reply chooses, from 1, in its order, each once, and which rung read them.

    Args:
        text: the model's reply.
        alternatives: what it may choose from.
        single: whether exactly one is asked for.
        otherwise: the place that is chosen where the reply denies every other one.

    Raises:
        Unreadable: it declares no answer and is none, contradicts itself, goes beyond the alternatives, or gives
            several where one is asked for.
    """
    text = final_text(text)
    if (following := _NEXT_QUESTION.search(text)) is not None:
        with suppress(Unreadable):  # what follows an answer is a question that the model asks itself
            return read_choice(text[: following.start()], alternatives, single=single, otherwise=otherwise)
    listed = json_list(text)
    reply = _Reply.of(text if listed is None else as_lines(listed), alternatives)
    try:
        declared = _declared(reply, single=single)
        found = declared or _whole(reply, single=single)
        if found is None:
            raise NoAnswer
        places = check_places(_chosen(found, alternatives, otherwise), len(alternatives.names), single=single)
    except NoAnswer:
        if reply.beside:
            index, indexes = ("a letter", "the letter") if alternatives.lettered else ("an index", "indexes")
            message = f"{index} stands beside another option's text; give {indexes} alone"
            raise Unreadable(message, reply=text) from None
        form = "`Answer: X`, with X a letter," if alternatives.lettered else "`Answer: 3, 7`"
        raise NoAnswer(f"no answer of the form {form} is given", reply=text) from None
    except Unreadable as error:
        raise Unreadable(*error.args, reply=text) from None
    return Read(places, "declared" if declared else "whole")


def _declared(reply: _Reply, *, single: bool) -> _Value | None:
    """The last declared answer; None where a reply declares none.

    Raises:
        Unreadable: it cannot be read, another one differs from it, or it is taken back.
    """
    found = [*_declarations(reply, single=single)]
    named = [each for each in found if each.weight != "said"] or found
    readable = [each for each in named if each.value is not None]
    if not readable:
        if any(each.weight != "said" for each in named):
            raise NoAnswer
        return None
    counted = [each for each in readable if each.weight == "final"] or readable
    last = counted[-1]
    value = cast("_Value", last.value)
    for each, following in pairwise(counted):
        if cast("_Value", each.value).places != value.places and not _given_way(reply, each, following):
            answers = [_told(each, reply.alternatives) for each in counted][:3]
            raise Unreadable(f"different answers are given ({', then '.join(answers)}); give one answer")
    line = reply.text.rfind("\n", 0, last.begin)
    if any(each.value is None and each.weight != "said" and line < each.begin < last.begin for each in found):
        raise Unreadable("several answers are declared in one line; give one answer")
    for each in found:
        if each.begin > last.begin and _contradicts(reply, each, value):
            raise Unreadable("something else is declared behind the answer; give one answer")
    if _taken_back(reply.text, value.end, len(reply.text)):
        raise Unreadable("the answer is taken back; give one answer")
    return value


def _told(declaration: _Declaration, alternatives: Alternatives) -> str:
    """The answer of a declaration, as the options are called."""
    items = cast("_Value", declaration.value).items
    return " and ".join(map(alternatives.sign, dict.fromkeys(item.place for item in items)))


def _given_way(reply: _Reply, earlier: _Declaration, later: _Declaration) -> bool:
    """Whether an answer is taken back in a sentence of its own before another is declared."""
    return _taken_back(reply.text, earlier.end, max(reply.text.rfind("\n", 0, later.begin), earlier.end))


def _contradicts(reply: _Reply, later: _Declaration, value: _Value) -> bool:
    """Whether what is declared later is another answer than a value, or makes it doubtful."""
    if later.value is not None:
        return not later.value.places <= value.places
    if later.weight != "said":
        return True
    denies = _words().deny.search(reply.text, later.begin, later.end) is not None
    others = reply.names_other(value.places, later.begin, later.end)
    return denies != others or (denies and reply.names_any(value.places, later.begin, later.end))


def _taken_back(text: str, begin: int, end: int) -> bool:
    """Whether a part of a reply takes back what stands before it."""
    words = _words()
    if words.reconsider.search(text, begin, end) or words.revise.match(text, begin, end):
        return True
    return any(words.revise.match(text, clause.end(), end) for clause in _CLAUSE.finditer(text, begin, end))


def _declarations(reply: _Reply, *, single: bool) -> Iterator[_Declaration]:
    end = -1
    for start in _START.finditer(reply.text):
        if start.end() >= end and (found := _declaration(reply, start.end(), single=single)) is not None:
            end = found.end
            yield found


def _declaration(reply: _Reply, start: int, *, single: bool) -> _Declaration | None:
    """The declaration that begins at a place: words that call an answer by name, and the value behind them."""
    at = _end(_DECORATION, reply.text, start)
    kinds: set[str] = set()
    marked, weight = False, None
    for _ in range(_LONGEST_HEAD):
        found = _head_word(reply, at)
        if found is None:
            break
        kinds |= found[0]
        gap = _GAP.match(reply.text, found[1])
        at = gap.end() if gap else found[1]
        marked = marked or "marked" in kinds or bool(gap and gap["mark"])
        weight = _weight(kinds, reply.alternatives, single=single)
        if weight is not None and reply.text[at : at + 1] in {"", "\n"}:
            return _below(reply, start, at, weight=weight, marked=marked)
        if weight is not None and (value := reply.value(at, apart=False)):
            return _Declaration(start, value.end, value, weight)
        if weight is not None and reply.label(at) and _head_word(reply, at) is None:
            break  # an option and something else
    if weight is None:
        return _spoken(reply, start) or _spoken(reply, at)
    if marked and weight != "said":
        return _Declaration(start, at, None, weight)
    return _Declaration(start, _end(_SENTENCE, reply.text, at), None, "said")


def _head_word(reply: _Reply, at: int) -> tuple[frozenset[str], int] | None:
    """What a word before an answer is, and where it ends; None for other words, and for a capital that is a label."""
    if reply.text.startswith(_DECLARED, at):
        return frozenset(["name", "marked"]), at + 1
    word = _words().head.match(reply.text, at)
    if word is None or (reply.is_capital(at) and reply.label(at)):
        return None
    return _words().kinds[word[0]], word.end()


def _below(reply: _Reply, start: int, at: int, *, weight: _Weight, marked: bool) -> _Declaration | None:
    """The declaration whose value stands on the lines below its words."""
    below = _end(_NEXT_LINE, reply.text, at)
    breaks_off = _NUMBER_ALONE.fullmatch(reply.text, below) is not None
    value = None if breaks_off else reply.value(below, apart=True)
    if value is not None:
        return _Declaration(start, value.end, value, weight)
    return _Declaration(start, below, None, weight) if breaks_off or (marked and at == len(reply.text)) else None


def _weight(kinds: set[str], alternatives: Alternatives, *, single: bool) -> _Weight | None:
    ranking = "ranking" in kinds and not single
    if "name" in kinds or ranking or ("option" in kinds and not kinds.isdisjoint(_PRAISE)):
        return "final" if "final" in kinds else "named"
    return "said" if "choose" in kinds or ("shown" in kinds and not alternatives.numbered) else None


def _spoken(reply: _Reply, start: int) -> _Declaration | None:
    """A sentence with one option as its subject that says it is best, and names no other."""
    text = reply.text
    found = reply.item(_end(_DECORATION, text, start), ranked=False)
    if found is None or len(found[0]) > 1:
        return None
    items, after = found
    at = _end(_SPACES, text, after)
    first = _words().head.match(text, at)
    if first is None or (not _PRAISE.isdisjoint(_words().kinds[first[0]]) and _label_alone(reply, start)):
        return None  # "A better caption would be funnier."
    kinds: set[str] = set()
    while (word := _words().head.match(text, at)) and kinds.isdisjoint(_PRAISE) and at > after:
        kinds |= _words().kinds[word[0]]
        at = _end(_SPACES, text, word.end())
    end = _end(_SENTENCE, text, at)
    if "comparative" in kinds and reply.closed(at) is None and reply.reason(at) is None:
        return None  # "Option 3 is better in some ways."
    if (
        kinds.isdisjoint(_PRAISE)
        or _words().deny.search(text, after, end)
        or reply.names_other({items[0].place}, at, end)
    ):
        return None
    return _Declaration(start, end, _Value(tuple(items), end), "said")


def _label_alone(reply: _Reply, start: int) -> bool:
    """Whether a sentence begins with a label, and not with "option" before it."""
    return reply.label(_end(_DECORATION, reply.text, start)) is not None


def _whole(reply: _Reply, *, single: bool) -> _Value | None:
    """The value that a reply is as a whole; None where it is anything else.

    Words may stand behind it: after a blank line, and, where options are called by name, in any sentence of its own
    ("Yes, because …"). A name may also be the last paragraph. Words that name another option leave the reply unread.
    """
    text = reply.text
    at = _end(_BLANKS, text, 0)
    while courtesy := _words().courtesy.match(text, at):
        at = _end(_AFTER_COURTESY, text, courtesy.end())
    value = reply.value(at, apart=True) or _begun(reply, at, single=single)
    if value is None:
        before, _, _ = text.rstrip().rpartition("\n\n")
        value = reply.value(len(before) + 2, apart=True) if before and before[-1] not in ":?" else None
        named = value is not None and all(item.form == "text" for item in value.items)
        whole = named and value is not None and not text[value.end :].strip()
        return (
            value
            if value and whole and not reply.names_other({item.place for item in value.items}, 0, len(before))
            else None
        )
    rest = _end(_BLANKS, text, value.end)
    if rest == len(text):
        return value
    apart = text.count("\n", value.end, rest) > 1
    if not (apart or _is_named(value.items)) or _words().either.match(text, rest):
        return None
    if reply.names_other({item.place for item in value.items}, rest, len(text)):
        return None
    return None if _taken_back(text, rest, len(text)) else value


def _is_named(items: Sequence[_Item]) -> bool:
    return bool(items) and all(item.form != "label" for item in items)


def _begun(reply: _Reply, at: int, *, single: bool) -> _Value | None:
    """The options by name that a reply begins with, before a comma or a colon and words on them."""
    items, end = reply.items(at)
    clause = (_CLAUSE_AFTER if single else _COLON).match(reply.text, end)  # behind a comma a list may go on
    if clause is None or not _is_named(items) or not _agree(items) or _words().deny.match(reply.text, clause.end()):
        return None
    return _Value(tuple(items), clause.end())


_CLAUSE_AFTER = re.compile(rf"{_CLOSE}[,:][ \t]+(?=\S+ \S+ \S)")
_COLON = re.compile(rf"{_CLOSE}:[ \t]+(?=\S+ \S+ \S)")
_BLANKS = re.compile(r"\s*")
_AFTER_COURTESY = re.compile(r"[!.,:]*\s*")


def _chosen(value: _Value, alternatives: Alternatives, otherwise: int | None) -> tuple[int, ...]:
    """The places that a value chooses, each once.

    Raises:
        Unreadable: every option is denied, or the value only repeats the options.
    """
    items, count = value.items, len(alternatives.names)
    kept = tuple(dict.fromkeys(item.place for item in items if item.said is not False))
    if not kept:
        if otherwise is not None and len({item.place for item in items}) == count - 1:
            return (otherwise,)
        raise Unreadable("every option is denied; choose at least one")
    described = alternatives.numbered or otherwise is not None or all(item.form == "both" for item in items)
    described = described and all(item.said is None for item in items)
    if described and count > 2 and len(kept) >= count - (not alternatives.numbered):
        raise Unreadable("the options are repeated, and none is chosen")
    return kept


def check_places(places: Sequence[int], count: int, *, single: bool) -> tuple[int, ...]:
    """`places` in order, each once.

    Raises:
        Unreadable: one is beyond 1 … `count`, or there are several where `single` is asked for.
    """
    beyond = [place for place in places if not 1 <= place <= count]
    if beyond:
        raise Unreadable(f"{', '.join(map(str, beyond))} is not among the options 1 to {count}")
    chosen = tuple(dict.fromkeys(places))
    if single and len(chosen) > 1:
        raise Unreadable(f"{len(chosen)} options are chosen; choose exactly one")
    return chosen


# ---- Readers


class ChoosingNode(Node[In, Out]):
    """A node whose answer is chosen among alternatives, so that its replies are read by the ladder."""

    chooses = True

    @abstractmethod
    @override
    def read_reply(self, text: str, subject: In) -> Read[Out]: ...

    @override
    def read_text(self, text: str, subject: In) -> Out:
        return self.read_reply(text, subject).value


def read_answer(text: str, options: Sequence[str], *, single: bool = False, lettered: bool = False) -> tuple[int, ...]:
    """The numbers of the options that `text` chooses, from 1, best first, each once.

    A reply may name options by number, by text, or by letter where each option begins with its letter (`A. …`). Ranges
    (`3-5`) and number words (`three`) are read.

    Args:
        text: the model's reply.
        options: the options as they were shown.
        single: whether exactly one number was asked for.
        lettered: whether the prompt put letters before the options. Then they are named by letter or text alone.

    Raises:
        Unreadable: as `read_choice`.
    """
    return read_choice(text, alternatives_of(tuple(options), lettered=lettered), single=single).value


def read_numbers(
    data: Mapping[str, Any], field: str, count: int, *, single: bool = False, options: Sequence[str] = ()
) -> tuple[int, ...]:
    """The chosen numbers in field `field` of a JSON reply, from 1 to `count`; a number may stand in a text (`"3"`).

    Args:
        data: the reply.
        field: which field of it holds the answer.
        count: how many options there are.
        single: whether exactly one number was asked for.
        options: the options as they were shown, where the field may repeat them.

    Raises:
        Unreadable: as `read_choice`.
    """
    found: Any = data.get(field)
    numbers: list[Any] = found if isinstance(found, list) else [found]  # pyright: ignore[reportUnknownVariableType]
    if not numbers:
        raise Unreadable(f"`{field}` is empty; choose at least one option")
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        alternatives = alternatives_of(tuple(options)) if options else Alternatives(((),) * count)
        try:
            return read_values([*map(as_lines, numbers)], alternatives, single=single)
        except NoAnswer as error:
            raise NoAnswer(f"`{field}` must hold numbers of options, from 1 to {count}") from error
    return check_places(numbers, count, single=single)


def read_letters(
    data: Mapping[str, Any], field: str, options: Sequence[str], *, single: bool = False
) -> tuple[int, ...]:
    """The numbers of the options that field `field` of a JSON reply names by letter or text, from 1.

    Args:
        data: the reply.
        field: which field of it holds the answer: a text, or a list of texts.
        options: the options, which the prompt put letters before.
        single: whether exactly one was asked for.

    Raises:
        Unreadable: as `read_choice`.
    """
    found: Any = data.get(field)
    items: list[Any] = found if isinstance(found, list) else [found]  # pyright: ignore[reportUnknownVariableType]
    alternatives = alternatives_of(tuple(options), lettered=True)
    try:
        said = [item.strip().removesuffix(":") for item in items if isinstance(item, str)]
        return read_values(said, alternatives, single=single)
    except NoAnswer as error:
        last = alternatives.sign(len(options))
        raise NoAnswer(f"`{field}` must be the letter of an option, from A to {last}") from error


def read_values(
    texts: Sequence[str], alternatives: Alternatives, *, single: bool = False, otherwise: int | None = None
) -> tuple[int, ...]:
    """The places of the alternatives that texts name that stand where the answer belongs, such as a field of JSON.

    Args:
        texts: one for each answer, or one for all of them.
        alternatives: what they may choose from.
        single: whether exactly one is asked for.
        otherwise: the place that is chosen where every other one is denied.

    Raises:
        Unreadable: one of the texts holds anything else.
    """
    reply = _Reply.of("\n".join(texts), alternatives)
    value = reply.value(_end(_BLANKS, reply.text, 0), apart=True)
    if not any(map(str.strip, texts)):
        raise NoAnswer("it is empty")
    if value is not None and not reply.text[value.end :].strip():
        places = _chosen(value, alternatives, otherwise)
    elif len(texts) == 1:
        places = read_choice(texts[0], alternatives, single=single, otherwise=otherwise).value
    else:
        places = [place for text in texts for place in read_choice(text, alternatives, single=True).value]
    return check_places(places, len(alternatives.names), single=single)


def as_lines(value: Any) -> str:
    """A value of JSON as a text reply would give it: items of a list on lines, `name: value` for fields."""
    if isinstance(value, dict):
        return "\n".join(f"{name}: {_word(each)}" for name, each in cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return "\n".join(map(as_lines, cast("list[Any]", value)))
    return _word(value)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list)):
        return ", ".join(as_lines(cast("list[Any]", value)).splitlines())
    return "" if value is None else str(value)
