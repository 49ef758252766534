"""Values in replies: lists of options and nothing else, as they stand behind "Answer:" or alone.

A reply is made plain text and split into words first; of the signs between them only those are kept that mean
something. An option is named by its number, its letter or its text, or by two of them; signs and words of
`answer_words.yaml` join several. Whatever else stands in a value leaves it unread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from askance.agents.reply_words import DECLARED, phrases, phrases_at, words_of
from askance.nodes.reply import ANSWER_TAGS, final_text, plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from askance.agents.alternatives import Alternatives
    from askance.agents.reply_words import Word


# ---- A reply as plain text

_BOX = re.compile(rf"\\f?box(?:ed)?\b|<\|begin_of_box\|>|<{ANSWER_TAGS}>", re.IGNORECASE)
_END_OF_BOX = re.compile(rf"<\|end_of_box\|>|</{ANSWER_TAGS}>", re.IGNORECASE)
_TAGGED = re.compile(r"<([A-Z]|\d+)>(?=[\s.,]|$)")
"""A letter or a number in angular brackets, which is no tag of HTML."""
_MATHS = re.compile(r"\\(?:text|math)\w*|\\[^a-z\n]", re.IGNORECASE)
_CHECKED = re.compile(r"\[([xX✓✔✅ ])\](?!\()")
_ROW = re.compile(r"^[ \t]*\|(?P<cells>.*)$(?P<head>\n[ \t]*\|[-:| \t]+$)?", re.MULTILINE)
_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")


def _plain(text: str) -> str:
    """A reply as plain text: no thinking, no decoration, one sign for each box."""
    said = _END_OF_BOX.sub("\n", _BOX.sub(DECLARED, final_text(text.replace(DECLARED, "").replace("。", "。 "))))
    said = _CHECKED.sub(lambda box: "❌ " if box[1] == " " else "✅ ", said)
    said = _ROW.sub(_cells, plain_text(_TAGGED.sub(r"(\1)", said)))
    said = _EMOJI.sub(lambda sign: sign[0] if sign[0] in phrases() else "", said)
    return _MATHS.sub(" ", said)


def _cells(row: re.Match[str]) -> str:
    """The cells of a table's row with colons between them; empty for the head, which a line of dashes follows."""
    return "" if row["head"] else ": ".join(cell.strip() for cell in row["cells"].strip("| \t").split("|"))


# ---- A value: options and nothing else


_Form: TypeAlias = Literal["label", "text", "both"]


class ValueItem(NamedTuple):
    """One option that a value names."""

    place: int
    form: _Form
    said: bool | None = None
    """What the reply says of it, yes or no; None where it says nothing."""


class Value(NamedTuple):
    """The options of a value, and the place behind it."""

    items: tuple[ValueItem, ...]
    end: int

    @property
    def places(self) -> frozenset[int]:
        return frozenset(item.place for item in self.items if item.said is not False)

    @property
    def is_named(self) -> bool:
        """Whether every option of it is named by its text."""
        return all(item.form != "label" for item in self.items)


_START = re.compile(r"(?:[).!?:,\n-]*[\n(:.!?-])?\(*|[\n)]*>")
_SEPARATOR = re.compile(r"[).]*[,;>]+\n?\(*")
_LINE_END = re.compile(r"\)*(?:\.|!+)?\)*\n")
_SENTENCE_END = re.compile(r"\)*[.!]+\)*")
_TO_TEXT = re.compile(r"[).]*[(:,;.>~-]*")
_TO_RANKED = re.compile(r"[.):-]+\(*")
_SCORE = re.compile(r"[01]?\.\d+|[01]|\d{1,3}(?:\.\d+)?[ ]?%|\d{1,2}/10")
_LONGEST_REMARK = 15
"""Words of a remark in brackets, at most."""
_FAR = 100
"""Words behind a list that are looked at."""


