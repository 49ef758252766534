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
from abc import abstractmethod
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

from typing_extensions import override

from askance.agents.reply_value import (
    CLOSE,
    DECLARED,
    NEXT_LINE,
    SPACES,
    Alternatives,
    PlainReply,
    Value,
    ValueItem,
    agree,
    alternatives_of,
    end_of,
    reply_words,
)
from askance.nodes import Node, Read, Unreadable
from askance.nodes.reply import broken_json, final_text, whole_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

In = TypeVar("In")
Out = TypeVar("Out")


# ---- The rungs

_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=\w))*")
_CLAUSE = re.compile(r"(?:^|[,;.!?…。]+[\"')\]]*\s+|。|\n\s*|[ ]-[ ])[^\w\n]*")
_START = re.compile(rf"(?={DECLARED})|(?:^|\n|,[ ](?:but|so|thus|hence|therefore)[ ]|[.!?…][\"')\]]*[ \t]+|[。?])\s*")
_DECORATION = re.compile(rf"[^\w\n{DECLARED}]*")
_GAP = re.compile(rf"[ \t\"',()\[\]{{}}]{{0,12}}(?P<mark>(?:[:=→>{DECLARED}]|-(?=[ >]))[ \t\"'>]{{0,6}}){{0,6}}")
_NUMBER_ALONE = re.compile(r"\d+[.)]\s*")
_LONGEST_HEAD = 40
"""Words before a declared answer, at most."""


class NoAnswer(Unreadable):
    """A reply that gives no answer which can be read; other replies give several, or one that cannot be meant."""


_NEXT_QUESTION = re.compile(r"(?<=\S)\s*\n\W{0,3}(?:context|question|q)\W{0,3}:", re.IGNORECASE)
_Weight = Literal["final", "named", "said"]
_PRAISE = frozenset(["praise", "comparative"])


class _Declaration(NamedTuple):
    """A line or a sentence that begins with what an answer is called."""

    begin: int
    end: int
    value: Value | None
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
    data = whole_json(text)
    reply = PlainReply.of(text if data is None else as_lines(data), alternatives)
    try:
        if broken_json(text):
            raise NoAnswer
        alone = reply.value(end_of(_BLANKS, reply.text, 0), apart=True)
        is_alone = alone is not None and not reply.text[alone.end :].strip()  # an option's text may speak of answers
        declared = None if is_alone else _declared(reply, single=single)
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


def _declared(reply: PlainReply, *, single: bool) -> Value | None:
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
    value = cast("Value", last.value)
    for each, following in pairwise(counted):
        if cast("Value", each.value).places != value.places and not _given_way(reply, each, following):
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
    items = cast("Value", declaration.value).items
    return " and ".join(map(alternatives.sign, dict.fromkeys(item.place for item in items)))


def _given_way(reply: PlainReply, earlier: _Declaration, later: _Declaration) -> bool:
    """Whether an answer is taken back in a sentence of its own before another is declared."""
    return _taken_back(reply.text, earlier.end, max(reply.text.rfind("\n", 0, later.begin), earlier.end))


def _contradicts(reply: PlainReply, later: _Declaration, value: Value) -> bool:
    """Whether what is declared later is another answer than a value, or makes it doubtful."""
    if later.value is not None:
        return not later.value.places <= value.places
    if later.weight != "said":
        return True
    denies = reply_words().deny.search(reply.text, later.begin, later.end) is not None
    others = reply.names_other(value.places, later.begin, later.end)
    return denies != others or (denies and reply.names_any(value.places, later.begin, later.end))


def _taken_back(text: str, begin: int, end: int) -> bool:
    """Whether a part of a reply takes back what stands before it."""
    words = reply_words()
    if words.reconsider.search(text, begin, end) or words.revise.match(text, begin, end):
        return True
    return any(words.revise.match(text, clause.end(), end) for clause in _CLAUSE.finditer(text, begin, end))


def _declarations(reply: PlainReply, *, single: bool) -> Iterator[_Declaration]:
    end = -1
    for start in _START.finditer(reply.text):
        if start.end() >= end and (found := _declaration(reply, start.end(), single=single)) is not None:
            end = found.end
            yield found


def _declaration(reply: PlainReply, start: int, *, single: bool) -> _Declaration | None:
    """The declaration that begins at a place: words that call an answer by name, and the value behind them."""
    at = end_of(_DECORATION, reply.text, start)
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
    return _Declaration(start, end_of(_SENTENCE, reply.text, at), None, "said")


