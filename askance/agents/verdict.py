"""The verdict of a judge, and how it is read from a reply.

It is read only from the place that was asked for, since a reply may repeat the texts that it judges. A judge never
raises for a call that fails: a verdict that is missing or cannot be read is *unscored*, and never counts as a no.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, Self, TypeAlias, TypeVar, cast, get_args

from pydantic import model_validator
from typing_extensions import override

from askance.chat import Outcome
from askance.errors import UsageError
from askance.nodes import AnswerField, Node, Read, TypedAnswer, Unreadable
from askance.nodes.answer import TypedInput, note_field, text_schema
from askance.nodes.reply import final_text, has_turn_marks, plain_text, strip_boxes, strip_turn_end
from askance.prompts import sanitize

if TYPE_CHECKING:
    from collections.abc import Callable

    from askance.chat import JsonObject
    from askance.models import OutputMode
    from askance.nodes import Result

VerdictValue: TypeAlias = Literal["true", "false", "unclear"]

VERDICTS: tuple[VerdictValue, ...] = get_args(VerdictValue)

MOST_OBJECTS = 100
"""Most JSON objects within the judged texts; with more of them no JSON verdict is read."""

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)
_PREAMBLE = re.compile(r"[^{}\[\]\"\n]{1,120}[:.]\s*\n\s*(?=[{`])|[^{}\[\]\"\n.:]{1,60}:\s*(?=\{)")
_REPEATING = re.compile(
    r"\b(?:[ab]|candidate|reference|first|second|sa(?:ys?|id)|states?|writes?|wrote|claims?|reads|not)\b", re.IGNORECASE
)
"""Words in a preamble after which a judged text may follow instead of a verdict."""
_REASON = re.compile(r"(?:[-*•]\s*|\d[.)]\s*)?reason\s*:\s*(.+)", re.IGNORECASE)
_ITEM = re.compile(r"^(?:[-*•⇒→]\s*|\d{1,2}[.)]\s+)+")
_TICK = re.compile(r"\s*[✅☑✓✔]+$")
_AROUND = " .!\"'()[]$"
_COURTESY = re.compile(
    r"(?:sure|certainly|of course|okay|ok)\b[^\w]*$"
    r"|(?:here(?: is|'s)|this is)\b[^.:]{0,40}:$|(?:response|result|output)\s*:?$",
    re.IGNORECASE,
)
"""A line before the answer without content of its own."""
_SURE = r"(?:(?:sure|certainly|okay|ok|of course)\s*[,.!:]\s*)?"
_LEAD = (
    r"(?:(?:so|therefore|thus|hence|overall|finally|in (?:conclusion|summary)|based on [^,.:]{1,60})\s*,?\s*)?"
    r"(?:i (?:believe|think)(?: that)?\s+)?(?:(?:the|my)\s+)?(?:(?:final|correct|overall)\s+)?"
    r"(?:answer|verdict|equivalence|judge?ment|conclusion|response|result|label)\s*(?:is\b\s*:?|[:=-])\s*"
)
_CORRECTION = re.compile(
    r"\W*(?:actually|no|wait|correction|edit(?:ed)?|update|p\.? ?s|sorry|rather|instead|i meant?)\b", re.IGNORECASE
)


Value = TypeVar("Value", bound=str)


class Judgement(TypedAnswer, Generic[Value]):
    """The judgement of one call, or the reason why there is none.

    Raises:
        UsageError: a value without the outcome `answered`, or the other way round.
    """

    value: Value | None = None
    """None where the outcome is not `answered`."""
    reason: str = ""
    """The judge's own words, which may repeat what it judges; without a value, why there is none."""
    outcome: Outcome = "answered"
    calls: tuple[str, ...] = ()
    """Keys of the records that it rests on."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.value is None) == (self.outcome == "answered"):
            raise UsageError(
                f"{self.value!r} is no judgement for the outcome {self.outcome!r}.",
                hint="Give a value where the outcome is `answered`, and None where it is not.",
            )
        return self

    @classmethod
    def of(cls, result: Result[Self]) -> Self:
        """The judgement in the result of a node, with the calls that it rests on."""
        calls = tuple(call.key for call in result.calls)
        if result.value is None:
            return cls(outcome=result.outcome, reason=result.reason or "", calls=calls)
        return result.value.model_copy(update={"calls": calls})

    def __str__(self) -> str:
        return self.value or "unscored"


class Verdict(Judgement[VerdictValue]):
    """What a judge says of one candidate; a candidate without a value is *unscored*."""

    @property
    def scored(self) -> bool:
        """Whether there is a verdict; `unclear` is one."""
        return self.value is not None


class Judge(Protocol):
    """Says whether two texts mean the same as answers to a question: a model, several of them, or a script."""

    async def judge(self, reference: str, candidate: str, *, question: str) -> Verdict:
        """The verdict on `candidate`; unscored, with its outcome and reason, where there is none."""
        ...


def canonical_judge(judge: object) -> JsonObject:
    """Everything that decides a judge's verdicts, as JSON; for a judge without `canonical`, the name of its class."""
    canonical: Callable[[], JsonObject] | None = getattr(judge, "canonical", None)
    return {"judge": type(judge).__qualname__} if canonical is None else canonical()


