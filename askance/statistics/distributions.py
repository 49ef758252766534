"""Quantiles and tails of the normal, Student's and the binomial distribution."""

from __future__ import annotations

from statistics import NormalDist

from askance.errors import UsageError

_NORMAL = NormalDist()


def normal_quantile(share: float) -> float:
    """The value below which `share` of a standard normal lies."""
    return _NORMAL.inv_cdf(share)


def two_sided(level: float) -> float:
    """Standard errors to either side for a normal interval of `level`.

    Raises:
        UsageError: `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        msg = f"A level of {level!r} is not between 0 and 1."
        raise UsageError(msg, hint="Give it as a share, such as 0.95.")
    return normal_quantile((1 + level) / 2)


def student_quantile(share: float, *, freedom: int) -> float:
    """The value below which `share` of Student's t with `freedom` degrees of freedom lies."""
    from scipy import special

    return float(special.stdtrit(freedom, share))


def fair_coin_p(heads: int, tosses: int) -> float:
    """Two-sided exact p of `heads` in `tosses` of a fair coin; 1 where there are none."""
    from scipy import special

    if not tosses:
        return 1.0
    tail = float(special.bdtr(min(heads, tosses - heads), tosses, 0.5))
    return min(1.0, 2 * tail)