@dataclass(frozen=True, slots=True)
class PlainReply:
    """A reply as words, and what it may choose from. A place is that of a word, and `end` that behind the last one."""

    words: Sequence[Word]
    alternatives: Alternatives
    single: bool = False
    """Whether exactly one option is asked for."""
    _phrases: dict[int, dict[str, int]] = field(default_factory=dict[int, dict[str, int]])
    """As `phrases`, of the places looked at; the text of an option may hold any words, which mean nothing then."""

    @classmethod
    def of(cls, text: str, alternatives: Alternatives, *, single: bool = False) -> PlainReply:
        """A reply without thinking and decoration."""
        words = [*words_of(_plain(text))]
        inside: dict[int, dict[str, int]] = {}
        for at in range(len(words) - 1):
            _, end = alternatives.named(words, at) or (0, at)
            inside |= {n: {} for n in range(at, end) if end > at + 2}
            ending = next((each for each in alternatives.endings if words[end].signs.startswith(each)), "")
            if end > at and ending:  # the sign at the end of an option's text ends a sentence where another one begins
                signs = words[end].signs[len(ending) :] or ("." if words[end].capital else "")
                words[end] = words[end]._replace(signs=signs)
        return cls(words, alternatives, single, inside)

    @property
    def end(self) -> int:
        return len(self.words) - 1

    def signs(self, at: int) -> str:
        """The signs before a word."""
        return self.words[at].signs

    def until(self, signs: str, at: int) -> int:
        """The first place behind another with one of some signs before it, or one that is far behind."""
        last = min(at + _FAR, self.end)
        return next((n for n in range(at + 1, last) if not {*signs}.isdisjoint(self.words[n].signs)), last)

    def phrases(self, at: int) -> dict[str, int]:
        """The lists of which a phrase stands at a place, each with the end of the longest one."""
        if at not in self._phrases:
            self._phrases[at] = phrases_at(self.words, at)
        return self._phrases[at]

    def phrase(self, at: int, *kinds: str) -> int | None:
        """Where the longest phrase of some lists ends that stands at a place; None where none does."""
        ends = self.phrases(at)
        return max((ends[kind] for kind in kinds if kind in ends), default=None)

    def follows(self, at: int, *kinds: str) -> int:
        """As `phrase`; the place itself where none stands there."""
        return self.phrase(at, *kinds) or at

    def says(self, kind: str, begin: int, end: int) -> bool:
        """Whether a phrase of a list stands among some words."""
        return any(self.phrase(at, kind) for at in range(begin, end))

    def number(self, kind: str, at: int, end: int) -> int:
        """What words stand for in a list of numbers: 3 for "three" in `numbers`, and for "3rd" in `ranks`."""
        return int(phrases()[" ".join(word.text for word in self.words[at:end])][kind])

    def named(self, at: int) -> tuple[int, int] | None:
        """The option whose text stands at a place, and the place behind it."""
        return self.alternatives.named(self.words, at)

    # ---- Lists of options

    def value(self, at: int, *, apart: bool) -> Value | None:
        """The value that begins at a place; None where something else stands in it.

        Args:
            at: the place.
            apart: whether it stands on lines of its own, so that blank lines may lie between its items.
        """
        if not _START.fullmatch(self.signs(at)):
            return None
        found = [self._lines(at, ranked=ranked, apart=apart) for ranked in (False, True)]
        whole = [each for each in found if each and agree(each.items) and not self._is_cut(at, each.end)]
        return max(whole, key=lambda each: each.end, default=None)

    def _is_cut(self, at: int, end: int) -> bool:
        """Whether the reply ends where a value does, and breaks off: a bracket is open, or a list has but a number."""
        signs = "".join(word.signs for word in self.words[at : end + 1])
        signed = self.signs(end).startswith((".", ")"))
        numbered = at > 0 and at + 1 == end and self.words[at].text.isdecimal() and signed
        opened = signs.count("(") > signs.count(")")
        return end == self.end and (opened or (numbered and "\n" in self.signs(at)))

    def _lines(self, at: int, *, ranked: bool, apart: bool) -> Value | None:
        """The items from a place on, over several lines where each holds nothing else."""
        items: list[ValueItem] = []
        while True:
            more, last = self.items(at, rank=len(items) + 1 if ranked else None)
            rest = self.rest(more, last)
            if rest is None or "\n" not in self.signs(rest):
                if rest and not items and not ranked and not self._goes_on(more, last, rest, apart=apart):
                    return Value(tuple(more), rest)
                break
            items += more
            at = rest
            if at == self.end or (self.signs(at).count("\n") > 1 and not apart) or self.words[at].text == DECLARED:
                break
        return Value(tuple(items), at) if len(items) > ranked else None

    def items(self, at: int, *, rank: int | None = None) -> tuple[list[ValueItem], int]:
        """The items that stand one after another, and the place behind the last one."""
        items: list[ValueItem] = []
        end = at
        while (found := self._item(at, rank=rank and rank + len(items))) is not None:
            more, end = found
            items += more
            signs = self.signs(end)
            at = end if self.label(end) else self.follows(end, "join")  # E may be a letter
            labels = not signs and more[-1].form == "label" and self.label(end)  # a blank alone stands between labels
            if not _SEPARATOR.fullmatch(signs) and not labels and (at == end or signs.strip(")")):
                break
        return items, end

    def rest(self, items: Sequence[ValueItem], at: int) -> int | None:
        """Where the next line begins, or words that say more behind a list; None where others stand behind it.

        They are a new sentence, or what "because" or a sign introduces: a dash or a semicolon; a colon, behind a name;
        a comma, behind a name where no list can go on.
        """
        named = all(item.form != "label" for item in items)
        signs = "-;" + ":" * named + "," * (named and self.single)
        while not self.signs(at).strip("),;(") and (closing := self.phrase(at, "close")):
            at, signs = closing, "-;"
        other = self.phrase(at, "instead_of") if not self.signs(at).strip("),;(") else None
        while other and not self.signs(other) and (found := self._item(other)):
            at, signs = found[1], ""
            other = self.phrase(at, "either")
        if not items or _LINE_END.match(self.signs(at)):
            return at if items else None
        introduced = self.signs(at).lstrip(")") in {*signs}
        if _SENTENCE_END.fullmatch(self.signs(at)) or (introduced and self.words[at].text[0].isalpha()):
            return None if self.phrase(at, "either", *(["deny"] if introduced else [])) else at
        return self.phrase(at, "because") if not self.signs(at).strip("),;(") else None

    def _goes_on(self, items: Sequence[ValueItem], end: int, at: int, *, apart: bool) -> bool:
        """Whether words behind a list name further answers, as in "3, as it is light, and 7", "3. 7." and on lines."""
        line = self.until("\n", at)
        clauses = [] if "." in self.signs(end) else [n for n in range(at + 1, line) if self.signs(n) in {",", ";"}]
        for start in (at, *clauses, *([line] if apart else [])):
            more, behind = self.items(self.follows(start, "join"))
            ends = (apart and self._noun(start) > start) or self.rest(more, behind)
            if ends and not {item.place for item in more} <= {item.place for item in items}:
                return True
        return False

    # ---- One option

    def _item(self, at: int, *, rank: int | None = None) -> tuple[list[ValueItem], int] | None:
        """One item, or the items of a range, and the place behind it; with a rank, it must stand before it."""
        at += self.words[at].text == DECLARED
        said, at = self._verdict(at, "yes_signs", "no_signs") or (None, at)
        if rank or self.alternatives.ranked:
            found, at = self._rank(at)
            if rank and found != rank:
                return None
        option = self._option(at)
        if option is None:
            return None
        places, form, end = option
        for _ in range(3):
            if verdict := self._said(end):
                said, end = verdict
            else:
                end = self._past_remark(end)
        return [ValueItem(place, form, said) for place in places], end

    def _rank(self, at: int) -> tuple[int | None, int]:
        """The place in a ranking that stands before an item, and where the item begins."""
        number = self.follows(at, "rank")
        if self.words[number].text.isdecimal() and _TO_RANKED.fullmatch(self.signs(number + 1)):
            return (int(self.words[number].text), number + 1) if self._option(number + 1) else (None, at)
        if end := self.phrase(at, "ranks"):
            behind = self.follows(end, "name", "option", "praise", "ranks")
            if _TO_RANKED.fullmatch(self.signs(behind)) or not self.words[at].text.isalnum():
                return self.number("ranks", at, end), behind
        return None, at

    def _option(self, at: int) -> tuple[Sequence[int], _Form, int] | None:
        """The places of one option, or of a range, what it is named by, and the place behind it."""
        at = self._noun(at)
        text, label = self.named(at), self.label(at)
        found = max((each for each in (text, label) if each), key=lambda each: each[1], default=None)
        if found is None:
            return None
        place, end = found
        by_text = found is text
        if not by_text and (last := self._last_of_range(place, end)):
            return range(place, last[0] + 1), "label", last[1]
        signs = self.signs(end)
        signed = not {*signs}.isdisjoint("(:-") and {*signs}.isdisjoint(",;")
        text = self.named(end) if _TO_TEXT.fullmatch(signs) and (signed or not by_text) else None
        again = text or (self._name(self._noun(end)) if signed and _TO_TEXT.fullmatch(signs) else None)
        if again is None:
            return (place,), "text" if by_text else "label", end
        return ((place,), "both" if by_text or text else "label", again[1]) if again[0] == place else None

    def _name(self, at: int) -> tuple[int, int] | None:
        """The option that a text or a label at a place stands for, and the place behind it."""
        return self.named(at) or self.label(at)

    def _noun(self, at: int) -> int:
        """Where an option begins, behind "option", "the letter", "no." and the like."""
        while not self._name(at) and (noun := self.phrase(at, "option", "determiner")):
            if self.signs(noun).strip(".:("):
                break
            at = noun
        return at

    def label(self, at: int) -> tuple[int, int] | None:
        """The place that a number or a letter stands for, and the place behind it."""
        known, text = self.alternatives, self.words[at].text
        if text in known.letters:
            return known.letters[text], at + 1
        if not known.numbered:
            return None
        if ordinal := self.phrase(at, "ordinals"):
            noun = self.phrase(ordinal, "option")
            form = self.words[ordinal].text == "number"  # "[first number], [second number]" is to be filled in
            return (self.number("ordinals", at, ordinal), noun) if noun and not form else None
        if known.lettered:
            return None
        if text.isdecimal() and len(text) < 5:
            return int(text), at + 1
        number = self.phrase(at, "numbers")
        praised = at and not self.signs(at) and self.phrase(at - 1, "praise", "comparative", "name")  # "the best one"
        return (self.number("numbers", at, number), number) if number and not praised else None

    def _last_of_range(self, place: int, end: int) -> tuple[int, int] | None:
        """The last place of a range that goes on at `end`, and the place behind it."""
        dash = self.signs(end) == "-" and self.words[end].text.isdecimal()
        through = end if dash else self.phrase(end, "through")
        last = self.label(through) if through and not self.alternatives.ranked else None
        return last if last and place < last[0] <= len(self.alternatives.names) else None

    # ---- What is said of an option

    def _said(self, at: int) -> tuple[bool, int] | None:
        """Whether an item is chosen, by what is said of it, and the place behind that."""
        signs, score = self.signs(at).lstrip(")"), self.words[at].text
        if signs not in {":", "(", "-", ":("}:
            return self._verdict(at, "yes_signs", "no_signs") if "\n" not in signs else None
        if not self.alternatives.numbered and _SCORE.fullmatch(score):
            part, _, whole = score.rstrip(" %").partition("/")
            likely = float(part) / (100 if "%" in score else float(whole or 1))
            return (likely > 0.5, at + 1) if not 0.4 < likely < 0.6 else None
        return self._verdict(at, "yes_signs", "no_signs") or self._verdict(at, "yes", "no")

    def _verdict(self, at: int, yes: str, no: str) -> tuple[bool, int] | None:
        """Whether a word of one of two lists stands at a place, and the place behind it."""
        end = self.phrase(at, yes, no)
        return (yes in self.phrases(at), end) if end else None

    def _past_remark(self, at: int) -> int:
        """The place behind a remark in brackets that neither denies nor doubts nor names an option; else the place."""
        if self.signs(at).lstrip(")") != "(":
            return at
        end = self.until(")(\n", at)
        remark = self.signs(end).startswith(")") and end <= at + _LONGEST_REMARK
        if not remark or self.says("deny", at, end) or any(word.text.isdecimal() for word in self.words[at:end]):
            return at
        return at if self.places_named(at, end) else end

    def places_named(self, begin: int, end: int) -> set[int]:
        """The places of the options that some words name; articles and counts of sentences name none."""
        named = ((at, *found) for at in range(begin, end) if (found := self._name(at)))
        return {place for at, place, behind in named if behind <= end and not self._is_common(at, behind)}

    def _is_common(self, at: int, behind: int) -> bool:
        """Whether a word of a sentence, such as an article or a count, only looks like the name of an option."""
        word, following = self.words[at], self.words[behind]
        if word.text.isdecimal():
            return "\n" in word.signs and following.signs[:1] in {".", ")"}
        subject = word.capital and (following.signs or self.phrase(behind, "lead"))
        return self.phrase(at, "numbers", "ambiguous") == behind and not subject


def agree(items: Sequence[ValueItem]) -> bool:
    """Whether a value is one list: no option is both chosen and denied, and no text joins an index."""
    said = {word: {item.place for item in items if item.said is word} for word in (True, False, None)}
    if said[False] and (said[None] or said[True] & said[False]):
        return False
    labelled = {item.place for item in items if item.form != "text"}
    return all(item.form != "label" for item in items) or labelled.issuperset(item.place for item in items)
