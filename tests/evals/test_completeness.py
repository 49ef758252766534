"""Whether the lines of a run are those of the samples that it began with: missing, changed, repeated ones are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.errors import UsageError
from askance.evals import Run, Sample, evaluate
from askance.evals.analysis.pack import write_pack
from askance.evals.analysis.rescore import rescore
from tests.evals.odd import Odd, chooser, write_pictures

Form = dict[str, Any]
Lines = list[Form]
PACK = Path("x.pack")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = evaluate(Odd(data=write_pictures(tmp_path / "pictures", 3), vlm=chooser(2), count=3), out="run", epochs=2)
    return made.path


def read(file: Path) -> Lines:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def write(file: Path, lines: Lines) -> None:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def is_packed() -> bool:
    return PACK.exists()


def described(run: Path, change: Callable[[Form], object]) -> None:
    form = json.loads((run / "run.json").read_text(encoding="utf-8"))
    change(form)
    (run / "run.json").write_text(json.dumps(form), encoding="utf-8")


def another_id(lines: Lines) -> Lines:
    return [{**line, "id": f"x{line['id']}", "sample": {**line["sample"], "id": f"x{line['id']}"}} for line in lines]


def another_truth(lines: Lines) -> Lines:
    return [{**line, "sample": {**line["sample"], "target": 2}} for line in lines]


CHANGES: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "a sample left out": (lambda lines: [line for line in lines if line["id"] != "01.png"], "2 of 6 lines are missing"),
    "a line left out": (lambda lines: lines[1:], "1 of 6 lines is missing"),
    "a line twice": (lambda lines: [*lines, lines[0]], "1 line stands twice, such as that of '00.png'"),
    "a line for another": (lambda lines: [lines[1], *lines[1:]], "1 line stands twice, such as that of '00.png'"),
    "another id": (another_id, "the samples are not those that the run began with"),
    "another truth": (another_truth, "the samples are not those that the run began with"),
    "another truth in one epoch": (
        lambda lines: [*lines[:3], *another_truth(lines[3:])],
        "the samples are not those that the run began with",
    ),
    "an id of the line alone": (
        lambda lines: [{**lines[0], "id": "x"}, *lines[1:]],
        "1 line has another id than its sample, such as that of '00.png'",
    ),
    "a further epoch": (
        lambda lines: [*lines, {**lines[0], "epoch": 2}],
        "1 line is of an epoch beyond the 2 of the run",
    ),
    "another epoch": (
        lambda lines: [{**lines[0], "epoch": 2}, *lines[1:]],
        "1 line is of an epoch beyond the 2 of the run",
    ),
    "a further sample": (
        lambda lines: [*lines, *another_id(lines[:1])],
        "7 lines, and run.json says 6",
    ),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
async def test_lines_that_are_not_those_of_the_run_are_neither_scored_nor_packed(
    run: Path, change: Callable[[Lines], Lines], message: str
) -> None:
    write(run / "samples.jsonl", change(read(run / "samples.jsonl")))
    before = (run / "run.json").read_bytes()

    with pytest.raises(UsageError, match=r"^The run 'run' is not whole: samples\.jsonl[: ]") as scoring:
        await rescore(Run.open(run), Odd)
    with pytest.raises(UsageError, match=r"^The run 'run' is not whole: samples\.jsonl[: ]") as packing:
        write_pack([Run.open(run)], PACK)

    assert message in scoring.value.message
    assert message in packing.value.message
    assert "run the same `askance eval run` again" in (scoring.value.hint or "")
    assert (run / "run.json").read_bytes() == before
    assert not is_packed()


async def test_the_same_evaluation_makes_a_run_whole_again(run: Path, tmp_path: Path) -> None:
    whole = read(run / "scores.jsonl")
    write(run / "samples.jsonl", read(run / "samples.jsonl")[2:])

    evaluate(Odd(data=tmp_path / "pictures", vlm=chooser(2), count=3), out="run", epochs=2)

    assert read(run / "scores.jsonl") == whole
    assert (await rescore(Run.open(run), Odd)).lacks == ()


async def test_a_run_that_was_interrupted_says_how_far_it_came(run: Path) -> None:
    described(run, lambda form: form.pop("finished"))
    write(run / "samples.jsonl", read(run / "samples.jsonl")[:4])

    found = await rescore(Run.open(run), Odd)

    assert found.lacks == ("samples.jsonl has 4 of 6 lines so far: they cannot be held against the digest in run.json",)
    assert found.run.totals["samples"] == 4


async def test_a_run_with_samples_left_by_the_budget_is_scored(run: Path) -> None:
    described(run, lambda form: form.update(left=2))
    write(run / "samples.jsonl", read(run / "samples.jsonl")[:4])

    assert (await rescore(Run.open(run), Odd)).lacks[0].startswith("samples.jsonl has 4 of 6 lines so far")


def test_a_finished_run_that_asks_again_is_not_finished_until_it_ends(run: Path, tmp_path: Path) -> None:
    lines = read(run / "samples.jsonl")
    write(run / "samples.jsonl", [{**lines[0], "outcome": "failed", "value": None}, *lines[1:]])

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(Odd(data=tmp_path / "pictures", vlm=chooser(2), count=3), out="run", epochs=2, on_progress=stop)

    assert Run.open(run).finished is None


class Numbered(Odd):
    """With facts that are no JSON before they are written: numbers for names, a tuple, a whole float."""

    name = "tests/numbered"

    def samples(self) -> list[Sample]:
        tags: Any = {"places": {2: "a", 10: ("b", 1.0)}}
        return [replace(sample, tags=tags) for sample in super().samples()]


async def test_samples_have_the_digest_of_what_is_written_of_them(tmp_path: Path) -> None:
    made = evaluate(Numbered(data=write_pictures(tmp_path / "pictures", 2), vlm=chooser(2), count=2), out="run")

    assert (await rescore(made, Numbered)).lacks == ()
