"""The best assignment is held against all others."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from askance.errors import UsageError
from askance.statistics import best_assignment


def test_no_other_assignment_adds_up_to_more() -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        values = generator.normal(size=(5, 5))
        best = max(permutations(range(5)), key=lambda order: sum(values[row, order[row]] for row in range(5)))
        assert best_assignment(values) == list(best)


def test_rows_and_columns_are_as_many_and_all_numbers_finite() -> None:
    with pytest.raises(UsageError, match=r"Numbers of the shape \(2, 3\) assign no column to each row"):
        best_assignment(np.zeros((2, 3)))
    with pytest.raises(UsageError, match="nan is not a finite number"):
        best_assignment([[0.0, np.nan], [0.0, 1.0]])
