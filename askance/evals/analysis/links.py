"""What the links of several runs say of the same pictures, side by side: where they differ, and nothing is scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeAlias

from askance.chains.output_line import link_values

if TYPE_CHECKING:
    from askance.chat import Json, JsonObject
    from askance.evals.sample import SampleResult

SaidByLink: TypeAlias = "Mapping[str, tuple[Json, ...]]"
"""By link, what each run says of one picture; None where it says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkComparison:
    """How often one link of two runs says the same of a picture, and how often something else."""

    a: int
    b: int
    """Which runs they are, counted from 0 in the order of the comparison."""
    link: str
    same: int
    other: int
    """Pictures of which both say something, and not the same."""
    first: int
    """Pictures of which the first alone says something."""
    second: int
    """Pictures of which the second alone says something."""

    @property
    def differing(self) -> int:
        """Pictures of which the two do not say the same."""
        return self.other + self.first + self.second

    def form(self) -> JsonObject:
        """The counts as JSON."""
        return asdict(self)


def said_by_links(row: Sequence[SampleResult]) -> SaidByLink:
    """By link, what each run says of one picture, as JSON.

    Args:
        row: the answers of all runs to it.
    """
    values = [link_values({**answer.prediction.trace, "links": answer.prediction.links}) for answer in row]
    names = dict.fromkeys(name for answer in row for name in answer.prediction.links)
    return {name: tuple(each.get(name) for each in values) for name in names}


def differing_links(row: Sequence[SampleResult], values: SaidByLink) -> SaidByLink:
    """The links that all runs have, and at which not all say the same of a picture.

    Args:
        row: the answers of all runs to it.
        values: what their links say.
    """
    shared = (name for name in values if all(name in answer.prediction.links for answer in row))
    return {name: values[name] for name in shared if any(value != values[name][0] for value in values[name])}


def compare_links(rows: Sequence[SaidByLink], pairs: Iterable[tuple[int, int]]) -> Iterator[LinkComparison]:
    """For every pair of runs, link by link, how often the two say the same; links that say nothing are left out."""
    names = [*dict.fromkeys(name for row in rows for name in row)]
    for a, b in pairs:
        for name in names:
            value_pairs = [(row[name][a], row[name][b]) for row in rows if name in row]
            both = [one == two for one, two in value_pairs if one is not None and two is not None]
            first = sum(one is not None and two is None for one, two in value_pairs)
            second = sum(one is None and two is not None for one, two in value_pairs)
            if both or first or second:
                yield LinkComparison(
                    a=a, b=b, link=name, same=sum(both), other=len(both) - sum(both), first=first, second=second
                )
