"""`askance run --html`: single pictures as one page, beside everything else that a run prints and keeps."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command, Done, link_of, picture_of, telling
from tests.evals.report.runs import HOSTILE, Parsed
from tests.replies import SILENT
from tests.servers import Answer, FakeEndpoint, Seen

PAGE = Path("page.html")


def page() -> Parsed:
    return Parsed(PAGE.read_text(encoding="utf-8"))


def rows(parsed: Parsed) -> list[dict[str, Any]]:
    return parsed.data("index")["runs"][0]["rows"]


@pytest.mark.parametrize("more", [[], ["--replay"], ["--out", "run"]], ids=["asked", "replayed", "kept"])
def test_pictures_become_a_page_beside_what_is_printed(
    askance: Command, vlm: str, ads: list[str], options: str, more: list[str]
) -> None:
    arguments = ["run", "action-reason", *ads, "--options", options, "--vlm", vlm]
    plain = askance(*arguments)

    done = askance(*arguments, *more, "--html", "page.html")

    assert (done.code, done.out) == (0, plain.out)
    assert done.err.endswith(f"The page is in page.html ({PAGE.stat().st_size / 1e6:.1f} MB).\n")
    parsed = page()
    assert [(row["id"], row["result"], row["picture"]) for row in rows(parsed)] == [
        (name, "answered", place) for place, name in enumerate(ads)
    ]
    assert len(parsed.data("pictures-0")) == 3


def test_every_prompt_and_reply_stands_in_the_page(askance: Command, vlm: str, ads: list[str]) -> None:
    (line,) = askance("run", "verbalize", ads[0], "--vlm", vlm, "--html", "page.html", "--json").lines
    [[detail]], calls = page().samples()
    prompts = page().text

    keys = {key for link in line["links"].values() for key in link["calls"]}
    assert calls.keys() == keys == {key for link in detail["links"] for key in link["calls"]}
    assert detail["verbalization"] == line["verbalization"]
    assert detail["value"] == line["verbalization"]["description"]
    assert all(call["messages"] and call["reply"]["text"] for call in calls.values())
    assert detail["tries"].keys() == keys
    assert "name: combine" in prompts


def test_pictures_without_an_answer_are_shown_with_their_reason(askance: Command, vlm: str, ads: list[str]) -> None:
    Path("ads/broken.png").write_bytes(b"no picture")

    done = askance("run", "explain", *ads, "ads/broken.png", "--vlm", vlm, "--html", "page.html")

    assert done.code == 1
    parsed = page()
    assert [(row["result"], row["outcome"]) for row in rows(parsed)] == [("answered", "answered")] * 3 + [
        ("no answer", "failed")
    ]
    assert "3 of 4 pictures answered" in parsed.text
    assert parsed.samples()[0][3][0]["reason"].startswith("explain") or rows(parsed)[3]["said"]


def test_a_finished_folder_gives_its_own_records(askance: Command, vlm: str, ads: list[str]) -> None:
    arguments = ["run", "explain", *ads, "--vlm", vlm, "--out", "run", "--store", "store"]
    askance(*arguments)
    shutil.rmtree("store")

    assert askance(*arguments, "--html", "page.html").code == 0
    assert len(page().samples()[1]) == 3


@pytest.fixture
def interrupted(askance: Command, ads: list[str]) -> Iterator[Callable[..., Done]]:
    """A run of one call a picture that gets Ctrl-C when so many are answered and the next one hangs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it

    def run(*more: str, answered: int = 1) -> Done:
        try:
            return _interrupted(askance, ads, *more, answered=answered)
        except KeyboardInterrupt:
            pytest.fail("the command let Ctrl-C through")

    yield run
    signal.signal(signal.SIGINT, before)


def _interrupted(askance: Command, ads: list[str], *more: str, answered: int) -> Done:
    seen_so_far: list[str] = []

    def hangs(seen: Seen) -> Answer:
        picture = picture_of(seen)
        if picture and picture not in seen_so_far:
            seen_so_far.append(picture)
        return SILENT if picture in seen_so_far[answered:] else telling(seen)

    shown: Any = sys.stdout
    over = threading.Event()

    def interrupt() -> None:
        asked = 1 + answered + 1  # the probe, and what hangs
        while len(endpoint.requests) < asked or shown.getvalue().count("\n") < answered:
            if over.wait(0.01):
                return
        os.kill(os.getpid(), signal.SIGINT)

    with FakeEndpoint(hangs) as endpoint:
        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        command = ["run", "verbalize", *ads, "--context", "IN", "--vlm", f"openai:m@{endpoint.url}"]
        try:
            return askance(*command, "--concurrency", "1", *more)
        finally:
            over.set()
            interrupting.join()


