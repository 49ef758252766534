"""Whether a candidate means the same as a reference: the paper's short question, or a rubric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from typing_extensions import override

from askance.agents.judging import VERDICTS, Verdict, VerdictValue, verdict_of
from askance.agents.questions import question_of
from askance.agents.replies import first_word, judged, last_line, plain_lines, reason_in, whole_object
from askance.nodes import Node, Result, Unreadable, skipped
from askance.prompts import harmless

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.chat import JsonObject
    from askance.models import ModelLike, OutputMode
    from askance.prompts import PromptLibrary

JudgeForm: TypeAlias = Literal["rubric", "short"]
"""`short` is the question of *WHOOPS!* (section 5.1), true or false; `rubric` compares first and may be unclear."""

QUESTION = "What is unusual in this image?"
"""What both texts answer where nothing else is said (*WHOOPS!*, section 5.1)."""

_PROMPTS: Mapping[JudgeForm, str] = {"short": "judge_equivalence", "rubric": "judge_equivalence_rubric"}
_SAID: Mapping[JudgeForm, tuple[VerdictValue, ...]] = {"short": ("true", "false"), "rubric": VERDICTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivalenceQuestion:
    """Whether `candidate` says the same as `reference`, as answers to `question`; both are words of strangers."""

    reference: str
    candidate: str
    question: str = QUESTION


class EquivalenceJudge(Node[EquivalenceQuestion, Verdict]):
    """Judges whether two texts mean the same: `true`, `false` or `unclear`, with a reason.

    Both texts are fenced, stand where nothing instructs, and hold no marks of chat templates. The verdict is read only
    from its place: the field of the one JSON object that the reply is; in the text forms the line that is its own. A
    reply with anything else there is `invalid`, so that its candidate is unscored.

    Args:
        form: which of the two prompts is asked.
    """

    prompt = "judge_equivalence"
    gives = Verdict

    def __init__(
        self,
        model: ModelLike,
        *,
        form: JudgeForm = "rubric",
        prompt: str | None = None,
        prompts: PromptLibrary | None = None,
        name: str | None = None,
    ) -> None:
        self.form: JudgeForm = form
        super().__init__(model, prompt=prompt or _PROMPTS[form], prompts=prompts, name=name)

    async def judge(self, reference: str, candidate: str, *, question: str = QUESTION) -> Verdict:
        """The verdict on `candidate`; unscored, with its outcome and reason, where there is none."""
        asked = EquivalenceQuestion(reference=reference, candidate=candidate, question=question)
        return verdict_of(await self.ask(asked))

    def canonical(self) -> JsonObject:
        """Everything that decides its verdicts, as JSON."""
        return {
            "judge": "equivalence",
            "form": self.form,
            "model": self.model.form(),
            "prompts": {prompt.path.name: prompt.digest for prompt in self.prompts_in_use},
        }

    def __str__(self) -> str:
        return f"{self.model.id} ({self.form})"

    @override
    def accept(self, given: Any) -> EquivalenceQuestion:
        return question_of(EquivalenceQuestion, given)

    @override
    def unasked(self, subject: EquivalenceQuestion) -> Result[Verdict] | None:
        for what, text in (("reference", subject.reference), ("candidate", subject.candidate)):
            if not text.strip():
                return skipped(f"the {what} is empty, so there is nothing to compare")
        if _folded(subject.candidate) == _folded(subject.question):
            return skipped("the candidate is the question itself, so it answers nothing")
        return None

    @override
    def variables(self, subject: EquivalenceQuestion) -> Mapping[str, Any]:
        return {"question": harmless(subject.question), "reference": subject.reference, "candidate": subject.candidate}

    @override
    def schema(self, subject: EquivalenceQuestion) -> Mapping[str, Any]:
        text = {"type": "string"}
        verdict = {"type": "string", "enum": [*_SAID[self.form]]}
        before = {"common": text, "different": text, "reason": text} if self.form == "rubric" else {}
        properties = {**before, "verdict": verdict}
        return {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
        }

    @override
    def _read(self, text: str, subject: EquivalenceQuestion, rung: OutputMode) -> Verdict:
        """JSON counts only as the whole reply, and no verdict that stands in the texts: it may be the candidate's."""
        said = judged(text, subject.reference, subject.candidate, subject.question)
        if rung == "paper":
            return self.read_text(said, subject)
        return self.read_json(whole_object(said, subject.reference, subject.candidate), subject)

    @override
    def read_json(self, data: Mapping[str, Any], subject: EquivalenceQuestion) -> Verdict:
        reason = data.get("reason", "")
        return Verdict(value=self._value(data.get("verdict")), reason=reason if isinstance(reason, str) else "")

    @override
    def read_text(self, text: str, subject: EquivalenceQuestion) -> Verdict:
        lines = plain_lines(text)
        if self.form == "short":
            found = first_word(lines, _SAID[self.form], subject.reference, subject.candidate)
            if found is None:
                raise Unreadable("the answer must be True or False, alone on the first line")
            return Verdict(value=self._value(found[0]), reason=" ".join(found[1]))
        said = last_line(lines, "Verdict", "true, false or unclear", subject.reference, subject.candidate)
        return Verdict(value=self._value(said), reason=reason_in(lines))

    def _value(self, said: object) -> VerdictValue:
        if isinstance(said, bool):
            said = str(said).lower()
        word = said.strip().lower() if isinstance(said, str) else said
        if word not in _SAID[self.form]:
            raise Unreadable(f"`verdict` must be one of {', '.join(_SAID[self.form])}")
        return word


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


judge_equivalence = EquivalenceJudge
