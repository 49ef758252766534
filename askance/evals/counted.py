"""Scores and vectors in a plan: what is on record, and what would be made, each once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance.chains.planned import LinkPlan
from askance.models import Price
from askance.models.encoders import embedder, scorer
from askance.models.spending.spread import NOTHING

if TYPE_CHECKING:
    from askance.chat import ModelId

_HERE = frozenset({"scripted", *embedder.PROVIDERS, *scorer.PROVIDERS})
"""Providers whose scores and vectors are worked out on this machine, at no price."""


@dataclass(slots=True)
class Counted:
    """How much of one kind there is."""

    hits: int = 0
    known: int = 0
    below: int = 0
    """Of texts that are not known yet."""

    def add(self, keys: Iterable[str], lacking: Collection[str], counted: set[str]) -> None:
        """Counts those of `keys` that were not counted before; `lacking` are those that are not on record."""
        fresh = {*keys} - counted
        counted |= fresh
        self.known += len(fresh & {*lacking})
        self.hits += len(fresh - {*lacking})

    def plan(self, link: str, model: ModelId) -> LinkPlan:
        """Its line in a plan."""
        return LinkPlan(
            link=link,
            model=model,
            price=Price(input=0.0, output=0.0) if model.provider in _HERE else None,
            hits=self.hits,
            known=self.known,
            below=self.below,
            input=NOTHING,
            output=NOTHING,
            measured=True,
            computed=True,
        )
