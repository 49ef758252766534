"""What a backend counts of its own work: what was computed, and what was reused.

A backend that counts has `async def counted(self) -> Counters`, everything since it was made; see `ChatModel`. A run
keeps the difference between its start and its end in `run.json`, by model, in the form of `Counters.canonical`; a
blame keeps it in `blame.json`. The judges of a scoring count as models of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from askance.amounts import many

if TYPE_CHECKING:
    from askance.chat import JsonObject


@dataclass(slots=True, kw_only=True)
class Counters:
    """Counts since the model was made; `unknown` names those that the backend cannot tell."""

    answers: int = 0
    batches: int = 0
    encodes: int = 0
    """Pictures that went through the vision tower."""
    pictures: int = 0
    """Pictures in what was asked: as many encodes as there would be without sharing."""
    found: int = 0
    """Of `pictures`: those that had been prepared for another question."""
    prefix_computed: int = 0
    """Tokens of shared prefixes that were computed."""
    prefix_reused: int = 0
    """Tokens of prompts that had been computed before."""
    prompt: int = 0
    """Tokens of all prompts, pictures included."""
    written: int = 0
    """Tokens of all answers."""
    halved: int = 0
    """Times that a batch did not fit into memory and was halved."""
    unknown: frozenset[str] = frozenset()
    """Names of the counts that the backend cannot tell; they are left out of every record."""

    @classmethod
    def from_canonical(cls, form: Mapping[str, Any]) -> Counters:
        """The counts in a record; what it does not name is unknown."""
        known = {name: int(form[name]) for name in COUNTS if isinstance(form.get(name), int)}
        return cls(**known, unknown=frozenset(COUNTS) - known.keys())

    def canonical(self) -> JsonObject:
        """The counts that are known, by name."""
        return {name: getattr(self, name) for name in COUNTS if name not in self.unknown}

    def __add__(self, other: Counters) -> Counters:
        return self._with(other, lambda mine, theirs: mine + theirs)

    def __sub__(self, earlier: Counters) -> Counters:
        return self._with(earlier, lambda mine, theirs: mine - theirs)

    def _with(self, other: Counters, how: Callable[[int, int], int]) -> Counters:
        counts = {name: how(getattr(self, name), getattr(other, name)) for name in COUNTS}
        return Counters(**counts, unknown=self.unknown | other.unknown)

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in COUNTS)

    def __str__(self) -> str:
        known = set(COUNTS) - self.unknown
        parts = (
            ({"answers"}, many(self.answers, "answer")),
            ({"batches"}, f"in {many(self.batches, 'batch', 'batches')}"),
            ({"encodes", "pictures"}, f", {many(self.encodes, 'encode')} for {self.pictures:,} pictures asked about"),
            (
                {"found", "pictures"},
                f", {self.found:,} of {self.pictures:,} pictures found prepared" * bool(self.found),
            ),
            ({"prefix_reused", "prompt"}, f", {self.prefix_reused:,} of {self.prompt:,} prompt tokens reused"),
            ({"written"}, f", {many(self.written, 'token')} written"),
            ({"halved"}, f", {many(self.halved, 'batch', 'batches')} halved for want of memory" * bool(self.halved)),
        )
        return " ".join(text for names, text in parts if names <= known and text).replace(" ,", ",").lstrip(", ")


COUNTS = tuple(field.name for field in fields(Counters) if field.name != "unknown")
"""Names of all counts."""


def counts_form(counts: Mapping[str, Counters], earlier: Mapping[str, Any] | None = None) -> JsonObject:
    """Counts by model as `run.json` holds them, with those of `earlier` starts of the run, in that form, added."""
    total = {name: Counters.from_canonical(form) for name, form in (earlier or {}).items()}
    for name, each in counts.items():
        total[name] = total[name] + each if name in total else each
    return {name: each.canonical() for name, each in sorted(total.items())}


def counts_text(counts: Mapping[str, Counters]) -> list[str]:
    """A line for each model."""
    return [f"{name}: {each}." for name, each in counts.items()]
