"""A run read from its folder: whole, half written, of another version, or something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.errors import UsageError
from askance.evals import Run
from tests.evals.numbers import run_of


def change(name: str, change_: dict[str, Any]) -> None:
    file = Path("run", name)
    form = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**form, **change_}), encoding="utf-8")


def test_a_run_is_what_its_folder_says() -> None:
    made = run_of()

    found = Run.open("run")

    assert (found.task, found.name, found.models, found.left) == ("numbers", "run", (), 0)
    assert (found.figures, found.notes, found.totals["samples"]) == (made.figures, made.notes, 6)
    assert [answer.sample.id for answer in found.answers] == ["00", "01", "02", "03", "04", "05"]
    assert [answer.score.values["accuracy"] for answer in found.answers if answer.score] == [0, 1, 0, 1, 0, 1]
    assert repr(found) == "Run('numbers', 'run', 6 samples)"


def test_a_figure_that_is_not_there_is_told() -> None:
    run_of()

    with pytest.raises(UsageError, match=r"The run 'run' has no figure 'f1'\. It has accuracy\."):
        Run.open("run").figure("f1")


def test_a_line_that_a_kill_tore_is_none() -> None:
    run_of()
    with Path("run/samples.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "06", "epo')

    assert len(Run.open("run").answers) == 6


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "version": ({"format": 99}, r"The run 'run' has the format 99, .* Open it with the version of askance"),
    "no evaluation": ({"configuration": {"chain": "verbalize"}}, "The folder 'run' holds no evaluation"),
    "figures": ({"figures": [{"metric": "x"}]}, "The folder 'run' holds no evaluation"),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_run_of_today_is_told(changes: dict[str, Any], message: str) -> None:
    run_of()
    change("run.json", changes)

    with pytest.raises(UsageError, match=message):
        Run.open("run")


TORN = {"nothing": "", "half": '{"format": 1, "conf', "list": "[]"}


@pytest.mark.parametrize("text", TORN.values(), ids=TORN)
def test_a_description_that_is_none_is_told(text: str) -> None:
    run_of()
    Path("run/run.json").write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match=r"describes no run|holds no evaluation"):
        Run.open("run")


BROKEN = {
    "no JSON": ("{\n", "Line 7 of 'run/samples.jsonl' is no JSON"),
    "no answer": ('{"id": "x", "epoch": 0, "outcome": "answered", "links": {}}\n', "This is no line of a run"),
    "no sample": ('{"id": "x", "epoch": 0, "sample": {"id": "x"}}\n', "This is no sample of a run"),
}


@pytest.mark.parametrize(("line", "message"), BROKEN.values(), ids=BROKEN)
def test_a_line_that_is_none_is_told(line: str, message: str) -> None:
    run_of()
    with Path("run/samples.jsonl").open("a", encoding="utf-8") as file:
        file.write(line)

    with pytest.raises(UsageError, match=message):
        _ = Run.open("run").answers


def test_a_folder_of_something_else_is_not_written_into(own_place: Path) -> None:
    (own_place / "run").mkdir()
    (own_place / "run" / "thesis.txt").write_text("years of work", encoding="utf-8")

    with pytest.raises(UsageError, match="The folder 'run' holds something that is no run"):
        run_of()
    assert [file.name for file in sorted((own_place / "run").iterdir())] == [".lock", "thesis.txt"]
