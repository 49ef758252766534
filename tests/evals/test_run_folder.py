"""The run folder: what it holds, what it takes, what survives a kill."""

from __future__ import annotations

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from askance.errors import StoreError, UsageError
from askance.evals import Run, RunFolder
from askance.replay import MemoryStore, Record, read_cassette
from tests.conftest import ROOT

CONFIGURATION = {"chain": "verbalize"}


def record(model: str) -> Record:
    return Record.make(
        "chat", {"model": {"provider": "p", "model": model}, "messages": []}, {"text": "a cup", "finish": "stop"}
    )


ASKED, OTHER = record("m"), record("n")


def line(name: str, outcome: str = "answered", *, calls: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {"image": name, "outcome": outcome, "links": {"objects": {"outcome": outcome, "calls": [*calls]}}, **more}


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / "samples.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]


def ended(path: Path, *samples: dict[str, Any], configuration: dict[str, Any] | None = None) -> None:
    """A run that ended before it was finished."""
    folder = RunFolder(path, configuration or CONFIGURATION)
    for sample in samples:
        folder.add(sample)
    folder.close()


def test_a_finished_run_holds_lines_records_and_totals(own_place: Path) -> None:
    records = MemoryStore([ASKED, OTHER])
    folder = RunFolder(own_place / "run", CONFIGURATION)
    folder.add(line("a", calls=(ASKED.key,)))
    folder.add(line("b", "refused"))

    totals = folder.finish(records)

    assert totals == {"samples": 2, "outcomes": {"answered": 1, "refused": 1}, "records": 1}
    assert lines(own_place / "run") == [line("a", calls=(ASKED.key,)), line("b", "refused")]
    assert list(read_cassette(own_place / "run" / "calls.jsonl")) == [ASKED]
    said = json.loads((own_place / "run" / "run.json").read_text(encoding="utf-8"))
    assert (said["configuration"], said["totals"], said["format"]) == (CONFIGURATION, totals, 1)


def test_records_that_belong_to_the_run_are_kept_as_well(own_place: Path) -> None:
    RunFolder(own_place, CONFIGURATION).finish(MemoryStore([ASKED, OTHER]), also=[OTHER.key])

    assert list(read_cassette(own_place / "calls.jsonl")) == [OTHER]


def test_records_of_an_earlier_run_stay_when_the_store_is_gone(own_place: Path) -> None:
    folder = RunFolder(own_place, CONFIGURATION)
    folder.add(line("a", calls=(ASKED.key,)))
    folder.finish(MemoryStore([ASKED]))

    RunFolder(own_place, CONFIGURATION).finish(MemoryStore())

    assert list(read_cassette(own_place / "calls.jsonl")) == [ASKED]


def test_records_and_their_seal_are_kept_by_one_thread_at_a_time(
    own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = list[bool]()
    busy = Lock()

    def seal_of(_file: Path) -> None:
        alone.append(busy.acquire(timeout=0))
        time.sleep(0.02)
        busy.release()

    monkeypatch.setattr("askance.evals.run_folder.seal_of", seal_of)
    folder = RunFolder(own_place, CONFIGURATION)
    with ThreadPoolExecutor(4) as threads:
        for _ in range(4):
            threads.submit(folder.keep_records, None)
    folder.close()
    assert alone == [True] * 4


def test_a_run_ends_again_only_where_something_came_to_it(own_place: Path) -> None:
    folder = RunFolder(own_place, CONFIGURATION)
    folder.add(line("a"))
    folder.finish(None)
    long_ago = json.loads((own_place / "run.json").read_text(encoding="utf-8")) | {"finished": "2020-01-01T00:00:00Z"}
    (own_place / "run.json").write_text(json.dumps(long_ago), encoding="utf-8")

    ends: list[str] = []
    for more in ([line("a")], [line("a"), line("b")]):
        folder = RunFolder(own_place, CONFIGURATION)
        for each in more:
            folder.add(each)
        folder.finish(None)
        ends.append(json.loads((own_place / "run.json").read_text(encoding="utf-8"))["finished"])

    assert ends[0] == "2020-01-01T00:00:00Z" < ends[1]


def test_what_is_answered_is_finished_and_the_rest_is_read_again(own_place: Path) -> None:
    ended(own_place, line("a"), line("b", "failed"))

    folder = RunFolder(own_place, CONFIGURATION)
    folder.add(line("a"))
    folder.add(line("b", "answered", text="one\u2028two"))
    folder.close()

    assert folder.finished == {"a": line("a")}
    assert lines(own_place) == [line("a"), line("b", "answered", text="one\u2028two")]


def test_lines_after_odd_separators_are_found(own_place: Path) -> None:
    ended(own_place, line("a", text="one\u2028two\x85three"), line("b"))

    folder = RunFolder(own_place, CONFIGURATION)
    folder.close()

    assert list(folder.finished) == ["a", "b"]


@pytest.mark.parametrize("torn", ['{"image": "b", "outc', '{"image": "b"}', "[]", "3", ""], ids=repr)
def test_a_torn_line_is_no_sample(torn: str, own_place: Path) -> None:
    ended(own_place, line("a"))
    with (own_place / "samples.jsonl").open("a", encoding="utf-8") as file:
        file.write(torn)

    folder = RunFolder(own_place, CONFIGURATION)
    folder.add(line("b"))
    folder.close()

    assert lines(own_place) == [line("a"), line("b")]


def test_a_line_that_holds_no_longer_is_read_again(own_place: Path) -> None:
    ended(own_place, line("a", sha256="1"), line("b", sha256="2"))

    folder = RunFolder(own_place, CONFIGURATION, keeps=lambda kept: kept["sha256"] == "2")
    folder.close()

    assert list(folder.finished) == ["b"]


@pytest.mark.parametrize(
    ("there", "asked", "different"),
    [
        ({"chain": "verbalize"}, {"chain": "atypicality"}, "'chain' ('verbalize', now 'atypicality')"),
        ({"chain": "c"}, {"chain": "c", "context": "IN"}, "'context' (none, now 'IN')"),
        (
            {"options": {"limit": 5}, "a": 1},
            {"options": {"limit": 9}, "a": 2},
            "'options.limit' (5, now 9), 'a' (1, now 2)",
        ),
        ({"prompts": {"ask": "Look. " * 20}}, {"prompts": {"ask": "See. " * 20}}, "'prompts.ask'"),
        ({"samples": {"a.jpg": None}}, {"samples": {"b.jpg": None}}, "'pictures'"),
        ({"x": [1, 2, 3, 4]}, {"x": {"y": 1}}, "'x'"),
        (
            {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1},
            {"a": 2, "b": 2, "c": 2, "d": 2, "e": 2},
            "'a' (1, now 2), 'b' (1, now 2), 'c' (1, now 2) and 2 more",
        ),
    ],
)
def test_another_configuration_is_refused(
    own_place: Path, there: dict[str, Any], asked: dict[str, Any], different: str
) -> None:
    ended(own_place / "run", line("a"), configuration=there)

    with pytest.raises(UsageError) as refused:
        RunFolder(own_place / "run", asked)

    assert str(refused.value) == (
        f"The folder {str(own_place / 'run')!r} holds a run of another configuration, different in {different}. Give "
        "another `--out`, or the options that the run began with (they stand in its run.json)."
    )


def test_a_run_that_never_began_makes_room_for_another(own_place: Path) -> None:
    ended(own_place)

    RunFolder(own_place, {"chain": "atypicality"}).close()

    assert json.loads((own_place / "run.json").read_text(encoding="utf-8"))["configuration"] == {"chain": "atypicality"}


def test_a_folder_of_something_else_is_refused(own_place: Path) -> None:
    (own_place / "thesis.txt").touch()

    with pytest.raises(UsageError) as refused:
        RunFolder(own_place, CONFIGURATION)

    assert (
        str(refused.value)
        == f"The folder {str(own_place)!r} holds something that is no run. Give a new or empty folder."
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", "no JSON"])
def test_a_broken_description_is_refused(text: str, own_place: Path) -> None:
    (own_place / "run.json").write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match=r"run\.json' describes no run\. Give another `--out`\.$"):
        RunFolder(own_place, CONFIGURATION)


FILES = [".lock", "run.json", "samples.jsonl", "scores.jsonl", "calls.jsonl"]


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_in_a_folder_is_named_and_not_waited_for(name: str, own_place: Path) -> None:
    shutil.copytree(ROOT / "tests" / "golden" / "files" / "run", own_place / "run")
    (own_place / "run" / name).unlink(missing_ok=True)
    os.mkfifo(own_place / "run" / name)

    for opened in (lambda: RunFolder(own_place / "run", CONFIGURATION), lambda: Run.open(own_place / "run")):
        with pytest.raises(UsageError, match=r"no regular file|holds no run"):
            opened()


@pytest.mark.parametrize("name", ["run.json.part", "samples.jsonl.part", "prompts/unusual.json.prompt", "prompts"])
def test_nothing_is_written_through_a_symbolic_link(name: str, own_place: Path) -> None:
    ended(own_place / "run")
    outside = own_place / "outside"
    outside.write_text("mine", encoding="utf-8")
    (own_place / "run" / name).parent.mkdir(exist_ok=True)
    (own_place / "run" / name).symlink_to(outside)

    with pytest.raises(UsageError, match="is a symbolic link"):
        RunFolder(own_place / "run", CONFIGURATION)

    assert outside.read_text(encoding="utf-8") == "mine"


def test_a_folder_is_written_by_one_at_a_time(own_place: Path) -> None:
    folder = RunFolder(own_place, CONFIGURATION)
    with pytest.raises(StoreError) as refused:
        RunFolder(own_place, CONFIGURATION)
    folder.close()
    RunFolder(own_place, CONFIGURATION).close()

    assert str(refused.value) == (
        f"Another process is writing the run folder {str(own_place)!r}. Wait for it, or give another `--out`."
    )


def test_a_folder_that_cannot_be_made(own_place: Path) -> None:
    (own_place / "file").touch()

    with pytest.raises(StoreError) as refused:
        RunFolder(own_place / "file" / "run", CONFIGURATION)

    name = str(own_place / "file" / "run")
    assert str(refused.value) == f"The run folder {name!r} cannot be written: Not a directory. Give another `--out`."
