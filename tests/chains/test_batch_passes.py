"""A chain through the batch interface: the same lines as online, in three rounds, whatever happens on the way."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import re
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from askance.chains import action_reason
from askance.chains.batch_passes import read_in_batches
from askance.chat import ChatRequest
from askance.errors import AuthError, StoreError, UsageError
from askance.models import CallEvent, Price, RetryPolicy
from askance.models.batch.batch_job import JOURNAL, BatchJob
from askance.models.batch.policy import BatchPolicy, BatchProgress
from askance.models.batch.results import LARGEST_LINE, line_result
from askance.models.vendor_errors import ErrorContext
from tests import replies
from tests.batch_client import QUICK, JsonObject, Run, answer, draw, lines_of
from tests.batch_server import BatchServer, Fate, Made, Serve, Step, When
from tests.processes import kill
from tests.scripted import ANSWERS, OPTIONS, model_of, scripted
from tests.servers import FakeEndpoint, Reply, chat_body, error


def test_three_rounds_give_the_lines_of_an_online_run(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures)
        lines = run.in_batches()

        assert [line["outcome"] for line in lines] == ["answered"] * 2
        assert (len(server.batches), set(server.made.values()), len(server.made)) == (3, {1}, 14)
        assert lines == run.online()
        assert not (tmp_path / "batches").exists()


# --- killed ---


def finished(run: Run, *, within: float = 60) -> bool:
    """Lets the run go on in a process of its own; whether it came to its end."""
    process = run.alone()
    process.join(within)
    assert process.exitcode in {0, -signal.SIGKILL}, process.exitcode
    return process.exitcode == 0


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.soak), pytest.param(2, marks=pytest.mark.soak)])
def test_killed_at_every_line_of_its_journal_it_submits_nothing_twice(
    serve: Serve, tmp_path: Path, pictures: list[str], first: int
) -> None:
    kills = cycle([(1, "after"), (2, "before"), (2, "torn")])
    with serve() as server:
        run = Run(server.url, tmp_path, pictures)
        died = 0
        while not finished(run.killed_at(*next(islice(kills, first, None)))):
            died, first = died + 1, 0

        assert died >= 18
        assert (len(server.batches), set(server.made.values())) == (3, {1})
        assert server.steps.count("upload") == 3
        assert run.lines == run.online()


POINTS: list[tuple[Step, When]] = [
    ("batches", "before"),
    ("upload", "before"),
    ("upload", "after"),
    ("files", "before"),
    ("files", "after"),
    ("create", "before"),
    ("create", "after"),
    ("cancel", "before"),
    ("cancel", "after"),
    ("poll", "before"),
    ("poll", "after"),
    ("content", "before"),
    ("content", "after"),
    ("delete", "before"),
    ("delete", "after"),
]


def test_killed_at_every_request_it_submits_nothing_twice(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    victims: list[multiprocessing.Process] = []
    left, begun = list(POINTS), threading.Lock()

    def dies(step: Step, when: When) -> Reply | None:
        if not left or (step, when) != left[0]:
            return None
        del left[0]
        if (step, when) == ("create", "after"):
            show_twin(server)
        with begun:
            kill(victims[-1])
        return Reply(reset=True)  # what it asked for `before` is not done

    with serve(fault=dies) as server:
        run = Run(server.url, tmp_path, pictures)
        code = -1
        while code != 0:
            with begun:
                victims.append(run.alone())
            victims[-1].join(60)
            server.wait()
            code = victims[-1].exitcode

        assert (len(victims), left) == (len(POINTS) + 1, [])
        assert server.batches.pop("twin").form["status"] in {"cancelling", "cancelled"}
        assert (len(server.batches), set(server.made.values())) == (3, {1})
        assert run.lines == run.online()


def show_twin(server: BatchServer) -> None:
    """Shows what is made of a create that was sent twice on its way: another batch of the same calls."""
    latest = [*server.batches.values()][-1]
    server.batches["twin"] = Made({**latest.form, "id": "twin", "status": "validating"})


@pytest.mark.parametrize("killed", [False, True])
def test_a_second_batch_that_shows_after_the_first_is_cancelled(
    serve: Serve, tmp_path: Path, pictures: list[str], killed: bool
) -> None:
    """The reply to a create is lost, one batch is found, and the other shows once that one is waited for."""
    lost = [Reply(reset=True)]

    def fault(step: Step, when: When) -> Reply | None:
        if (step, when) == ("poll", "before") and len(server.batches) == 1:
            show_twin(server)
        return lost.pop() if (step, when) == ("create", "after") and lost else None

    with serve(fault=fault) as server:
        run = Run(server.url, tmp_path, pictures)
        if killed:  # after the line that says that the batch is created
            assert not finished(run.killed_at(6, "after"))
        run.in_batches()

        assert server.batches.pop("twin").form["status"] == "cancelling"
        assert (len(server.batches), set(server.made.values())) == (3, {1})
        assert server.steps.count("cancel") == 1


def test_a_second_batch_is_cancelled_before_the_first_has_ended(
    serve: Serve, tmp_path: Path, pictures: list[str]
) -> None:
    lost, polls = [Reply(reset=True)], count()

    def fault(step: Step, when: When) -> Reply | None:
        if (step, when) == ("create", "after") and lost:
            return lost.pop()
        if (step, when) == ("poll", "before") and "cancel" not in server.steps:
            if next(polls) == 0:
                show_twin(server)
            return Reply(body=next(iter(server.batches.values())).form) if next(polls) < 300 else None
        return None

    with serve(fault=fault) as server:
        Run(server.url, tmp_path, pictures).in_batches()

        assert server.batches["twin"].form["status"] == "cancelling"
        assert server.steps.index("cancel") < server.steps.index("content")


def test_a_cancel_that_meets_a_fault_is_repeated(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    faults: dict[tuple[Step, When], list[Reply]] = {
        ("create", "after"): [Reply(reset=True)],
        ("cancel", "before"): [replies.OVERLOADED, Reply(reset=True)],
    }

    def fault(step: Step, when: When) -> Reply | None:
        if (step, when) == ("create", "after") and "twin" not in server.batches:
            show_twin(server)
        left = faults.get((step, when))
        return left.pop() if left else None

    with serve(fault=fault) as server:
        Run(server.url, tmp_path, pictures).in_batches()

        assert server.batches.pop("twin").form["status"] == "cancelling"
        assert (len(server.batches), set(server.made.values())) == (3, {1})


@pytest.mark.parametrize("number", [1, 5])
def test_killed_while_answers_are_recorded_it_reads_them_again(
    serve: Serve, tmp_path: Path, pictures: list[str], number: int
) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures)

        assert not finished(run.killed_at(number, "put"))
        assert finished(run)
        assert (len(server.batches), set(server.made.values())) == (3, {1})


def test_a_batch_that_is_made_after_the_kill_is_waited_for(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    victims: list[multiprocessing.Process] = []
    looked_for, begun = threading.Event(), threading.Lock()

    def late(step: Step, when: When) -> None:
        if (step, when) == ("create", "before") and not looked_for.is_set():
            with begun:
                kill(victims[0])
            looked_for.wait(60)
        if (step, when) == ("batches", "after") and "create" in server.steps:
            looked_for.set()

    with serve(fault=late) as server:
        run = Run(server.url, tmp_path, pictures, policy=replace(QUICK, grace=60))
        with begun:
            victims.append(run.alone())
        victims[0].join(60)

        assert finished(run)
        assert (len(server.batches), set(server.made.values())) == (3, {1})


def test_a_clock_that_jumps_makes_no_batch_twice(
    serve: Serve, tmp_path: Path, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply to a create is lost, the batch shows at the fifth look, and the clock goes forward by an hour."""
    hidden: list[Made] = []
    looks = count(1)

    def fault(step: Step, when: When) -> Reply | None:
        if (step, when) == ("create", "after") and "late" not in server.batches and not hidden:
            hidden.append(server.batches.popitem()[1])
            hidden[0].form["id"] = "late"
            return Reply(reset=True)
        if hidden and (step, when) == ("batches", "after"):
            monkeypatch.setattr(time, "time", lambda: 3600 + now())
            if next(looks) == 5:
                server.batches["late"] = hidden.pop()
        return None

    now = time.time
    with serve(fault=fault) as server:
        Run(server.url, tmp_path, pictures, policy=replace(QUICK, grace=60)).in_batches()

        assert (len(server.batches), set(server.made.values()), hidden) == (3, {1}, [])


