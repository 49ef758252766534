"""`AnswerJudge`: the measure of tasks whose answers a model may judge, whether one means the same as a reference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from typing_extensions import override

from askance.agents import JudgeForm, judge_equivalence
from askance.evals.judges import JudgeNote, read_card
from askance.evals.part import Part
from askance.models import ModelLike

if TYPE_CHECKING:
    from askance.agents.judge import EquivalenceJudge
    from askance.chat import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedJudge:
    """A judge, and the note on it for readers of the figures."""

    judge: EquivalenceJudge
    note: JudgeNote

    def form(self) -> JsonObject:
        """The options with which a run is scored again."""
        return {"judge": self.judge.model.form(), "judge_form": self.judge.form, "judge_note": self.note.form()}


class AnswerJudge(Part):
    """A model that judges answers, beside or in place of a comparison of words."""

    judge: ModelLike | None = None
    """A model that says whether an answer means the same as that of the data; without it only words are compared."""
    judge_form: JudgeForm = "rubric"
    """A rubric, by which a judge may be unclear, or the short question of the WHOOPS! paper: true or false."""
    card: Path | None = None
    """File with the judge's card, made by `askance judge card --json`."""

    @cached_property
    def noted(self) -> NotedJudge | None:
        """The judge, if there is one.

        Raises:
            BadData: the card cannot be read.
            UsageError: the card is another judge's.
        """
        if self.judge is None:
            return None
        judge = judge_equivalence(self.model_of(self.judge), form=self.judge_form)
        kept: JsonObject | None = self.kept_or("judge_note", lambda: None)
        note = JudgeNote(**kept) if kept else JudgeNote.of(judge, None if self.card is None else read_card(self.card))
        return NotedJudge(judge=judge, note=note)

    @override
    def kept(self) -> JsonObject:
        return {} if self.noted is None else self.noted.form()


class NeededJudge(AnswerJudge):
    """A judge without which a task has no figures."""

    judge: ModelLike  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride]  # here it is needed
    """The model that compares explanations with the references."""
    judge_form: JudgeForm = "short"
    """The paper's short question, true or false; or a rubric, by which a judge may be unclear."""

    @property
    def needed(self) -> NotedJudge:
        """The judge."""
        return cast("NotedJudge", self.noted)
