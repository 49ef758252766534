"""In how many categories of samples one run is better than another, as section 6.2 of the WHOOPS! paper counts them.

A category is worth the mean of its samples. Two runs are alike in one where these means are equal: the paper does not
say what it calls alike. The counts have no test; the comparison over all samples has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from askance.amounts import first_few

if TYPE_CHECKING:
    from askance.chat import JsonObject

CATEGORY = "category"
"""The tag that names a sample's category."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryWins:
    """The categories in which one run is better than another, is worse, and in which they are alike."""

    names: tuple[str, str]
    metric: str
    better: tuple[str, ...]
    worse: tuple[str, ...]
    alike: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The shares in plain words."""
        one, other = self.names
        count = len(self.better) + len(self.worse) + len(self.alike)
        won, lost, same = (f"{100 * len(each) / count:.0f} %" for each in (self.better, self.worse, self.alike))
        named = f" ({first_few(self.better, 3)})" if self.better else ""
        return (
            f"By category and {self.metric}: {one} better in {won} of {count}{named}, {other} in {lost}, "
            f"alike in {same}."
        )

    def form(self) -> JsonObject:
        """The categories as JSON."""
        return asdict(self)


def category_wins(
    rows: Iterable[tuple[str | None, tuple[float, float]]], *, names: tuple[str, str], metric: str, higher: bool
) -> CategoryWins | None:
    """Who wins in each category.

    Args:
        rows: by sample its category and what it is worth in either run; samples without a category are left out.
        names: of the two runs.
        metric: what the worths are.
        higher: whether more is better.

    Returns:
        None where there are fewer than two categories.
    """
    by_category = dict[str, list[tuple[float, float]]]()
    for category, worths in rows:
        if category:
            by_category.setdefault(category, []).append(worths)
    if len(by_category) < 2:
        return None
    gains = {name: _gain(worths, higher=higher) for name, worths in sorted(by_category.items())}
    return CategoryWins(
        names=names,
        metric=metric,
        better=tuple(name for name, gain in gains.items() if gain > 0),
        worse=tuple(name for name, gain in gains.items() if gain < 0),
        alike=tuple(name for name, gain in gains.items() if gain == 0),
    )


def _gain(worths: Sequence[tuple[float, float]], *, higher: bool) -> float:
    one, other = (fmean(each[place] for each in worths) for place in (0, 1))
    return one - other if higher else other - one
