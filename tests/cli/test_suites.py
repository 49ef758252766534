"""A suite that another package brings: found by its entry point, run, reported, compared and scored again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from askance.errors import UsageError
from askance.evals import Run, evaluate, find_task, task_of
from askance.evals.task_catalog import packaged, tasks_of_suite
from tests.cli.command import Command
from tests.distributions import install

SUITE = '''\
"""Whether numbers are odd."""

from typing import Literal

from askance.evals import Sample, Task, right_or_wrong


class Parity(Task):
    """Whether a number is odd."""

    name = "tiny/parity"
    count: int = 8
    """How many numbers."""
    says: Literal["odd", "even"] = "odd"
    """What is said of each."""

    def samples(self):
        return [Sample(id=str(number), target="odd" if number % 2 else "even") for number in range(self.count)]

    def solver(self):
        return lambda sample: self.says

    def scorer(self):
        return right_or_wrong()
'''


def install_suite(place: Path, name: str, text: str, *, suite: str = "tiny") -> None:
    """Installs a package with one module, which is a suite."""
    install(place, name, {"askance.suites": {suite: name}}, {name: text})


@pytest.fixture
def site(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages of the test's own."""
    place = own_place / "site"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))  # pyright: ignore[reportUnknownMemberType]
    tasks_of_suite.cache_clear()
    yield place
    tasks_of_suite.cache_clear()


def test_a_suite_of_another_package_is_run_reported_and_compared(site: Path, askance: Command) -> None:
    install_suite(site, "askance_tiny", SUITE)

    done = [askance("eval", "run", "tiny/parity", "-T", f"says={word}", "--out", word) for word in ("odd", "even")]
    listed, options = askance("eval", "list"), askance("eval", "list", "tiny/parity", "--json")
    page, compared = askance("report", "odd", "-o", "odd.html"), askance("compare", "odd", "even", "--json")
    again = askance("eval", "score", "odd", "--reread", "--json")

    assert [each.code for each in (*done, listed, options, page, compared, again)] == [0] * 7
    assert "tiny/parity " in listed.out
    assert json.loads(options.out)["options"][1] == {
        "name": "says",
        "takes": "one of `odd`, `even`",
        "needed": False,
        "default": "odd",
        "meaning": "What is said of each.",
    }
    run = Run.open("odd")
    assert (run.origin, run.configuration["options"]) == ({}, {"count": 8, "says": "odd"})
    assert (run.figure("accuracy").value, again.lines[0]["reread"]) == (0.5, 8)
    assert "tiny/parity" in Path("odd.html").read_text(encoding="utf-8")


def test_it_is_a_class_as_all_tasks_are(site: Path) -> None:
    install_suite(site, "askance_small", SUITE.replace("tiny/", "small/"), suite="small")

    task = find_task("small/parity")
    run = evaluate(task(count=3), out="run")

    assert run.figure("accuracy").value == pytest.approx(1 / 3)
    assert task_of(run) is task


WRONG = {
    "broken": ("1 / 0", r"The suite 'tiny' of the package 'wrong' cannot be loaded from 'wrong': ZeroDivisionError"),
    "not there": (SUITE, r"There is no task 'tiny/paritee'\. Near it: tiny/parity"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_suite_is_told(text: str, message: str, site: Path) -> None:
    install_suite(site, "wrong", text)

    with pytest.raises(UsageError, match=message):
        find_task("tiny/paritee")


def test_two_packages_cannot_bring_one_suite_and_others_are_listed(
    site: Path, askance: Command, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("one_tiny", "other_tiny"):
        install_suite(site, name, SUITE)
    message = r"Several packages bring a suite 'tiny': '\w+_tiny' \(\w+_tiny\) and '\w+_tiny' \(\w+_tiny\)\. Uninstall"

    with pytest.raises(UsageError, match=message):
        find_task("tiny/parity")
    assert "pittads/mac" in packaged()
    assert re.match(message, caplog.messages[0])
    assert askance("eval", "list").code == 0
