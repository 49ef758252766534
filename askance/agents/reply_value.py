"""Values in replies: lists of options and nothing else, as they stand behind "Answer:" or alone.

A reply is made plain text first. An option is named by its number, its letter or its text, or by two of them; signs and
words of `answer_words.yaml` join several. Whatever else stands in a value leaves it unread.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from askance.documents import read_yaml
from askance.nodes.reply import final_text, plain_text
from askance.prompts.fence import LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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
def reply_words() -> _Words:
    """The words of `answer_words.yaml`, read once."""
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

DECLARED = "\ue000"
"""Stands before what a reply marks as its answer by a box or a tag."""
_TAG = "(?:final_?)?(?:answer|result|response|choice|selection|output)>"
_BOX = re.compile(rf"\\f?boxed\b|<\|begin_of_box\|>|<{_TAG}", re.IGNORECASE)
_END_OF_BOX = re.compile(rf"<\|end_of_box\|>|</{_TAG}", re.IGNORECASE)
_MATHS = re.compile(r"\\[a-z]+\b|\\[^a-z\n]", re.IGNORECASE)
_TAGGED = re.compile(r"<([A-Z])>(?=[\s.,]|$)")
"""A letter in angular brackets, which is no tag of HTML."""
_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")
_CHECKED = re.compile(r"\[([xX✓✔✅ ])\](?!\()")
_ROW = re.compile(r"^[ \t]*\|(?P<cells>.*)$(?P<head>\n[ \t]*\|[-:| \t]+$)?", re.MULTILINE)
_RULE = re.compile(r"^[ \t]*[-=_~]{3,}[ \t]*$", re.MULTILINE)


def _plain(text: str) -> str:
    """A reply as plain text: no thinking, no decoration, one sign for each box."""
    said = _END_OF_BOX.sub("\n", _BOX.sub(DECLARED, final_text(text.replace(DECLARED, ""))))
    said = _CHECKED.sub(lambda box: "❌ " if box[1] == " " else "✅ ", said)
    said = _RULE.sub("", _ROW.sub(_cells, plain_text(_TAGGED.sub(r"(\1)", said))))
    return _EMOJI.sub(lambda sign: sign[0] if reply_words().kept.match(sign[0]) else "", _MATHS.sub(" ", said))


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


class ValueItem(NamedTuple):
    """One option that a value names."""

    place: int
    form: Literal["label", "text", "both"]
    rank: int | None = None
    said: bool | None = None
    """What the reply says of it, yes or no; None where it says nothing."""


class Value(NamedTuple):
    """The options of a value, and where it ends."""

    items: tuple[ValueItem, ...]
    end: int

    @property
    def places(self) -> frozenset[int]:
        return frozenset(item.place for item in self.items if item.said is not False)


_OPEN = re.compile(rf"(?:=>|->|[ \t\"'(\[{{<$«{DECLARED}]|[-•·◦‣▪●∙→](?=[ \t\"'(\[])){{0,12}}")
CLOSE = r"[ \t\"')\]}>»$]*"
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
_LINE_END = re.compile(rf"{CLOSE}(?:[.。]|!+)?{CLOSE}(?=\n|$)")
_SENTENCE_END = re.compile(rf"{CLOSE}[.!;。]+{CLOSE}(?<=[ \t。])|{CLOSE}[ \t]-+[ \t]+(?=[^\W\d_])")
_REASON = re.compile(rf"{CLOSE}[,;]?[ \t]*\(?")
NEXT_LINE = re.compile(r"[ \t]*\n\s*")
SPACES = re.compile(r"[ \t]*")
_LINE = re.compile(r"[^\n]*")
_FULL_STOP = re.compile(r"[.!。]")
_JOINT = re.compile(r"[,;][ \t]+")


_FAR = 400
"""Characters of a reason that are looked at."""


def end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where a pattern that may match nothing ends."""
    found = pattern.match(text, at)
    return at if found is None else found.end()


