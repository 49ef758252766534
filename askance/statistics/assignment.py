"""Assignment: each row of a matrix gets a column of its own, so that the numbers of all pairs add up to the most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.statistics.arguments import finite_array

if TYPE_CHECKING:
    import numpy.typing as npt


def best_assignment(matrix: npt.ArrayLike) -> list[int]:
    """The column of each row in the assignment with the highest sum; where several have it, the solver's choice.

    Raises:
        UsageError: there are not as many rows as columns, or a number is not finite.
    """
    from scipy.optimize import linear_sum_assignment

    values = finite_array(matrix)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise UsageError(
            f"Numbers of the shape {values.shape} assign no column to each row.",
            hint="Give as many rows as columns.",
        )
    _, columns = linear_sum_assignment(values, maximize=True)
    assigned: list[int] = columns.tolist()
    return assigned
