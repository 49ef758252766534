"""From one caption to questions with their answers, and the gates that each pair passes or not.

1. A phrase of the caption is taken for an answer; it has to stand in the caption.
2. A question is written for it, without the answer in it.
3. The question is answered from the caption alone; a judge says whether both answers mean the same (as in Q²).
4. The question is answered without anything; a pair whose answer is guessed so is dropped: it needs no image.
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from askance.agents import VisualQuestion, answer_from_description, judge_equivalence
from askance.agents.negatives import normal
from askance.agents.vqa import AnswerInCaption, find_candidates, write_question
from askance.evals.suite.context import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from askance.agents import JudgeForm, Verdict
    from askance.chains.planner import Role as PlanRole
    from askance.chat import JsonObject
    from askance.models import Model, ModelLike
    from askance.nodes import Node, Result
    from askance.prompts import PromptLibrary

Gate: TypeAlias = Literal["in the caption", "question", "answered from the caption", "not answered blindly", "new"]
"""What a pair has to pass, in this order; `new`: no other pair of the image asks the same."""
GATES: tuple[Gate, ...] = get_args(Gate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An answer and the question to it, and how far it came."""

    answer: str
    question: str = ""
    from_caption: str = ""
    """What the question is answered with from the caption."""
    blindly: str = ""
    """What it is answered with without anything."""
    stopped: Gate | None = None
    """The gate that it did not pass."""
    reason: str = ""
    calls: tuple[str, ...] = ()
    """Keys of the records that it rests on."""
    failed: bool = False
    """Whether a call failed, so that asking again may bring it further."""

    def form(self) -> JsonObject:
        """The pair as JSON."""
        form = asdict(self)
        return {**form, "calls": list(self.calls)}

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> Pair:
        """The pair that `form` stands for."""
        fields: dict[str, Any] = {**form, "calls": tuple(form["calls"])}
        return cls(**fields)


class QuestionMaker:
    """Makes questions from a caption.

    Args:
        llm: finds answers and writes questions.
        reader: answers questions from the caption; by default the LLM does.
        blind: answers them without anything; by default the LLM does.
        judge: says whether two answers mean the same; by default the LLM does.
        judge_form: of its question.
        count: answers of a caption at most.
        prompts: where prompts are looked up.
    """

    def __init__(
        self,
        llm: ModelLike,
        *,
        reader: ModelLike | None = None,
        blind: ModelLike | None = None,
        judge: ModelLike | None = None,
        judge_form: JudgeForm = "rubric",
        count: int = 5,
        prompts: PromptLibrary | None = None,
    ) -> None:
        self.finder = find_candidates(llm, count=count, prompts=prompts)
        self.writer = write_question(llm, prompts=prompts)
        self.reader = answer_from_description(llm if reader is None else reader, prompts=prompts)
        self.guesser = answer_from_description(llm if blind is None else blind, prompts=prompts, name="blind")
        self.judge = judge_equivalence(llm if judge is None else judge, form=judge_form, prompts=prompts)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that it asks, each once."""
        return tuple(dict.fromkeys(node.model for node in self.nodes.values()))

    @property
    def nodes(self) -> Mapping[str, Node[Any, Any]]:
        """What it asks, by role."""
        return {
            "finder": self.finder,
            "writer": self.writer,
            "reader": self.reader,
            "blind": self.guesser,
            "judge": self.judge,
        }

    def standing_in(self, roles: Mapping[str, PlanRole]) -> QuestionMaker:
        """One that asks the same in the roles of a plan, which are called as those of `nodes`."""
        twin = copy.copy(self)
        twin.finder = roles["finder"].stand_in(self.finder)
        twin.writer = roles["writer"].stand_in(self.writer)
        twin.reader = roles["reader"].stand_in(self.reader)
        twin.guesser = roles["blind"].stand_in(self.guesser)
        twin.judge = roles["judge"].stand_in(self.judge)
        return twin

    def form(self) -> JsonObject:
        """Everything that decides what is made."""
        prompts = [prompt for node in self.nodes.values() for prompt in node.prompts_in_use]
        return {
            "models": {name: node.model.form() for name, node in self.nodes.items() if name != "judge"},
            "judge": self.judge.canonical(),
            "prompts": {prompt.path.name: prompt.digest for prompt in prompts},
            "count": self.finder.count,
        }

    async def find(self, caption: str) -> Result[Any]:
        """The answers that a caption has."""
        return await self.finder.ask(caption)

    async def pair(self, caption: str, answer: str) -> Pair:
        """What becomes of one answer; it goes from gate to gate until one stops it."""
        pair = Pair(answer=answer)
        if normal(answer) not in normal(caption):
            return replace(pair, stopped="in the caption", reason="the caption does not have these words")
        for gate in (self._question, self._from_caption, self._blindly):
            pair = await gate(pair, caption)
            if pair.stopped is not None:
                break
        return pair

    async def _question(self, pair: Pair, caption: str) -> Pair:
        asked = await self.writer.ask(AnswerInCaption(caption=caption, answer=pair.answer))
        question = "" if asked.value is None else str(asked.value)
        pair = _with(pair, asked, gate="question", question=question)
        if pair.stopped is None and f" {normal(pair.answer)} " in f" {normal(question)} ":
            return replace(pair, stopped="question", reason="the question has the answer in it")
        return pair

    async def _from_caption(self, pair: Pair, caption: str) -> Pair:
        gate: Gate = "answered from the caption"
        asked = await self.reader.ask(VisualQuestion(description=caption, question=pair.question))
        pair = _with(pair, asked, gate=gate, from_caption="" if asked.value is None else str(asked.value))
        if pair.stopped is not None:
            return pair
        pair, verdict = await self._same(pair, pair.from_caption, gate=gate)
        if verdict.value in {None, "true"}:
            return pair
        return replace(pair, stopped=gate, reason=f"the caption answers {pair.from_caption!r} ({verdict})")

    async def _blindly(self, pair: Pair, caption: str) -> Pair:  # noqa: ARG002  # as every gate
        gate: Gate = "not answered blindly"
        asked = await self.guesser.ask(VisualQuestion(description=NOTHING, question=pair.question))
        pair = _with(pair, asked, gate=gate, blindly="" if asked.value is None else str(asked.value))
        if pair.stopped is not None:
            return pair
        pair, verdict = await self._same(pair, pair.blindly, gate=gate)
        if verdict.value != "true":
            return pair
        return replace(pair, stopped=gate, reason=f"a model that sees nothing answers {pair.blindly!r}")

    async def _same(self, pair: Pair, said: str, *, gate: Gate) -> tuple[Pair, Verdict]:
        """Whether an answer means the same as the pair's; a pair without a verdict is stopped."""
        verdict = await self.judge.judge(pair.answer, said, question=pair.question)
        pair = replace(pair, calls=(*pair.calls, *verdict.calls))
        if verdict.value is None:
            reason = f"no verdict: {verdict.outcome}: {verdict.reason}"
            pair = replace(pair, stopped=gate, reason=reason, failed=verdict.outcome == "failed")
        return pair, verdict


def _with(pair: Pair, asked: Result[Any], *, gate: Gate, **said: str) -> Pair:
    """The pair with what was said; stopped at the gate where nothing was."""
    pair = replace(pair, calls=(*pair.calls, *(call.key for call in asked.calls)), **said)
    if asked.value is not None:
        return pair
    return replace(
        pair, stopped=gate, reason=f"{asked.outcome}: {asked.reason}", failed=asked.outcome in {"failed", "skipped"}
    )
