"""Tasks whose answers a model judges: whether one means the same as a reference, and what is known of that judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from typing_extensions import override

from askance.agents import JudgeForm, judge_equivalence
from askance.evals.judges import JudgeNote, read_card
from askance.evals.task import Task
from askance.models import ModelLike, get_model
from askance.models.factory import model_from_form

if TYPE_CHECKING:
    from askance.agents.judge import EquivalenceJudge
    from askance.chat import JsonObject
    from askance.models import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedJudge:
    """A judge with its note."""

    judge: EquivalenceJudge
    note: JudgeNote

    def form(self) -> JsonObject:
        """What a run keeps of it, to be scored again."""
        return {"judge": self.judge.model.form(), "judge_form": self.judge.form, "judge_note": self.note.form()}


class JudgeTask(Task):
    """A task whose answers a model may judge."""

    judge: ModelLike | None = None
    """A model that says whether an answer means the same as that of the data; without one words alone are compared."""
    judge_form: JudgeForm = "rubric"
    """A rubric, by which a judge may be unclear, or the short question of the WHOOPS! paper: true or false."""
    card: Path | None = None
    """File with the judge's card, made by `askance judge card --json`."""

    @property
    def noted_judge(self) -> NotedJudge | None:
        """The judge, if there is one; one that a run describes answers from its records alone.

        Raises:
            BadData: the card cannot be read.
            UsageError: the card is another judge's.
        """
        if self.judge is None:
            return None
        if isinstance(self.judge, Mapping):
            model = model_from_form(cast("JsonObject", self.judge), cast("Engine", self.engine))
        else:
            model = get_model(self.judge, engine=self.engine)
        judge = judge_equivalence(model, form=self.judge_form)
        known: JsonObject | None = self.found("judge_note", lambda: None)
        note = JudgeNote(**known) if known else JudgeNote.of(judge, None if self.card is None else read_card(self.card))
        return NotedJudge(judge=judge, note=note)

    @override
    def kept(self) -> JsonObject:
        noted, kept = self.noted_judge, super().kept()
        del kept["judge_form"]
        return kept if noted is None else {**kept, **noted.form()}