class JudgeQuestion(TypedInput, ABC):
    """A question, and texts that are judged as answers to it; strangers wrote all of them."""

    question: str

    @property
    @abstractmethod
    def texts(self) -> tuple[str, ...]:
        """The texts that are judged."""


In = TypeVar("In", bound=JudgeQuestion)
Out = TypeVar("Out", bound=Judgement[Any])


class JudgeNode(Node[In, Out]):
    """Asks for one judgement.

    In the prompt the judged texts are fenced, stand apart from the instructions, and hold no marks of chat templates.
    The judgement is read only from its place: a field of the JSON object that is the whole reply, or a line of its own
    in the text protocol. A reply with anything else there is `invalid`.
    """

    field: ClassVar[str]
    """Name of the judgement in the JSON object."""
    values: Sequence[str]
    """The judgements that there are."""
    notes: Sequence[str] = ("reason",)
    """Names of the texts that are asked for before the judgement."""

    @override
    def fields(self, subject: In) -> Sequence[AnswerField]:
        notes = [AnswerField(name, text_schema()) for name in self.notes]
        return (*notes, AnswerField(self.field, text_schema(among=self.values)))

    @override
    def _read(self, text: str, subject: In, mode: OutputMode) -> Read[Out]:
        """JSON counts only where it is the whole reply, and does not stand in the texts that are judged."""
        answer = final_text_about(text, (*subject.texts, subject.question))
        if mode == "paper":
            return self.read_reply(answer, subject)
        return Read(self.read_json(whole_object(answer, subject.texts), subject), "schema")

    @override
    def read_json(self, data: Mapping[str, Any], subject: In) -> Out:
        return self.judgement(data.get(self.field), reason=note_field(data, "reason"))

    def judgement(self, value: object, *, reason: str) -> Out:
        """The judgement that `value` is.

        Raises:
            Unreadable: it is none of the values.
        """
        word = self.word(value)
        if word not in self.values:
            raise Unreadable(f"`{self.field}` must be one of {', '.join(self.values)}")
        return self.gives(value=word, reason=reason)

    def word(self, value: object) -> object:
        """`value` in the form in which the values are written."""
        return value.strip().lower() if isinstance(value, str) else value


def final_text_about(text: str, texts: Sequence[str]) -> str:
    """A judge's reply about `texts` without its thinking and the marks of its turn.

    Where one of `texts` holds such marks, the reply may repeat them; then only the mark at the reply's end is removed.

    Raises:
        Unreadable: the reply is empty.
    """
    answer = strip_turn_end(text) if any(map(has_turn_marks, texts)) else final_text(text)
    if not answer.strip():
        raise Unreadable("the reply is empty")
    return answer


