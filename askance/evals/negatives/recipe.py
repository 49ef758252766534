"""What negatives are written: kinds, how many, for which true statements; and the order and the draws of a seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from askance.agents.negatives import Domain, NegativeKind, NegativeQuestion, kinds_of, normal
from askance.errors import UsageError

if TYPE_CHECKING:
    from askance.evals.negatives.files import HardNegative, Source

MOST = 3
"""True statements of an image that negatives are made from: the authors cut their lists there."""

_FILES: Mapping[Domain, str] = {
    "ads": "{}_hard_QA_Combined_Action_Reason_train.json",
    "explanations": "{}_hard_QA_Explanation.json",
}
"""Names of the files, those of ads as the authors' code has them."""
_NAMES = {"statement": "semantic"}
ALL = "large_combined"
"""Stands in the name of the file with the negatives of all kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What is written; all of it decides the answers or their order."""

    domain: Domain = "ads"
    kinds: tuple[NegativeKind, ...] = ()
    """Empty is all of the domain."""
    most: int = MOST
    """True statements of an image, the first in order; what else is true of it is still no negative."""
    count: int = 1
    """Negatives of each kind for each true statement."""
    seed: int = 0
    """Of the order of the options, and of what is drawn for the kind `random`."""
    draw: int = 0
    """Another one asks all anew, for other answers of the same model."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", kinds_of(self.domain, self.kinds or None))
        if self.most < 1 or self.count < 1:
            raise UsageError("At least one negative of at least one statement is written.", hint="Give 1 or more.")

    def file(self, kind: NegativeKind | None) -> str:
        """Name of the file with the negatives of one kind, or of all for None."""
        return _FILES[self.domain].format(ALL if kind is None else _NAMES.get(kind, kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One call: a kind of negative for one true statement."""

    source: Source
    place: int
    kind: NegativeKind

    @property
    def name(self) -> str:
        """What tells it from the others of a run."""
        return f"{self.source.key}\n{self.kind}\n{self.place}"

    @property
    def statement(self) -> str:
        """The true statement."""
        return self.source.true[self.place]

    @property
    def question(self) -> NegativeQuestion:
        """What the writer is asked."""
        others = tuple(text for text in self.source.true if text != self.statement)
        return NegativeQuestion(statement=self.statement, others=others)


def wanted(sources: Iterable[Source], recipe: Recipe) -> Iterator[Wanted]:
    """Every call that a recipe asks for, image by image."""
    for source in sources:
        for kind in recipe.kinds:
            for place in range(min(recipe.most, len(source.true))):
                yield Wanted(source=source, place=place, kind=kind)


def random_negatives(sources: Sequence[Source], recipe: Recipe) -> Mapping[str, tuple[str, ...]]:
    """For each call of the kind `random`: explanations of other images, drawn with the recipe's seed.

    None stands twice with an image, and none says what is true of it. Where there are too few, it is empty.
    """
    if "random" not in recipe.kinds:
        return {}
    pool = [(source.key, text) for source in sources for text in source.true]
    drawn: dict[str, tuple[str, ...]] = {}
    for source in sources:
        taken = {normal(text) for text in source.true}
        fresh = iter(Random(f"{recipe.seed}\n{source.key}").sample(pool, len(pool)))
        for one in wanted([source], recipe):
            if one.kind == "random":
                texts = _some(fresh, recipe.count, apart=source.key, taken=taken)
                drawn[one.name] = texts if len(texts) == recipe.count else ()
    return drawn


def _some(fresh: Iterator[tuple[str, str]], count: int, *, apart: str, taken: set[str]) -> tuple[str, ...]:
    texts: list[str] = []
    while len(texts) < count and (found := next(fresh, None)) is not None:
        key, text = found
        if key != apart and normal(text) not in taken:
            taken.add(normal(text))
            texts.append(text)
    return tuple(texts)


def options_of(
    source: Source, negatives: Iterable[HardNegative], recipe: Recipe, *, kind: NegativeKind | None
) -> list[str] | None:
    """The true statements and the negatives of a kind, or of all, in an order drawn with the seed; None without any."""
    wrong = [negative.text for negative in negatives if kind in {None, negative.kind}]
    if not wrong:
        return None
    options = [*source.true[: recipe.most], *wrong]
    Random(f"{recipe.seed}\n{source.key}\n{kind}").shuffle(options)
    return options
