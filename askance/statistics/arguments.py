"""What functions of numbers take: finite values, whole counts, shares, outcomes that are right or wrong, labels.

Anything else is refused in a sentence: NaN in particular, which passes every comparison that is turned the other way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from askance.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def finite_array(values: Any) -> npt.NDArray[np.float64]:
    """Numbers, or rows of them, as an array.

    Raises:
        UsageError: one is not a finite number.
    """
    import numpy as np

    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        odd = next(value for value in numbers.ravel().tolist() if not math.isfinite(value))
        msg = f"{odd!r} is not a finite number."
        raise UsageError(msg, hint="Leave out samples without a value, and report how many.")
    return numbers


def check_counts(*counts: float, weighted: bool = False) -> None:
    """Refuses what is no count.

    Raises:
        UsageError: one is not a whole number from 0; of `weighted` samples, not a finite number from 0.
    """
    for count in counts:
        if not (0 <= count < math.inf and (weighted or count % 1 == 0)):  # NaN fails every comparison
            msg = f"{count!r} is no count."
            kind = "finite" if weighted else "whole"
            raise UsageError(msg, hint=f"A count is a {kind} number from 0 upwards.")


def check_part(part: float, whole: float, *, weighted: bool = False) -> None:
    """Refuses two counts of which the first is not a part of the second.

    Raises:
        UsageError: one is no count, as `check_counts` says, or the first is the larger.
    """
    check_counts(part, whole, weighted=weighted)
    if part > whole:
        msg = f"{part!r} of {whole!r} is not a share."
        raise UsageError(msg, hint="Give two counts, the first no larger than the second.")


def check_shares(shares: Iterable[float]) -> None:
    """Refuses what is no share.

    Raises:
        UsageError: one is not between 0 and 1.
    """
    for share in shares:
        if not 0 <= share <= 1:
            msg = f"{share!r} is not between 0 and 1."
            raise UsageError(msg, hint="Give shares, not percentages, and leave out samples without a value.")


def check_binary(values: Iterable[float], *, hint: str = "Give True or False, or 1 or 0, for each sample.") -> None:
    """Refuses what is neither right nor wrong.

    Raises:
        UsageError: a value is neither 0 nor 1.
    """
    odd = next((value for value in values if value not in (0, 1)), None)
    if odd is not None:
        msg = f"{odd!r} is neither 0 nor 1."
        raise UsageError(msg, hint=hint)


def check_labels(votes: Sequence[Sequence[Any]]) -> None:
    """Refuses labels that are NaN, which equals nothing, or infinite.

    Raises:
        UsageError: a label is such a number.
    """
    for row in votes:
        for label in row:
            if not isinstance(label, str) and not _may_be_label(label):
                msg = f"{label!r} is no label."
                raise UsageError(msg, hint="Give None where a rater gave none.")


def _may_be_label(label: Any) -> bool:
    try:
        return math.isfinite(label)
    except (TypeError, ValueError, OverflowError):  # it is no number, or a very large one
        return True