def test_every_step_is_on_the_disk_before_the_next_is_taken(
    serve: Serve, tmp_path: Path, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, steps, sync = tmp_path / "batches" / JOURNAL, list[str](), os.fsync

    def synced(descriptor: int) -> None:
        sync(descriptor)
        if Path(f"/proc/self/fd/{descriptor}").resolve() == journal:
            steps.append(json.loads(journal.read_bytes().splitlines()[-1])["event"] + " on disk")

    def seen(step: Step, when: When) -> None:
        if when == "before":
            steps.append(step)

    monkeypatch.setattr(os, "fsync", synced)
    with serve(fault=seen) as server:
        Run(server.url, tmp_path, pictures[:1]).in_batches()

    own = [step for step in steps if step not in {"chat", "batches", "poll", "content"}]
    once = ["spooled on disk", "uploading on disk", "upload", "uploaded on disk", "creating on disk", "create"]
    assert own == ["begun on disk", *[*once, "created on disk", "settled on disk", "delete"] * 3]
    assert [steps[place - 1] for place, step in enumerate(steps) if step == "create"] == ["creating on disk"] * 3
    first = [place for place, step in enumerate(steps) if step == "poll" and steps[place - 1] != "poll"]
    assert [steps[place - 1] for place in first] == ["created on disk"] * 3


# --- what becomes of calls ---


def kinds(body: JsonObject) -> str | None:
    """What a body asks for."""
    return body["response_format"].get("json_schema", {}).get("name")


def failing(name: str, reply: Reply, *, times: int = 10**6) -> Callable[[JsonObject], Reply | str]:
    """A model that answers `times` questions of this name with `reply`."""
    left = [times]

    def answered(body: JsonObject) -> Reply | str:
        if kinds(body) == name and left[0]:
            left[0] -= 1
            return reply
        return answer(body)

    return answered


def reasons(lines: list[JsonObject]) -> set[str]:
    """Why calls have failed."""
    links = (link for line in lines for link in line["links"].values())
    return {link["reason"] for link in links if link["outcome"] == "failed"}


REFUSAL = Reply(body=chat_body(None, refusal="I will not."))
FILTER = error(400, "The response was filtered.", code="content_filter")
ENDS = {
    "rejected": (replies.OPENAI_TOO_LONG, "failed", 1),
    "refused": (REFUSAL, "refused", 1),
    "filtered": (FILTER, "filtered", 1),
    "cut off at the limit": (Reply(body=chat_body("A cu", finish="length")), "truncated", 1),
    "of another shape": (Reply(body={"id": "chat-1"}), "failed", 3),
    "not read": (Reply(body=chat_body("mumble")), "invalid", 1),
    "out of order": (replies.OVERLOADED, "failed", 3),
    "slowed down": (replace(replies.SLOW_DOWN, headers={"retry-after": "100"}), "failed", 3),
}
"""Replies to one call; what it comes to, and how often it is sent."""


@pytest.mark.parametrize(("reply", "outcome", "sent"), ENDS.values(), ids=ENDS)
def test_a_call_comes_to_what_it_comes_to_online(
    serve: Serve, tmp_path: Path, pictures: list[str], reply: Reply, outcome: str, sent: int
) -> None:
    with serve(answer=failing("narration", reply)) as server:
        run = Run(server.url, tmp_path, pictures[:1], engine={"policy": RetryPolicy(tries=1, deadline=4)})
        (line,) = run.in_batches()

        assert (line["links"]["narration"]["outcome"], line["outcome"]) == (outcome, "skipped")
        assert server.made[line["links"]["objects"]["calls"][0]] == 1
        assert max(server.made.values()) == sent
        assert [line] == run.online()


def test_a_fault_that_passes_leaves_no_trace(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    with serve(answer=failing("narration", replies.OVERLOADED, times=2)) as server:
        run = Run(server.url, tmp_path, pictures)

        assert run.in_batches() == run.online()


def test_what_cannot_be_read_is_asked_again_in_the_next_round(
    serve: Serve, tmp_path: Path, pictures: list[str]
) -> None:
    with serve(answer=failing("unusual", Reply(body=chat_body("mumble")), times=1)) as server:
        (line,) = Run(server.url, tmp_path, pictures[:1]).in_batches()

        assert (line["outcome"], len(line["links"]["unusual"]["calls"])) == ("answered", 2)
        assert set(server.made.values()) == {1}


def test_what_an_expired_batch_did_not_come_to_is_sent_again(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    def fate(number: int) -> tuple[Fate, Callable[[int], bool]]:
        return ("expired", lambda place: place % 2 == 0) if number == 0 else ("completed", lambda place: True)

    with serve(fate=fate) as server:
        run = Run(server.url, tmp_path, pictures)

        assert run.in_batches() == run.online()
        assert set(server.made.values()) == {1}


def test_what_a_cancelled_batch_did_not_come_to_has_failed_until_the_command_is_given_again(
    serve: Serve, tmp_path: Path, pictures: list[str]
) -> None:
    def fate(number: int) -> tuple[Fate, Callable[[int], bool]]:
        return ("cancelled", lambda place: place > 0) if number == 0 else ("completed", lambda place: True)

    with serve(fate=fate) as server:
        run = Run(server.url, tmp_path, pictures)
        before = run.in_batches()
        after = run.in_batches()

        assert Counter(line["outcome"] for line in before) == {"answered": 1, "skipped": 1}
        assert [
            link["reason"] for line in before for link in line["links"].values() if link["outcome"] == "failed"
        ] == [f"The batch was cancelled at {server.url} before it came to this call. The same command asks again."]
        assert after == run.online()
        assert set(server.made.values()) == {1}


LINE_END = b'"error": null}\n'
SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "no JSON": lambda content: b"\x00\xff" * 20 + b"\n" + content,
    "deep": lambda content: b"[" * 100_000 + b"\n" + content,
    "of strangers": lambda content: content + b'{"custom_id": "../../x", "response": null}\n[1]\n"a"\n{}\n',
    "twice": lambda content: content + content,
    "of huge numbers": lambda content: content.replace(b": 11,", b": " + b"9" * 5000 + b",", 1).replace(
        b": 7,", b": 1e999,"
    ),
    "with a name twice": lambda content: content.replace(LINE_END, b'"error": null, "response": null}\n', 1),
    "of many values": lambda content: content.replace(LINE_END, b'"error": [' + b"0," * 1_000_000 + b"0]}\n", 1),
    "of a long line": lambda content: b'{"custom_id": "' + b"x" * LARGEST_LINE + b'"}\n' + content,
    "deep inside a line": lambda content: content.replace(
        LINE_END, b'"error": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", 1
    ),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_output_file_invents_no_answer(
    serve: Serve,
    tmp_path: Path,
    pictures: list[str],
    spoil: Callable[[bytes], bytes],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serve() as server:
        server.spoil = lambda content: spoil(content) if len(server.batches) == 1 else content
        run = Run(server.url, tmp_path, pictures)

        assert run.in_batches() == run.online()
        assert set(server.made.values()) <= {1, 2}


def test_a_download_that_breaks_off_is_repeated(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    broken = [Reply(body=b"x" * 100, cut=10), Reply(reset=True), replies.OVERLOADED]

    def fault(step: Step, when: When) -> Reply | None:
        return broken.pop() if step == "content" and when == "after" and broken else None

    with serve(fault=fault) as server:
        run = Run(server.url, tmp_path, pictures)

        assert run.in_batches() == run.online()
        assert (len(server.batches), broken) == (3, [])


LOST = {"reset": Reply(reset=True), "status 500": replies.OVERLOADED, "half": Reply(body='{"id":', cut=None)}


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
@pytest.mark.parametrize("step", ["upload", "create"])
def test_what_was_done_and_not_said_is_found_and_not_done_again(
    serve: Serve, tmp_path: Path, pictures: list[str], lost: Reply, step: Step
) -> None:
    left = [lost]

    def fault(seen: Step, when: When) -> Reply | None:
        return left.pop() if (seen, when) == (step, "after") and left else None

    with serve(fault=fault) as server:
        Run(server.url, tmp_path, pictures).in_batches()

        assert (len(server.batches), set(server.made.values())) == (3, {1})


def test_a_found_batch_among_hundreds(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    left = [Reply(reset=True)]

    def fault(step: Step, when: When) -> Reply | None:
        if (step, when) == ("create", "after") and left:
            first = next(iter(server.batches.values()))
            strangers = {f"x{n}": Made({**first.form, "id": f"x{n}", "metadata": None}) for n in range(250)}
            server.batches |= strangers
            return left.pop()
        return None

    with serve(fault=fault) as server:
        Run(server.url, tmp_path, pictures).in_batches()

        assert (len(server.batches), server.made.total()) == (253, 14)


def test_a_file_that_is_not_found_yet_is_uploaded_again(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    left = [error(400, "Cannot find file file-1, or it is not yours.", param="file_id")]

    def fault(step: Step, when: When) -> Reply | None:
        return left.pop() if (step, when) == ("create", "before") and left else None

    with serve(fault=fault) as server:
        lines = Run(server.url, tmp_path, pictures).in_batches()

        assert [line["outcome"] for line in lines] == ["answered"] * 2


def test_an_endpoint_with_little_room_is_sent_batches_in_turn(serve: Serve, tmp_path: Path) -> None:
    pictures = draw(tmp_path, 5)
    with serve(room=6) as server:
        run = Run(server.url, tmp_path, pictures, policy=replace(QUICK, most_calls=8))
        lines = run.in_batches()

        assert [line["outcome"] for line in lines] == ["answered"] * 5
        assert set(server.made.values()) == {1}


def test_calls_that_make_a_batch_invalid_fail_and_the_others_are_sent_again(
    serve: Serve, tmp_path: Path, pictures: list[str]
) -> None:
    with serve() as server:
        wrong = {"code": "invalid_request", "message": "This line is wrong.", "line": 2, "param": None}
        complaints = server.complaints
        server.complaints = lambda form: [wrong] if len(server.batches) == 1 else complaints(form)
        lines = Run(server.url, tmp_path, pictures).in_batches()
        outcomes = Counter(link["outcome"] for line in lines for link in line["links"].values())

        assert outcomes["failed"] == 1
        assert reasons(lines) == {
            f"{server.url} did not begin the batch: This line is wrong. Correct what it names, or leave out `--batch`."
        }


def test_a_field_that_the_model_rejects_is_left_out_of_the_next_batch(
    serve: Serve, tmp_path: Path, pictures: list[str]
) -> None:
    def answered(body: JsonObject) -> Reply | str:
        return replies.NO_MAX_TOKENS if "max_tokens" in body and kinds(body) in ANSWERS else answer(body)

    with serve(answer=answered) as server:
        run = Run(server.url, tmp_path, pictures, settings={"max_tokens": 200})

        assert run.in_batches() == run.online()
        assert len(server.batches) == 4


# --- the queue ---


def test_what_is_on_record_enters_no_batch(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures)
        replace(run, pictures=pictures[:1]).in_batches()
        before = set(server.made)
        run.in_batches()

        assert (len(before), len(server.made), set(server.made.values())) == (7, 14, {1})


def test_a_batch_holds_the_leases_of_its_calls_until_they_are_on_record(
    serve: Serve, tmp_path: Path, pictures: list[str]
) -> None:
    def held() -> list[int]:
        """How many leases each batch holds."""
        with closing(sqlite3.connect(tmp_path / "store" / "leases.db")) as table:
            counts = table.execute("SELECT count(*) FROM lease JOIN batch USING (owner) GROUP BY name")
            return [count for (count,) in counts]

    seen: list[int] = []

    def fault(step: Step, when: When) -> None:
        if (step, when) == ("create", "before"):
            seen.extend(held())

    with serve(fault=fault) as server:
        Run(server.url, tmp_path, pictures).in_batches()

    assert (seen, held()) == ([8, 4, 2], [])


def test_equal_calls_are_sent_once(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    with serve() as server:
        lines = Run(server.url, tmp_path, [*pictures[:1] * 5]).in_batches()

        assert ([line["outcome"] for line in lines], server.made.total()) == (["answered"] * 5, 7)


SIZES = {"calls": (replace(QUICK, most_calls=3), [3, 3, 2, 3, 1, 2]), "bytes": (replace(QUICK, most_bytes=4000), None)}


@pytest.mark.parametrize(("policy", "counts"), SIZES.values(), ids=SIZES)
def test_the_queue_is_split(
    serve: Serve,
    tmp_path: Path,
    pictures: list[str],
    policy: BatchPolicy,
    counts: list[int] | None,
) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures, policy=policy)
        lines = run.in_batches()
        files = [server.folder / made.form["input_file_id"] for made in server.batches.values()]

        assert [line["outcome"] for line in lines] == ["answered"] * 2
        assert max(file.stat().st_size for file in files) <= policy.most_bytes
        assert counts is None or sorted(len(made.done) for made in server.batches.values()) == sorted(counts)
        assert len(files) > 3


def test_a_call_that_is_larger_than_a_batch_fails(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    with serve() as server:
        run = Run(server.url, tmp_path, pictures[:1] * 2, policy=replace(QUICK, most_bytes=500))
        lines = run.in_batches()
        reasons = {line["links"]["objects"]["reason"] for line in lines}

        assert len(reasons) == 1
        assert re.fullmatch(
            r"The request has [\d,]+ bytes, and a batch takes no more than 500. "
            r"Ask without `--batch`, or send smaller pictures.",
            reasons.pop(),
        )
        assert server.batches == {}


def test_a_picture_that_cannot_be_used_stops_no_other(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    (tmp_path / "odd.png").write_bytes(b"no picture")
    with serve() as server:
        run = Run(server.url, tmp_path, [str(tmp_path / "odd.png"), *pictures])

        assert run.in_batches() == run.online()
        assert server.made.total() == 14


def test_a_refusal_that_is_asked_again_is_asked_once_whoever_kills_the_process(
    serve: Serve, tmp_path: Path, pictures: list[str]
) -> None:
    with serve(answer=failing("unusual", REFUSAL)) as server:
        run = Run(server.url, tmp_path, pictures[:1])
        run.in_batches()
        again = replace(run, engine={"retry": frozenset({"refused"})})
        # After the line that says that the batch is settled.
        assert not finished(again.killed_at(7, "after"))
        assert finished(again)

        assert sorted(server.made.values()) == [1, 1, 1, 1, 2]
        assert [link["outcome"] for link in again.lines[0]["links"].values()].count("refused") == 1


def test_observers_hear_of_every_call_once_and_of_half_its_price(
    serve: Serve, tmp_path: Path, pictures: list[str]
) -> None:
    heard: list[CallEvent] = []
    news: list[BatchProgress] = []
    price = Price(input=1.0, output=1.0, batch=0.5)
    with serve() as server:
        run = Run(server.url, tmp_path, pictures[:1], settings={"price": price})
        run.in_batches(news.append, observers=[heard.append])

    assert Counter(event.phase for event in heard) == {"answered": 7, "probed": 1}
    assert {event.cost for event in heard if event.phase == "answered"} == {9e-6}
    assert [one.round for one in news if one.phase == "settled"] == [1, 2, 3]
    assert [(one.queued, one.sent, one.done) for one in news if one.phase == "settled"] == [
        (4, 4, 4),
        (2, 2, 2),
        (1, 1, 1),
    ]


@pytest.mark.slow(group="servers")
def test_memory_is_flat(tmp_path: Path) -> None:
    peaks = [peak_of(tmp_path / str(count), count) for count in (200, 1000)]

    # The queue of the larger run has 170 MB more.
    assert peaks[1] < peaks[0] + 30 * 2**20


def peak_of(place: Path, count: int) -> int:
    """Bytes that a run over so many pictures of 40 kB takes, at its peak."""
    place.mkdir()
    noise = [str(place / f"{number}.png") for number in range(count)]
    for path in noise:
        Image.frombytes("RGB", (115, 115), os.urandom(115 * 115 * 3)).save(path)
    with BatchServer(place / "endpoint", answer=answer) as server:
        policy = replace(QUICK, most_bytes=20_000_000, grace=5.0)
        run = Run(server.url, place, noise, policy=policy)
        assert finished(run, within=500)
        return run.peak


# --- what cannot be ---


def test_two_processes_do_not_work_on_one_job(tmp_path: Path) -> None:
    with BatchJob(tmp_path / "batches"), pytest.raises(StoreError) as raised:
        BatchJob(tmp_path / "batches")

    assert str(raised.value) == (
        f"Another process works on the batches in {str(tmp_path / 'batches')!r}. "
        "Wait for it: it makes the same calls. Or give another folder."
    )


def test_an_endpoint_without_batches_is_named(tmp_path: Path, pictures: list[str]) -> None:
    with FakeEndpoint() as endpoint, pytest.raises(UsageError) as raised:
        Run(endpoint.url, tmp_path, pictures).in_batches()

    assert str(raised.value) == f"{endpoint.url} has no batch interface (status 404). Leave out `--batch`."


async def test_a_model_without_batches_is_named(pictures: list[str]) -> None:
    model = model_of(scripted())
    with pytest.raises(UsageError) as raised:
        await anext(read_in_batches(action_reason(model, model), pictures, folder=Path("batches")))

    assert str(raised.value) == (
        "The model 'scripted' has no batch interface that is known here. "
        "Batches are for `openai:` models, at OpenAI and at endpoints that have /files and /batches."
    )


@pytest.mark.parametrize("mode", ["live", "refresh", "replay"])
def test_a_mode_that_does_not_go_with_batches_is_named(tmp_path: Path, pictures: list[str], mode: str) -> None:
    with pytest.raises(UsageError) as raised:
        Run("http://127.0.0.1:9/v1", tmp_path, pictures, engine={"mode": mode}).in_batches()

    assert str(raised.value) == (
        f"The mode {mode!r} does not go with batches, whose answers are read from the records. "
        "Leave out the mode, or leave out `--batch`."
    )


def test_a_key_that_is_not_accepted_keeps_everything(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    wrong = True

    def fault(step: Step, when: When) -> Reply | None:
        return replies.WRONG_KEY if step == "poll" and wrong else None

    with serve(fault=fault) as server:
        run = Run(server.url, tmp_path, pictures)
        with pytest.raises(AuthError):
            run.in_batches()
        wrong = False

        assert run.in_batches() == run.online()
        assert (len(server.batches), set(server.made.values())) == (3, {1})


def test_a_chain_that_never_asks_the_same_is_found_out(
    serve: Serve, tmp_path: Path, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askance.chains.batch_passes.MOST_ROUNDS", 3)
    numbers = count()
    with serve() as server:
        chain, engine = Run(server.url, tmp_path, pictures).chain()
        node: Any = chain["narration"]
        request = node.request

        def drifting(subject: object, rung: object) -> ChatRequest:
            return replace(request(subject, rung), draw=next(numbers))

        monkeypatch.setattr(node, "request", drifting)
        inputs = [{"image": picture, "options": OPTIONS} for picture in pictures]
        readings = read_in_batches(chain, inputs, folder=tmp_path / "batches", policy=QUICK)
        with pytest.raises(UsageError) as raised:
            asyncio.run(lines_of(chain, engine, readings))

    assert str(raised.value) == (
        "The chain asks something else each time that it reads the same pictures. "
        "Ask without `--batch`, or have what it asks depend on nothing but the pictures."
    )


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as raised:
        BatchJob(tmp_path / "file" / "batches")

    assert str(raised.value) == (
        f"The folder {str(tmp_path / 'file' / 'batches')!r} for batches cannot be written: Not a directory. "
        "Check the rights to it and the room on the disk, or give another folder."
    )


SILENCES: dict[str, tuple[Fate, str]] = {
    "expired": ("expired", "{} did not come to the call within the batch's 24 hours. The same command asks again."),
    "silent": ("completed", "{} ended the batch without a word about this call. The same command asks again."),
}


@pytest.mark.parametrize(("fate", "words"), SILENCES.values(), ids=SILENCES)
def test_a_call_that_no_batch_comes_to_fails_with_the_way_out(
    serve: Serve, tmp_path: Path, pictures: list[str], fate: Fate, words: str
) -> None:
    def none(number: int) -> tuple[Fate, Callable[[int], bool]]:
        return fate, lambda place: False

    with serve(fate=none) as server:
        lines = Run(server.url, tmp_path, pictures[:1]).in_batches()

        assert (len(server.batches), reasons(lines)) == (3, {words.format(server.url)})


def test_a_call_that_a_batch_did_not_make_fails_with_the_way_out(tmp_path: Path) -> None:
    line = {"custom_id": "a", "response": None, "error": {"code": "odd", "message": "The line was lost."}}
    answer = line_result(line, ErrorContext(where="here", model="m"), api="chat")

    assert str(answer.error) == "here did not make the call: The line was lost. The same command asks again."
