"""Watching: what is whole is counted, what is torn is waited for, and the run notices nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from askance.errors import UsageError
from askance.evals import Run, Sample, evaluate
from askance.evals.analysis import watch
from askance.evals.analysis.watch import RunStatus, SlowCall, Unanswered, Watcher
from tests.evals.numbers import NON_ANSWERS, run_of
from tests.evals.odd import Odd, chooser, write_pictures


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return evaluate(Odd(data=write_pictures(tmp_path / "pictures"), vlm=chooser(2)), out=tmp_path / "run")


def unfinished(run: Run, lines: int, *, torn: str = "") -> Path:
    """The folder as it was when so many lines were written."""
    form = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    del form["finished"], form["figures"], form["totals"]
    (run.path / "run.json").write_text(json.dumps(form), encoding="utf-8")
    (run.path / "scores.jsonl").unlink()
    whole = (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run.path / "samples.jsonl").write_text("".join(whole[:lines]) + torn, encoding="utf-8")
    return run.path


def test_a_finished_run_is_told_as_its_folder_tells_it(run: Run) -> None:
    look = Watcher(run.path).status()

    assert (look.task, look.done, look.total, look.outcomes, look.finished) == (
        "tests/odd",
        6,
        6,
        {"answered": 6},
        run.finished,
    )
    assert look.figure == run.figures[0]


def test_of_a_run_under_way_the_score_is_of_the_samples_so_far(run: Run) -> None:
    look = Watcher(unfinished(run, 2)).status()

    assert (look.done, look.total, look.finished) == (2, 6, None)
    assert look.figure is not None
    assert (look.figure.value, look.figure.samples) == (0.5, 2)


def test_a_torn_line_is_waited_for(run: Run) -> None:
    whole = (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    watcher = Watcher(unfinished(run, 2, torn=whole[2][:50]))
    first = watcher.status()
    with (run.path / "samples.jsonl").open("a", encoding="utf-8") as file:
        file.write(whole[2][50:] + whole[3])

    assert (first.done, watcher.status().done, watcher.status().done) == (2, 4, 4)


def test_a_file_that_is_begun_anew_is_read_anew(run: Run) -> None:
    watcher = Watcher(run.path)
    watcher.status()
    whole = (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run.path / "part").write_text("".join(whole[:5]), encoding="utf-8")
    (run.path / "part").replace(run.path / "samples.jsonl")

    assert (watcher.status().done, watcher.status().finished) == (5, None)


def test_samples_without_an_answer_are_listed_last_first(tmp_path: Path) -> None:
    def solve(sample: Sample) -> bool:
        kinds = [*NON_ANSWERS.values()]
        if int(sample.id) < len(kinds):
            raise kinds[int(sample.id)]("no " + sample.id)
        return True

    look = Watcher(run_of(solve, count=8, out=tmp_path / "run").path).status()

    assert look.errors[0] == Unanswered(sample="05", outcome="skipped", reason="no 05")
    assert [each.sample for each in look.errors] == ["05", "04", "03"]
    assert sum(look.outcomes.values()) == 8


def test_what_lines_say_of_their_calls_is_summed(run: Run) -> None:
    lines = [json.loads(line) for line in (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    for place, line in enumerate(lines):
        error, key = "late" if place == 5 else None, line["links"]["answers"]["calls"][0]
        line["meta"] = {
            "calls": 2,
            "replayed": 1,
            "tokens": {"input": 10, "output": 5},
            "cost": None if place == 0 else 0.25,
            "tries": {key: [{"at": 1000.0 + 2 * place, "seconds": 1.0 + place, "error": error}]},
        }
    lines[1]["meta"]["failed"] = {"narration": "f"}
    lines[1]["meta"]["tries"]["f"] = [{"at": 1000.0, "seconds": 0.5 + tries, "error": "gone"} for tries in (0, 4)]
    (run.path / "samples.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    look = Watcher(run.path).status()

    assert (look.calls, look.replayed, look.failed, look.tokens, look.cost, look.unpriced) == (12, 6, 3, 90, 1.25, 1)
    assert look.slow == (
        SlowCall(sample=lines[5]["id"], seconds=6.0, error="late", link="answers"),
        SlowCall(sample=lines[4]["id"], seconds=5.0, error=None, link="answers"),
        SlowCall(sample=lines[1]["id"], seconds=4.5, error="gone", link="narration"),
    )
    assert look.per_minute == 20.0


def test_where_no_call_tells_the_rate_it_is_what_came_between_looks(run: Run) -> None:
    whole = (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    lines = [json.dumps({**json.loads(line), "meta": {}}) + "\n" for line in whole]
    folder = unfinished(run, 0, torn="".join(lines[:2]))
    watcher = Watcher(folder)
    first = watcher.status()
    time.sleep(0.1)
    with (folder / "samples.jsonl").open("a", encoding="utf-8") as file:
        file.write("".join(lines[2:5]))

    assert first.per_minute is None
    assert 0 < (watcher.status().per_minute or 0) < 60 * 3 / 0.1


def test_the_end_is_foretold_by_the_rate() -> None:
    look = RunStatus(
        task="t",
        done=4,
        total=10,
        outcomes={},
        finished=None,
        left=0,
        figure=None,
        per_minute=3.0,
        quiet=0.0,
    )

    assert look.minutes_left == 2.0


def test_a_run_may_be_watched_from_its_first_moment_to_its_end(tmp_path: Path) -> None:
    place = tmp_path / "run"
    command = [sys.executable, "-m", "tests.evals.numbers", str(place), "0.01"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as process:
        while not (place / "run.json").exists():
            assert process.poll() is None
            time.sleep(0.01)
        watcher, seen = Watcher(place), [0]
        while not (look := watcher.status()).finished:
            seen.append(look.done)
            time.sleep(0.02)

    assert (process.returncode, look.done, look.outcomes) == (0, 30, {"answered": 29, "refused": 1})
    assert seen == sorted(seen)


def test_a_folder_that_holds_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^The folder '.*' holds no run\."):
        Watcher(tmp_path)


def test_a_line_that_nobody_would_write_is_refused_and_not_read_whole(run: Run) -> None:
    watcher = Watcher(unfinished(run, 2))
    with (run.path / "samples.jsonl").open("r+b") as file:
        file.truncate(1_500_000_000)  # with nothing in it but zeros, and nothing on the disk
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=r"Line 3 of .*samples\.jsonl' is longer than 64 MB\."):
            watcher.status()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert most < 200_000_000


def test_lines_are_read_a_few_at_a_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "AT_ONCE", 2)

    look = Watcher(run.path).status()

    assert (look.done, look.figure) == (6, run.figures[0])


def test_nothing_in_the_folder_changes(run: Run) -> None:
    before = {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in run.path.iterdir()}

    Watcher(run.path).status()

    assert {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in run.path.iterdir()} == before


def test_a_task_that_is_not_found_has_no_score_yet(run: Run) -> None:
    form = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    form["configuration"]["task"] = "nobody/knows"
    form["origin"] = {}
    (run.path / "run.json").write_text(json.dumps(form), encoding="utf-8")

    assert (Watcher(run.path).status().figure, Watcher(run.path).status().done) == (None, 6)
