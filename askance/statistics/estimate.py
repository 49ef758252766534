"""Estimates: a value with its interval, and the reason where one could not be computed."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from askance.errors import UsageError

_NORMAL = NormalDist()

DRAWS = 2000
"""Resamples of a bootstrap; limits then differ by a hundredth of the interval's width from seed to seed."""
LEVEL = 0.95
"""Confidence level: the share of intervals that hold the truth."""

Method = Literal["wilson", "tango", "cluster bootstrap", "unseen clusters", "prediction-powered"]

State = Literal["estimated", "no data", "one cluster", "no spread"]
"""Why an interval is missing or empty.

`no data`: there are no values. `one cluster`: there is a value, but no spread can be estimated. `no spread`: all values
are equal, so that resampling them tells nothing.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float
    level: float = LEVEL
    method: Method
    undefined: int = 0
    """Number of resamples in which the statistic was not defined; they are left out."""

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        """From low to high."""
        return self.high - self.low


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean or another figure of a set of samples."""

    value: float | None
    interval: Interval | None
    standard_error: float | None = None
    n: int
    n_clusters: int
    state: State


def normal_quantile(share: float) -> float:
    """The value below which `share` of a standard normal lies."""
    return _NORMAL.inv_cdf(share)


def two_sided_z(level: float) -> float:
    """Half the width of a normal interval of `level`, in standard errors: 1.96 for 0.95.

    Raises:
        UsageError: `level` is not between 0 and 1.
    """
    check_level(level)
    return normal_quantile((1 + level) / 2)


def check_level(level: float) -> None:
    """Refuses a level outside of (0, 1).

    Raises:
        UsageError: `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        msg = f"A level of {level!r} is not between 0 and 1."
        raise UsageError(msg, hint="Give it as a share, such as 0.95.")
