"""What was computed and what was spared on this machine."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.chat import JsonObject


@dataclass(slots=True, kw_only=True)
class Counters:
    """Counts since the model was made."""

    answers: int = 0
    batches: int = 0
    encodes: int = 0
    """Pictures that went through the vision tower."""
    pictures: int = 0
    """Pictures in what was asked: as many encodes as there would be without sharing."""
    prefix_computed: int = 0
    """Tokens of shared beginnings that were computed."""
    prefix_reused: int = 0
    """Tokens of shared beginnings that an answer found computed."""
    prompt: int = 0
    """Tokens of all prompts, pictures included."""
    written: int = 0
    """Tokens of all answers."""
    halved: int = 0
    """Times that a batch did not fit into memory and was halved."""

    def canonical(self) -> JsonObject:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        return (
            f"{self.answers} answers in {self.batches} batches, {self.encodes} encodes for {self.pictures} pictures "
            f"asked about, {self.prefix_reused} of {self.prompt} prompt tokens reused, {self.written} tokens written"
        )
