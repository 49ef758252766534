"""Every packaged task is what it was, with each of its options and with those that interact."""

from __future__ import annotations

import pytest

from askance.evals.task_catalog import packaged
from tests.golden.comparison import check
from tests.golden.task_worlds import WORLDS, World
from tests.golden.tasks import CASES, file_of, outcomes


@pytest.fixture(scope="module")
def worlds() -> dict[str, World]:
    """By suite its data, made when they are first needed."""
    return {}


@pytest.mark.parametrize("task", CASES)
def test_a_task_with_each_set_of_its_options_is_as_before(
    task: str, worlds: dict[str, World], tmp_path_factory: pytest.TempPathFactory
) -> None:
    suite = task.partition("/")[0]
    if suite not in worlds:
        worlds[suite] = WORLDS[suite](tmp_path_factory.mktemp(suite))

    check(file_of(task), outcomes(task, worlds[suite]))


def test_every_option_of_every_packaged_task_is_among_the_cases() -> None:
    asked = {name: {option for case in cases.named().values() for option in case} for name, cases in CASES.items()}
    lacking = {name: sorted(task.takes().keys() - asked.get(name, set())) for name, task in packaged().items()}

    wanted = {name: options for name, options in lacking.items() if options}
    assert wanted == {}, "add them to tests/golden/task_cases.py"
