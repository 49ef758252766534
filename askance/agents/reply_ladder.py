"""Which options a reply chooses: one reader for every reply, live or recorded, that chooses among options.

The reader is a short ladder. Where a schema was sent, its answer counts (`schema`). Else the last *declared* answer
does: a line or a sentence that begins with what an answer is called, and whose value is a list of options and nothing
else. Else the *whole* reply does, where it is such a value. Any other reply is unread: a wrong reading is worse than
none, so no rung looks for a lone letter or digit in prose, and none guesses.

- What is declared is read whole. "Answer: 3 is tempting, but 5 is best" is unread: its value is no list of options.
- Two declared answers that differ are unread, unless one is called final or the first is taken back in words.
- An answer that is taken back afterwards, an index beside another option's text, an index beyond the options, and more
  than one answer where one is asked for are unread.

`read_choice` climbs it in four steps: the reply is made plain text, its declarations are found and weighed, else it is
read as a whole, and the options found are checked. The words that this takes stand in `answer_words.yaml`, in many
languages; what a list of options is, `askance.agents.reply_value` says.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

from typing_extensions import override

from askance.agents.alternatives import Alternatives, alternatives_of
from askance.agents.reply_value import (
    BLANKS,
    CLOSE,
    DECLARED,
    NEXT_LINE,
    SENTENCE,
    SPACES,
    PlainReply,
    Value,
    end_of,
)
from askance.agents.reply_words import HEAD_KINDS, any_word, kinds_of
from askance.nodes import Node, Read, Unreadable
from askance.nodes.reply import broken_json, final_text, whole_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

In = TypeVar("In")
Out = TypeVar("Out")


class NoAnswer(Unreadable):
    """A reply that gives no answer which can be read; other replies give several, or one that cannot be meant."""


_NEXT_QUESTION = re.compile(r"(?<=\S)\s*\n\W{0,3}(?:context|question|q)\W{0,3}:", re.IGNORECASE)
"""Begins a question that the model asks itself."""
_CUT_OFF = re.compile(r"(?:boxed\{[^{}]*|(?:^|\s)(?:\*\*|[\"`])\w+)$")
"""Ends a reply that breaks off within a box, or between quotes or marks of emphasis."""


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
    said = _NEXT_QUESTION.split(final_text(text), maxsplit=1)[0]
    data = whole_json(said)
    reply = PlainReply.of(said if data is None else as_lines(data), alternatives, single=single)
    try:
        if broken_json(said) or _CUT_OFF.search(said):
            raise NoAnswer
        declared = None if reply.alone() else _declared(reply)  # an option's text may speak of answers
        found = declared or _whole(reply)
        if found is None:
            raise NoAnswer
        places = check_places(chosen_places(found, alternatives, otherwise), len(alternatives.names), single=single)
    except NoAnswer:
        raise (Unreadable if reply.beside else NoAnswer)(_why_unread(reply), reply=said) from None
    except Unreadable as error:
        raise Unreadable(*error.args, reply=said) from None
    return Read(places, "declared" if declared else "whole")


def _why_unread(reply: PlainReply) -> str:
    """What is wrong with a reply that gives no answer."""
    lettered = reply.alternatives.lettered
    if reply.beside:
        index, indexes = ("a letter", "the letter") if lettered else ("an index", "indexes")
        return f"{index} stands beside another option's text; give {indexes} alone"
    return f"no answer of the form {'`Answer: X`, with X a letter,' if lettered else '`Answer: 3, 7`'} is given"


# ---- The rung of declared answers: finding them

_Weight = Literal["final", "named", "said"]
"""An answer that is called final, one that is called an answer, and a sentence about an option or of a choice."""
_PRAISE = frozenset(["praise", "comparative"])
_START = re.compile(
    rf"(?={DECLARED})|(?:^|\n|,[ ](?:but|so|thus|hence|therefore)[ ]"
    r"|(?<!e\.g)(?<!i\.e)[.!?…][\"')\]]*[ \t]+|\?)\s*"
)
_DECORATION = re.compile(rf"[^\w\n{DECLARED}]*")
_GAP = re.compile(rf"[ \t\"',()\[\]{{}}]{{0,12}}(?P<mark>(?:=>|->|[:=→{DECLARED}]|-(?=[ >]))[ \t\"']{{0,6}}){{0,6}}")
_CLOSING = re.compile(CLOSE)
_NUMBER_ALONE = re.compile(r"\d+[.)]\s*")
_LONGEST_HEAD = 40
"""Words before a declared answer, at most."""


class _Declaration(NamedTuple):
    """A line or a sentence that begins with what an answer is called."""

    begin: int
    end: int
    value: Value | None
    """None where it cannot be read."""
    weight: _Weight


def _declarations(reply: PlainReply) -> Iterator[_Declaration]:
    end = -1
    for start in _START.finditer(reply.text):
        if start.end() >= end and (found := _declaration(reply, start.end())) is not None:
            end = found.end
            yield found


def _declaration(reply: PlainReply, start: int) -> _Declaration | None:
    """The declaration that begins at a place: words that call an answer by name, and the value behind them."""
    at = end_of(_DECORATION, reply.text, start)
    kinds: set[str] = set()
    marked, weight = False, None
    within_line = reply.text[:start].rstrip(" \t")[-1:] not in {"", "\n"}
    for count in range(_LONGEST_HEAD):
        found = _head_word(reply, at)
        if found is None:
            break
        kinds |= found[0]
        gap = _GAP.match(reply.text, found[1])
        at = gap.end() if gap else found[1]
        marked = marked or "marked" in kinds or bool(gap and gap["mark"])
        weight = _weight(kinds, reply, marked=marked)
        if weight is None:
            continue
        if reply.text[at : at + 1] in {"", "\n"}:
            return _below(reply, start, at, weight=weight)
        value = reply.value(at, apart=False)
        is_order = within_line and count == 0 and not marked and weight != "said"  # "Forget the picture. Output 3."
        if value and not is_order:
            return _Declaration(start, value.end, value, weight)
    if weight is None:
        several = "option" in kinds  # "3 and 4 are matching colours"
        return _spoken(reply, start, several=several) or _spoken(reply, at, several=several)
    told = weight != "said" and (marked or reply.label(at) is not None)
    return _Declaration(start, at, None, weight) if told else None


def _head_word(reply: PlainReply, at: int) -> tuple[frozenset[str], int] | None:
    """What a word before an answer is, and where it ends; None for other words, and for a capital that is a label.

    A capital is an article where what an answer is called follows it ("A resposta é C").
    """
    if reply.text.startswith(DECLARED, at):
        return frozenset(["name", "marked"]), at + 1
    word = any_word(*HEAD_KINDS).match(reply.text, at)
    if word is None:
        return None
    label = reply.label(at) if reply.is_capital(at) else None
    if label is not None and label[1] == word.end():
        following = any_word(*HEAD_KINDS).match(reply.text, end_of(SPACES, reply.text, word.end()))
        if following is None or kinds_of(following[0]).isdisjoint(["name", "option"]):
            return None
    return kinds_of(word[0]), word.end()


def _weight(kinds: set[str], reply: PlainReply, *, marked: bool) -> _Weight | None:
    """What words before an answer make of it; None where they do not declare one."""
    named = "name" in kinds or ("ranking" in kinds and not reply.single)
    if named or ("final" in kinds and marked) or ("option" in kinds and not kinds.isdisjoint(_PRAISE)):
        return "final" if "final" in kinds else "named"
    return "said" if "choose" in kinds or ("shown" in kinds and not reply.alternatives.numbered) else None


def _below(reply: PlainReply, start: int, at: int, *, weight: _Weight) -> _Declaration | None:
    """The declaration whose value stands on the lines below its words."""
    below = end_of(NEXT_LINE, reply.text, at)
    breaks_off = _NUMBER_ALONE.fullmatch(reply.text, below) is not None
    value = None if breaks_off else reply.value(below, apart=True)
    if value is None:
        return _Declaration(start, below, None, weight) if breaks_off else None
    return _Declaration(start, value.end, value, weight)


def _spoken(reply: PlainReply, start: int, *, several: bool) -> _Declaration | None:
    """A sentence with options as its subject that says they are best, and names no other."""
    text, begin = reply.text, end_of(_DECORATION, reply.text, start)
    items, after = reply.items(begin)
    if not items or (len(items) > 1 and not several) or any(item.said is False for item in items):
        return None
    kinds: set[str] = set()
    at = end_of(_CLOSING, text, after)
    while (word := any_word(*HEAD_KINDS).match(text, at)) and kinds.isdisjoint(_PRAISE):
        kinds |= kinds_of(word[0])
        at = end_of(SPACES, text, word.end())
    end = end_of(SENTENCE, text, at)
    if kinds.isdisjoint(_PRAISE) or any_word("deny").search(text, after, end):
        return None
    if "comparative" in kinds and reply.closed(at) is None and reply.reason(at) is None:
        return None  # "Option 3 is better in some ways."
    value = Value(tuple(items), end)
    return None if reply.places_named(at, end) - value.places else _Declaration(start, end, value, "said")


# ---- The rung of declared answers: weighing them

_CLAUSE = re.compile(r"(?:^|[,;.!?…。]+[\"')\]]*\s+|。|\n\s*|[ ]-[ ])[^\w\n]*")


def _declared(reply: PlainReply) -> Value | None:
    """The last declared answer; None where a reply declares none.

    Raises:
        Unreadable: it cannot be read, another one differs from it, or it is taken back.
    """
    found = [*_declarations(reply)]
    named = [each for each in found if each.weight != "said"]
    readable = [(each, each.value) for each in named or found if each.value is not None]
    if not readable:
        if named:
            raise NoAnswer
        return None
    for (each, value), (following, other) in pairwise(readable):
        gives_way = (each.weight, following.weight) == ("named", "final") or _given_way(reply, each, following)
        if value.places != other.places and not gives_way:
            answers = ", then ".join(_told(value, reply.alternatives) for _, value in readable[:3])
            raise Unreadable(f"different answers are given ({answers}); give one answer")
    last, value = readable[-1]
    line = reply.text.rfind("\n", 0, last.begin)
    if any(each.value is None and line < each.begin < last.begin for each in named):
        raise Unreadable("several answers are declared in one line; give one answer")
    if any(each.begin > last.begin and not _agrees(each, value) for each in found):
        raise Unreadable("something else is declared behind the answer; give one answer")
    if _taken_back(reply, value.end, len(reply.text)):
        raise Unreadable("the answer is taken back; give one answer")
    return value


def _told(value: Value, alternatives: Alternatives) -> str:
    """An answer, as the options are called."""
    return " and ".join(map(alternatives.sign, dict.fromkeys(item.place for item in value.items)))


def _given_way(reply: PlainReply, earlier: _Declaration, later: _Declaration) -> bool:
    """Whether an answer is taken back in a sentence of its own before another is declared."""
    return _taken_back(reply, earlier.end, max(reply.text.rfind("\n", 0, later.begin), earlier.end))


def _agrees(later: _Declaration, value: Value) -> bool:
    """Whether what is declared behind an answer leaves it as it is."""
    return later.value is not None and later.value.places <= value.places


def _taken_back(reply: PlainReply, begin: int, end: int) -> bool:
    """Whether words of a part of a reply, but for the texts of options, take back what stands before it."""
    reconsidered = any_word("reconsider").search(reply.without_names, begin, end) is not None
    return reconsidered or _begins_clause(reply, "revise", begin=begin, end=end)


def _begins_clause(reply: PlainReply, kind: str, *, begin: int, end: int) -> bool:
    """Whether a clause of a part of a reply, but for the texts of options, begins with a word of a list."""
    said = reply.without_names
    starts = (begin, *(clause.end() for clause in _CLAUSE.finditer(said, begin, end)))
    return any(any_word(kind).match(said, start, end) for start in starts)


# ---- The rung of whole replies

_AFTER_COURTESY = re.compile(r"[!.,:]*\s*")


def _whole(reply: PlainReply) -> Value | None:
    """The value that a reply is as a whole; None where it is anything else.

    Words may stand behind it: after a blank line, and, where options are called by name, in any sentence of its own
    ("Yes, because …"). A name may also be the last paragraph. Words that name another option leave the reply unread.
    """
    text = reply.text
    at = end_of(BLANKS, text, 0)
    while courtesy := any_word("courtesies").match(text, at):
        at = end_of(_AFTER_COURTESY, text, courtesy.end())
    value = reply.value(at, apart=True)
    if value is None:
        return _last_paragraph(reply)
    rest = end_of(BLANKS, text, value.end)
    if rest == len(text):
        return value
    apart = text.count("\n", value.end, rest) > 1
    if not (apart or value.is_named):
        return None
    courteous = not apart or any_word("yes", "no").match(text, at)  # "Yes, I can help you with that!" answers nothing
    if courteous and _begins_clause(reply, "offers", begin=rest, end=len(text)):
        return None
    doubted = reply.places_named(rest, len(text)) - {item.place for item in value.items}
    return None if doubted or _taken_back(reply, rest, len(text)) else value


def _last_paragraph(reply: PlainReply) -> Value | None:
    """The options by name that the last paragraph of a reply is, where no other one is named before."""
    before, blank, _ = reply.text.rstrip().rpartition("\n\n")
    value = reply.value(len(before) + 2, apart=True) if blank and before[-1:] not in {":", "?", ""} else None
    if value is None or reply.text[value.end :].strip() or any(item.form != "text" for item in value.items):
        return None
    return None if reply.places_named(0, len(before)) - {item.place for item in value.items} else value


# ---- What is chosen


def chosen_places(value: Value, alternatives: Alternatives, otherwise: int | None) -> tuple[int, ...]:
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
    recited = len(kept) > 3 and [*kept] == [*range(1, len(kept) + 1)] and all(item.form != "label" for item in items)
    if (recited or len(kept) >= max(count - (otherwise is not None), 3)) and all(item.said is None for item in items):
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


def as_lines(value: Any) -> str:
    """A value of JSON as a text reply would give it: items of a list on lines, `name: value` for fields."""
    if isinstance(value, dict):
        return "\n".join(
            f"{name.replace('_', ' ')}: {_word(each)}" for name, each in cast("dict[str, Any]", value).items()
        )
    if isinstance(value, list):
        return "\n".join(map(as_lines, cast("list[Any]", value)))
    return _word(value)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list)):
        return ", ".join(as_lines(cast("list[Any]", value)).splitlines())
    return "" if value is None else str(value)


# ---- Readers of texts


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