@dataclass(frozen=True, slots=True)
class PlainReply:
    """A reply as plain text, and what it may choose from."""

    said: str
    """The text before it was folded."""
    text: str
    alternatives: Alternatives
    beside: list[int] = field(default_factory=list[int])
    """Where an index stands beside another option's text."""

    @classmethod
    def of(cls, text: str, alternatives: Alternatives) -> PlainReply:
        """A reply without thinking and decoration."""
        said = _plain(text)
        return cls(said, _folded(said), alternatives)

    def value(self, at: int, *, apart: bool) -> Value | None:
        """The value that begins at a place; None where something else stands in it.

        Args:
            at: the place.
            apart: whether it stands on lines of its own, so that blank lines may lie between its items.
        """
        found = [self._lines(at, ranked=ranked, apart=apart) for ranked in (False, True)]
        whole = [each for each in found if each and agree(each.items) and not self._is_cut(at, each.end)]
        return max(whole, key=lambda each: each.end, default=None)

    def _is_cut(self, at: int, end: int) -> bool:
        """Whether the reply breaks off in a value: it ends there, with a bracket open."""
        value = self.text[at:end]
        return end == len(self.text) and any(value.count(left) > value.count(right) for left, right in ("()", "[]"))

    def _lines(self, at: int, *, ranked: bool, apart: bool) -> Value | None:
        """The items from a place on, over several lines where each holds nothing else."""
        items: list[ValueItem] = []
        end = at
        while (line := self._line(at, ranked=ranked)) is not None:
            more, ends, whole = line
            if items and not whole:
                break
            items += more
            end = ends
            gap = NEXT_LINE.match(self.text, end) if whole else None
            if gap is None or (gap[0].count("\n") > 1 and not apart):
                break
            at = gap.end()
            if self.text.startswith(DECLARED, at):
                break
        return Value(tuple(items), end) if items else None

    def _line(self, at: int, *, ranked: bool) -> tuple[list[ValueItem], int, bool] | None:
        """The items of a line, where it ends, and whether it holds nothing else; None where it is no list of them."""
        items, end = self.items(at, ranked=ranked)
        if not items:
            return None
        if ends := self.closed(end):
            return items, ends, True
        if (reason := self.reason(end)) is None or self._adds(items, end, reason):
            return None
        return items, reason, False

    def items(self, at: int, *, ranked: bool = False) -> tuple[list[ValueItem], int]:
        """The items that stand one after another, and where the last one ends."""
        items: list[ValueItem] = []
        end = at
        while (found := self.item(at, ranked=ranked)) is not None:
            more, end = found
            items += more
            at = end_of(_SEPARATOR, self.text, end)
            between = self.text[end:at]
            joined = None if self.label(at) else reply_words().join.match(self.text, at)  # E may be a letter
            if joined is not None:
                at = end_of(SPACES, self.text, joined.end())
            elif not _SIGN.search(between):
                if between.strip() or not between or more[-1].form != "label" or self._noun(at) > at:
                    break  # a blank alone stands between labels, and between nothing else
        return items, end

    def closed(self, at: int) -> int | None:
        """The end of the line, where no word stands before it that says more; else None."""
        while closing := reply_words().close.match(self.text, end_of(_REASON, self.text, at)):
            at = closing.end()
        if (line := _LINE_END.match(self.text, at)) is not None:
            return line.end() or None
        begin = end_of(_REASON, self.text, at)
        if left_out := reply_words().instead_of.match(self.text, begin):
            found = self.item(end_of(SPACES, self.text, left_out.end()), ranked=False)
            while found and (other := reply_words().either.match(self.text, end_of(_SEPARATOR, self.text, found[1]))):
                found = self.item(end_of(SPACES, self.text, other.end()), ranked=False)
            bracketed = found is not None and "(" in self.text[at:begin] and ")" in self.text[begin : found[1]]
            line = _LINE_END.match(self.text, found[1]) if found and not bracketed else None
            return line and line.end()
        return None

    def reason(self, at: int) -> int | None:
        """Where the words begin that say more behind a list: a new sentence, or what a dash or "because" introduces."""
        while closing := reply_words().close.match(self.text, end_of(SPACES, self.text, at)):
            at = closing.end()
        if self.text[at - 1] in ".!?" and self.text[at : at + 1] == " " and self.is_capital(at + 1):
            return at + 1
        if sentence := _SENTENCE_END.match(self.text, at):
            return None if reply_words().either.match(self.text, sentence.end()) else sentence.end()
        because = reply_words().because.match(self.text, end_of(_REASON, self.text, at))
        return because and because.end()

    def _adds(self, items: Sequence[ValueItem], end: int, at: int) -> bool:
        """Whether what stands behind a list names further answers, as in "3, as it is light, and 7" and "3. 7."."""
        if self.text.startswith(DECLARED, at):
            return False  # it is declared by itself
        places = {item.place for item in items}
        line = self.text[: min(end_of(_LINE, self.text, at), at + _FAR)]
        starts = [at]
        if not _FULL_STOP.search(self.text, end, at):
            starts += [joint.end() for joint in _JOINT.finditer(line, at)]
            starts += [end_of(SPACES, line, each.end()) for each in reply_words().join.finditer(line, at)]
        for start in starts:
            joined = reply_words().join.match(line, start)
            more, end = self.items(end_of(SPACES, line, joined.end()) if joined else start)
            ends = more and (_LINE_END.match(line, end) or self.reason(end) is not None)
            if ends and not places.issuperset(item.place for item in more):
                return True
        return False

    def item(self, at: int, *, ranked: bool) -> tuple[list[ValueItem], int] | None:
        """One item, or the items of a range, and where it ends."""
        text, words = self.text, reply_words()
        at = end_of(_OPEN, text, at)
        said: bool | None = None
        if sign := words.sign.match(text, at):
            said, at = words.yes.match(text, at) is not None, end_of(_TO_OPTION, text, sign.end())
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
        return [ValueItem(place, form, rank, said) for place in places], end

    def _rank(self, at: int) -> tuple[int | None, int]:
        """The place in a ranking that stands before an item, and where the item begins."""
        if (number := _RANK.match(self.text, at)) and self._option(number.end()):
            counts = self.alternatives.numbered and not self.alternatives.lettered
            return int(number[1]) if counts else None, number.end()
        if word := reply_words().rank.match(self.text, at):
            sign = _RANK_SIGN.match(self.text, word.end())
            if sign or not word[0][-1].isalnum():
                return reply_words().ranks[word[0]], sign.end() if sign else end_of(SPACES, self.text, word.end())
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
        if text := self.alternatives.named(self.text, end_of(_TO_TEXT, self.text, end)):
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
            if (noun := reply_words().option.match(self.text, at)) is None and (
                noun := _LEADING.match(self.text, at)
            ) is None:
                break
            at = end_of(_TO_OPTION, self.text, noun.end())
        return at

    def label(self, at: int) -> tuple[int, int] | None:
        """The place that a number or a letter stands for, and where it ends."""
        text, known = self.text, self.alternatives
        if (letter := _LETTER.match(text, at)) and letter[1] in known.letters:
            return known.letters[letter[1]], letter.end()
        if not known.numbered:
            return None
        if ordinal := reply_words().ordinal.match(text, at):
            noun = reply_words().option.match(text, end_of(SPACES, text, ordinal.end()))
            return (reply_words().ordinals[ordinal[0]], noun.end()) if noun else None
        if known.lettered:
            return None
        if number := _NUMBER.match(text, at):
            return int(number[1]), number.end()
        word = _WORD.match(text, at)
        return (reply_words().numbers[word[0]], word.end()) if word and word[0] in reply_words().numbers else None

    def _range(self, place: int, end: int) -> tuple[int, int] | None:
        """The last place of a range that goes on at `end`, and where it ends."""
        if not self.alternatives.numbered or self.alternatives.lettered:
            return None
        dash = _RANGE.match(self.text, end) or reply_words().through.match(self.text, end_of(SPACES, self.text, end))
        last = self.label(end_of(SPACES, self.text, dash.end())) if dash else None
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
        words = reply_words()
        start = end_of(_TO_OPTION, self.text, at)
        if sign := words.sign.match(self.text, start):
            return words.yes.match(self.text, start) is not None, sign.end()
        start = end_of(_TO_SAID, self.text, at)
        for chosen, pattern in ((True, words.yes), (False, words.no)) if start > at else ():
            if found := pattern.match(self.text, start):
                return chosen, found.end()
        return None

    def _turns(self, begin: int, end: int) -> bool:
        """Whether a remark denies or doubts, or names an option."""
        if reply_words().deny.search(self.text, begin, end) or reply_words().instead_of.match(self.text, begin, end):
            return True
        return self.names_other((), begin, end)

    def names_other(self, places: Iterable[int], begin: int, end: int) -> bool:
        """Whether a part of the text names an option that is not among `places`."""
        known = {*places}
        part = PlainReply(self.said, self.text[:end], self.alternatives)
        for word in _WORD.finditer(part.text, begin):
            found = part._name(word.start())
            if found is None or found[0] in known:
                continue
            is_word = word[0] in reply_words().numbers or (word.end() == found[1] and self._is_word(word))
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
        copula = following and "lead" in reply_words().kinds.get(following[1], ())
        return not self.is_capital(word.start()) or (following is not None and not copula)

    def is_capital(self, at: int) -> bool:
        """Whether the letter at a place was a capital."""
        return len(self.said) == len(self.text) and self.said[at].isupper()


_LEADING = re.compile(r"(?:the|letter)\b")
_NEXT_WORD = re.compile(r"[ ]([^\W\d_]+)")
_COUNT = re.compile(r"\n\d{1,2}[.)]\s")
_ARTICLES = frozenset(["a", "e", "i", "o", "no"])
"""Names of options that are words of their own within a sentence."""


def agree(items: Sequence[ValueItem]) -> bool:
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
