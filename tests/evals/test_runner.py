"""Running a task: every kind of solver, every outcome, and runs that were cut off anywhere."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from typing_extensions import override

from askance.chains import end_to_end
from askance.chat import ChatRequest, key_of
from askance.errors import AuthError, OverBudget, Refused, StoreError, UsageError
from askance.evals import (
    Evaluation,
    Prediction,
    Run,
    RunProgress,
    Sample,
    Score,
    Scorer,
    aevaluate,
    evaluate,
    mean,
    right_or_wrong,
)
from askance.evals.runner import BatchOptions, SampleEpoch, configuration_of, run_job
from askance.evals.solver import Solver, SolverLike
from askance.images import Image
from askance.models import Counters, Engine, Model, ScriptedModel, get_model
from askance.replay import MemoryStore
from tests.evals import numbers
from tests.evals.numbers import NON_ANSWERS, RunCounters, always_odd, run_of, samples, scores, stable, task_of
from tests.evals.odd import Odd, chooser, write_pictures
from tests.scripted import ENFORCED, CountingModel

ROOT = Path(__file__).resolve().parents[2]


# --- solvers ---


async def later(sample: Sample) -> bool:
    await asyncio.sleep(0)
    return True


def inputs_of(sample: Sample) -> dict[str, Any]:
    return dict(sample.inputs)


def has_number(given: dict[str, Any]) -> bool:
    return given["number"] >= 0


def at_leisure(sample: Sample) -> Awaitable[bool]:
    return later(sample)


def predicted(sample: Sample) -> Prediction:
    return Prediction(outcome="answered", value=True)


SOLVERS: dict[str, SolverLike] = {
    "function": always_odd,
    "coroutine function": later,
    "function that gives an awaitable": at_leisure,
    "runnable": RunnableLambda(inputs_of) | RunnableLambda(has_number),
    "function that gives a prediction": predicted,
}


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_anything_that_answers_is_a_solver(solver: Any) -> None:
    run = run_of(solver)

    assert [answer.prediction.value for answer in run.answers] == [True] * 6
    assert (run.figure("accuracy").value, run.totals["outcomes"]) == (0.5, {"answered": 6})


class Odds(Solver):
    """A solver that says no more than its answers."""

    @override
    async def answer(self, sample: Sample) -> bool:
        return True


async def test_a_solver_of_ones_own_needs_no_more_than_its_answers() -> None:
    task, engine = task_of(Odds()), Engine(records=MemoryStore())
    epochs = [SampleEpoch(sample=sample, epoch=0) for sample in task.samples]

    run = await aevaluate(task, out="run", engine=engine)

    assert run.figure("accuracy").value == 0.5
    assert run.configuration["solver"] == {"solver": "Odds"}
    with pytest.raises(UsageError, match="a solver that is not a chain cannot be planned"):
        await run_job(task, epochs, engine).plan()
    with pytest.raises(UsageError, match="Only a chain can be asked by batches"):
        await aevaluate(task, out="batched", batches=BatchOptions())
    with pytest.raises(UsageError, match="This solver reads no replies"):
        task.with_extractor(chooser(2))


def test_what_answers_no_samples_is_no_solver() -> None:
    given: Any = "openai:gpt-4o"

    with pytest.raises(UsageError, match=r"^A str answers no samples\. Give a `Solver`, a chain, a Runnable or a func"):
        task_of(given)


def test_samples_that_share_a_picture_are_one_piece_of_evidence(tmp_path: Path) -> None:
    """Whoever names no group has it by the picture; who names one, and whose picture is alone, keeps what is said."""
    one, other = map(Image.from_path, sorted(write_pictures(tmp_path / "pictures", count=2).glob("*.png")))
    images = {"a": one, "b": Image.from_bytes(one.data), "c": other, "d": one}
    made = [Sample(id=name, image=image, group="own" if name == "d" else "") for name, image in images.items()]
    task = Evaluation(samples=made, solver=predicted, scorer=numbers.right_or_wrong(), name="tests/shared")

    assert [sample.cluster for sample in task.samples] == [one.sha256, one.sha256, "c", "own"]
    assert evaluate(task, out=tmp_path / "run").figures[0].clusters == 3


def test_a_chain_reads_the_picture_of_a_sample_beside_its_inputs(tmp_path: Path) -> None:
    task = Odd(data=write_pictures(tmp_path / "pictures"), vlm=chooser(2))
    chain = end_to_end(chooser(2))

    runs = [
        evaluate(task, out="one"),
        evaluate(Evaluation(samples=task.samples(), solver=chain, scorer=task.scorer()), out="two"),
    ]

    assert [stable("one")[0]["value"], stable("two")[0]["value"]] == [[2], [2]]
    assert [run.figure("accuracy").value for run in runs] == [1 / 3] * 2


def test_what_a_reading_was_after_is_the_answer(tmp_path: Path) -> None:
    chain = end_to_end(chooser(3))
    (sample, *_) = Odd(data=write_pictures(tmp_path / "pictures", 1), vlm=chooser(3), count=1).samples()

    def solve(each: Sample) -> object:
        return chain({"image": each.image, "options": each.inputs["options"]})

    run = evaluate(Evaluation(samples=[sample], solver=solve, scorer=task_of().scorer), out="run")

    (answer,) = run.answers
    assert (answer.prediction.value, list(answer.prediction.links)) == ([3], ["answers"])


def test_the_records_of_a_solver_that_names_no_links_are_kept(tmp_path: Path) -> None:
    model = chooser(2)

    class Asking(Solver):
        @property
        @override
        def models(self) -> list[Model]:
            return [model]

        @override
        async def answer(self, sample: Sample) -> str:
            return (await model.generate(model.request([]))).text

    run = run_of(Asking(), count=2)

    keys = {tuple(answer.prediction.links["solver"]["calls"]) for answer in run.answers}
    assert len(keys) == 1
    assert len(run.records) == 1


# --- outcomes ---


@pytest.mark.parametrize("outcome", NON_ANSWERS)
def test_every_outcome_has_its_name_and_counts_as_no_answer(outcome: str) -> None:
    def solve(sample: Sample) -> bool:
        if sample.id == "01":
            raise NON_ANSWERS[outcome]("so it is")
        return True

    run = run_of(solve)

    figure = run.figure("accuracy")
    assert run.totals["outcomes"] == {"answered": 5, outcome: 1}
    assert run.answers[1].prediction.reason == "so it is"
    assert (figure.value, figure.among_answered, figure.if_wrong, figure.if_right) == (2 / 6, 2 / 5, 2 / 6, 3 / 6)


WRONG: dict[str, tuple[SolverLike, str]] = {
    "raises": (lambda sample: 1 / 0, "the solver raised ZeroDivisionError: division by zero"),
}
NO_JSON: dict[str, tuple[Any, str]] = {
    "set": ({1, 2}, "the solver gave what is no JSON: Object of type set"),
    "no number": (float("nan"), "the solver gave what is no JSON: Out of range float"),
}


@pytest.mark.parametrize(("solver", "reason"), WRONG.values(), ids=WRONG)
def test_a_solver_with_a_fault_fails_its_samples_and_stops_none(solver: Any, reason: str) -> None:
    run = run_of(solver)

    assert [str(answer.prediction.reason).startswith(reason) for answer in run.answers] == [True] * 6
    assert run.totals["outcomes"] == {"failed": 6}


@pytest.mark.parametrize(("value", "reason"), NO_JSON.values(), ids=NO_JSON)
def test_an_answer_that_is_no_json_fails_its_sample_and_at_the_first_one_ends_the_run(value: Any, reason: str) -> None:
    run = run_of(lambda sample: True if sample.id == "00" else value)

    assert [str(answer.prediction.reason).startswith(reason) for answer in run.answers] == [False, *[True] * 5]
    with pytest.raises(UsageError, match=f"^At the first sample {reason}"):
        run_of(lambda sample: value, out="other")


def test_an_answer_is_what_will_be_read_again() -> None:
    run = run_of(lambda sample: {"pair": (1, 2)}, count=1)

    assert run.answers[0].prediction.value == {"pair": [1, 2]}


def test_what_is_wrong_with_the_store_stops_the_run() -> None:
    def solve(sample: Sample) -> bool:
        raise StoreError("the disk is gone")

    with pytest.raises(StoreError, match="the disk is gone"):
        run_of(solve)


def test_what_every_sample_would_meet_stops_at_the_first() -> None:
    asked: list[str] = []

    def solve(sample: Sample) -> bool:
        asked.append(sample.id)
        raise AuthError("no such key")

    with pytest.raises(AuthError, match=r"no such key Stopped at the first sample"):
        run_of(solve, count=100)
    assert len(asked) < 100


# --- scoring ---


def test_a_judge_without_a_verdict_leaves_an_answer_unscored() -> None:
    async def judged(sample: Sample, value: Any) -> Score:
        if sample.id == "02":
            raise Refused("The judge declined.")
        return Score(values={"accuracy": 1.0})

    wrong = Scorer(
        score=judged,
        metrics=(mean("accuracy"),),
        if_wrong=lambda _: Score(values={"accuracy": 0.0}),
        if_right=lambda _: Score(values={"accuracy": 1.0}),
    )
    run = evaluate(Evaluation(samples=samples(4), solver=always_odd, scorer=wrong), out="run")

    figure = run.figure("accuracy")
    assert (figure.answered, figure.value, figure.if_right) == (3, 0.75, 1.0)
    assert run.notes == ("1 answer has no score and counts as no answer, such as that to '02': The judge declined.",)


def test_a_scoring_with_a_fault_ends_the_run_and_loses_no_answer() -> None:
    nothing = Score(values={})

    def broken(sample: Sample, value: Any) -> Score:
        raise KeyError("truth")

    wrong = Scorer(score=broken, metrics=(mean("x"),), if_wrong=lambda _: nothing, if_right=lambda _: nothing)
    with pytest.raises(UsageError, match=r"The scoring of the sample '00' raised KeyError: 'truth'\. Mend it"):
        evaluate(Evaluation(samples=samples(3), solver=always_odd, scorer=wrong, name="numbers"), out="run")

    assert stable("run")[0]["value"] is True


# --- going on ---


@pytest.mark.parametrize("kept", range(7), ids=str)
def test_a_run_that_was_cut_off_after_any_line_is_finished_as_if_it_had_not_been(kept: int) -> None:
    run_of(RunCounters(), out="whole")
    run_of(RunCounters(), out="cut")
    lines = Path("cut/samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    torn = lines[kept][: len(lines[kept]) // 2] if kept < 6 else ""
    Path("cut/samples.jsonl").write_text("".join(lines[:kept]) + torn, encoding="utf-8")
    Path("cut/scores.jsonl").unlink()
    solver = RunCounters()

    run = run_of(solver, out="cut")

    assert (len(solver.asked), stable("cut"), scores("cut")) == (6 - kept, stable("whole"), scores("whole"))
    assert run.figures == Run.open("whole").figures


def test_a_finished_run_asks_nothing_more() -> None:
    first = run_of()
    before = Path("run/samples.jsonl").read_bytes()

    assert run_of().figures == first.figures
    assert Path("run/samples.jsonl").read_bytes() == before


def test_what_has_no_answer_is_asked_again() -> None:
    willing: list[bool] = []

    def solve(sample: Sample) -> bool:
        if not willing:
            raise Refused("not yet")
        return True

    first = run_of(solve)
    willing.append(True)
    second = run_of(solve)

    assert [first.totals["outcomes"], second.totals["outcomes"]] == [{"refused": 6}, {"answered": 6}]
    assert list(second.unanswered()) == []


def test_what_has_no_answer_is_found_without_the_rest() -> None:
    run = run_of(lambda sample: sample.id if sample.id < "03" else 1 / 0)

    assert [answer.sample.id for answer in run.unanswered()] == ["03", "04", "05"]
    assert "answers" not in vars(run)


def test_an_edited_solver_is_another_run() -> None:
    run_of()

    with pytest.raises(UsageError, match="The folder 'run' holds a run of another configuration"):
        run_of(lambda sample: False)


def test_the_order_of_the_samples_changes_nothing() -> None:
    task = task_of(lambda sample: sample.id < "03")
    shuffled = Evaluation(samples=task.samples[::-1], solver=task.solver, name=task.name, scorer=task.scorer)
    one, two = evaluate(task, out="one"), evaluate(shuffled, out="two")

    assert (stable("one"), scores("one"), one.figures) == (stable("two"), scores("two"), two.figures)
    assert one.configuration == two.configuration


def test_samples_are_known_by_the_digest_of_all_their_forms() -> None:
    task = Evaluation(
        samples=[Sample(id=name, target=("½", 1.0, None)) for name in "ba\ud83d"],
        solver=always_odd,
        scorer=right_or_wrong(),
    )
    forms = [sample.form() for sample in sorted(task.samples, key=lambda sample: sample.id)]

    kept = configuration_of(task, epochs=1)["samples"]

    assert kept == {"count": 3, "digest": key_of("samples", {"samples": forms})}


def test_a_target_is_scored_as_it_is_written() -> None:
    of_tuple = Evaluation(
        name="tests/tuple",
        samples=[Sample(id="a", target=(1, 2))],
        solver=lambda sample: [1, 2],
        scorer=right_or_wrong(),
    )

    assert evaluate(of_tuple, out="run").figure("accuracy").value == 1.0


def test_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.evals.numbers"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, str(tmp_path / "whole"), "0"], env=environment, check=True, timeout=60)
    cut, moments = tmp_path / "cut", random.Random(0)
    for number in range(4):
        process = subprocess.Popen([*command, str(cut), "0.1"], env=environment)
        if not number % 2:  # the others may be killed before they write anything
            wait_for(cut / "samples.jsonl")
        time.sleep(moments.random() * 0.4)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run([*command, str(cut), "0"], env=environment, check=True, timeout=60)

    assert (stable(cut), scores(cut)) == (stable(tmp_path / "whole"), scores(tmp_path / "whole"))
    assert Run.open(cut).figures == Run.open(tmp_path / "whole").figures


def wait_for(file: Path) -> None:
    end = time.monotonic() + 60
    while not (file.exists() and file.stat().st_size):
        assert time.monotonic() < end
        time.sleep(0.02)


# --- epochs ---


def counting(engine: Engine) -> Model:
    """A model that gives the number of the call, so that no two answers are alike."""
    asked: list[ChatRequest] = []

    def reply(request: ChatRequest) -> str:
        asked.append(request)
        return str(len(asked))

    return get_model(ScriptedModel(reply, identity="counting", capabilities=ENFORCED), engine=engine)


def test_epochs_are_answers_of_their_own() -> None:
    engine = Engine(records=MemoryStore())
    model = counting(engine)

    async def solve(sample: Sample) -> str:
        return (await model.generate(model.request([]))).text

    run = run_of(solve, count=2, epochs=3, engine=engine)
    again = run_of(solve, count=2, epochs=3, engine=engine, out="again")

    by_epoch = {answer.epoch: answer.prediction.value for answer in run.answers}
    assert (len(run.answers), len(set(by_epoch.values()))) == (6, 3)
    assert [answer.prediction for answer in run.answers] == [answer.prediction for answer in again.answers]
    assert (run.figure("accuracy").samples, run.figure("accuracy").clusters) == (6, 2)


# --- what is told, and what is refused ---


def test_whoever_watches_hears_of_every_sample() -> None:
    seen: list[tuple[int, int, str]] = []

    def told(progress: RunProgress) -> None:
        figure = progress.running()
        seen.append((progress.done, progress.total, f"{progress.metric} {figure.value if figure else None}"))

    run_of(count=3, on_progress=told)

    assert seen == [(1, 3, "accuracy 0.0"), (2, 3, "accuracy 0.5"), (3, 3, f"accuracy {1 / 3}")]


def test_what_a_budget_had_nothing_left_for_is_left_and_not_an_outcome() -> None:
    def solve(sample: Sample) -> bool:
        if sample.id > "03":
            raise OverBudget("used up")
        return True

    run = run_of(solve)

    assert (run.totals["outcomes"], run.left, run.figure("accuracy").samples) == ({"answered": 4}, 2, 4)


def bad_target() -> Evaluation:
    return Evaluation(samples=[Sample(id="a", target={1, 2})], solver=always_odd, scorer=task_of().scorer, name="sets")


REFUSED: dict[str, tuple[Callable[[], Evaluation], str]] = {
    "no samples": (lambda: task_of(count=0), "The task 'numbers' has no samples."),
    "an id twice": (
        lambda: Evaluation(samples=[*samples(2), *samples(1)], solver=always_odd, scorer=task_of().scorer),
        "1 ids of samples are given twice, such as '00'.",
    ),
    "a target that is no JSON": (bad_target, "The sample 'a' holds a value that JSON does not have"),
}


@pytest.mark.parametrize(("task", "message"), REFUSED.values(), ids=REFUSED)
def test_a_task_that_cannot_be_run_is_refused_before_anything_is_written(task: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(task(), out="run")
    assert not Path("run").exists()


async def test_a_run_is_found_by_what_decides_its_answers() -> None:
    first = await aevaluate(task_of())
    second = await aevaluate(task_of())

    assert first.path == second.path
    assert first.path.as_posix().startswith("runs/numbers-")
    assert configuration_of(task_of(count=5), epochs=1) != configuration_of(task_of(), epochs=1)


async def test_answers_are_scored_side_by_side_and_counted_in_order(own_place: Path) -> None:
    waiting = asyncio.Event()
    started: list[str] = []

    async def judged(sample: Sample, _: Any) -> Score:
        started.append(sample.id)
        if len(started) == 3:
            waiting.set()
        await asyncio.wait_for(waiting.wait(), 10)
        return Score(values={"right": 1.0})

    scoring = Scorer(
        score=judged,
        metrics=(mean("right"),),
        if_wrong=lambda _: Score(values={"right": 0.0}),
        if_right=lambda _: Score(values={"right": 1.0}),
    )
    samples = [Sample(id=name) for name in "abc"]
    run = await aevaluate(Evaluation(name="t", samples=samples, solver=lambda sample: sample.id, scorer=scoring))

    assert started == ["a", "b", "c"]
    assert [(answer.sample.id, answer.score) for answer in run.answers] == [
        (name, Score(values={"right": 1.0})) for name in "abc"
    ]


def test_what_models_computed_is_kept_over_all_starts(tmp_path: Path) -> None:
    def task(*said: Any) -> Odd:
        model = CountingModel(list(said), capabilities=ENFORCED, identity="counts")
        vlm = get_model(model, engine=Engine(records=MemoryStore(), concurrency=1))
        return Odd(data=write_pictures(tmp_path / "pictures"), vlm=vlm, count=3)

    answer = '{"answers": [2]}'
    broken = evaluate(task(answer, Refused("No."), answer), out="run")
    whole = evaluate(task(answer), out="run")
    again = evaluate(task(), out="run")

    assert broken.counters == {"counts": Counters(answers=3).canonical()}
    assert whole.counters == again.counters == {"counts": Counters(answers=4).canonical()}
