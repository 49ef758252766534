from __future__ import annotations

from typing import Any, cast

import pytest

from tests.statistics import reference


# Loading statsmodels and scikit-learn takes longer than all other tests of this room.
@pytest.mark.slow(group="properties")
def test_the_table_is_what_the_packages_say() -> None:
    table, said = reference.read(), reference.cases()

    assert table.keys() - {"header"} == said.keys()
    for name, cases in said.items():
        assert [flat(case) for case in table[name]] == [pytest.approx(flat(case), nan_ok=True) for case in cases], name


def flat(value: Any) -> list[Any]:
    """All leaves of nested lists and mappings, in order."""
    parts: Any = value
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value).values()
    elif not isinstance(value, list):
        return [value]
    return [leaf for part in parts for leaf in flat(part)]
