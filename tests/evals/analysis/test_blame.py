"""Blame: the link that lied is found, whichever it was; what is on record is not asked; nothing wrong, nothing done."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from askance.agents import judge_equivalence
from askance.cli.blame import blame_parts
from askance.errors import StoreError, UsageError
from askance.evals import Run, Task, evaluate, rescore
from askance.evals.analysis.blame import Blame, StoredBlames, ablame, blame_job, make_blame
from askance.evals.analysis.trial import Replacement, Trials, from_run, from_truth
from askance.evals.judges import judged_scoring
from askance.evals.report.blame_part import blames_of
from askance.evals.run_folder import RunFolder
from askance.models import Engine, Model, get_model
from askance.models.budget import BudgetGuard
from askance.replay import Budget, MemoryStore, SqliteLedger
from tests.evals.guilty import Guilty, liar, run_of
from tests.evals.odd import Odd, chooser, scored_by, write_pictures
from tests.scripted import ENFORCED, CountingModel

LINKS = ("objects", "scene_text", "narration", "unusual", "description", "statement")
LIED = ("01", "03")
"""Pictures that the liar lies about."""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"), count=4)


@pytest.fixture(scope="module")
def honest(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run in which nothing is wrong; nobody writes in its folder."""
    return run_of(pictures, None, out=str(tmp_path_factory.mktemp("runs") / "honest"))


HOWS: dict[str, Callable[[Run], Replacement | None]] = {
    "dropped": lambda _: None,
    "of another run": from_run,
    "truth": lambda _: from_truth(),
}


@pytest.mark.parametrize("link", LINKS)
async def test_the_guilty_link_is_found(pictures: Path, honest: Run, tmp_path: Path, link: str) -> None:
    model = liar(pictures, link, of=LIED)
    run = evaluate(Guilty(data=pictures, vlm=model), out=tmp_path / "run")

    for name, how in HOWS.items():
        blame = await ablame(run, Guilty, engine=model.engine, models={"vlm": model}, replacement=how(honest))

        assert [answer.sample.id for answer in blame.wrong] == [*LIED], name
        assert [blame.guilty(answer) for answer in blame.wrong] == [(link,), (link,)], name
        assert {each.link: each.guilty.value for each in blame.sums} == {
            each: float(each == link) for each in (*blame.links, "none")
        }, name


async def test_an_answer_that_no_link_explains_is_laid_at_no_door(pictures: Path, tmp_path: Path) -> None:
    model = liar(pictures, "answers")
    run = evaluate(Guilty(data=pictures, vlm=model), out=tmp_path / "run")

    blame = await ablame(run, Guilty, engine=model.engine, models={"vlm": model})

    assert [(each.link, each.flips.value) for each in blame.sums] == [*((link, 0.0) for link in LINKS), ("none", 1.0)]


async def test_a_choice_that_links_of_another_run_leave_wrong_is_laid_at_no_door(
    pictures: Path, honest: Run, tmp_path: Path
) -> None:
    """Where the other run's links say the same, the choice alone was wrong: that counts, though nothing is asked."""
    lied = liar(pictures, "answers", of=LIED)
    chosen = evaluate(Guilty(data=pictures, vlm=lied), out=tmp_path / "chosen")
    blame = await ablame(chosen, Guilty, engine=lied.engine, models={"vlm": lied}, replacement=from_run(honest))
    (row,), (part,) = blame.sums, blames_of(chosen).parts

    assert (len(blame.wrong), blame.trials) == (2, ())
    assert (row.link, row.flips.samples, row.guilty.value) == ("none", 2, 1.0)
    assert {place: each.names for place, each in part.answers.items()} == {
        (name, 0): ("no single link",) for name in LIED
    }
    assert "01: no single link" in [*blame_parts(blame)]


async def test_blaming_a_run_with_nothing_wrong_does_nothing(honest: Run) -> None:
    before = sorted(honest.path.iterdir())

    blame = await ablame(honest, Guilty, engine=Engine(records=MemoryStore()))

    assert (blame.wrong, blame.trials, blame.sums, sorted(honest.path.iterdir())) == ((), (), (), before)


