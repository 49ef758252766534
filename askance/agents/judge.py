"""Judges: whether a candidate means the same as a reference, and which of two answers is the better one.

`judge_equivalence` asks the paper's short question or a rubric. `judge_panel` asks several judges, or one in several
draws. `judge_references` holds a candidate against several references. `judge_preference` asks in both orders.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from typing_extensions import Unpack, override

from askance import statistics
from askance.agents.verdict import (
    VERDICTS,
    Judge,
    Judgement,
    JudgeNode,
    JudgeQuestion,
    Verdict,
    VerdictValue,
    canonical_judge,
    plain_lines,
    read_last_line,
    read_word,
    reason_in,
)
from askance.errors import UsageError
from askance.models import run_sync, use_draw
from askance.models.call_scope import current_scope
from askance.nodes import NodeOptions, Result, TypedAnswer, Unreadable, skipped
from askance.prompts import sanitize

if TYPE_CHECKING:
    from askance.chat import JsonObject, Outcome
    from askance.models import ModelLike
    from askance.prompts import PromptLibrary
    from askance.statistics import Agreement, Resampling

JudgeForm: TypeAlias = Literal["rubric", "short"]
"""`short` is the question of *WHOOPS!* (section 5.1), true or false; `rubric` compares first and may be unclear."""

QUESTION = "What is unusual in this image?"
"""The question that both texts answer by default (*WHOOPS!*, section 5.1)."""

_PROMPTS: Mapping[JudgeForm, str] = {"short": "judge_equivalence", "rubric": "judge_equivalence_rubric"}
_VALUES: Mapping[JudgeForm, tuple[VerdictValue, ...]] = {"short": ("true", "false"), "rubric": VERDICTS}

Position: TypeAlias = Literal["first", "second", "same"]
POSITIONS: tuple[Position, ...] = get_args(Position)

PreferenceValue: TypeAlias = Literal["a", "b", "tie"]


class EquivalenceQuestion(JudgeQuestion):
    """Whether `candidate` says the same as `reference`, as answers to `question`."""

    reference: str
    candidate: str
    question: str = QUESTION

    @property
    @override
    def texts(self) -> tuple[str, ...]:
        return (self.reference, self.candidate)


class EquivalenceJudge(JudgeNode[EquivalenceQuestion, Verdict]):
    """Judges whether two texts mean the same: `true`, `false` or `unclear`, with a reason.

    A candidate whose verdict cannot be read is unscored.

    Args:
        form: which of the two prompts is asked.
    """

    prompt = "judge_equivalence"
    takes = EquivalenceQuestion
    gives = Verdict
    field = "verdict"

    def __init__(self, model: ModelLike, *, form: JudgeForm = "rubric", **options: Unpack[NodeOptions]) -> None:
        self.form: JudgeForm = form
        self.values = _VALUES[form]
        self.notes = ("common", "different", "reason") if form == "rubric" else ()
        options["prompt"] = options.get("prompt") or _PROMPTS[form]
        super().__init__(model, **options)

    async def judge(self, reference: str, candidate: str, *, question: str = QUESTION) -> Verdict:
        """The verdict on `candidate`; unscored, with its outcome and reason, where there is none."""
        inputs = EquivalenceQuestion(reference=reference, candidate=candidate, question=question)
        return Verdict.of(await self.ask(inputs))

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
    def unasked(self, subject: EquivalenceQuestion) -> Result[Verdict] | None:
        for what, text in (("reference", subject.reference), ("candidate", subject.candidate)):
            if not text.strip():
                return skipped(f"the {what} is empty, so there is nothing to compare")
        if _folded(subject.candidate) == _folded(subject.question):
            return skipped("the candidate is the question itself, so it answers nothing")
        return None

    @override
    def variables(self, subject: EquivalenceQuestion) -> Mapping[str, Any]:
        return {"question": sanitize(subject.question), "reference": subject.reference, "candidate": subject.candidate}

    @override
    def word(self, value: object) -> object:
        return super().word(str(value) if isinstance(value, bool) else value)

    @override
    def read_text(self, text: str, subject: EquivalenceQuestion) -> Verdict:
        lines = plain_lines(text)
        if self.form == "short":
            verdict = read_word(lines, self.values, subject.texts)
            if verdict is None:
                raise Unreadable("the answer must be True or False, alone on the first line")
            return self.judgement(verdict[0], reason=" ".join(verdict[1]))
        verdict_line = read_last_line(lines, "Verdict", words="true, false or unclear", texts=subject.texts)
        return self.judgement(verdict_line, reason=reason_in(lines))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


class PanelVerdict(TypedAnswer):
    """What each member of a panel says of one candidate, in the order of the panel."""

    votes: tuple[Verdict, ...]

    @property
    def verdict(self) -> Verdict:
        """The panel's verdict.

        More than half of the members must give a verdict, or the candidate is unscored. The value that more than half
        of these verdicts have is the panel's; without such a value, as in a tie, it is `unclear`.
        """
        calls = tuple(call for vote in self.votes for call in vote.calls)
        cast: list[VerdictValue] = [vote.value for vote in self.votes if vote.value is not None]
        if 2 * len(cast) <= len(self.votes):
            first = next(vote for vote in self.votes if vote.value is None)
            reason = f"{len(cast)} of {len(self.votes)} judges gave a verdict; another: {first.reason}"
            return Verdict(outcome=first.outcome, reason=reason, calls=calls)
        ((value, most), *_) = Counter(cast).most_common()
        counts = Counter(vote.value or "unscored" for vote in self.votes)
        votes = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        if 2 * most <= len(cast):
            return Verdict(value="unclear", reason=f"no majority: {votes}", calls=calls)
        return Verdict(value=value, reason=votes, calls=calls)


class Panel:
    """A judge made of several: each is asked, each in several draws.

    Draws of a model at temperature 0 are mostly equal; give the model a temperature to learn anything from them.

    Args:
        judges: one or more.
        draws: how often each is asked.

    Raises:
        UsageError: there is no judge, or a count of draws below 1.
    """

    def __init__(self, *judges: Judge, draws: int = 1) -> None:
        if not judges or draws < 1:
            raise UsageError(
                f"{len(judges)} judges with {draws} draws each are no panel.", hint="It takes at least one of each."
            )
        self.judges = judges
        self.draws = draws

    async def vote(self, reference: str, candidate: str, *, question: str = QUESTION) -> PanelVerdict:
        """What each member says of `candidate`."""
        first = current_scope().draw * self.draws  # so that a panel, too, can be drawn several times

        async def one(judge: Judge, draw: int) -> Verdict:
            with use_draw(first + draw):
                return await judge.judge(reference, candidate, question=question)

        members = [one(judge, draw) for judge in self.judges for draw in range(self.draws)]
        return PanelVerdict(votes=tuple(await asyncio.gather(*members)))

    async def judge(self, reference: str, candidate: str, *, question: str = QUESTION) -> Verdict:
        """The verdict of the majority."""
        return (await self.vote(reference, candidate, question=question)).verdict

    def canonical(self) -> JsonObject:
        """Everything that decides its verdicts, as JSON."""
        return {"judge": "panel", "members": [canonical_judge(each) for each in self.judges], "draws": self.draws}

    def __str__(self) -> str:
        members = " + ".join(map(str, self.judges))
        return f"panel of {members}" if self.draws == 1 else f"panel of {members}, {self.draws} draws each"


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelAgreement:
    """How far the members of a panel agree over many candidates."""

    alpha: Agreement
    ac1: Agreement
    pairwise: Agreement

    def __iter__(self) -> Iterator[Agreement]:
        return iter((self.alpha, self.ac1, self.pairwise))


def panel_agreement(verdicts: Sequence[PanelVerdict], *, resampling: Resampling | None = None) -> PanelAgreement:
    """Krippendorff's alpha, Gwet's AC₁ and the share of agreeing pairs; missing verdicts are left out."""
    votes = [[vote.value for vote in verdict.votes] for verdict in verdicts]
    return PanelAgreement(
        alpha=statistics.krippendorff_alpha(votes, resampling=resampling),
        ac1=statistics.gwet_ac1(votes, resampling=resampling),
        pairwise=statistics.pairwise_agreement(votes, resampling=resampling),
    )


class ReferencesVerdict(TypedAnswer):
    """What a judge says of one candidate beside each reference, in the order of the references."""

    each: tuple[Verdict, ...]

    @property
    def any_of(self) -> Verdict:
        """Whether the candidate says the same as one of the references.

        One `true` is enough. Without one, an unscored reference makes the candidate unscored, since that verdict might
        have been true; otherwise an unclear one makes it unclear. Blank references do not count.
        """
        calls = tuple(call for verdict in self.each for call in verdict.calls)
        counted = [verdict for verdict in self.each if verdict.outcome != "skipped"]
        for wanted in ("true", None, "unclear", "false"):
            decisive = next((verdict for verdict in counted if verdict.value == wanted), None)
            if decisive is not None:
                return Verdict(value=decisive.value, reason=decisive.reason, outcome=decisive.outcome, calls=calls)
        reason = self.each[0].reason if self.each else "there is no reference to compare with"
        return Verdict(outcome="skipped", reason=reason, calls=calls)

    @property
    def share(self) -> float | None:
        """Of the references with a verdict, the share that the candidate says the same as; None without any."""
        scored = [verdict for verdict in self.each if verdict.scored]
        return sum(verdict.value == "true" for verdict in scored) / len(scored) if scored else None


async def judge_references(
    judge: Judge, references: Sequence[str], candidate: str, *, question: str = QUESTION
) -> ReferencesVerdict:
    """The verdicts on `candidate` beside each of `references`; without references no judge is asked."""
    verdicts = await asyncio.gather(*(judge.judge(each, candidate, question=question) for each in references))
    return ReferencesVerdict(each=tuple(verdicts))


class PreferenceQuestion(JudgeQuestion):
    """Which of two answers to `question` is better, in this order."""

    first: str
    second: str
    about: str = ""
    """What the question is about, in words; strangers wrote it."""

    @property
    @override
    def texts(self) -> tuple[str, ...]:
        return (self.first, self.second, *((self.about,) if self.about else ()))


class PositionVerdict(Judgement[Position]):
    """What a judge says of two answers in one order: the position of the better one, or `same`."""


class Preference(TypedAnswer):
    """What a judge says of two answers, a and b, in both orders."""

    a_first: PositionVerdict
    b_first: PositionVerdict

    @property
    def value(self) -> PreferenceValue | None:
        """The answer that wins in both orders, else a tie; None where one of the two verdicts is missing."""
        if self.a_first.value is None or self.b_first.value is None:
            return None
        return _WON.get((self.a_first.value, self.b_first.value), "tie")

    @property
    def flipped(self) -> bool:
        """Whether the same position won in both orders, so that the order decided."""
        return self.a_first.value == self.b_first.value and self.a_first.value in {"first", "second"}

    @property
    def outcome(self) -> Outcome:
        """`answered`, or the outcome of the first order without an answer."""
        return self.b_first.outcome if self.a_first.outcome == "answered" else self.a_first.outcome

    @property
    def reason(self) -> str:
        """The judge's words, or why there are none."""
        return " / ".join(verdict.reason for verdict in (self.a_first, self.b_first) if verdict.reason)

    @property
    def calls(self) -> tuple[str, ...]:
        """Keys of the records that it rests on."""
        return (*self.a_first.calls, *self.b_first.calls)

    @property
    def swapped(self) -> Preference:
        """The preference with a and b exchanged."""
        return Preference(a_first=self.b_first, b_first=self.a_first)

    def __str__(self) -> str:
        return self.value or "unscored"


