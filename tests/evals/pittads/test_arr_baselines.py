from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.errors import ConfigError, UsageError
from askance.evals import Run, Task, aevaluate
from askance.evals.analysis.rescore import rerun_job, rescored
from askance.evals.baselines import chance
from askance.evals.pittads.arr import ArrBaseline, ArrClip, ArrMulti, ArrSingle
from askance.models import Engine, ScriptedEmbedder, ScriptedScorer
from askance.replay import MemoryStore
from tests.evals.pittads.files import key_of, record, release_b, row, true_of, write, write_csv
from tests.evals.pittads.worlds import world
from tests.scripted import PICTURE, model_of, scripted

ONE, TWO = map(key_of, (11, 12))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two ads of 15 options; of the first 3 are true, of the second 2. True options are the longest."""
    folder = tmp_path / "pittads"
    release_b(folder, {ONE: record(ONE), TWO: record(TWO, count=2)})
    write_csv(folder / "final_csv.csv", [row(ONE, "3"), row(TWO, "3")])
    for key in (ONE, TWO):
        write(folder / "train_images" / key, PICTURE.read_bytes() + key.encode())
    return folder


async def run_of(task: Task, data: Path) -> Run:
    return await aevaluate(task, out=data.parent / "run")


def values(run: Run, *names: str) -> list[float | None]:
    return [run.figure(name).value for name in names]


def test_the_samples_are_those_of_the_tasks(data: Path) -> None:
    model = model_of(scripted())

    for task in (ArrMulti, ArrSingle):
        theirs = task(data=data, vlm=model, context="I", seed=5).samples()
        ours = ArrBaseline(data=data, mode=task.mode, seed=5).samples()
        assert [(each.id, each.cluster, each.inputs["options"], each.target) for each in ours] == [
            (each.id, each.cluster, each.inputs["options"], each.target) for each in theirs
        ]


async def test_true_options_that_are_the_longest_get_the_ceiling(data: Path) -> None:
    run = await run_of(ArrBaseline(data=data, baseline="longest"), data)

    assert values(run, "p@1", "p@2", "p@3", "acc@1") == [1, 1, pytest.approx((1 + 2 / 3) / 2), 1]
    assert run.figure("p@3").value == run.figure("ceiling p@3").value


async def test_the_majority_is_counted_in_the_samples(data: Path) -> None:
    task = ArrBaseline(data=data, baseline="majority", mode="single")
    numbers: list[Any] = [number for sample in task.samples() for number in sample.target["true"]]

    run = await run_of(task, data)

    best = max(numbers.count(number) for number in numbers)
    assert values(run, "accuracy") == [best / 2]


async def test_chance_is_the_mean_of_what_each_ad_gives(data: Path) -> None:
    task = ArrBaseline(data=data)
    three, two = chance(15, 3), chance(15, 2)

    figures = {each.metric: each.value for each in task.chance()}

    assert [figures[name] for name in three] == pytest.approx([(three[name] + two[name]) / 2 for name in three])
    assert figures["mean of five"] == pytest.approx(
        sum(figures[name] or 0 for name in ("p@1", "p@2", "p@3", "acc@1", "acc@2")) / 5
    )
    assert figures["place of the first answer"] == pytest.approx(0.5)


async def test_an_encoder_is_scored_as_any_other_solver_and_again_from_the_folder(data: Path) -> None:
    true = {*true_of(ONE), *true_of(TWO, 2)}
    scorer = ScriptedScorer(lambda _, text: float(text in true), identity="eye")
    engine = Engine(records=MemoryStore())

    run = await run_of(ArrClip(data=data, scorer=scorer, engine=engine), data)
    answers, figures = await rescored(Run.open(run.path), ArrClip)

    assert values(run, "p@1", "p@2", "acc@1") == [1, 1, 1]
    assert run.totals["records"] == 2 * 15
    assert figures == run.figures
    assert [answer.score for answer in answers] == [answer.score for answer in run.answers]
    assert [each.outcome for each in await rerun_job(Run.open(run.path), ArrClip).run()] == ["same", "same"]


async def test_what_is_said_of_the_picture_is_asked_where_it_is_not_given(data: Path) -> None:
    records = MemoryStore()
    script = scripted()
    scorer = ScriptedScorer(lambda _, text: 0.0, identity="eye")
    embedder = ScriptedEmbedder(
        lambda text: (1.0, 0.0) if text in {"A solid start.", true_of(TWO, 2)[1]} else (0.0, 1.0), identity="by hand"
    )
    task = ArrClip(
        data=data, scorer=scorer, embedder=embedder, context="I+T", mode="single",
        vlm=model_of(script, records),
    )  # fmt: skip

    run = await run_of(task, data)

    chosen: list[Any] = [answer.prediction.value for answer in run.answers]
    first, second = (
        answer.sample.inputs["options"][number - 1] for answer, (number,) in zip(run.answers, chosen, strict=True)
    )
    assert second == true_of(TWO, 2)[1]
    assert first == run.answers[0].sample.inputs["options"][0]
    assert len(script.requests) == 2
    assert {record.kind for record in run.records} == {"chat", "score", "embed"}


@pytest.mark.parametrize(
    ("make", "options", "kind", "message"),
    [
        (
            ArrBaseline,
            {"baseline": "best"},
            UsageError,
            "The option 'baseline' of the task 'pittads/arr-baseline' cannot be 'best'. It takes one of `random`, ",
        ),
        (
            ArrBaseline,
            {"mode": "all"},
            UsageError,
            "The option 'mode' of the task 'pittads/arr-baseline' cannot be 'all'.",
        ),
        (
            ArrClip,
            {"scorer": "eye", "context": "T"},
            UsageError,
            "The option 'context' of the task 'pittads/arr-clip' cannot be 'T'.",
        ),
        (ArrClip, {"scorer": "eye:x"}, ConfigError, "'eye:x' names no scorer."),
    ],
    ids=["baseline", "mode", "context", "scorer"],
)
def test_what_cannot_be_is_said_at_once(
    data: Path, make: Any, options: dict[str, Any], kind: type[UsageError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        make(data=data, **options).evaluation()
    assert str(caught.value).startswith(message)


def test_exact_chance_stands_beside_what_was_drawn(tmp_path: Path) -> None:
    multi = ArrBaseline(data=world(tmp_path, true=(3, 3)), baseline="random", limit=1)
    single = ArrBaseline(data=tmp_path, baseline="random", mode="single", limit=1)

    # three of fifteen options are true: 1 - C(12, 3) / C(15, 3) of the answers of three have one of them
    assert multi.notes()[-1].startswith("Chance, exactly: mean of five ")
    assert "p@1 51.65, p@2 29.89, p@3 20.00, acc@1 20.00, acc@2 37.14" in multi.notes()[-1]
    assert single.notes()[-1] == "Chance, exactly: accuracy 20.00"