@pytest.mark.parametrize("more", [[], ["--out", "run"]], ids=["records", "folder"])
def test_an_interrupted_run_writes_what_was_read(
    interrupted: Callable[..., Done], ads: list[str], more: list[str]
) -> None:
    done = interrupted("--json", "--html", "page.html", *more)

    assert done.code == 130
    assert done.err.splitlines()[-2:] == [
        "Interrupted. The same command goes on where this one stopped; what is on record is not asked again.",
        f"The page of 1 of 3 pictures is in page.html ({PAGE.stat().st_size / 1e6:.1f} MB).",
    ]
    parsed = page()
    assert [(row["id"], row["result"]) for row in rows(parsed)] == [(ads[0], "answered")]
    assert len(parsed.samples()[1]) == 1
    assert "2 more pictures were not read when the run was interrupted." in parsed.text


def test_an_interrupted_run_that_read_nothing_leaves_the_page_that_is_there(
    interrupted: Callable[..., Done],
) -> None:
    PAGE.write_text("old", encoding="utf-8")

    done = interrupted("--html", "page.html", answered=0)

    assert (done.code, PAGE.read_text(encoding="utf-8")) == (130, "old")
    assert done.err.endswith("\nNo picture was read, so no page is written to page.html.\n")


def test_a_page_that_cannot_be_written_changes_no_interruption(interrupted: Callable[..., Done]) -> None:
    Path("file").write_text("no folder", encoding="utf-8")

    done = interrupted("--json", "--html", "file/page.html")

    assert done.code == 130
    assert "\nInterrupted. The same command goes on" in done.err
    assert "\naskance: 'file/page.html' cannot be written: " in done.err


@pytest.mark.parametrize(
    ("calls", "end", "note"),
    [
        (3, "The page of 2 of 3 pictures is in page.html (", "1 more picture had no budget left."),
        (2, "The page of 1 of 3 pictures is in page.html (", "2 more pictures had no budget left."),
    ],
    ids=["one left", "two left"],
)
def test_a_used_up_budget_leaves_a_page_of_what_was_read(
    askance: Command, vlm: str, ads: list[str], calls: int, end: str, note: str
) -> None:
    done = askance("run", "verbalize", *ads, "--context", "IN", "--vlm", vlm, "--budget", f"{calls}calls", "--html",
                   "page.html")  # fmt: skip

    assert (done.code, done.err.splitlines()[-1][: len(end)]) == (1, end)
    assert note in page().text


def test_a_budget_for_nothing_makes_no_page(askance: Command, vlm: str, ads: list[str]) -> None:
    done = askance("run", "verbalize", *ads, "--vlm", vlm, "--budget", "1calls", "--html", "page.html")

    assert (done.code, PAGE.exists()) == (1, False)
    assert done.err.endswith("\nNo picture was read, so no page is written to page.html.\n")


def test_what_means_harm_is_text(askance: Command, ads: list[str]) -> None:
    def harm(seen: Seen) -> str:
        form: Any = seen.json.get("response_format") or {}
        fields = form.get("json_schema", {}).get("schema", {}).get("properties", {})
        return telling(seen) if link_of(seen) == "probe" else json.dumps(dict.fromkeys(fields, HOSTILE[0]))

    name = "ads/<img src=x onerror=alert(1)>.png"
    shutil.copy(ads[0], name)
    with FakeEndpoint(harm) as endpoint:
        spec = f"openai:fake-model@{endpoint.url}"
        askance("run", "explain", name, "--vlm", spec, "--html", "page.html")
    parsed = page()

    assert not [tag for tag, _ in parsed.elements if tag == "img"]
    assert {str(each["href"])[:8] for _, each in parsed.elements if each.get("href")} == {"#", "#samples", "#sample="}
    assert (rows(parsed)[0]["id"], rows(parsed)[0]["said"]) == (name, HOSTILE[0])


REFUSED = {
    "a plan": (["--plan"], "`--plan` reads no image, so there is nothing for `--html` to show."),
    "live": (["--mode", "live"], "`--mode live` leaves answers on record as they are, so `--html` could not show"),
    "a folder": (["--html", "ads"], "'ads' is a folder, and the page is one file."),
}


@pytest.mark.parametrize(("more", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_a_page_is_refused_before_anything_is_asked(
    askance: Command, endpoint: FakeEndpoint, vlm: str, ads: list[str], more: list[str], message: str
) -> None:
    done = askance("run", "explain", *ads, "--vlm", vlm, "--html", "page.html", *more)

    assert (done.code, done.err[9 : 9 + len(message)], len(endpoint.requests)) == (2, message, 0)
