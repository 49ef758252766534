"""Judges of tasks: a model that says whether an answer means the same as a reference, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from askance.agents import JudgeForm, judge_equivalence
from askance.evals.judging import JudgeNote, read_card
from askance.models import get_model
from askance.models.factory import model_from_form

if TYPE_CHECKING:
    from askance.agents.judge import EquivalenceJudge
    from askance.chat import JsonObject
    from askance.models import Engine, ModelLike

JudgeLike: TypeAlias = "ModelLike | Mapping[str, Any]"
"""A model that judges, or the form of one as a run keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """A judge with its note."""

    judge: EquivalenceJudge
    note: JudgeNote

    @property
    def options(self) -> JsonObject:
        """What a run keeps of it, to be scored again."""
        return {
            "judge": self.judge.model.form(),
            "judge_form": self.judge.form,
            "judge_note": self.note.form(),
        }

    @classmethod
    def of(
        cls,
        judge: JudgeLike,
        *,
        form: JudgeForm,
        engine: Engine | None,
        card: Path | None = None,
        note: Mapping[str, Any] | None = None,
    ) -> Judging:
        """The judge that a model is.

        Args:
            judge: a model, or the form of one, which answers from its records alone.
            form: of the question.
            engine: the run's, whose records and mode are used; None is the model's own.
            card: file with the judge's card.
            note: in place of a card, what a run has kept of it.

        Raises:
            BadData: the card cannot be read.
            UsageError: the card is another judge's.
        """
        if isinstance(judge, Mapping):
            model = model_from_form(judge, cast("Engine", engine))
        else:
            model = get_model(judge, engine=engine)
        made = judge_equivalence(model, form=form)
        if note is not None:
            return cls(judge=made, note=JudgeNote(**note))
        return cls(judge=made, note=JudgeNote.of(made, None if card is None else read_card(card)))