def whole_object(reply: str, texts: Sequence[str]) -> Mapping[str, Any]:
    """The JSON object that is the whole reply; a code fence around it and one sentence before it are allowed.

    An object within other prose does not count, since it may be the candidate's; nor does one that stands in the judged
    `texts`.

    Raises:
        Unreadable: the reply is anything else, or a field stands twice.
    """
    reply = reply.strip()
    preamble = _PREAMBLE.match(reply)
    if preamble and not _REPEATING.search(preamble[0]):
        reply = reply[preamble.end() :]
    fenced = _FENCED.fullmatch(reply)
    try:
        value: Any = json.loads(fenced[1] if fenced else reply, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Unreadable("the reply is not one JSON object and nothing else") from error
    if not isinstance(value, dict):
        raise Unreadable("the reply is not one JSON object and nothing else")
    if any(value == planted for text in texts for planted in _objects_in(text)):
        raise Unreadable("the reply repeats a JSON object that stands in what is judged; judge in words of your own")
    return cast("Mapping[str, Any]", value)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        msg = "a field stands twice"
        raise ValueError(msg)
    return fields


def _objects_in(text: str) -> Iterator[object]:
    """Every JSON object in a text, those within others, too."""
    for version in dict.fromkeys((text, sanitize(text))):
        for tried, begin in enumerate(re.finditer(r"\{", version)):
            if tried >= MOST_OBJECTS:
                raise Unreadable("what is judged holds too many JSON objects for a JSON verdict; judge it in text")
            try:
                yield json.JSONDecoder().raw_decode(version, begin.start())[0]
            except (ValueError, RecursionError):
                continue


def plain_lines(reply: str) -> list[str]:
    """The lines of a reply with a letter or a digit, without Markdown; rows of a table become `name: value`.

    A tick at the end of a line is decoration.
    """
    lines = [_TICK.sub("", line.strip()) for line in plain_text(strip_boxes(reply)).splitlines()]
    lines = [line.strip("| ").replace("|", ":", 1) if line.startswith("|") else line for line in lines]
    return [line for line in lines if any(map(str.isalnum, line))]


def read_last_line(lines: Sequence[str], heading: str, *, words: str, texts: Sequence[str]) -> str:
    """The text after `heading:` on the last line, in lower case; other lines with the heading must say the same.

    Args:
        lines: of a reply, as `plain_lines` gives them.
        heading: a pattern such as `Verdict`; it may stand on a line of its own, before the last one.
        words: what may follow it, for the message.
        texts: the judged texts.

    Raises:
        Unreadable: the last line is another or repeats `texts`, or the lines contradict each other.
    """
    line = re.compile(
        rf"(?:(?:the|my)\s+)?(?:(?:final|overall)\s+)?{heading}\s*(?:(?:[:=→⇒-]|\bis\b:?)\s*(.*)|$)", re.IGNORECASE
    )
    lines = [_ITEM.sub("", each) for each in lines]
    if len(lines) > 1 and (alone := line.fullmatch(lines[-2])) and not alone[1]:
        lines = [*lines[:-2], f"{lines[-2].rstrip(':')}: {lines[-1]}"]
    answers = [(match[1] or "").strip(_AROUND).lower() for each in lines if (match := line.fullmatch(each))]
    name = heading.partition("(")[0]
    if not answers or not line.fullmatch(lines[-1]) or is_copied(lines, len(lines) - 1, texts):
        raise Unreadable(f"the last line must be `{name}:` with {words}")
    if len({*answers}) > 1:
        raise Unreadable(f"there is more than one line `{name}:`")
    return answers[0]


def read_word(lines: Sequence[str], words: Sequence[str], texts: Sequence[str]) -> tuple[str, list[str]] | None:
    """The one of `words` that the first line or the last one gives as the answer, and the other lines.

    None where neither gives one, where another word is given elsewhere, or where it only repeats `texts`.
    """
    lines = _without_courtesies(lines)
    word = "|".join(words)
    answer = re.compile(
        rf"{_SURE}(?P<lead>{_LEAD})?[\"'(\[]*(?P<word>{word})\b[\"')\]]*(?P<rest>$|[.!]+\s*|\s+\([^()]*\)[.]?|\s*[,:;-]\s.*|[.!]+\s.*)",
        re.IGNORECASE,
    )
    closing = re.compile(rf".*[.!]\s+{_LEAD}[\"']*(?P<word>{word})\b[\"']*[.!]*", re.IGNORECASE)
    every = re.compile(rf"\b({word})\b", re.IGNORECASE)
    answers: dict[int, str] = {}
    for at, line in enumerate(lines):
        match = answer.fullmatch(line)
        alone = match is not None and (match["lead"] or at == 0 or not match["rest"].strip(".!"))
        match = match if alone else closing.fullmatch(line) if at == len(lines) - 1 else None
        if match:
            answers[at] = match["word"].lower()
        if (match or _CORRECTION.match(line)) and len({*map(str.lower, every.findall(line))} | {*answers.values()}) > 1:
            return None
    for at in (0, len(lines) - 1):
        before = {each.lower() for line in lines[:at] for each in every.findall(line)}
        if at in answers and before <= {answers[at]} and not is_copied(lines, at, texts):
            return answers[at], [*lines[:at], *lines[at + 1 :]]
    return None


def _without_courtesies(lines: Sequence[str]) -> list[str]:
    """The lines from the answer on, where courtesies stand before it; a heading is put before its line."""
    lines = [*lines]
    while len(lines) > 1 and _COURTESY.match(lines[0]):
        lines = lines[1:]
    for at, line in enumerate(lines[:-1]):
        if re.fullmatch(r"(?:final\s+)?(?:answer|verdict)\s*:?", line, re.IGNORECASE):
            return [*lines[:at], f"Answer: {lines[at + 1]}", *lines[at + 2 :]]
    return lines


def is_copied(lines: Sequence[str], at: int, texts: Sequence[str]) -> bool:
    """Whether a line of a reply is copied from `texts`; a single word on the first line may still be the judge's."""
    planted = {each.casefold() for text in texts for each in (*plain_lines(text), *plain_lines(sanitize(text)))}
    if lines[at].casefold() not in planted:
        return False
    own = at == 0 and len(lines[0].split()) == 1
    return not own or (len(lines) > 1 and lines[1].casefold() in planted)


def reason_in(lines: Sequence[str]) -> str:
    """The text after `Reason:`; empty where there is no such line."""
    return next((match[1].strip() for line in lines if (match := _REASON.fullmatch(line))), "")
