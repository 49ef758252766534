"""What a shell completes behind a command: options of tasks, grids, figures of runs; and words that bash has split."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.cli.completion import grid_names, task_names
from askance.evals.task_catalog import packaged
from tests.cli.command import Command
from tests.evals.report.runs import plain_run


def offered(askance: Command, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """What bash is offered behind these words, which it has split."""
    monkeypatch.setenv("_ASKANCE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))

    done = askance()

    assert (done.code, done.err) == (0, "")
    return [line for line in done.out.splitlines() if line]


TASK = ("askance", "eval", "run", "whoops/identify", "-T")


def test_the_options_of_the_task_are_offered(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"shots=", "shots_from=", "solver="} <= {*offered(askance, monkeypatch, *TASK, "")}
    assert "shots_from=knn" in offered(askance, monkeypatch, *TASK, "shots_f")
    assert offered(askance, monkeypatch, *TASK, "shots_from", "=", "b") == ["bm25", "balanced"]
    assert "knn" in offered(askance, monkeypatch, *TASK, "shots_from", "=")
    assert offered(askance, monkeypatch, *TASK, "shots", "=") == []


def test_the_options_of_ones_own_task_are_offered_and_no_python_is_run(
    askance: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("mine.yaml").write_text("name: mine\nchain: ask\nscore: none\n", encoding="utf-8")
    Path("mine.py").write_text("raise SystemExit(9)\n", encoding="utf-8")

    assert "shots=" in offered(askance, monkeypatch, "askance", "eval", "run", "mine.yaml", "-T", "sh")
    assert offered(askance, monkeypatch, "askance", "eval", "run", "mine.py", "-T", "") == []
    assert offered(askance, monkeypatch, "askance", "eval", "run", "lost.yaml", "-T", "") == []


def test_the_figures_of_the_named_runs_are_offered(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [figure.metric for figure in plain_run(Path("runs/a")).figures]

    for command in (
        ("eval", "table", "runs/a"),
        ("plot", "runs"),
        ("compare", "runs/a", "runs/a"),
        ("blame", "runs/a"),
    ):
        assert offered(askance, monkeypatch, "askance", *command, "--metric", "") == names
    assert offered(askance, monkeypatch, "askance", "plot", "nowhere", "--metric", "") == []


def test_grids_and_tasks_are_offered(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(askance, monkeypatch, "askance", "eval", "grid", "w") == ["whoops"]
    assert {"pittads", "whoops", "newyorker", "sherlock"} == {*grid_names()}
    assert task_names("") == [*packaged()]
    assert {name.partition("/")[0] for name in task_names("whoops/e")} == {"whoops"}
