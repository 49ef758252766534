"""The task of atypicality statement retrieval: which statement of a relation between two objects holds (section 3.1).

The options of an image are s⁺, its first true statement, and statements that do not hold:

- *wrong objects*: the two objects of each of K = 2 other annotated images, in both orders: 2 K statements;
- *wrong relation*: the same objects in each relation that no annotator of the image sees: up to three;
- *swapped*: the same relation, the objects the other way round.

A wrong statement is left out if an annotator of the image made it, or if it is among the options already. The seed
decides which other images are drawn, from all annotated ones, and the order of the options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from typing_extensions import override

from askance.agents import choose_statement
from askance.atypicality import Statement
from askance.chains import ANSWERS
from askance.evals.part import Question
from askance.evals.pittads.task import AdModel, AdsTask, wrong_relations
from askance.evals.sample import Sample
from askance.evals.suite.any_solver import AnySolver
from askance.evals.suite.choice import TRUE, choice_samples, single_scorer
from askance.evals.suite.option_orders import Orders
from askance.evals.suite.shots import SHOTS_NOTE, Examples
from askance.evals.suite.shuffle import random_order

if TYPE_CHECKING:
    from askance.evals.pittads.dataset import Ad, PittAds
    from askance.evals.scorer import Scorer

K = 2
"""From how many other images objects are taken in place of the true ones."""

WrongStatement: TypeAlias = Literal["wrong objects", "wrong relation", "swapped"]
WRONG_STATEMENTS: tuple[WrongStatement, ...] = get_args(WrongStatement)
"""Kinds of wrong statements (Fig. 6)."""


class Asr(AdsTask):
    """Which statement of an atypical relation between two objects holds in an ad."""

    name = "pittads/asr"
    needs = ("statements",)

    model: AdModel = AdModel(context="IN")
    """The model that answers."""
    other: AnySolver = AnySolver()
    """A solver in its place."""
    examples: Examples = Examples(note=SHOTS_NOTE)
    """The answered examples before each question."""
    orders: Orders = 1
    """2 asks each sample again with its options the other way round."""

    @override
    def usable(self) -> Mapping[str, Callable[[Ad], bool]]:
        return {"without a true statement": lambda ad: bool(ad.statements)}

    @cached_property
    def others(self) -> tuple[tuple[str, Statement], ...]:
        """The images that objects of wrong statements are taken from, each with its true statement."""
        return pool_of(self.dataset)

    @override
    def samples_of(self, ad: Ad) -> Iterator[Sample]:
        """The samples of one ad, one for each order of its options."""
        kinds = kinds_of(ad, self.others, seed=self.seed)
        sample = Sample(id=ad.id, image=self.image_of(ad), inputs={**self.links[ad.id]}, group=ad.id)
        return choice_samples(sample, kinds, seed=self.seed, orders=self.orders)

    @override
    def answer_of(self, sample: Sample) -> Mapping[str, Any]:
        return {"answer": sample.target["true"][0]}

    @override
    def label_of(self, sample: Sample) -> str:
        return str(sample.target["true"][0])

    @override
    def question(self) -> Question:
        return Question(
            name=self.parsed_context.name,
            agent=choose_statement,
            asks=self.parsed_context.options_question,
            target=ANSWERS,
            given=self.given,
            count=1,
            seed=self.seed,
        )

    @override
    def scorer(self) -> Scorer:
        return single_scorer(WRONG_STATEMENTS, orders=self.orders)


def pool_of(data: PittAds) -> tuple[tuple[str, Statement], ...]:
    """Each annotated image with a true statement, and its first true statement."""
    annotations = data.contents.annotations
    if annotations is None:
        return ()
    images = annotations.images
    return tuple((key, images[key].statements[0]) for key in sorted(images) if images[key].statements)


def kinds_of(ad: Ad, pool: Sequence[tuple[str, Statement]], *, seed: int) -> dict[str, str]:
    """The options of an ad with their kinds: `true`, or how the statement is wrong."""
    true = ad.statements[0]
    kinds = {true.text: TRUE}
    known = {_folded(statement) for statement in ad.statements}
    for kind, statement in _wrong(ad, true, pool, seed=seed):
        if _folded(statement) not in known:
            known.add(_folded(statement))
            kinds[statement.text] = kind
    return kinds


def _wrong(
    ad: Ad, true: Statement, pool: Sequence[tuple[str, Statement]], *, seed: int
) -> Iterator[tuple[WrongStatement, Statement]]:
    own = {_names(statement) for statement in ad.statements}
    others = (
        other
        for key, other in random_order(pool, seed=seed, key=ad.id)
        if key != ad.id and _names(other) not in own and _names(other)[::-1] not in own
    )
    for other in islice(others, K):
        yield "wrong objects", Statement(true.relation, other.primary, other.secondary)
        yield "wrong objects", Statement(true.relation, other.secondary, other.primary)
    for statement in wrong_relations(ad, true, seed=seed):
        yield "wrong relation", statement
    yield "swapped", Statement(true.relation, true.secondary, true.primary)


def _names(statement: Statement) -> tuple[str, str]:
    return statement.primary.casefold(), statement.secondary.casefold()


def _folded(statement: Statement) -> tuple[str, str, str]:
    return (statement.relation, *_names(statement))
