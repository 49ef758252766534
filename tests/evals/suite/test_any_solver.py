"""A solver in the place of a model, and what a task is composed of: options that are joined, chosen, refused."""

from __future__ import annotations

from pathlib import Path
from types import new_class
from typing import Any

import pytest
from typing_extensions import override

from askance.errors import AskanceError, UsageError
from askance.evals import Answerer, Question, Run, Sample, Solver, Task, aevaluate, right_or_wrong
from askance.evals.analysis.rescore import rescored
from askance.evals.pittads import ArrBaseline, ArrMulti, Mac
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.solver import as_solver
from askance.evals.suite import AnySolver, FusionSolver, InContext
from askance.evals.suite.choice import answers_in
from askance.models import Engine, ScriptedScorer
from askance.replay import MemoryStore
from tests.evals.pittads.worlds import world
from tests.scripted import model_of, scripted

OPTIONS = ["tea", "a brick", "sleep"]


class Third(Solver):
    """Answers with the third option."""

    @override
    async def answer(self, sample: Sample) -> list[int]:
        return [3]


def last(sample: Sample) -> list[int]:
    return [len(sample.inputs["options"])]


class Drinks(Task):
    """Which one is a drink."""

    name = "tests/drinks"

    seed: int = 0
    """Seed of random answers."""
    model: InContext = InContext(context="text-only")
    """The model that answers."""
    other: AnySolver = AnySolver()
    """A solver in its place."""

    @override
    def samples(self) -> list[Sample]:
        return [Sample(id=f"drink {number}", inputs={"options": OPTIONS}, target=[1]) for number in range(40)]

    @override
    def question(self) -> Question:
        return Question(name="drinks", count=1, seed=self.seed)

    @override
    def scorer(self) -> Any:
        return right_or_wrong()


async def answers(tmp_path: Path, **options: Any) -> Run:
    return await aevaluate(Drinks(**options), out=tmp_path / "run")


@pytest.mark.parametrize(
    ("solver", "label", "value"),
    [
        ("longest", "longest", [2]),
        ("majority", "majority", [1]),
        (Third(), "Third", [3]),
        (last, "last", [3]),
        (as_solver(last), "last", [3]),
    ],
)
async def test_a_solver_answers_in_place_of_a_model(tmp_path: Path, solver: Any, label: str, value: list[int]) -> None:
    run = await answers(tmp_path, solver=solver)

    assert run.label == label
    assert [answer.prediction.value for answer in run.answers] == [value] * 40


async def test_random_answers_go_by_the_seed(tmp_path: Path) -> None:
    runs = [
        await aevaluate(Drinks(solver="random", seed=seed), out=tmp_path / str(place))
        for place, seed in enumerate((0, 0, 1))
    ]

    one, again, other = ([list(answers_in(each.prediction.value, 3)) for each in run.answers] for run in runs)
    assert one == again != other
    assert {number for answer in one for number in answer} == {1, 2, 3}


