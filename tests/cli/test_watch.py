"""`askance watch`: one look, a terminal, a pipe; a run that is being written."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from askance.errors import Refused
from askance.evals import Sample
from askance.evals.run_folder import amending
from tests.cli.command import Command, finish, start
from tests.cli.test_terminal import text
from tests.cli.test_terminal import watch as on_a_terminal
from tests.evals.numbers import run_of


@pytest.fixture
def finished(own_place: Path) -> str:
    return run_of(count=4, out="run").finished or ""


def test_one_look_in_words(askance: Command, finished: str) -> None:
    done = askance("watch", "run", "--once")

    assert (done.code, done.err) == (0, "")
    assert done.out == (f"numbers: 4 of 4 samples: 4 answered.\n0 calls made · 0 replayed\nFinished {finished}.\n")


def test_one_look_as_json(askance: Command, finished: str) -> None:
    (form,) = askance("watch", "run", "--once", "--json").lines

    assert (form["task"], form["done"], form["total"], form["finished"]) == ("numbers", 4, 4, finished)


def test_a_run_of_pictures_can_be_watched_too(askance: Command, vlm: str, ads: list[str]) -> None:
    askance("run", "verbalize", *ads, "--vlm", vlm, "--context", "UH", "--out", "seen")

    done = askance("watch", "seen", "--once")

    assert done.out.startswith("verbalize: 3 of 3 pictures: 3 answered.\n3 calls made · 0 replayed · ")


def test_a_folder_without_a_run_is_refused(askance: Command) -> None:
    assert askance("watch", "nowhere", "--once").err == (
        "askance: The folder 'nowhere' holds no run.\n"
        "  → Name a folder that `askance eval run` or `askance run --out` has made.\n"
    )


def test_a_folder_of_something_else_is_refused_and_not_waited_for(askance: Command, own_place: Path) -> None:
    (own_place / "there").mkdir()
    (own_place / "there" / "thesis.txt").write_text("", encoding="utf-8")

    assert askance("watch", "there").err.startswith("askance: The folder 'there' holds no run.\n")


def test_a_page_follows_a_run_until_it_is_finished(
    askance: Command, finished: str, between: list[Callable[[], object]]
) -> None:
    whole = Path("run/run.json").read_text(encoding="utf-8")
    seen: list[str] = []

    def end() -> None:
        seen.append(Path("page.html").read_text(encoding="utf-8"))
        Path("run/run.json").write_text(whole, encoding="utf-8")

    form = json.loads(whole)
    del form["finished"]
    Path("run/run.json").write_text(json.dumps(form), encoding="utf-8")
    between += [end]
    done = askance("watch", "run", "--html", "page.html")

    assert (done.code, done.err) == (0, "The page is in page.html.\n")
    assert "4 of 4 samples: 4 answered." in seen[0]
    assert '"follows":5.0' in seen[0]
    assert '"follows"' not in Path("page.html").read_text(encoding="utf-8")
    assert finished[:10] in Path("page.html").read_text(encoding="utf-8")


def test_pictures_without_a_page_are_refused(askance: Command, finished: str) -> None:
    assert askance("watch", "run", "--once", "--images", ".").err == (
        "askance: `--images` is for a page, and none is asked for.\n  → Add `--html page.html`.\n"
    )


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What happens between one look and the next, instead of waiting; when nothing is left it waits for a moment."""
    steps, sleep = list[Callable[[], object]](), time.sleep

    def step(_: float) -> None:
        if steps:
            steps.pop(0)()
        else:
            sleep(0.01)

    monkeypatch.setattr(time, "sleep", step)
    return steps


def test_a_run_that_begins_later_is_waited_for(askance: Command, between: list[Callable[[], object]]) -> None:
    between += [lambda: None, lambda: run_of(count=3, out="run")]
    done = askance("watch", "run")

    assert done.err == "There is no run in 'run' yet; waiting for it. Ctrl-C ends that.\n"
    assert (done.code, done.out.splitlines()[0]) == (0, "numbers: 3 of 3 samples: 3 answered.")


