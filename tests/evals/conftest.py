from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def draws_are_few(few_draws: None) -> None:
    """Figures of runs are tested here; the statistics behind them have a room of their own, with all draws."""
