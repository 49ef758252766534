"""The options that tasks of suites share: which samples, the models by role, and what the answering model gets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from typing_extensions import override

from askance.errors import UsageError
from askance.evals.suite.context import PICTURE, TEXT_ONLY, VERBALIZED, View, view_of
from askance.evals.task import Task
from askance.models import ModelLike, get_model

if TYPE_CHECKING:
    from askance.models import Model


class SuiteTask(Task):
    """A task over a data set."""

    data: Path
    """Folder of the data set."""
    ids: Path | Sequence[str] | None = None
    """File that lists the images."""
    limit: int | None = Field(default=None, ge=1, exclude=True)
    """Images at most."""
    seed: int = 0
    """Of all that is drawn: images, options, their order, folds."""


class RoleTask(Task):
    """A task that asks models, each for what its role says."""

    vlm: ModelLike | None = None
    """Sees the picture."""
    llm: ModelLike | None = None
    """Reasons over words; by default the VLM does."""
    combiner: ModelLike | None = None
    """Makes T_V; by default the LLM does."""

    @property
    def see(self) -> Model:
        """What sees the picture.

        Raises:
            UsageError: there is no model.
        """
        model = self.vlm or self.llm
        if model is None:
            raise UsageError("There is no model that could answer.", hint="Give `vlm`, `llm`, or both.")
        return get_model(model)

    @property
    def think(self) -> Model:
        """What reasons over words."""
        return self.see if self.llm is None else get_model(self.llm)

    @property
    def combine(self) -> Model:
        """What makes T_V."""
        return self.think if self.combiner is None else get_model(self.combiner)


class ModelTask(RoleTask):
    """A task that a model answers from the picture, or from what is said of it."""

    contexts: ClassVar[tuple[str, ...]] = (*VERBALIZED, PICTURE, TEXT_ONLY)
    """What the answering model can get."""
    beside: ClassVar[bool] = False
    """Whether a verbalization may stand beside the picture, and an atypicality statement beside both."""

    context: str = PICTURE
    """What the answering model gets: the picture, `I`, or a description such as `UH`, `V+T` or `T_V`."""

    @override
    def model_post_init(self, context: Any, /) -> None:
        """Checks the context.

        Raises:
            UsageError: the task has no such context.
        """
        _ = self.view

    @cached_property
    def view(self) -> View:
        """The context, taken apart."""
        return view_of(self.context, task=self.name, among=self.contexts, beside=self.beside)

    @property
    def answering(self) -> Model:
        """The model that answers, from the picture or from words."""
        return self.see if self.view.picture else self.think

    @override
    def label(self) -> str:
        return f"{self.answering.id} ({self.view.name})"
