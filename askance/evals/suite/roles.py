"""The models of a chain, by what each has to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.models import get_model

if TYPE_CHECKING:
    from askance.models import Model, ModelLike


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The models of a chain."""

    vlm: ModelLike | None = None
    """Sees the picture; None where everything that it would say is given."""
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

    def answering(self, *, picture: bool) -> Model:
        """What gives the answer, from the picture or from words."""
        return self.see if picture else self.think