_WON: Mapping[tuple[Position, Position], PreferenceValue] = {("first", "second"): "a", ("second", "first"): "b"}
"""The winner, by the verdict with a first and the verdict with b first."""
_AROUND = re.compile(r"^the\s+|\s+(?:one|answer)$")


class PreferenceNode(JudgeNode[PreferenceQuestion, PositionVerdict]):
    """Asks which of two answers is better, in one order."""

    prompt = "judge_preference"
    takes = PreferenceQuestion
    gives = PositionVerdict
    field = "better"
    values = POSITIONS

    @override
    def variables(self, subject: PreferenceQuestion) -> Mapping[str, Any]:
        about = {"about": subject.about} if subject.about.strip() else {}
        return {"question": sanitize(subject.question), "first": subject.first, "second": subject.second, **about}

    @override
    def word(self, value: object) -> object:
        return _AROUND.sub("", value.strip().lower()) if isinstance(value, str) else value

    @override
    def read_text(self, text: str, subject: PreferenceQuestion) -> PositionVerdict:
        lines = plain_lines(text)
        preferred = read_last_line(
            lines, "Better(?:\\s+(?:one|answer))?", words="first, second or same", texts=subject.texts
        )
        return self.judgement(preferred, reason=reason_in(lines))


class PreferenceJudge:
    """Judges which of two answers is better, always in both orders.

    Args:
        model: as a node takes it.
        prompt: name of a prompt of the user's own.
        prompts: where prompts are looked up.
    """

    def __init__(self, model: ModelLike, *, prompt: str | None = None, prompts: PromptLibrary | None = None) -> None:
        self.node = PreferenceNode(model, prompt=prompt, prompts=prompts)

    async def judge(self, a: str, b: str, *, question: str, about: str = "") -> Preference:
        """Which of `a` and `b` answers `question` better; equal texts are a tie that nobody is asked about.

        Args:
            a: one answer.
            b: the other.
            question: what both answer.
            about: what the question is about, in words: the judge sees no picture. It is quoted, as the answers are.
        """
        unasked = _unasked(a, b)
        if unasked is not None:
            return Preference(a_first=unasked, b_first=unasked)
        # One after the other: beside many pairs nothing is gained by asking at once.
        a_first = await self._ask(PreferenceQuestion(first=a, second=b, question=question, about=about))
        b_first = await self._ask(PreferenceQuestion(first=b, second=a, question=question, about=about))
        return Preference(a_first=a_first, b_first=b_first)

    def __call__(self, a: str, b: str, *, question: str, about: str = "") -> Preference:
        """As `judge`, from anywhere: scripts, threads, notebooks."""
        return run_sync(self.judge(a, b, question=question, about=about))

    def canonical(self) -> JsonObject:
        """Everything that decides its preferences, as JSON."""
        prompts = {prompt.path.name: prompt.digest for prompt in self.node.prompts_in_use}
        return {"judge": "preference", "model": self.node.model.form(), "prompts": prompts}

    def __str__(self) -> str:
        return f"{self.node.model.id} (preference)"

    async def _ask(self, question: PreferenceQuestion) -> PositionVerdict:
        return PositionVerdict.of(await self.node.ask(question))


def _unasked(a: str, b: str) -> PositionVerdict | None:
    if not a.strip() or not b.strip():
        return PositionVerdict(outcome="skipped", reason="an answer is empty, so there is nothing to compare")
    return PositionVerdict(value="same", reason="both answers are the same text") if a == b else None


judge_equivalence = EquivalenceJudge
judge_panel = Panel
judge_preference = PreferenceJudge
