"""`askance run … --batch`: what is said, and that the lines are those of an online run."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from tests.batch_server import BatchServer, Step, When
from tests.cli.command import Command, finish, start
from tests.faults.run import room


def test_a_run_in_batches_gives_the_lines_of_an_online_run(
    askance: Command, server: BatchServer, ads: list[str], options: str, tmp_path: Path
) -> None:
    command = ["run", "action-reason", "ads", "--options", options, "--vlm", f"openai:gpt-4o@{server.url}", "--json"]
    done = askance(*command, "--batch", "--out", "out")
    online = askance(*command, "--store", str(tmp_path / "online"))

    assert (done.code, len(server.batches), set(server.made.values())) == (0, 3, {1})
    assert done.stable == online.stable
    assert "Round 1: 12 calls queued, 12 sent in batches, 12 done." in done.err
    assert done.err.count("This terminal may be closed: the same command goes on where this one stopped") == 1
    assert "21 calls made" in done.err
    assert not Path("out/batches").exists()


@pytest.mark.parametrize("more", [["--out", "out"], []], ids=["with a folder", "without"])
def test_a_killed_run_is_picked_up_by_the_same_command(
    askance: Command, server: BatchServer, ads: list[str], options: str, tmp_path: Path, more: list[str]
) -> None:
    command = ["run", "action-reason", "ads", "--options", options, "--vlm", f"openai:gpt-4o@{server.url}", "--json"]
    running: list[subprocess.Popen[str]] = []

    def kill(step: Step, when: When) -> None:
        if (step, when) == ("create", "after") and len(server.batches) == 1:
            running[0].kill()
            running[0].wait()

    server.fault = kill
    running.append(start(*command, "--batch", *more))
    killed = finish(running[0])
    again = askance(*command, "--batch", *more)
    online = askance(*command, "--store", str(tmp_path / "online"))

    assert (killed.code, killed.out, again.code) == (-signal.SIGKILL, "", 0)
    assert (len(server.batches), set(server.made.values()), server.steps.count("upload")) == (3, {1}, 3)
    assert again.stable == online.stable
    assert not [*Path().rglob("journal.jsonl")]


def test_a_full_disk_is_named_and_the_same_command_goes_on(
    askance: Command, server: BatchServer, ads: list[str], options: str
) -> None:
    for name in ads:
        Image.frombytes("RGB", (200, 200), os.urandom(120_000)).save(name)
    command = ["run", "action-reason", "ads", "--options", options, "--vlm", f"openai:gpt-4o@{server.url}", "--json"]
    with room(400_000):
        full = askance(*command, "--batch", "--out", "out")
    assert (full.code, full.out, server.batches) == (3, "", {})
    assert full.err == (
        "askance: The queue of the batches in 'out/batches' cannot be written: File too large.\n"
        "  → Make room on the disk; the same command goes on from here.\n"
    )

    again = askance(*command, "--batch", "--out", "out")
    assert (again.code, len(again.lines), set(server.made.values())) == (0, 3, {1})


def test_what_is_on_record_needs_no_endpoint(
    askance: Command, server: BatchServer, ads: list[str], options: str
) -> None:
    command = ["run", "action-reason", "ads", "--options", options, "--vlm", f"openai:gpt-4o@{server.url}", "--json"]
    first = askance(*command, "--batch")
    server.steps.clear()

    assert askance(*command, "--batch").stable == first.stable
    assert server.steps == []


def test_a_budget_holds_batches_and_says_what_is_left(
    askance: Command, server: BatchServer, ads: list[str], options: str
) -> None:
    command = ["run", "action-reason", "ads", "--options", options, "--vlm", f"openai:gpt-4o@{server.url}", "--json"]
    done = askance(*command, "--batch", "--budget", "12calls")
    again = askance(*command, "--batch", "--budget", "100calls")

    assert (done.code, again.code, server.made.total(), set(server.made.values())) == (1, 0, 21, {1})
    assert len(done.lines) < len(again.lines) == 3
    assert "Of the budget of 12 calls, 12 calls spent.\nThe next call might have passed the budget. Left: " in done.err
    assert "Of the budget of 100 calls, 22 calls spent." in again.err


REFUSED = {
    "replay": (["--replay"], "`--batch` reads its answers from the records, so it goes with no other mode."),
    "refresh": (
        ["--mode", "refresh"],
        "`--batch` reads its answers from the records, so it goes with no other mode.",
    ),
}


@pytest.mark.parametrize(("more", "message"), REFUSED.values(), ids=REFUSED)
def test_options_that_do_not_go_with_batches_are_named(
    askance: Command, ads: list[str], more: list[str], message: str
) -> None:
    done = askance("run", "verbalize", "ads", "--vlm", "openai:gpt-4o", "--batch", *more)

    assert (done.code, done.err.splitlines()[0]) == (2, f"askance: {message}")
