"""Scoring a run again: nothing is asked, the folder is amended, and twice is as good as once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.agents import Choice
from askance.agents.choose import ActionReasonChooser
from askance.errors import UsageError
from askance.evals import Run, Sample, Score, evaluate, mean, rescore
from askance.nodes import Unreadable
from tests.evals.odd import SCORING, Odd, chooser, scored_by, write_pictures


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return evaluate(Odd(data=write_pictures(tmp_path / "pictures"), vlm=chooser(2)), out=tmp_path / "run")


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.json*"))}


@pytest.mark.parametrize("reread", [False, True], ids=["scored", "read"])
async def test_scored_again_by_the_same_code_nothing_changes(run: Run, *, reread: bool) -> None:
    before = contents(run.path)

    found = await rescore(run, Odd, reread=reread)

    assert contents(run.path) == before
    assert (found.reread, found.changed, found.kept) == (6 if reread else 0, (), ())


async def test_it_is_told_how_far_it_is(run: Run) -> None:
    told = list[tuple[str, int, int]]()

    await rescore(run, Odd, reread=True, on_progress=lambda what, done, total: told.append((what, done, total)))

    assert told[:6] == [("samples read again", done, 6) for done in range(1, 7)]
    assert told[6:] == [("samples scored", done, 6) for done in range(1, 7)]


def always_right(sample: Sample, value: Any) -> Score:
    return Score(values={"accuracy": 1.0, "chosen": 0.5})


async def test_another_scoring_takes_effect_and_twice_is_once(run: Run) -> None:
    scoring = replace(
        SCORING,
        score=always_right,
        metrics=(*SCORING.metrics, mean("chosen")),
        notes=("Another one.",),
    )
    definition = scored_by(Odd, scoring)

    first = await rescore(run, definition, convention="answered")
    once = contents(run.path)
    second = await rescore(Run.open(run.path), definition, convention="answered")

    assert [(figure.metric, figure.value) for figure in first.run.figures] == [("accuracy", 1.0), ("chosen", 0.5)]
    assert (first.run.notes, first.run.convention) == (("Another one.",), "answered")
    assert (contents(run.path), second.run.figures) == (once, first.run.figures)
    assert first.run.finished == run.finished


def swapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that reads every choice as another one."""

    def read_json(self: ActionReasonChooser, data: Mapping[str, Any], subject: Any) -> Choice:
        return Choice(numbers=(1,))

    monkeypatch.setattr(ActionReasonChooser, "read_json", read_json)


async def test_a_mended_parser_takes_effect_without_data_or_model(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for picture in (run.path.parent / "pictures").iterdir():
        picture.unlink()
    swapping(monkeypatch)

    found = await rescore(run, Odd, reread=True)

    assert [answer.prediction.value for answer in found.run.answers] == [[1]] * 6
    assert (len(found.changed), found.kept) == (6, ())
    assert [answer.prediction.meta for answer in found.run.answers] == [
        answer.prediction.meta for answer in run.answers
    ]


async def test_a_parser_that_reads_nothing_any_more_keeps_the_old_answer(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_json(self: ActionReasonChooser, data: Mapping[str, Any], subject: Any) -> Choice:
        raise Unreadable("not so")  # it would be asked again, and that is not on record

    monkeypatch.setattr(ActionReasonChooser, "read_json", read_json)

    found = await rescore(run, Odd, reread=True)

    assert [answer.prediction.value for answer in found.run.answers] == [[2]] * 6
    assert (found.changed, len(found.kept)) == ((), 6)


def cut_off(run: Run, *, after: int) -> Run:
    """`run` as a kill leaves it after so many lines, in the middle of the next."""
    lines = (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run.path / "samples.jsonl").write_text("".join(lines[:after]) + lines[after][:30], encoding="utf-8")
    form = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    del form["finished"], form["figures"]
    (run.path / "run.json").write_text(json.dumps(form), encoding="utf-8")
    return Run.open(run.path)


async def test_a_run_that_is_not_finished_is_scored_as_far_as_it_is(run: Run) -> None:
    found = await rescore(cut_off(run, after=4), Odd)

    assert (found.run.finished, found.run.figure("accuracy").samples, found.run.totals["samples"]) == (None, 4, 4)


class NeedsData(Odd):
    """A task whose solver cannot be made without its data."""

    def solver(self) -> Any:
        return [len(str(self.data))]


async def test_a_solver_that_needs_the_data_reads_nothing_again(run: Run) -> None:
    with pytest.raises(UsageError, match=r"^Nothing says which `data` to take\. Give --data FOLDER"):
        await rescore(run, NeedsData, reread=True)


async def test_a_run_without_samples_is_told(tmp_path: Path, run: Run) -> None:
    with pytest.raises(UsageError, match="has no samples yet"):
        await rescore(cut_off(run, after=0), Odd)
