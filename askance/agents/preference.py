"""Which of two answers is the better one, asked in both orders: what only one order says is no preference."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from typing_extensions import override

from askance.agents.questions import question_of
from askance.agents.replies import judged, last_line, plain_lines, reason_in, whole_object
from askance.errors import UsageError
from askance.models import run_sync
from askance.nodes import Node, Result, Unreadable
from askance.prompts import harmless
from askance.tools import Value

if TYPE_CHECKING:
    from askance.chat import JsonObject, Outcome
    from askance.models import ModelLike, OutputMode
    from askance.prompts import PromptLibrary

Place: TypeAlias = Literal["first", "second", "same"]
PLACES: tuple[Place, ...] = get_args(Place)

Preferred: TypeAlias = Literal["a", "b", "tie"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceQuestion:
    """Which of two answers to `question` is better, in this order; all are words of strangers."""

    first: str
    second: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Value):
    """What was said of two answers in one order.

    Raises:
        UsageError: a place without the outcome `answered`, or the other way round.
    """

    place: Place | None = None
    """None where nothing was said that can be read."""
    reason: str = ""
    outcome: Outcome = "answered"
    calls: tuple[str, ...] = ()
    """Keys of the records that it rests on."""

    def __post_init__(self) -> None:
        if not (self.place in PLACES if self.outcome == "answered" else self.place is None):
            raise UsageError(
                f"{self.place!r} is nothing to say with the outcome {self.outcome!r}.",
                hint=f"Places: {', '.join(PLACES)}; None where there is no answer.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference(Value):
    """What a judge says of two answers, a and b, in both orders."""

    a_first: Said
    b_first: Said

    @property
    def value(self) -> Preferred | None:
        """The answer that both orders prefer, else a tie; None where one of them could not be had or read."""
        if self.a_first.place is None or self.b_first.place is None:
            return None
        return _WON.get((self.a_first.place, self.b_first.place), "tie")

    @property
    def flipped(self) -> bool:
        """Whether the same place won in both orders, so that the order decided."""
        return self.a_first.place == self.b_first.place and self.a_first.place in {"first", "second"}

    @property
    def outcome(self) -> Outcome:
        """`answered`, or what became of the first order that has no answer."""
        return self.b_first.outcome if self.a_first.outcome == "answered" else self.a_first.outcome

    @property
    def reason(self) -> str:
        """The judge's words, or why there are none."""
        return " / ".join(said.reason for said in (self.a_first, self.b_first) if said.reason)

    @property
    def calls(self) -> tuple[str, ...]:
        """Keys of the records that it rests on."""
        return (*self.a_first.calls, *self.b_first.calls)

    @property
    def swapped(self) -> Preference:
        """The same of b and a."""
        return Preference(a_first=self.b_first, b_first=self.a_first)

    def __str__(self) -> str:
        return self.value or "unscored"


_WON: Mapping[tuple[Place, Place], Preferred] = {("first", "second"): "a", ("second", "first"): "b"}
"""By what is said with a first and with b first."""


class PreferenceNode(Node[PreferenceQuestion, Said]):
    """Asks which of two answers is better, in one order."""

    prompt = "judge_preference"
    gives = Said

    @override
    def accept(self, given: Any) -> PreferenceQuestion:
        return question_of(PreferenceQuestion, given)

    @override
    def variables(self, subject: PreferenceQuestion) -> Mapping[str, Any]:
        return {"question": harmless(subject.question), "first": subject.first, "second": subject.second}

    @override
    def schema(self, subject: PreferenceQuestion) -> Mapping[str, Any]:
        properties = {"reason": {"type": "string"}, "better": {"type": "string", "enum": [*PLACES]}}
        return {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
        }

    @override
    def _read(self, text: str, subject: PreferenceQuestion, rung: OutputMode) -> Said:
        """JSON counts only as the whole reply, and nothing that stands in the texts: it may be an answer's."""
        said = judged(text, subject.first, subject.second, subject.question)
        if rung == "paper":
            return self.read_text(said, subject)
        return self.read_json(whole_object(said, subject.first, subject.second), subject)

    @override
    def read_json(self, data: Mapping[str, Any], subject: PreferenceQuestion) -> Said:
        reason = data.get("reason", "")
        return Said(place=_place(data.get("better")), reason=reason if isinstance(reason, str) else "")

    @override
    def read_text(self, text: str, subject: PreferenceQuestion) -> Said:
        lines = plain_lines(text)
        heading = "Better(?:\\s+(?:one|answer))?"
        said = last_line(lines, heading, "first, second or same", subject.first, subject.second)
        return Said(place=_place(said), reason=reason_in(lines))


class PreferenceJudge:
    """Judges which of two answers is better, always in both orders.

    Args:
        model: as a node takes it.
        prompt: name of a prompt of the user's own.
        prompts: where prompts are looked up.
    """

    def __init__(self, model: ModelLike, *, prompt: str | None = None, prompts: PromptLibrary | None = None) -> None:
        self.node = PreferenceNode(model, prompt=prompt, prompts=prompts)

    async def judge(self, a: str, b: str, *, question: str) -> Preference:
        """Which of `a` and `b` answers `question` better; equal texts are a tie that nobody is asked about."""
        unasked = _unasked(a, b)
        if unasked is not None:
            return Preference(a_first=unasked, b_first=unasked)
        # One after the other: beside many pairs nothing is gained by asking at once.
        a_first = await self._ask(a, b, question)
        return Preference(a_first=a_first, b_first=await self._ask(b, a, question))

    def __call__(self, a: str, b: str, *, question: str) -> Preference:
        """As `judge`, from anywhere: scripts, threads, notebooks."""
        return run_sync(self.judge(a, b, question=question))

    def canonical(self) -> JsonObject:
        """Everything that decides its preferences, as JSON."""
        prompts = {prompt.path.name: prompt.digest for prompt in self.node.prompts_in_use}
        return {"judge": "preference", "model": self.node.model.form(), "prompts": prompts}

    def __str__(self) -> str:
        return f"{self.node.model.id} (preference)"

    async def _ask(self, first: str, second: str, question: str) -> Said:
        return said_of(await self.node.ask(PreferenceQuestion(first=first, second=second, question=question)))


def said_of(result: Result[Said]) -> Said:
    """What a node's result says, with the calls that it rests on; nothing for every outcome but `answered`."""
    calls = tuple(call.key for call in result.calls)
    if result.value is None:
        return Said(outcome=result.outcome, reason=result.reason or "", calls=calls)
    return Said(place=result.value.place, reason=result.value.reason, calls=calls)


def _unasked(a: str, b: str) -> Said | None:
    if not a.strip() or not b.strip():
        return Said(outcome="skipped", reason="an answer is empty, so there is nothing to compare")
    return Said(place="same", reason="both answers are the same text") if a == b else None


def _place(said: object) -> Place:
    word = _ANSWER.sub("", said.strip().lower()) if isinstance(said, str) else said
    if word not in PLACES:
        raise Unreadable(f"`better` must be one of {', '.join(PLACES)}")
    return word


_ANSWER = re.compile(r"^the\s+|\s+(?:one|answer)$")

judge_preference = PreferenceJudge
