"""A plan: the calls that a run would make, their tokens and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from askance.chains.reading import LINKS
from askance.models.spending.spread import NOTHING, Spread

if TYPE_CHECKING:
    from askance.chains.reading import Link
    from askance.chat import ModelId
    from askance.models import Price

SECONDS_A_CALL = 3.0
"""What a call is taken to last where nothing is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPlan:
    """The calls for one link of a chain."""

    link: str
    """Of a chain, or the role of whoever asks."""
    model: ModelId
    price: Price | None
    """None is not known, never free."""
    hits: int
    """Calls that are on record."""
    known: int
    """Calls to be made whose request is known."""
    below: int
    """Calls to be made that depend on answers which are not there yet."""
    input: Spread
    """Tokens of all calls to be made."""
    output: Spread
    measured: bool
    """Whether the length of answers is that of answers on record, not an estimate."""
    computed: bool = False
    """Whether what is made is no call: scores and vectors, worked out on this machine by the thousand."""

    @property
    def calls(self) -> int:
        """Calls to be made."""
        return self.known + self.below

    @property
    def dollars(self) -> Spread | None:
        """US dollars online; None where no price is known."""
        if self.price is None:
            return None
        return self.input * (self.price.input / 1e6) + self.output * (self.price.output / 1e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run would do. Calls that are asked again after faults are not in it."""

    images: int
    unusable: int
    """Pictures that cannot be used."""
    links: tuple[LinkPlan, ...]
    probes: int
    """Endpoints that are asked first what they can do, with a few small calls each."""
    elsewhere: Mapping[Link, int] = field(default_factory=dict["Link", int])
    """Work that asks no model here, such as OCR or a node of the caller's own."""
    unit: str = "image"
    """What `images` counts."""

    @property
    def hits(self) -> int:
        """Calls that are on record."""
        return sum(link.hits for link in self.links)

    @property
    def calls(self) -> int:
        """Calls to be made."""
        return sum(link.calls for link in self.links)

    @property
    def input(self) -> Spread:
        """Tokens in."""
        return sum((link.input for link in self.links), NOTHING)

    @property
    def output(self) -> Spread:
        """Tokens out."""
        return sum((link.output for link in self.links), NOTHING)

    @property
    def dollars(self) -> Spread | None:
        """US dollars online for the calls that have a known price; see `unpriced` for the others.

        None where calls are to be made and none of them has a known price: that is not known, not nothing.
        """
        if self.calls and all(link.price is None for link in self.links if link.calls):
            return None
        return sum((link.dollars for link in self.links if link.dollars is not None), NOTHING)

    @property
    def batch_dollars(self) -> Spread | None:
        """As `dollars`, by the batch interface of those that have one; None where none has."""
        if not any(link.calls and link.price is not None and link.price.batch for link in self.links):
            return None
        parts = [
            link.dollars * (link.price.batch or 1.0)
            for link in self.links
            if link.price is not None and link.dollars is not None
        ]
        return sum(parts, NOTHING)

    @property
    def unpriced(self) -> Mapping[str, int]:
        """Calls to be made of models whose price is not known, by model."""
        counts: Counter[str] = Counter()
        for link in self.links:
            if link.price is None and link.calls:
                counts[str(link.model)] += link.calls
        return dict(counts)

    @property
    def price_dates(self) -> tuple[str, ...]:
        """Dates or versions of the price lists that `dollars` rests on; none where all prices are configured."""
        return tuple(
            sorted({link.price.as_of for link in self.links if link.price and link.price.as_of and link.calls})
        )

    def seconds(
        self,
        *,
        concurrency: int,
        rpm: float | None = None,
        tpm: float | None = None,
        seconds_a_call: float = SECONDS_A_CALL,
    ) -> float:
        """About how long the calls take at a pace: what is slowest of calls at once, calls and tokens per minute."""
        calls = sum(link.calls for link in self.links if not link.computed)
        return max(
            calls * seconds_a_call / concurrency,
            60 * calls / rpm if rpm else 0.0,
            60 * (self.input.expected + self.output.expected) / tpm if tpm else 0.0,
        )


def together(plans: Sequence[Plan]) -> Plan:
    """The plan of several runs, none of whose calls are in two of the plans; a line for each link and model."""
    if len(plans) == 1:
        return plans[0]
    links: dict[tuple[str, str], LinkPlan] = {}
    elsewhere: Counter[Link] = Counter()
    for plan in plans:
        elsewhere.update(plan.elsewhere)
        for link in plan.links:
            key = (link.link, str(link.model))
            links[key] = _sum(links[key], link) if key in links else link
    return Plan(
        images=max((plan.images for plan in plans), default=0),
        unusable=max((plan.unusable for plan in plans), default=0),
        links=tuple(sorted(links.values(), key=lambda link: (str(link.model), _places.get(link.link, len(LINKS))))),
        probes=sum(plan.probes for plan in plans),
        elsewhere=dict(elsewhere),
    )


_places: Mapping[str, int] = {link: place for place, link in enumerate(LINKS)}


def _sum(one: LinkPlan, other: LinkPlan) -> LinkPlan:
    return replace(
        one,
        hits=one.hits + other.hits,
        known=one.known + other.known,
        below=one.below + other.below,
        input=one.input + other.input,
        output=one.output + other.output,
        measured=(one.measured or not one.calls) and (other.measured or not other.calls),
    )