def _head_word(reply: PlainReply, at: int) -> tuple[frozenset[str], int] | None:
    """What a word before an answer is, and where it ends; None for other words, and for a capital that is a label.

    A capital is an article where what an answer is called follows it ("A resposta é C").
    """
    if reply.text.startswith(DECLARED, at):
        return frozenset(["name", "marked"]), at + 1
    word = reply_words().head.match(reply.text, at)
    if word is None:
        return None
    if reply.is_capital(at) and reply.label(at):
        following = reply_words().head.match(reply.text, end_of(SPACES, reply.text, word.end()))
        if following is None or reply_words().kinds[following[0]].isdisjoint(["name", "option"]):
            return None
    return reply_words().kinds[word[0]], word.end()


def _below(reply: PlainReply, start: int, at: int, *, weight: _Weight, marked: bool) -> _Declaration | None:
    """The declaration whose value stands on the lines below its words."""
    below = end_of(NEXT_LINE, reply.text, at)
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


def _spoken(reply: PlainReply, start: int) -> _Declaration | None:
    """A sentence with one option as its subject that says it is best, and names no other."""
    text = reply.text
    found = reply.item(end_of(_DECORATION, text, start), ranked=False)
    if found is None or len(found[0]) > 1:
        return None
    items, after = found
    at = end_of(SPACES, text, after)
    first = reply_words().head.match(text, at)
    if first is None or (not _PRAISE.isdisjoint(reply_words().kinds[first[0]]) and _label_alone(reply, start)):
        return None  # "A better caption would be funnier."
    kinds: set[str] = set()
    while (word := reply_words().head.match(text, at)) and kinds.isdisjoint(_PRAISE) and at > after:
        kinds |= reply_words().kinds[word[0]]
        at = end_of(SPACES, text, word.end())
    end = end_of(_SENTENCE, text, at)
    if "comparative" in kinds and reply.closed(at) is None and reply.reason(at) is None:
        return None  # "Option 3 is better in some ways."
    if (
        kinds.isdisjoint(_PRAISE)
        or reply_words().deny.search(text, after, end)
        or reply.names_other({items[0].place}, at, end)
    ):
        return None
    return _Declaration(start, end, Value(tuple(items), end), "said")


def _label_alone(reply: PlainReply, start: int) -> bool:
    """Whether a sentence begins with a label, and not with "option" before it."""
    return reply.label(end_of(_DECORATION, reply.text, start)) is not None


def _whole(reply: PlainReply, *, single: bool) -> Value | None:
    """The value that a reply is as a whole; None where it is anything else.

    Words may stand behind it: after a blank line, and, where options are called by name, in any sentence of its own
    ("Yes, because …"). A name may also be the last paragraph. Words that name another option leave the reply unread.
    """
    text = reply.text
    at = end_of(_BLANKS, text, 0)
    while courtesy := reply_words().courtesy.match(text, at):
        at = end_of(_AFTER_COURTESY, text, courtesy.end())
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
    rest = end_of(_BLANKS, text, value.end)
    if rest == len(text):
        return value
    apart = text.count("\n", value.end, rest) > 1
    if not (apart or _is_named(value.items)) or reply_words().either.match(text, rest):
        return None
    if reply.names_other({item.place for item in value.items}, rest, len(text)):
        return None
    return None if _taken_back(text, rest, len(text)) else value


def _is_named(items: Sequence[ValueItem]) -> bool:
    return bool(items) and all(item.form != "label" for item in items)


def _begun(reply: PlainReply, at: int, *, single: bool) -> Value | None:
    """The options by name that a reply begins with, before a comma or a colon and words on them."""
    items, end = reply.items(at)
    clause = (_CLAUSE_AFTER if single else _COLON).match(reply.text, end)  # behind a comma a list may go on
    if clause is None or not _is_named(items) or not agree(items) or reply_words().deny.match(reply.text, clause.end()):
        return None
    return Value(tuple(items), clause.end())


_CLAUSE_AFTER = re.compile(rf"{CLOSE}[,:][ \t]+(?=\S+ \S+ \S)")
_COLON = re.compile(rf"{CLOSE}:[ \t]+(?=\S+ \S+ \S)")
_BLANKS = re.compile(r"\s*")
_AFTER_COURTESY = re.compile(r"[!.,:]*\s*")


def _chosen(value: Value, alternatives: Alternatives, otherwise: int | None) -> tuple[int, ...]:
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
    reply = PlainReply.of("\n".join(texts), alternatives)
    value = reply.value(end_of(_BLANKS, reply.text, 0), apart=True)
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
