"""Parts of tasks: which answerer answers."""

from __future__ import annotations

from typing import Any

import pytest
from typing_extensions import override

from askance.evals import Answerer, Question, Solver
from askance.evals.solver import as_solver


class FirstOption(Answerer):
    """Chooses the first option."""

    chosen_by = ("first", "place")

    first: bool = False
    place: int | None = None

    @override
    def label(self) -> str:
        return "first"

    @override
    def solver(self, question: Question) -> Solver:
        return as_solver(lambda _: [1])


@pytest.mark.parametrize(
    ("options", "chosen"),
    [({}, False), ({"first": False}, False), ({"first": True}, True), ({"place": 0}, True), ({"place": None}, False)],
)
def test_an_answerer_is_chosen_by_an_option_that_is_neither_none_nor_false(
    options: dict[str, Any], chosen: bool
) -> None:
    assert FirstOption(**options).is_chosen is chosen
