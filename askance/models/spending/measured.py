"""What recorded answers tell of calls that were not made yet: how long answers are, and how far estimates are off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.chat import ModelId, canonical_json
from askance.models.spending.picture_tokens import picture_tokens
from askance.models.spending.spread import NOTHING, Spread
from askance.models.spending.tokens import text_tokens
from askance.replay import sound

if TYPE_CHECKING:
    from askance.replay import Record, Records

Kind: TypeAlias = tuple[ModelId, str]
"""Calls that are alike: the model, and the name of the schema asked for."""

LOOKED_AT = 4000
"""Records that are looked at; they come in the order of their keys, which is as good as drawn at random."""
_LEAST = 0.1
"""Part of a mean that it is taken to be off by, at least: other calls are not quite like the recorded ones."""


@dataclass(slots=True)
class Mean:
    """A mean that grows value by value."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.squares += value * value

    @property
    def spread(self) -> Spread | None:
        """The mean give or take two standard errors, a tenth at least; None before the first value."""
        if not self.count:
            return None
        mean = self.total / self.count
        if self.count == 1:
            return Spread.around(mean)
        variance = max(self.squares / self.count - mean * mean, 0.0) * self.count / (self.count - 1)
        off = max(2 * sqrt(variance / self.count), _LEAST * mean)
        return Spread(max(mean - off, 0.0), mean, mean + off)


@dataclass(slots=True)
class Measured:
    """Tokens of calls of one kind: one prompt, one model."""

    input: Mean = field(default_factory=Mean)
    output: Mean = field(default_factory=Mean)
    estimated: float = 0.0
    """Tokens that the inputs were estimated at, all together; 0 is not known."""

    @property
    def factor(self) -> float | None:
        """What an estimate of the input has to be multiplied with; None where that is not known."""
        return self.input.total / self.estimated if self.estimated else None


def measure(records: Records, models: Iterable[ModelId]) -> Mapping[Kind, Measured]:
    """By model and name of the schema asked for: what answers on record took."""
    known = {canonical_json(model.canonical()): model for model in models}
    found: defaultdict[Kind, Measured] = defaultdict(Measured)
    for record in islice(sound(records), LOOKED_AT):
        model = known.get(canonical_json(record.request.get("model"))) if record.kind == "chat" else None
        name = _name(record.request)
        usage: Mapping[str, Any] = record.response.get("usage") or {}
        if model is not None and name and {"input", "output"} <= usage.keys():
            kind = found[model, name]
            kind.input.add(usage["input"])
            kind.output.add(usage["output"])
            kind.estimated += _estimate(record, model).expected
    return found


def _name(request: Mapping[str, Any]) -> str | None:
    response: Mapping[str, Any] = request.get("response") or {}
    return response.get("name")


def _estimate(record: Record, model: ModelId) -> Spread:
    """What the input of a recorded request would have been estimated at."""
    size, pictures = 0, NOTHING
    for message in record.request["messages"]:
        for part in message["parts"]:
            if part["type"] == "text":
                size += len(part["text"].encode("utf-8", "surrogatepass"))
            elif (sent := record.images.get(part["sha256"])) is not None:
                detail = part.get("detail", "auto")
                pictures += picture_tokens(model.model, sent["width"], sent["height"], detail=detail)
    for name in ("tools", "response"):
        size += len(canonical_json(record.request[name]).encode()) if name in record.request else 0
    return text_tokens(size) + pictures
