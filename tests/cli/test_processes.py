"""The command as a process among others: pipes, signals, kills, two at a time."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from askance.replay import open_records, verify
from tests.cli.command import Command, draw, finish, link_of, picture_of, start, telling
from tests.replies import SILENT
from tests.servers import Answer, FakeEndpoint, Seen


def within(seconds: float, happens: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_behind_head_it_ends_quietly(vlm: str, own_place: Path) -> None:
    draw(own_place / "ads", *(f"{place}.png" for place in range(12)))
    process = start("run", "verbalize", "ads", "--vlm", vlm, "--json", "--concurrency", "2")
    assert process.stdout is not None

    assert json.loads(process.stdout.readline())["outcome"] == "answered"
    process.stdout.close()
    process.stdout = None

    assert (finish(process).err, process.returncode) == ("", 0)


def test_a_help_page_behind_a_closed_pipe_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start("run", "--help", stdout=writing)
    os.close(writing)

    assert (finish(process).err, process.returncode) == ("", 0)


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(askance: Command, ads: list[str]) -> None:
    first = ""

    def hangs_after_the_first_picture(seen: Seen) -> Answer:
        nonlocal first
        first = first or picture_of(seen)
        return SILENT if hanging and picture_of(seen) not in {"", first} else telling(seen)

    hanging = [True]
    with FakeEndpoint(hangs_after_the_first_picture) as endpoint:
        command = ["run", "verbalize", *ads, "--context", "IN", "--vlm", f"openai:m@{endpoint.url}", "--json"]
        process = start(*command, "--concurrency", "1")
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        done = finish(process)
        hanging.clear()
        endpoint.requests.clear()
        again = askance(*command)

    assert (done.code, json.loads(line)["image"], done.out) == (130, "ads/a.png", "")
    assert done.err == (
        "1 of 3 images: 1 answered\n"
        "1 call made · 0 replayed · 1 more to see what the endpoint can do · 36 tokens"
        " · cost not known (no price is set)\n"
        "Interrupted. The same command goes on where this one stopped; what is on record is not asked again.\n"
    )
    assert (again.code, len(again.lines), len(endpoint.requests)) == (0, 3, 2)


def test_a_killed_run_is_finished_by_the_same_command(askance: Command, own_place: Path) -> None:
    names = draw(own_place / "ads", *(f"{place}.png" for place in range(6)))
    samples = Path("kept/samples.jsonl")
    with FakeEndpoint(telling, delay=0.03) as endpoint:
        command = ["run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--out", "kept", "--json"]
        process = start(*command, "--concurrency", "2")
        within(120, lambda: samples.exists() and samples.read_text(encoding="utf-8").count("\n") >= 2)
        os.kill(process.pid, signal.SIGKILL)
        finish(process)
        with samples.open("a", encoding="utf-8") as file:
            file.write('{"image": "ads/5.pn')
        done = askance(*command)

    assert (process.returncode, done.code) == (-signal.SIGKILL, 0)
    assert [line["image"] for line in done.lines] == [f"ads/{Path(name).name}" for name in names]
    kept = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    assert sorted(kept, key=lambda line: line["image"]) == done.lines
    assert len(endpoint.requests) <= 1 + 6 * 5 + 2  # what was in flight is asked twice


def test_two_processes_share_a_store(vlm: str, endpoint: FakeEndpoint, own_place: Path) -> None:
    draw(own_place / "ads", *(f"{place}.png" for place in range(8)))
    processes = [start("run", "verbalize", "ads", "--vlm", vlm, "--json") for _ in range(2)]
    first, second = map(finish, processes)

    assert (first.code, second.code) == (0, 0)
    assert first.stable == second.stable
    with open_records() as store:
        assert (len(store), list(verify(store))) == (1 + 8 * 5, [])


def test_one_process_at_a_time_writes_a_run_folder(askance: Command, ads: list[str]) -> None:
    with FakeEndpoint(lambda seen: None if link_of(seen) == "probe" else SILENT) as endpoint:
        command = ["run", "verbalize", "ads", "--vlm", f"openai:m@{endpoint.url}", "--out", "kept"]
        process = start(*command)
        within(120, lambda: len(endpoint.requests) > 1)
        done = askance(*command)
        process.kill()
        finish(process)

    assert (done.code, done.err) == (
        3,
        "askance: Another process is writing the run folder 'kept'.\n  → Wait for it, or give another `--out`.\n",
    )


def test_an_encoding_without_the_words_ends_no_command(
    vlm: str, ads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    Path("é☕.png").write_bytes(Path(ads[0]).read_bytes())
    command = ["run", "verbalize", "é☕.png", "--vlm", vlm, "--context", "IN"]
    as_json, plain = map(finish, [start(*command, "--json"), start(*command)])

    assert (as_json.lines[0]["image"], as_json.code) == ("é☕.png", 0)
    assert plain.out.startswith("\\xe9\\u2615.png\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(askance: Command, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_ASKANCE_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "askance pro")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "askance pro")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")

    done = askance()

    assert (done.code, "prompts" in done.out, "cache" in done.out) == (0, True, False)


def test_the_completion_script_is_shown(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_ASKANCE_COMPLETE", "source_bash")

    done = askance()

    assert (done.code, "complete -o default -F" in done.out) == (0, True)


def test_help_loads_nothing_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")

    loaded = {line.rpartition("|")[2].strip() for line in finish(start("--help")).err.splitlines()}

    assert "askance.cli.main" in loaded
    assert not loaded & {"asyncio", "jinja2", "langchain_core", "openai", "PIL", "pydantic", "rich.progress", "sqlite3"}
