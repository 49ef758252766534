"""Encoders of pictures and texts on the samples of `pittads/arr-multi` and `pittads/arr-single` (Table 11)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import Field
from typing_extensions import override

from askance.chains import DESCRIPTION, Chain, verbalize
from askance.evals.pittads.arr import ModeTask
from askance.evals.pittads.task import DescribedTask
from askance.evals.suite.context import TOOLS, VERBALIZED, View, view_of
from askance.evals.suite.ranker import WEIGHT, FusionContext, FusionSolver, Texts, parts_of
from askance.models import EmbedderLike, ScorerLike

if TYPE_CHECKING:
    from askance.chat import JsonObject

DESCRIBED: Mapping[FusionContext, str] = {
    "I": "I",
    "I+T": "I+V+T",
    "I+T+V": "I+V+T",
    "I+T+V+IN+UH": "I+V+T+IN+UH",
    "I+T_V": "I+T_V",
}
"""The context of the other tasks that has the same texts, or the nearest one."""

FUSION_NOTE = (
    "How picture and texts are fused is not in the paper: here by the mean of the fit to the picture and of the mean "
    "similarity to the texts, where `weight` is 0.5"
)


class ArrClip(DescribedTask, ModeTask):
    """Which of the options an ad argues for, by encoders of pictures and texts."""

    name = "pittads/arr-clip"

    encoder: ScorerLike = Field(alias="scorer")
    """How well an option fits the picture."""
    embedder: EmbedderLike | None = None
    """How similar an option is to a text; not needed for `I`."""
    context: FusionContext = "I"
    """What options are held against: the picture, and texts beside it (Table 11)."""
    texts: Texts = "apart"
    """Whether texts are compared one by one (apart) or as one (joined)."""
    weight: float = Field(default=WEIGHT, ge=0, le=1)
    """Of the texts, from 0 to 1."""

    @cached_property
    @override
    def view(self) -> View:
        return view_of(DESCRIBED[self.context], task=self.name, among=(*VERBALIZED, "I"), beside=True)

    @override
    def solver(self) -> FusionSolver:
        return self.fusion

    @cached_property
    def fusion(self) -> FusionSolver:
        """What ranks the options, made once."""
        return FusionSolver(
            self.encoder,
            self.embedder,
            context=self.context,
            chain=self._chain(),
            texts=self.texts,
            weight=self.weight,
            count=self.count,
            engine=self.engine or (self.see.engine if self.vlm or self.llm else None),
        )

    def _chain(self) -> Chain | None:
        """Makes the texts that are missing, as far as there is a model to make them."""
        missing = [part for part in parts_of(self.context) if part not in self.given]
        if not missing or not (self.vlm or self.llm):
            return None
        whole = verbalize(self.see, self.combine, context="T_V" if self.context == "I+T_V" else "V+T+IN+UH")
        wanted = {*missing, *(TOOLS if "description" in missing else ())} - {*self.given}
        there = wanted if self.vlm is not None else wanted - {*TOOLS}
        steps = [step for step in whole.steps if step.link.name in there]
        return Chain(f"texts of {self.context}", target=DESCRIPTION, steps=steps, mode=whole.mode)

    @override
    def label(self) -> str:
        return f"{self.fusion.scorer.id} ({self.context})"

    @override
    def notes(self) -> tuple[str, ...]:
        return (*super().notes(), FUSION_NOTE)

    @override
    def kept(self) -> JsonObject:
        embedder = None if self.fusion.embedder is None else self.fusion.embedder.form()
        return {**super().kept(), "scorer": self.fusion.scorer.form(), "embedder": embedder}
