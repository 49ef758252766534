"""Whether the true options can be told without the image: a blind model is asked, in several orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from askance import statistics
from askance.agents.blind import BlindChooser
from askance.chains.stream import in_order
from askance.models import get_model

if TYPE_CHECKING:
    from askance.evals.negatives.files import OptionSet
    from askance.models import Engine, ModelLike
    from askance.prompts import PromptLibrary
    from askance.statistics import Estimate

ORDERS = 4
"""Orders in which each image's options are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindImage:
    """What a blind model made of one image's options."""

    key: str
    orders: int
    answered: int
    """Orders with an answer."""
    precision: float | None
    """Share of what it chose that is true, in the mean over orders; None without an answer."""
    chance: float
    """The same for a guess."""
    chosen: Mapping[str, float]
    """How often each option was chosen, as a share of the orders with an answer."""

    @property
    def solved(self) -> bool:
        """Whether it answered in every order and chose true options alone."""
        return self.answered == self.orders and self.precision == 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """What a blind model made of a file."""

    model: str
    orders: int
    images: Mapping[str, BlindImage]
    precision: Estimate
    """Over images with an answer."""
    chance: float
    """Of the same images."""
    calls: int
    unanswered: int

    @property
    def above_chance(self) -> bool:
        """Whether all of the interval is."""
        interval = self.precision.interval
        return interval is not None and interval.low > self.chance


async def ask_blind(
    sets: Sequence[OptionSet],
    llm: ModelLike,
    *,
    orders: int = ORDERS,
    seed: int = 0,
    engine: Engine | None = None,
    prompts: PromptLibrary | None = None,
) -> Blind:
    """Asks which options are true, of each image `orders` times, each time in another order.

    Args:
        sets: the options.
        llm: a model, which is told nothing of the images.
        orders: how often each image is asked about.
        seed: of the orders and of the bootstrap.
        engine: where `llm` is no model yet.
        prompts: where prompts are looked up.

    Raises:
        CallError: the model cannot be asked at all.
    """
    model = get_model(llm, engine=engine)
    await model.output_mode()
    choosers = {count: BlindChooser(model, count=count, prompts=prompts) for count in {len(each.true) for each in sets}}

    async def ask(one: tuple[OptionSet, int]) -> tuple[OptionSet, tuple[str, ...] | None]:
        each, order = one
        options = [*dict.fromkeys(each.options)]
        Random(f"{seed}\n{each.key}\n{order}").shuffle(options)
        result = await choosers[len(each.true)].ask(options)
        return each, None if result.value is None else tuple(options[number - 1] for number in result.value.numbers)

    answers: dict[str, list[tuple[str, ...]]] = {each.key: [] for each in sets}
    turns = ((each, order) for each in sets for order in range(orders))
    async with aclosing(in_order(ask, turns, room=lambda: model.engine.places)) as found:
        async for each, chosen in found:
            if chosen is not None:
                answers[each.key].append(chosen)
    images = {each.key: _image(each, answers[each.key], orders=orders) for each in sets}
    judged = [image for image in images.values() if image.precision is not None]
    precisions = [image.precision or 0.0 for image in judged]
    return Blind(
        model=str(model.id),
        orders=orders,
        images=images,
        precision=statistics.mean_estimate(precisions, seed=seed, binary={0.0, 1.0}.issuperset(precisions)),
        chance=sum(image.chance for image in judged) / len(judged) if judged else 0.0,
        calls=len(sets) * orders,
        unanswered=len(sets) * orders - sum(map(len, answers.values())),
    )


def _image(each: OptionSet, answers: Sequence[tuple[str, ...]], *, orders: int) -> BlindImage:
    options = [*dict.fromkeys(each.options)]
    true = {*each.true}
    precisions = [sum(text in true for text in chosen) / len(chosen) for chosen in answers]
    counted = len(answers)
    return BlindImage(
        key=each.key,
        orders=orders,
        answered=counted,
        precision=sum(precisions) / counted if counted else None,
        chance=sum(text in true for text in options) / len(options),
        chosen={text: sum(text in chosen for chosen in answers) / counted for text in options} if counted else {},
    )