async def test_a_solver_of_a_file_is_loaded_where_the_user_names_it(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("def second(sample):\n    return [2]\n", encoding="utf-8")

    run = await answers(tmp_path, solver=f"{file}:second")
    _, figures = await rescored(run, Drinks)

    assert run.label == "second"
    assert figures == run.figures
    with pytest.raises(UsageError, match="what only a run names is not loaded"):
        Drinks.of_run(run.configuration["options"]).solver()
    with pytest.raises(UsageError, match="what only a run names is not loaded"):
        Drinks.of_run({"solver": f"{file}:second"})


def test_a_baseline_of_a_run_answers_again() -> None:
    made = Drinks.of_run(Drinks(solver="longest").kept())

    assert as_solver(made.solver()).form() == {"baseline": "longest option", "count": 1}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a solver beside a model": ({"solver": "random", "vlm": "model"}, "A solver takes the place of models."),
    "no such solver": ({"solver": "best"}, "There is no solver 'best'. There are random, longest, majority"),
    "nearly a baseline": ({"solver": "randon"}, "There is no solver 'randon'. Nearest: 'random'. There are random,"),
    "nearly an encoder": ({"solver": "clipp:FOLDER"}, "There is no solver 'clipp:FOLDER'. Nearest: 'clip'. There are"),
    "no solver": ({"solver": 3}, "A int answers no samples."),
    "a question that no model is asked": ({"vlm": "model"}, "No model is asked 'drinks'."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_answer_is_refused_with_the_way_out(case: str) -> None:
    options, sentence = REFUSED[case]
    options = {name: model_of(scripted()) if value == "model" else value for name, value in options.items()}

    with pytest.raises(AskanceError) as refused:
        Drinks(**options).evaluation()

    assert str(refused.value).startswith(sentence)


async def test_a_baseline_asks_nobody_so_its_plan_has_no_calls(tmp_path: Path) -> None:
    task = Drinks(solver="majority").evaluation()
    epochs = [SampleEpoch(sample=sample, epoch=0) for sample in task.samples]

    planned = await run_job(task, epochs, Engine(records=MemoryStore())).plan()

    assert (planned.images, planned.calls, planned.hits) == (len(epochs), 0, 0)


def test_a_baseline_answers_no_question_without_options(tmp_path: Path) -> None:
    data = world(tmp_path / "ads")

    with pytest.raises(UsageError, match="chooses among options, and the task 'pittads/mac' asks for words"):
        Mac(data=data, solver="random").evaluation()


def test_two_options_of_one_name_are_refused_when_the_class_is_made() -> None:
    fields = {
        "name": "tests/twice",
        "__module__": __name__,
        "__annotations__": {"another": AnySolver},
        "another": AnySolver(),
    }

    with pytest.raises(UsageError, match="has two options called 'solver': of its 'other' and of its 'another'"):
        new_class("Twice", (Drinks,), exec_body=lambda space: space.update(fields))


def test_two_answerers_that_take_the_place_of_models_are_refused() -> None:
    class Guess(Answerer):
        """Guesses."""

        chosen_by = ("guess",)
        noun = "a guess"
        alone = ("A guess takes the place of models.", "Leave out `guess`, or the models.")

        guess: int | None = None
        """The number of an option."""

        @override
        def label(self) -> str:
            return "guess"

        @override
        def solver(self, question: Question) -> Solver:
            return as_solver(lambda _: [self.guess])

    class Guessed(Drinks):
        """Or guess."""

        name = "tests/guessed"
        guess_of: Guess = Guess()
        """A guess."""

    assert Guessed(guess=2).label() == "guess"
    with pytest.raises(UsageError, match=r"^A solver and a guess both take the place of models\."):
        Guessed(guess=2, solver="random")


async def test_ads_are_answered_as_by_the_task_of_baselines(tmp_path: Path) -> None:
    data = world(tmp_path / "ads")

    ours = await aevaluate(ArrMulti(data=data, solver="longest"), out=tmp_path / "ours")
    theirs = await aevaluate(ArrBaseline(data=data, baseline="longest"), out=tmp_path / "theirs")

    assert [each.value for each in ours.figures] == [each.value for each in theirs.figures]


async def test_an_encoder_ranks_the_options_of_ads(tmp_path: Path) -> None:
    data = world(tmp_path / "ads")
    scorer = ScriptedScorer(lambda _, text: float("is right" in text), identity="eye")

    run = await aevaluate(ArrMulti(data=data, solver=FusionSolver(scorer)), out=tmp_path / "run")

    assert run.figure("p@3").value == 1.0


def test_the_folds_of_ads_hold_each_ad_once(tmp_path: Path) -> None:
    data = world(tmp_path / "ads", true=(3,) * 11)

    folds = [
        [sample.id for sample in Mac(data=data, vlm=model_of(scripted()), fold=fold).samples()] for fold in range(5)
    ]

    assert sorted(name for fold in folds for name in fold) == [
        sample.id for sample in Mac(data=data, vlm=model_of(scripted())).samples()
    ]
    assert min(map(len, folds)) == 2
