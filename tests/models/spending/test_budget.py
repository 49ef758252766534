from __future__ import annotations

import pytest

from askance.chat import Usage
from askance.errors import UsageError
from askance.models import Price
from askance.models.spending.budget import Amount, Budget, shown_dollars


@pytest.mark.parametrize(
    ("text", "budget", "words"),
    [
        ("5", Budget(dollars=5), "$5.00"),
        ("5.00", Budget(dollars=5), "$5.00"),
        ("$0.5", Budget(dollars=0.5), "$0.5000"),
        ("1,200 dollars", Budget(dollars=1200), "$1,200.00"),
        ("20000tokens", Budget(tokens=20_000), "20,000 tokens"),
        ("2M tokens", Budget(tokens=2_000_000), "2,000,000 tokens"),
        ("20ktokens", Budget(tokens=20_000), "20,000 tokens"),
        ("100calls", Budget(calls=100), "100 calls"),
        ("1 call", Budget(calls=1), "1 call"),
    ],
)
def test_a_budget_as_written(text: str, budget: Budget, words: str) -> None:
    assert (Budget.parse(text), str(budget)) == (budget, words)


@pytest.mark.parametrize("text", ["", "much", "-1", "5 euros", "1e3", "nan", "tokens"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(UsageError) as error:
        Budget.parse(text)

    assert str(error.value) == f"{text!r} is no budget. Write 5.00 for US dollars, 20000tokens, or 100calls."


def test_a_budget_limits_something() -> None:
    with pytest.raises(UsageError, match=r"^A budget limits dollars, tokens or calls, to nothing or more\."):
        Budget()


def test_every_limit_holds() -> None:
    budget = Budget(dollars=1, tokens=10, calls=2)

    assert budget.allows(Amount(nanodollars=10**9, tokens=10, calls=2))
    assert not budget.allows(Amount(nanodollars=10**9 + 1, tokens=10, calls=2))
    assert not budget.allows(Amount(tokens=11))
    assert not budget.allows(Amount(calls=3))
    assert str(budget) == "$1.00 and 10 tokens and 2 calls"


def test_an_amount_is_rounded_up_and_needs_a_count() -> None:
    price = Price(input=1, output=1e-4)

    assert Amount.of(Usage(input=1, output=1), price) == Amount(nanodollars=1001, tokens=2, calls=1)
    assert Amount.of(Usage(input=1, output=1), None) == Amount(nanodollars=0, tokens=2, calls=1)
    assert Amount.of(Usage(input=1), price) is None


@pytest.mark.parametrize(
    ("dollars", "shown"), [(0, "$0.00"), (1234.5, "$1,234.50"), (0.0123, "$0.0123"), (1e-6, "less than $0.0001")]
)
def test_dollars_as_shown(dollars: float, shown: str) -> None:
    assert shown_dollars(dollars) == shown
