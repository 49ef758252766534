"""Values in replies: lists of options and nothing else, as they stand behind "Answer:" or alone.

A reply is made plain text first. An option is named by its number, its letter or its text, or by two of them; signs and
words of `answer_words.yaml` join several. Whatever else stands in a value leaves it unread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from askance.agents.alternatives import WORD
from askance.agents.reply_words import UNSPACED, any_word, folded, kinds_of, place_in, word_list
from askance.nodes.reply import ANSWER_TAGS, final_text, plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from askance.agents.alternatives import Alternatives


# ---- A reply as plain text

DECLARED = "\ue000"
"""Stands before what a reply marks as its answer by a box or a tag."""
_BOX = re.compile(rf"\\f?boxed\b|<\|begin_of_box\|>|<{ANSWER_TAGS}>", re.IGNORECASE)
_END_OF_BOX = re.compile(rf"<\|end_of_box\|>|</{ANSWER_TAGS}>", re.IGNORECASE)
_COMPARED = re.compile(r"\\(?:neq?|not|[gl]eq?|[gl]t|approx|pm|sim)\b")
_MATHS = re.compile(r"\\[a-z]+\b|\\[^a-z\n]", re.IGNORECASE)
_TAGGED = re.compile(r"<([A-Z])>(?=[\s.,]|$)")
"""A letter in angular brackets, which is no tag of HTML."""
_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")
_CHECKED = re.compile(r"\[([xX✓✔✅ ])\](?!\()")
_ROW = re.compile(r"^[ \t]*\|(?P<cells>.*)$(?P<head>\n[ \t]*\|[-:| \t]+$)?", re.MULTILINE)


def _plain(text: str) -> str:
    """A reply as plain text: no thinking, no decoration, one sign for each box."""
    said = _END_OF_BOX.sub("\n", _BOX.sub(DECLARED, final_text(text.replace(DECLARED, "").replace("。", "。 "))))
    said = _CHECKED.sub(lambda box: "❌ " if box[1] == " " else "✅ ", said)
    said = _ROW.sub(_cells, plain_text(_TAGGED.sub(r"(\1)", said)))
    kept = any_word("yes_signs", "no_signs", "ranks")
    return _EMOJI.sub(lambda sign: sign[0] if kept.match(sign[0]) else "", _MATHS.sub(" ", _COMPARED.sub("≠", said)))


def _cells(row: re.Match[str]) -> str:
    """The cells of a table's row with colons between them; empty for the head, which a line of dashes follows."""
    return "" if row["head"] else ": ".join(cell.strip() for cell in row["cells"].strip("| \t").split("|"))


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

    @property
    def is_named(self) -> bool:
        """Whether every option of it is named by its text."""
        return all(item.form != "label" for item in self.items)


