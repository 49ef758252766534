"""Base classes of the tasks of suites: options for the data, for models by role, for the context, and for a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from pydantic import Field
from typing_extensions import override

from askance.agents import JudgeForm, judge_equivalence
from askance.errors import UsageError
from askance.evals.judges import JudgeNote, read_card
from askance.evals.suite.context import PICTURE, TEXT_ONLY, VERBALIZED, SuiteContext, View, view_of
from askance.evals.task import Task
from askance.models import ModelLike, get_model
from askance.models.factory import model_from_form

if TYPE_CHECKING:
    from askance.agents.judge import EquivalenceJudge
    from askance.chat import JsonObject
    from askance.models import Engine, Model


class SuiteTask(Task):
    """A task over a data set."""

    data: Path
    """Folder of the data set."""
    ids: Path | Sequence[str] | None = None
    """File that lists the images."""
    limit: int | None = Field(default=None, ge=1, exclude=True)
    """How many images at most."""
    seed: int = 0
    """Seed of all random choices: images, options, their order, folds."""


class RoleTask(Task):
    """A task with models in up to three roles."""

    vlm: ModelLike | None = None
    """Sees the picture."""
    llm: ModelLike | None = None
    """Reasons over words; by default the VLM does."""
    combiner: ModelLike | None = None
    """Makes T_V; by default the LLM does."""

    @property
    def see(self) -> Model:
        """The model that sees the picture.

        Raises:
            UsageError: there is no model.
        """
        model = self.vlm or self.llm
        if model is None:
            raise UsageError("There is no model that could answer.", hint="Give `vlm`, `llm`, or both.")
        return get_model(model)

    @property
    def think(self) -> Model:
        """The model that reasons over words."""
        return self.see if self.llm is None else get_model(self.llm)

    @property
    def combine(self) -> Model:
        """The model that makes T_V."""
        return self.think if self.combiner is None else get_model(self.combiner)


class ModelTask(RoleTask):
    """A task that a model answers in a context: from the picture, or from what is said of it."""

    contexts: ClassVar[tuple[str, ...]] = (*VERBALIZED, PICTURE, TEXT_ONLY)
    """Names of the contexts that the task has."""
    suite_contexts: ClassVar[Mapping[str, SuiteContext]] = {}
    """By name, those of them that the suite brings itself."""
    beside: ClassVar[bool] = False
    """Whether it allows a verbalization beside the picture, and an atypicality statement beside both."""

    context: str = PICTURE
    """What the answering model gets: the picture, `I`, or a description such as `UH`, `V+T` or `T_V`."""

    @override
    def check(self) -> None:
        """Checks the context.

        Raises:
            UsageError: the task has no such context.
        """
        super().check()
        _ = self.view

    @cached_property
    def view(self) -> View:
        """The context, parsed."""
        return view_of(self.context, task=self.name, among=self.contexts, beside=self.beside, suite=self.suite_contexts)

    @property
    def answering(self) -> Model:
        """The model that answers, from the picture or from words."""
        return self.see if self.view.picture else self.think

    @override
    def label(self) -> str:
        return f"{self.answering.id} ({self.view.name})"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedJudge:
    """A judge, and the note on it for readers of the figures."""

    judge: EquivalenceJudge
    note: JudgeNote

    def form(self) -> JsonObject:
        """The options with which a run is scored again."""
        return {"judge": self.judge.model.form(), "judge_form": self.judge.form, "judge_note": self.note.form()}


class JudgeTask(Task):
    """A task whose answers a model may judge: whether one means the same as a reference."""

    judge: ModelLike | None = None
    """A model that says whether an answer means the same as that of the data; without it only words are compared."""
    judge_form: JudgeForm = "rubric"
    """A rubric, by which a judge may be unclear, or the short question of the WHOOPS! paper: true or false."""
    card: Path | None = None
    """File with the judge's card, made by `askance judge card --json`."""

    @property
    def noted_judge(self) -> NotedJudge | None:
        """The judge, if there is one; the judge of a run that is scored again answers from its records only.

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
