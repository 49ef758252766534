"""A task as a class: what its options take, what is said of wrong ones, and what a run keeps of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import Field

from askance.errors import UsageError
from askance.evals import Evaluation, Sample, Scorer, Task, evaluate, find_task, right_or_wrong
from askance.evals.task_options import type_in_words
from askance.models import ModelLike, ScorerLike


class Counted(Task):
    """Which number it is.

    More is said below.
    """

    name = "tests/counted"

    data: Path
    """Folder of numbers."""
    vlm: ModelLike | None = None
    encoder: ScorerLike | None = Field(default=None, alias="scorer")
    kind: Literal["odd", "even"] = "odd"
    """What is
    counted."""
    weight: float = Field(default=0.5, ge=0, le=1)
    count: int | None = None
    names: tuple[str, ...] = ()
    loud: bool = False

    def samples(self) -> list[Sample]:
        return [Sample(id=name, target=self.kind) for name in (self.data / "names").read_text("utf-8").split()]

    def solver(self) -> Any:
        return self.always

    def always(self, _: Sample | None) -> str:
        return self.kind

    def scorer(self) -> Scorer:
        return right_or_wrong()


def test_options_say_what_they_take() -> None:
    assert Counted.summary() == "Which number it is."
    assert {name: type_in_words(each) for name, each in Counted.takes().items()} == {
        "data": "a path",
        "vlm": "a model",
        "scorer": "a scorer",
        "kind": "one of `odd`, `even`",
        "weight": "a number from 0 to 1",
        "count": "a whole number",
        "names": "a list of texts",
        "loud": "true or false",
    }


def test_a_run_keeps_options_but_no_model_and_no_path() -> None:
    task = Counted(data=Path("ads"), vlm=None, names=("a", "b"), weight=1)

    assert task.kept() == {"kind": "odd", "weight": 1.0, "names": ["a", "b"], "loud": False}


def test_a_task_of_a_runs_options_solves_and_scores_without_its_data() -> None:
    task = Counted.of_run({"kind": "even", "names": ["a"], "given": ["gone"]})

    assert (task.solver()(None), task.names, task.weight) == ("even", ("a",), 0.5)
    assert [metric.name for metric in task.scorer().metrics] == ["accuracy"]
    with pytest.raises(UsageError, match=r"^Nothing says which `data` to take\. Give --data FOLDER on the command"):
        task.samples()


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": (
        {"data": "x", "colour": "red"},
        "The task 'tests/counted' takes no 'colour'. It takes data, vlm, scorer, kind, weight, count, names, loud.",
    ),
    "unknown and missing": ({"colour": "red"}, "The task 'tests/counted' takes no 'colour'."),
    "missing": ({}, "The task 'tests/counted' needs 'data'. Give --data FOLDER on the command line, or `data=`"),
    "choice": (
        {"data": "x", "kind": "prime"},
        "The option 'kind' of the task 'tests/counted' cannot be 'prime'. It takes one of `odd`, `even`.",
    ),
    "bounds": ({"data": "x", "weight": 2}, "The option 'weight' of the task 'tests/counted' cannot be 2."),
    "number": ({"data": "x", "count": "many"}, "The option 'count' of the task 'tests/counted' cannot be 'many'."),
    "list": ({"data": "x", "names": 3}, "The option 'names' of the task 'tests/counted' cannot be 3."),
    "the command's own": ({"data": "x", "encoder": "x"}, "The task 'tests/counted' takes no 'encoder'."),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_an_option_that_cannot_be_is_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        Counted(**options)

    assert str(refused.value).startswith(message)


def test_what_a_run_keeps_is_checked_too() -> None:
    with pytest.raises(UsageError, match=r"^The option 'context' of the task 'pittads/arr-clip' cannot be 'X'\."):
        find_task("pittads/arr-clip").of_run({"context": "X"})


def test_an_option_cannot_have_the_name_of_a_method() -> None:
    contents = {"__module__": __name__, "__annotations__": {"label": str}, "name": "tests/named"}

    with pytest.raises(UsageError, match=r"has an option called 'label', which every task has itself\. Give it"):
        type("Named", (Task,), contents)


NO_TASKS: dict[str, tuple[Any, str]] = {
    "class": (Counted, r"^'Counted' is a class, not a task\. Make one: `Counted\(data=…, vlm=…\)`\.$"),
    "name": ("pittads/mac", r'^\'pittads/mac\' is a text, not a task\. Make one: `find_task\("pittads/mac"\)\('),
    "number": (3, r"^A int is no task\. Give a `Task`, or an `Evaluation`\.$"),
}


@pytest.mark.parametrize(("task", "message"), NO_TASKS.values(), ids=NO_TASKS)
def test_what_is_no_task_is_refused(task: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(task)


def test_samples_that_are_dicts_are_refused() -> None:
    samples: Any = [{"id": "1", "image": "a.jpg"}]

    with pytest.raises(UsageError, match=r"^A sample is a dict\. Write `Sample\("):
        Evaluation(samples=samples, solver=lambda _: "odd", scorer=right_or_wrong())