def killed() -> None:
    """The run of a process that was killed some minutes ago."""
    form = json.loads(Path("run/run.json").read_text(encoding="utf-8"))
    del form["finished"]
    Path("run/run.json").write_text(json.dumps(form), encoding="utf-8")
    for name in ("run.json", "samples.jsonl"):
        os.utime(Path("run", name), (time.time() - 300, time.time() - 300))


def test_a_run_that_was_killed_is_not_waited_for_in_a_pipe(askance: Command, finished: str) -> None:
    killed()

    done = askance("watch", "run")

    assert done.code == 1
    assert done.out.splitlines()[2] == (
        "Not finished: nothing written for 5 min, nobody seems to write it any more, and the command that began it "
        "goes on with it."
    )


def test_a_run_that_somebody_holds_is_only_quiet(askance: Command, finished: str) -> None:
    killed()
    with amending(Path("run")):
        done = askance("watch", "run", "--once")

    assert (done.code, done.out.splitlines()[2]) == (0, "Not finished: nothing written for 5 min.")


def test_to_stop_watching_is_no_failure(own_place: Path) -> None:
    watching = start("watch", "run")
    assert watching.stderr is not None
    watching.stderr.readline()
    watching.send_signal(signal.SIGINT)

    assert finish(watching).code == 0


SPOILT = {
    "run.json": (
        "run.json",
        '{"format": 1, "readers": 6, "configuration": []}',
        "'run/run.json' describes no run: configuration ",
    ),
    "a cost": ("samples.jsonl", None, "Line 1 of 'run/samples.jsonl' is no line of a run: meta.cost is \"x\", not a "),
}


@pytest.mark.parametrize(("name", "content", "message"), SPOILT.values(), ids=SPOILT)
def test_what_is_spoilt_is_told(name: str, content: str | None, message: str, askance: Command, finished: str) -> None:
    if content is None:
        line = json.loads(Path("run", name).read_text(encoding="utf-8").splitlines()[0])
        content = json.dumps({**line, "meta": {"cost": "x"}}) + "\n"
    Path("run", name).write_text(content, encoding="utf-8")

    done = askance("watch", "run", "--once")

    assert (done.code, done.err[: len(message) + 9]) == (2, f"askance: {message}")


def test_a_name_cannot_move_the_cursor(askance: Command, finished: str) -> None:
    file = Path("run/samples.jsonl")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines[0] |= {"id": "\x1b[2J", "outcome": "failed", "reason": "one\n\x1b[31mtwo"}
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    out = askance("watch", "run", "--once").out

    assert out.splitlines()[-1] == r"failed: \x1b[2J, one \x1b[31mtwo"


@pytest.fixture
def going_on(own_place: Path) -> Iterator[Event]:
    """Lets a run go on that has begun, and is written while a test goes on."""
    go_on = Event()

    def solve(sample: Sample) -> int:
        assert go_on.wait(60)
        if sample.id == "07":
            raise Refused("no")
        return sample.inputs["number"] ** 2

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(run_of, solve, count=30, out=own_place / "run")
        while not Path("run/run.json").exists():
            assert not writing.done()
            time.sleep(0.01)
        yield go_on
        writing.result(60)


def test_in_a_pipe_one_thing_is_said_at_the_end(
    askance: Command, going_on: Event, between: list[Callable[[], object]]
) -> None:
    between += [lambda: None, going_on.set]
    done = askance("watch", "run")

    assert (done.code, done.err, between) == (0, "", [])
    assert done.out.startswith("numbers: 30 of 30 samples: 29 answered, 1 refused.\n")
    assert done.out.endswith("\nrefused: 07, no\n")


def test_a_terminal_sees_it_grow(going_on: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")

    def seen(shown: str) -> None:
        if "Not finished." in text(shown):
            going_on.set()

    code, shown, _ = on_a_terminal("watch", "run", "--every", "0.1", seen=seen)

    assert (code, going_on.is_set()) == (0, True)
    assert "numbers: 30 of 30 samples: 29 answered, 1 refused." in text(shown)