async def test_what_is_downstream_is_asked_and_nothing_twice(pictures: Path, tmp_path: Path) -> None:
    asked: list[str] = []
    model = liar(pictures, "scene_text", of=["02"], asked=asked)
    run = evaluate(Guilty(data=pictures, vlm=model), out=tmp_path / "run")
    asked.clear()

    first = await ablame(run, Guilty, engine=model.engine, models={"vlm": model})

    # T_V is made without each of the four; some of the six ways to tell of the picture come to the same.
    assert sorted(asked) == ["choose_action_reasons"] * 3 + ["combine"] * 4
    asked.clear()
    assert (await ablame(run, Guilty, engine=model.engine, models={"vlm": model})).form() == first.form()
    assert asked == []


async def test_the_plan_counts_what_will_be_asked(pictures: Path, tmp_path: Path) -> None:
    asked: list[str] = []
    model = liar(pictures, "scene_text", of=["02"], asked=asked)
    run = evaluate(Guilty(data=pictures, vlm=model), out=tmp_path / "run")
    asked.clear()
    trials = Trials(run, Guilty, engine=model.engine, models={"vlm": model})

    plan = await blame_job(trials).plan()
    await make_blame(trials)

    # Which calls below will come to the same nobody can know.
    assert [(link.link, link.known, link.dependent) for link in plan.links if link.calls] == [
        ("description", 4, 0),
        ("answers", 2, 4),
    ]
    assert (len(asked), (await blame_job(trials).plan()).calls) == (7, 0)


