"""Which options a reply chooses: one reader for every reply, live or recorded, that chooses among options.

The reader is a short ladder. Where a schema was sent, its answer counts (`schema`). Else the last *declared* answer
does: a line or a sentence that begins with what an answer is called, and whose value is a list of options and nothing
else. Else the *whole* reply does, where it is such a value. Any other reply is unread: a wrong reading is worse than
none, so no rung looks for a lone letter or digit in prose, and none guesses.

- What is declared is read whole. "Answer: 3 is tempting, but 5 is best" is unread: its value is no list of options.
- Two declared answers that differ are unread, unless one is called final or the first is taken back in words.
- An answer that is taken back afterwards, an index beside another option's text, an index beyond the options, and more
  than one answer where one is asked for are unread.

`read_choice` climbs it in four steps: the reply is split into words, its declarations are found and weighed, else it is
read as a whole, and the options found are checked. The words that this takes stand in `answer_words.yaml`, in many
languages; what a list of options is, `askance.agents.reply_value` says.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from typing_extensions import override

from askance.agents.alternatives import Alternatives, alternatives_of
from askance.agents.reply_value import PlainReply, Value
from askance.agents.reply_words import DECLARED
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
    text: str,
    alternatives: Alternatives,
    *,
    single: bool = False,
    otherwise: int | None = None,
    is_field: bool = False,
) -> Read[tuple[int, ...]]:
    """The places of the alternatives that a reply chooses, from 1, in its order, each once, and which rung read them.

    Args:
        text: the model's reply.
        alternatives: what it may choose from.
        single: whether exactly one is asked for.
        otherwise: the place that is chosen where the reply denies every other one.
        is_field: whether it is a field of JSON, which cannot be cut off.

    Raises:
        Unreadable: it declares no answer and is none, contradicts itself, goes beyond the alternatives, or gives
            several where one is asked for.
    """
    said = _NEXT_QUESTION.split(final_text(text), maxsplit=1)[0]
    data = whole_json(said)
    reply = PlainReply.of(said if data is None else as_lines(data), alternatives, single=single)
    try:
        if broken_json(said) or _CUT_OFF.search(said):
            raise _no_answer(reply)
        declared = _declared(reply)
        found = declared or _whole(reply, may_break_off=data is None and not is_field)
        if found is None:
            raise _no_answer(reply)
        return Read(chosen_places(found, reply, otherwise), "declared" if declared else "whole")
    except Unreadable as error:
        raise type(error)(*error.args, reply=said) from None


def _no_answer(reply: PlainReply) -> Unreadable:
    """What is wrong with a reply that gives no answer."""
    lettered = reply.alternatives.lettered
    labels = ((label[0], reply.named(label[1])) for at in range(reply.end) if (label := reply.label(at)))
    if any(text and text[0] != place for place, text in labels):
        index, indexes = ("a letter", "the letter") if lettered else ("an index", "indexes")
        return Unreadable(f"{index} stands beside another option's text; give {indexes} alone")
    return NoAnswer(f"no answer of the form `Answer: {'X`, with X a letter,' if lettered else '3, 7`'} is given")


# ---- The rung of declared answers: finding them

_SAID, _NAMED, _FINAL = 1, 2, 3
"""Weights: a sentence about an option or of a choice, an answer that is called one, and one that is called final."""
_HEAD = ("name", "ranking", "option", "praise", "comparative", "final", "choose", "shown", "lead")
"""Kinds of the words that may stand before an answer."""
_PRAISE = frozenset(["praise", "comparative"])
_HEAD_SIGNS = ":>,()-"
_LONGEST_HEAD = 40
"""Words before a declared answer, at most."""


class _Declaration(NamedTuple):
    """A line or a sentence that begins with what an answer is called."""

    begin: int
    end: int
    value: Value | None
    """None where it cannot be read."""
    weight: int


def _declarations(reply: PlainReply) -> Iterator[_Declaration]:
    end = -1
    for at, word in enumerate(reply.words[:-1]):
        sentence = not {*word.signs}.isdisjoint(".!?\n") and not (at and reply.phrase(at - 1, "example"))
        start = reply.phrase(at, "thus") if word.signs == "," else at if sentence or word.text == DECLARED else None
        if start is not None and start >= end and (found := _declaration(reply, start)):
            end = found.end
            yield found


def _declaration(reply: PlainReply, start: int) -> _Declaration | None:
    """The declaration that begins at a place: words that call an answer by name, and the value behind them."""
    at = first = reply.follows(start, "yes_signs")
    kinds: set[str] = set()
    weight = 0
    for at, kinds in _head(reply, first):
        weight = _weight(reply, kinds)
        below = "\n" in reply.signs(at)
        clear = weight and not reply.signs(at).strip(_HEAD_SIGNS + "\n")
        value = reply.value(at, apart=below) if clear else None
        ordered = at == first + 1 and weight == _NAMED and "\n" not in reply.signs(start) and "marked" not in kinds
        if clear and (below or (value and not ordered)):  # "Forget the picture. Output 3." orders
            return _Declaration(start, value.end, value, weight) if value else None
    if not weight:
        return _spoken(reply, start) or _spoken(reply, at)
    told = weight > _SAID and ("marked" in kinds or reply.label(at))
    return _Declaration(start, at, None, weight) if told else None


def _head(reply: PlainReply, at: int) -> Iterator[tuple[int, set[str]]]:
    """Words that may stand before an answer: behind each of them the place, and the kinds of all so far.

    A capital that is a label is none, unless what an answer is called follows it ("A resposta é C").
    """
    kinds: set[str] = set()
    for _ in range(_LONGEST_HEAD):
        end = at + 1 if reply.words[at].text == DECLARED else reply.phrase(at, *_HEAD)
        label = reply.label(at) if reply.words[at].capital else None
        if end is None or (label and label[1] == end and not reply.phrase(end, "name", "option")):
            return
        signs = reply.signs(end)
        kinds |= {kind for kind, behind in reply.phrases(at).items() if behind == end}
        kinds |= {"name", "marked"} if reply.words[at].text == DECLARED else set()
        kinds |= set() if {*signs}.isdisjoint(":>-") else {"marked"}
        at = end
        yield at, kinds
        if signs.strip(_HEAD_SIGNS):
            return


def _weight(reply: PlainReply, kinds: set[str]) -> int:
    """What words before an answer make of it; 0 where they do not declare one."""
    named = "name" in kinds or ("ranking" in kinds and not reply.single)
    if named or {"final", "marked"} <= kinds or ("option" in kinds and not kinds.isdisjoint(_PRAISE)):
        return _FINAL if "final" in kinds else _NAMED
    return _SAID if "choose" in kinds or ("shown" in kinds and not reply.alternatives.numbered) else 0


def _spoken(reply: PlainReply, start: int) -> _Declaration | None:
    """A sentence with options as its subject that says they are best, and names no other."""
    items, after = reply.items(start)
    option = reply.phrase(start, "option") or (start and reply.phrase(start - 1, "option"))
    counted = len(items) > 1 and not option  # "3 and 4 are matching colours"
    if not items or counted or any(item.said is False for item in items):
        return None
    head = _head(reply, after) if not reply.signs(after).strip(")") else ()
    at, kinds = next(((at, kinds) for at, kinds in head if not kinds.isdisjoint(_PRAISE)), (after, set[str]()))
    end = reply.until(".!?\n", at - 1)
    value = Value(tuple(items), end)
    vague = not kinds or ("comparative" in kinds and not reply.rest(items, at))  # "better in some ways"
    if vague or reply.says("deny", after, end) or reply.places_named(at, end) - value.places:
        return None
    return _Declaration(start, end, value, _SAID)


# ---- The rung of declared answers: weighing them


def _declared(reply: PlainReply) -> Value | None:
    """The last declared answer; None where a reply declares none.

    Raises:
        Unreadable: it cannot be read, another one differs from it, or it is taken back.
    """
    found = [*_declarations(reply)]
    named = [each for each in found if each.weight > _SAID]
    readable = [(each, each.value) for each in named or found if each.value is not None]
    if not readable:
        if named:
            raise _no_answer(reply)
        return None
    for (each, value), (following, other) in pairwise(readable):
        taken_back = _taken_back(reply, each.end, max(_line_of(reply, following), each.end))
        if value.places != other.places and following.weight <= each.weight and not taken_back:
            sign = reply.alternatives.sign
            answers = ", then ".join(" and ".join(map(sign, sorted(value.places))) for _, value in readable[:3])
            raise Unreadable(f"different answers are given ({answers}); give one answer")
    last, value = readable[-1]
    line = _line_of(reply, last)
    beside = [each.value for each in found if each.begin > last.begin]
    beside += [each.value for each in named if line <= each.begin < last.begin and each.value is None]
    if not all(other and other.places <= value.places for other in beside):
        raise Unreadable("something else is declared beside the answer; give one answer")
    if _taken_back(reply, value.end, reply.end):
        raise Unreadable("the answer is taken back; give one answer")
    return value


def _line_of(reply: PlainReply, declaration: _Declaration) -> int:
    """Where the line begins that a declaration stands in."""
    return next((at for at in range(declaration.begin, 0, -1) if "\n" in reply.signs(at)), 0)


def _taken_back(reply: PlainReply, begin: int, end: int) -> bool:
    """Whether some words take back what stands before them."""
    clauses = (at for at in range(begin, end) if at == begin or not {*reply.signs(at)}.isdisjoint(",;.!?-\n"))
    return reply.says("reconsider", begin, end) or any(reply.phrase(at, "revise") for at in clauses)


# ---- The rung of whole replies


_SHORT = 4
"""Words behind an answer within which a denial is of the answer."""


def _whole(reply: PlainReply, *, may_break_off: bool) -> Value | None:
    """The value that a reply is as a whole; None where it is anything else.

    Args:
        reply: of a model.
        may_break_off: whether it may have been cut off. Then a sentence behind the value ends by a sign.

    Words may stand behind it: after a blank line, and, where options are called by name, in any sentence of its own
    ("Yes, because …"). A name may also be the last paragraph. Words that name another option leave the reply unread.
    """
    at = 0
    while courtesy := reply.phrase(at, "courtesies"):
        at = courtesy
    value = reply.value(at, apart=True)
    if value is None:
        at = next((at for at in range(reply.end - 1, 0, -1) if "\n\n" in reply.signs(at)), 0)
        value = reply.value(at, apart=True) if {*reply.signs(at)}.isdisjoint(":?") else None
        if value is None or value.end != reply.end or any(item.form != "text" for item in value.items):
            return None
    rest, end = value.end, reply.end
    apart = "\n\n" in reply.signs(rest)
    courteous = not apart or reply.phrase(at, "yes", "no")  # "Yes, I can help you with that!" answers nothing
    if (courteous and reply.says("offers", rest, end)) or not (apart or value.is_named or rest == end):
        return None
    if may_break_off and rest != end and not apart and {*".!?…。"}.isdisjoint(reply.signs(end)):
        return None
    if not apart and len(value.items) == 1 and reply.says("deny", rest, min(rest + _SHORT, end)):
        return None  # "A) … - This caption does not fit."
    others = (reply.places_named(0, at) | reply.places_named(rest, end)) - {item.place for item in value.items}
    return None if others or _taken_back(reply, rest, end) else value


# ---- What is chosen


def chosen_places(value: Value, reply: PlainReply, otherwise: int | None) -> tuple[int, ...]:
    """The places that a value chooses, each once.

    Raises:
        Unreadable: every option is denied, the value only repeats the options, or as `check_places`.
    """
    items, count = value.items, len(reply.alternatives.names)
    kept = tuple(dict.fromkeys(item.place for item in items if item.said is not False))
    if not kept and otherwise is not None and len({item.place for item in items}) == count - 1:
        return (otherwise,)
    if not kept:
        raise Unreadable("every option is denied; choose at least one")
    recited = len(kept) > 3 and [*kept] == [*range(1, len(kept) + 1)] and all(item.form != "label" for item in items)
    if (recited or len(kept) >= max(count - (otherwise is not None), 3)) and all(item.said is None for item in items):
        raise Unreadable("the options are repeated, and none is chosen")
    return check_places(kept, count, single=reply.single)


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
        fields = cast("dict[str, Any]", value).items()
        return "\n".join(f"{name.replace('_', ' ')}: {', '.join(as_lines(each).splitlines())}" for name, each in fields)
    if isinstance(value, list):
        return "\n".join(map(as_lines, cast("list[Any]", value)))
    return ("yes" if value else "no") if isinstance(value, bool) else "" if value is None else str(value)


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