_OPEN = re.compile(rf"(?:=>|->|[ \t\"'(\[{{$«{DECLARED}]|<(?=\w)|[-•·◦‣▪●∙→](?=[ \t\"'(\[])){{0,12}}")
CLOSE = r"[ \t\"')\]}>»$]*"
_NUMBER = re.compile(rf"#?[ ]?(\d{{1,4}})(?![^\W{UNSPACED}]|[%°/]|\.\d|[ ]%)")
_LETTER = re.compile(rf"([a-z])(?![^\W{UNSPACED}]|['.&+#=-]\w|[+#&])")
_RANK = re.compile(r"(?:#|rank )?(\d{1,2})(?:\.\)?|[\"']?\)|[\"'\]]?:|[ ]-)(?=[ \t\"'(\[])[ \t\"'(\[]*")
_RANK_SIGN = re.compile(r"(?:[ ](?:best|choice|pick|place|option|category|answer))*[\"']?[ ]*[:.)=-]+[ \t\"'(]*")
_TO_NAME = re.compile(r"[\"'.)\]}]*[ \t]*(?:[(\[:-]+|[,;=|.]+)?[ \t\"'(\[{:-]*")
_TO_OPTION = re.compile(r"[ .:#(\[{}\"']*")
_TO_SAID = re.compile(r"[\"')\]]*[ \t]*[:=(\[-]+[ \t(\[\"']*")
_SCORE = re.compile(
    r"[\"')\]]*[ \t]*[:=(-]*[ \t]*\(?(?:confidence|score|probability)?:?[ ]?"
    r"(?P<score>[01]?\.\d+|\d{1,3}[ ]?%|\d{1,2}/10|(?<=: )[01])(?![\d/%]|\.\d)(?:[ ]confidence)?\)?"
)
_REMARK = re.compile(r"[\"'\])]*[ \t]*[(\[]([^()\[\]\n\d]{1,80})[)\]]")
_SEPARATOR = re.compile(r"[\"')\]}$»]*(?:[ \t.]*(?:[,;&+|>→]|=>|->)+[ \t]*\n?)?[ \t]*")
_SIGN = re.compile(r"[,;&+|>→]")
_RANGE = re.compile(r"-(?=\d)")
_LINE_END = re.compile(rf"{CLOSE}(?:\.|!+)?{CLOSE}(?=\n|$)")
_SENTENCE_END = re.compile(rf"{CLOSE}[.!]+{CLOSE}(?<=[ \t])|{CLOSE}[ \t]-+[ \t]+(?=[^\W\d_])")
_REASON = re.compile(rf"{CLOSE}[,;|]?[ \t]*\(?")
NEXT_LINE = re.compile(r"[ \t]*\n\s*")
SPACES = re.compile(r"[ \t]*")
BLANKS = re.compile(r"\s*")
_LINE = re.compile(r"[^\n]*")
SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=\w))*")
_JOINT = re.compile(r"[,;][ \t]+")
_CLAUSE = re.compile(rf"{CLOSE}(?P<sign>[,:;])[ \t]+(?=\S+ \S+ \S)")
_LEADING = re.compile(r"(?:the|letter)\b")
_WORD_BEFORE = re.compile(r"([^\W_]+)[ ]$")
_NEXT_WORD = re.compile(r"[ ]([^\W\d_]+)")
_COUNT = re.compile(r"\n\d{1,2}[.)]\s")
_ARTICLES = frozenset(["a", "e", "i", "o", "no"])
"""Names of options that are words of their own within a sentence."""
_FAR = 400
"""Characters around a place that are looked at."""


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
    single: bool = False
    """Whether exactly one option is asked for."""
    beside: list[int] = field(default_factory=list[int])
    """Where an index stands beside another option's text."""

    @classmethod
    def of(cls, text: str, alternatives: Alternatives, *, single: bool = False) -> PlainReply:
        """A reply without thinking and decoration."""
        said = _plain(text)
        return cls(said, folded(said), alternatives, single)

    @property
    def without_names(self) -> str:
        """The text with blanks in place of the texts of options, which may hold any words."""
        kept, end = [*self.text], 0
        for word in WORD.finditer(self.text):
            if word.start() >= end and (found := self.alternatives.named(self.text, word.start())):
                end = found[1]
                kept[word.end() : end] = " " * (end - word.end())
        return "".join(kept)

    # ---- Lists of options

    def alone(self) -> Value | None:
        """The value that the whole reply is, and nothing else; None where it is anything else."""
        value = self.value(end_of(BLANKS, self.text, 0), apart=True)
        return None if value is None or self.text[value.end :].strip() else value

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
        while (line := self.items(at, ranked=ranked)) and line[0]:
            more, last = line
            closed = self.closed(last)
            if closed is None:
                reason = None if items else self._clause(more, last) or self.reason(last)
                if reason is not None and not self._adds(more, last, reason):
                    return None if apart and self._goes_on(more, reason) else Value(tuple(more), reason)
                break
            items += more
            end = closed
            gap = NEXT_LINE.match(self.text, end)
            if gap is None or (gap[0].count("\n") > 1 and not apart) or self.text.startswith(DECLARED, gap.end()):
                break
            at = gap.end()
        return Value(tuple(items), end) if items else None

    def _goes_on(self, items: Sequence[ValueItem], reason: int) -> bool:
        """Whether a list with a reason on each line goes on: an option stands behind a number, or on the next line."""
        counted = self._name(self._noun(reason)) if self._noun(reason) > reason else None  # "1. Option 4: …"
        if counted is not None and counted[0] != items[0].place:
            return True
        gap = NEXT_LINE.match(self.text, end_of(_LINE, self.text, reason))
        more, end = self.items(gap.end()) if gap else ([], 0)
        return bool(more) and more[0].place != items[0].place and self.reason(end) is not None

    def items(self, at: int, *, ranked: bool = False) -> tuple[list[ValueItem], int]:
        """The items that stand one after another, and where the last one ends."""
        items: list[ValueItem] = []
        end = at
        while (found := self.item(at, ranked=ranked)) is not None:
            more, end = found
            items += more
            at = end_of(_SEPARATOR, self.text, end)
            between = self.text[end:at]
            joined = None if self.label(at) else any_word("join").match(self.text, at)  # E may be a letter
            if joined is not None:
                at = end_of(SPACES, self.text, joined.end())
            elif not _SIGN.search(between) and (
                between.strip() or not between or more[-1].form != "label" or self._noun(at) > at
            ):
                break  # a blank alone stands between labels, and between nothing else
        return items, end

    def closed(self, at: int) -> int | None:
        """The end of the line, where no word stands before it that says more; else None."""
        at = self._past_closing(_REASON, at)
        other = any_word("instead_of").match(self.text, end_of(_REASON, self.text, at))
        while other and (found := self.item(end_of(SPACES, self.text, other.end()), ranked=False)):
            at = found[1]
            other = any_word("either").match(self.text, end_of(_SEPARATOR, self.text, at))
        line = _LINE_END.match(self.text, at)
        return line.end() if line else None

    def reason(self, at: int) -> int | None:
        """Where the words begin that say more behind a list: a new sentence, or what a dash or "because" introduces."""
        at = self._past_closing(SPACES, at)
        if self.text[at - 1] in ".!?" and self.text[at : at + 1] == " " and self.is_capital(at + 1):
            return at + 1
        if sentence := _SENTENCE_END.match(self.text, at):
            return None if any_word("either").match(self.text, sentence.end()) else sentence.end()
        because = any_word("because").match(self.text, end_of(_REASON, self.text, at))
        return because and because.end()

    def _past_closing(self, gap: re.Pattern[str], at: int) -> int:
        """Where words end that may end an answer, such as "respectively", each of them behind a gap."""
        while closing := any_word("close").match(self.text, end_of(gap, self.text, at)):
            at = closing.end()
        return at

    def _clause(self, items: Sequence[ValueItem], at: int) -> int | None:
        """Where words on options begin.

        A semicolon stands before them; or a colon, behind a name; or a comma behind a name, where no list can go on.
        """
        clause = _CLAUSE.match(self.text, at)
        if clause is None or any_word("deny").match(self.text, clause.end()):
            return None
        named = all(item.form != "label" for item in items)
        apart = {";": True, ":": named, ",": named and self.single}[clause["sign"]]
        return clause.end() if apart else None

    def _adds(self, items: Sequence[ValueItem], end: int, at: int) -> bool:
        """Whether a line names further answers behind a list, as in "3, as it is light, and 7" and "3. 7."."""
        places = {item.place for item in items}
        line = at if "." in self.text[end:at] else min(end_of(_LINE, self.text, at), at + _FAR)
        for start in (at, *(joint.end() for joint in _JOINT.finditer(self.text, at, line))):
            joined = any_word("join").match(self.text, start)
            more, end = self.items(end_of(SPACES, self.text, joined.end()) if joined else start)
            ends = _LINE_END.match(self.text, end) or self.reason(end) is not None
            if ends and {item.place for item in more} - places:
                return True
        return False

    # ---- One option

    def item(self, at: int, *, ranked: bool) -> tuple[list[ValueItem], int] | None:
        """One item, or the items of a range, and where it ends."""
        at = end_of(_OPEN, self.text, at)
        verdict = self._verdict(at, "yes_signs", "no_signs")
        said, at = (verdict[0], end_of(_TO_OPTION, self.text, verdict[1])) if verdict else (None, at)
        rank: int | None = None
        if ranked or self.alternatives.ranked:
            rank, at = self._rank(at)
        found = self._option(at)
        if found is None:
            return None
        places, form, end = found
        for _ in range(3):
            if score := _SCORE.match(self.text, end):
                end = score.end()
                if not self.alternatives.numbered and (said := _is_likely(score["score"])) is None:
                    return None
            elif verdict := self._said(end):
                said, end = verdict
            elif (remark := _REMARK.match(self.text, end)) and not self._turns(remark.start(1), remark.end(1)):
                end = remark.end()
            else:
                break
        return [ValueItem(place, form, rank if ranked else None, said) for place in places], end

    def _rank(self, at: int) -> tuple[int | None, int]:
        """The place in a ranking that stands before an item, and where the item begins."""
        if (number := _RANK.match(self.text, at)) and self._option(number.end()):
            return None if self.alternatives.ranked else int(number[1]), number.end()
        if word := any_word("ranks").match(self.text, at):
            sign = _RANK_SIGN.match(self.text, word.end())
            if sign or not word[0][-1].isalnum():
                return place_in("ranks", word[0]), sign.end() if sign else end_of(SPACES, self.text, word.end())
        return None, at

    def _option(self, at: int) -> tuple[Sequence[int], Literal["label", "text", "both"], int] | None:
        """The places of one option, or of a range, what it is named by, and where it ends."""
        if self._name(at) is None:
            at = self._noun(at)
        text, label = self.alternatives.named(self.text, at), self.label(at)
        by_text = text is not None and (label is None or label[1] <= text[1])
        found = text if by_text else label
        if found is None:
            return None
        place, end = found
        if not by_text and (past := self._range(place, end)):
            return range(place, past[0] + 1), "label", past[1]
        behind = end_of(_TO_NAME, self.text, end)
        signed = not {*"([:-"}.isdisjoint(self.text[end:behind]) and {*",;"}.isdisjoint(self.text[end:behind])
        other_text = self.alternatives.named(self.text, behind) if signed or not by_text else None
        again = other_text or (self._name(self._noun(behind)) if signed else None)
        if again is None:
            return (place,), "text" if by_text else "label", end
        if again[0] == place:
            return (place,), "both" if by_text or other_text else "label", again[1]
        if other_text and not by_text:
            self.beside.append(end)
        return None

    def _name(self, at: int) -> tuple[int, int] | None:
        """The option that a text or a label at a place stands for, and where it ends."""
        return self.alternatives.named(self.text, at) or self.label(at)

    def _noun(self, at: int) -> int:
        """Where an option begins, behind "option", "the letter", "no." and the like."""
        while (noun := any_word("option").match(self.text, at) or _LEADING.match(self.text, at)) and not self._name(at):
            at = end_of(_TO_OPTION, self.text, noun.end())
        return at

    def label(self, at: int) -> tuple[int, int] | None:
        """The place that a number or a letter stands for, and where it ends."""
        text, known = self.text, self.alternatives
        if (letter := _LETTER.match(text, at)) and letter[1] in known.letters:
            return known.letters[letter[1]], letter.end()
        if not known.numbered:
            return None
        if ordinal := any_word("ordinals").match(text, at):
            noun = any_word("option").match(text, end_of(SPACES, text, ordinal.end()))
            if noun is None or noun[0] == "number":  # "[first number], [second number]" is a form to fill in
                return None
            return place_in("ordinals", ordinal[0]), noun.end()
        if known.lettered:
            return None
        if number := _NUMBER.match(text, at):
            return int(number[1]), number.end()
        word = any_word("numbers").match(text, at)
        if word is None or self._is_praised(at):
            return None
        return place_in("numbers", word[0]), word.end()

    def _is_praised(self, at: int) -> bool:
        """Whether "one" is no number at a place, behind a word of praise or of choice: "the best one", "pick one"."""
        before = _WORD_BEFORE.search(self.text, max(0, at - _FAR), at)
        return before is not None and not kinds_of(before[1]).isdisjoint(["praise", "comparative", "name"])

    def _range(self, place: int, end: int) -> tuple[int, int] | None:
        """The last place of a range that goes on at `end`, and where it ends."""
        if self.alternatives.ranked:
            return None
        dash = _RANGE.match(self.text, end) or any_word("through").match(self.text, end_of(SPACES, self.text, end))
        last = self.label(end_of(SPACES, self.text, dash.end())) if dash else None
        return last if last and place < last[0] <= len(self.alternatives.names) else None

    # ---- What is said of an option

    def _said(self, at: int) -> tuple[bool, int] | None:
        """Whether an item is chosen, by what is said of it, and where that ends."""
        start = end_of(_TO_SAID, self.text, at)
        ticked = self._verdict(end_of(_TO_OPTION, self.text, at), "yes_signs", "no_signs")
        return ticked or (self._verdict(start, "yes", "no") if start > at else None)

    def _verdict(self, at: int, yes: str, no: str) -> tuple[bool, int] | None:
        """Whether a word of one of two lists stands at a place, and where it ends."""
        for chosen, kind in ((True, yes), (False, no)):
            if found := any_word(kind).match(self.text, at):
                return chosen, found.end()
        return None

    def _turns(self, begin: int, end: int) -> bool:
        """Whether a remark denies or doubts, or names an option."""
        return any_word("deny").search(self.text, begin, end) is not None or bool(self.places_named(begin, end))

    def places_named(self, begin: int, end: int) -> set[int]:
        """The places of the options that a part of the text names; words and counts of sentences name none."""
        part = PlainReply(self.said, self.text[:end], self.alternatives)
        named = ((word, part._name(word.start())) for word in WORD.finditer(part.text, begin))
        return {found[0] for word, found in named if found and not self._is_word(word, found[1])}

    def _is_word(self, word: re.Match[str], end: int) -> bool:
        """Whether a word of a sentence, such as an article or a count, only looks like the name of an option."""
        if word[0] in word_list("numbers") or _COUNT.match(self.text, max(word.start() - 1, 0)):
            return True
        if word[0] not in _ARTICLES or word.end() != end:
            return False
        following = _NEXT_WORD.match(self.text, end)
        copula = following and "lead" in kinds_of(following[1])
        return not self.is_capital(word.start()) or (following is not None and not copula)

    def is_capital(self, at: int) -> bool:
        """Whether the letter at a place was a capital."""
        return len(self.said) == len(self.text) and self.said[at].isupper()


def agree(items: Sequence[ValueItem]) -> bool:
    """Whether a value is one list: its ranks count from 1, none is both chosen and denied, no text joins an index."""
    ranks = [item.rank for item in items if item.rank is not None]
    if ranks and (len(ranks) < max(2, len(items)) or ranks != [*range(1, len(ranks) + 1)]):
        return False
    said = {word: {item.place for item in items if item.said is word} for word in (True, False, None)}
    if said[False] and (said[None] or said[True] & said[False]):
        return False
    labelled = {item.place for item in items if item.form != "text"}
    return all(item.form != "label" for item in items) or labelled.issuperset(item.place for item in items)


def _is_likely(score: str) -> bool | None:
    """Whether a score says yes or no; None where it says neither."""
    number = float(score.rstrip("% ").removesuffix("/10")) / (100 if "%" in score else 10 if "/" in score else 1)
    return None if 0.4 < number < 0.6 else number > 0.5