@pytest.fixture(scope="module")
def lied_once(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    model = liar(pictures, "unusual", of=LIED)
    return evaluate(Guilty(data=pictures, vlm=model), out=tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def lied(lied_once: Run, pictures: Path, tmp_path: Path) -> tuple[Run, Model]:
    """A copy of the run, and the model that answered it, with a copy of its records."""
    run = Run.open(copytree(lied_once.path, tmp_path / "run"))
    return run, liar(pictures, "unusual", of=LIED, records=MemoryStore(run.records))


async def blamed(lied: tuple[Run, Model], **options: Any) -> Blame:
    run, model = lied
    return await ablame(run, Guilty, engine=model.engine, models={"vlm": model}, **options)


async def test_results_of_every_kind_are_kept_and_read_back(lied: tuple[Run, Model], honest: Run) -> None:
    dropped = await blamed(lied)
    other = await blamed(lied, replacement=from_run(honest), links=["unusual"])

    assert StoredBlames.read(lied[0].path).forms == {
        blame.how: json.loads(json.dumps(blame.form())) for blame in (dropped, other)
    }
    lines = (lied[0].path / "blame.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(dropped.trials) + len(other.trials)


class Heard:
    """What is told of the trials."""

    def __init__(self) -> None:
        self.all: list[tuple[int, int]] = []

    def __call__(self, done: int, of: int) -> None:
        self.all.append((done, of))


async def test_a_torn_line_is_made_again_and_the_rest_is_not(lied: tuple[Run, Model]) -> None:
    whole = await blamed(lied)
    file = lied[0].path / "blame.jsonl"
    file.write_text(file.read_text(encoding="utf-8")[:-200], encoding="utf-8")
    told = Heard()

    again = await blamed(lied, on_trial=told)

    assert told.all == [(11, 12), (12, 12)]
    assert again.form() == whole.form()


async def test_links_that_were_tried_before_are_summed_too(lied: tuple[Run, Model]) -> None:
    await blamed(lied, links=["objects"])
    blame = await blamed(lied, links=["unusual"])

    assert blame.links == ("objects", "unusual")


async def test_what_was_answered_otherwise_since_is_tried_anew(lied: tuple[Run, Model], pictures: Path) -> None:
    await blamed(lied)
    file = lied[0].path / "samples.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace("A cup of 01.", "A mug of 01."), encoding="utf-8")
    told = Heard()

    await blamed((Run.open(lied[0].path), lied[1]), on_trial=told)

    assert told.all[0] == (6, 12)


async def test_the_folder_can_be_scored_again_and_gone_on_with(lied: tuple[Run, Model], pictures: Path) -> None:
    before = (await blamed(lied)).form()
    await rescore(lied[0], Guilty)
    run = evaluate(Guilty(data=pictures, vlm=lied[1]), out=lied[0].path)

    assert (await blamed((run, lied[1]))).form() == before


async def test_every_epoch_is_blamed_for_itself(pictures: Path, tmp_path: Path) -> None:
    model = liar(pictures, "unusual", of=["01"])
    run = evaluate(Guilty(data=pictures, vlm=model), out=tmp_path / "run", epochs=2)

    blame = await ablame(run, Guilty, engine=model.engine, models={"vlm": model}, links=["unusual"])

    assert [(each.sample.id, each.epoch, blame.guilty(each)) for each in blame.wrong] == [
        ("01", 0, ("unusual",)),
        ("01", 1, ("unusual",)),
    ]
    assert len({key for each in blame.trials for link in each.now.links.values() for key in link["calls"]}) == 4
    assert (blame.sums[0].flips.samples, blame.sums[0].flips.clusters) == (2, 1)


async def test_another_folder_may_hold_the_results(lied: tuple[Run, Model], tmp_path: Path) -> None:
    before = sorted(lied[0].path.iterdir())

    await blamed(lied, out=tmp_path / "elsewhere")

    assert sorted(lied[0].path.iterdir()) == before
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["blame.json", "blame.jsonl"]


def answers_of(counters: Mapping[str, Any]) -> dict[str, int]:
    return {name: each["answers"] for name, each in counters.items()}


class Stopped(Heard):
    """Stops the trials after the first."""

    def __call__(self, done: int, of: int) -> None:
        if done:
            raise InterruptedError


async def test_what_models_computed_is_kept_over_all_starts(pictures: Path, honest: Run, tmp_path: Path) -> None:
    asked: list[str] = []
    model = liar(pictures, "unusual", of=LIED, asked=asked, script=CountingModel)
    # One call at a time, so that none is under way when the trials are stopped.
    single = model.changed(lambda settings: settings, Engine(records=model.engine.records, concurrency=1))
    lied = evaluate(Guilty(data=pictures, vlm=model), out=tmp_path / "run"), single
    asked.clear()
    with pytest.raises(InterruptedError):
        await blamed(lied, on_trial=Stopped(), links=["objects"])
    stopped = answers_of(StoredBlames.read(lied[0].path).counted("dropped", lied[0]))
    before = len(asked)
    whole, again = await blamed(lied), await blamed(lied)
    other = await blamed(lied, replacement=from_run(honest))

    name = str(model.id)
    assert stopped == {name: before}
    assert 0 < before < answers_of(whole.counters)[name] < len(asked)
    assert whole.counters == again.counters == StoredBlames.read(lied[0].path).counted("dropped", lied[0])
    assert answers_of(whole.counters)[name] + answers_of(other.counters)[name] == len(asked)


async def test_what_was_computed_for_another_run_does_not_count(pictures: Path, tmp_path: Path) -> None:
    runs: list[Run] = []
    for link in ("unusual", "narration"):
        asked: list[str] = []
        model = liar(pictures, link, of=LIED, asked=asked, script=CountingModel)
        runs.append(evaluate(Guilty(data=pictures, vlm=model), out=tmp_path / link))
        asked.clear()
        blame = await blamed((runs[-1], model), out=tmp_path / "out")
        assert answers_of(blame.counters) == {str(model.id): len(asked)}

    kept = StoredBlames.read(tmp_path / "out")
    assert [bool(kept.counted("dropped", run)) for run in runs] == [False, True]


async def test_judges_of_trials_are_counted_and_closed(pictures: Path, tmp_path: Path) -> None:
    client = CountingJudge(lambda _: '{"verdict": "false"}', capabilities=ENFORCED, identity="judge")
    judge = judge_equivalence(get_model(client, engine=Engine(records=MemoryStore())), form="short")
    scoring = judged_scoring(judge, references=lambda _: ["tea"])
    model = liar(pictures, "unusual")
    run = evaluate(scored_by(Guilty, scoring)(data=pictures, vlm=model), out=tmp_path / "run")
    before, client.open = len(client.requests), True
    trials = Trials(run, scored_by(Guilty, scoring), engine=model.engine, models={"vlm": model})
    plan = await blame_job(trials).plan()

    blame = await ablame(run, scored_by(Guilty, scoring), engine=model.engine, models={"vlm": model})

    assert (len(blame.trials), client.open) == (24, False)
    assert answers_of(blame.counters) == {str(judge.model.id): len(client.requests) - before}
    assert len(client.requests) > before
    asked = next(line for line in plan.links if line.link == "judge")
    assert (asked.calls > 0, (await blame_job(trials).plan()).calls) == (True, 0)


class CountingJudge(CountingModel):
    """A judge that has to be closed."""

    open = True

    async def aclose(self) -> None:
        self.open = False


async def test_a_budget_stops_it_and_a_larger_one_goes_on(lied: tuple[Run, Model], tmp_path: Path) -> None:
    run, model = lied

    async def within(budget: str) -> Blame:
        guard = BudgetGuard(SqliteLedger(tmp_path / "budget.db", Budget.parse(budget)))
        engine = Engine(records=model.engine.records, budget=guard, concurrency=1)
        try:
            return await ablame(run, Guilty, engine=engine, models={"vlm": liar_in(engine)})
        finally:
            guard.close()

    def liar_in(engine: Engine) -> Model:
        return model.changed(lambda settings: settings, engine)

    short = await within("3calls")
    assert 0 < len(short.trials) < 12
    assert short.left == 12 - len(short.trials)
    assert (len((await within("100calls")).trials), (await within("100calls")).left) == (12, 0)


async def test_a_model_that_only_the_run_describes_gives_what_is_on_record(lied: tuple[Run, Model]) -> None:
    run, model = lied
    first = await blamed(lied)
    replayed = await ablame(run, Guilty, engine=Engine(mode="replay", records=model.engine.records), out=run.path / "x")

    assert replayed.form() == first.form()


async def test_a_model_that_only_the_run_describes_cannot_be_asked(lied: tuple[Run, Model]) -> None:
    with pytest.raises(UsageError, match=r"known from records alone") as caught:
        await ablame(lied[0], Guilty, engine=Engine(records=MemoryStore()))
    assert caught.value.hint == "Name the model: `--vlm SPEC`, or `models=` in Python."


def one_step(tmp_path: Path, model: Model) -> tuple[Run, type[Task]]:
    return evaluate(Odd(data=write_pictures(tmp_path / "six"), vlm=model), out=tmp_path / "odd"), Odd


def test_a_chain_of_one_step_has_no_links_to_blame(tmp_path: Path) -> None:
    model = chooser(2)
    run, definition = one_step(tmp_path, model)

    trials = Trials(run, definition, engine=model.engine, models={"vlm": model})

    assert (len(trials.wrong), list(trials)) == (4, [])


def test_a_link_that_the_chain_does_not_have_is_named(lied: tuple[Run, Model]) -> None:
    with pytest.raises(UsageError) as found:
        Trials(lied[0], Guilty, engine=lied[1].engine, links=["reply"])
    assert found.value.message == "The chain 'action_reason' has no link 'reply' before its answer."
    assert found.value.hint == f"It has {', '.join(LINKS)}."


async def test_a_run_that_is_being_written_is_let_alone(lied: tuple[Run, Model]) -> None:
    folder = RunFolder(lied[0].path, dict(lied[0].configuration), name=lambda line: f"{line['id']}\n{line['epoch']}")
    try:
        with pytest.raises(StoreError, match=r"^Another process is writing the run folder"):
            await blamed(lied)
    finally:
        folder.close()
