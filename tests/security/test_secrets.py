"""Keys and secret headers are found in nothing that a run leaves behind, whatever the endpoint does with them."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from traceback import TracebackException

import pytest

from askance.chat import Message, TextPart
from askance.errors import CallError
from askance.models import Engine, RetryPolicy, get_model
from askance.replay import MemoryStore
from tests.batch_server import BatchServer, Step, When
from tests.security.commands import HEADER, KEY, QUICKLY, SETTINGS, Project
from tests.servers import FakeEndpoint, Reply, Seen, chat_body, default_text, error


def sent(seen: Seen) -> str:
    """What an endpoint gets to see of the secrets, as an indiscreet one repeats it."""
    return f"{seen.headers.get('authorization')} and {seen.headers.get('x-team-secret')}"


def chatty(seen: Seen) -> Reply:
    """Answers as wanted, and repeats the secrets wherever a word may stand."""
    text = default_text(seen.json)
    if '"quokka-17"' not in text:
        text = text.replace("cup", sent(seen))
    return Reply(body=chat_body(text, reasoning_content=sent(seen)), headers={"x-echo": sent(seen)})


FAILURES: dict[str, Callable[[Seen], Reply]] = {
    "wrong key": lambda seen: error(401, f"Incorrect API key provided: {sent(seen)}."),
    "rejected": lambda seen: error(400, f"Strange headers: {sent(seen)}."),
    "unknown model": lambda seen: error(404, f"The model does not exist for {sent(seen)}.", code="model_not_found"),
    "sent on": lambda seen: Reply(status=302, headers={"location": f"http://127.0.0.1:9/{sent(seen).split()[1]}"}),
    "no JSON": lambda seen: Reply(body=f"<html>{sent(seen)}"),
    "error in a reply": lambda seen: Reply(body={"error": {"message": sent(seen)}}),
    "broken": lambda seen: Reply(status=500, body=f"Traceback: {sent(seen)}"),
}


def test_a_run_that_succeeds_leaves_no_secret(own_place: Path) -> None:
    with FakeEndpoint(chatty) as endpoint:
        project = Project.make(own_place, endpoint.url)
        done = project.read("--json")
        assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "answered")
        assert "[key]" in done.stdout
        assert KEY in sent(endpoint.requests[-1])
        assert HEADER in sent(endpoint.requests[-1])
    project.askance("cache", "export", "all.jsonl")

    assert (own_place / "all.jsonl").stat().st_size > 1000
    assert list(project.leaks()) == []


def test_a_run_that_fails_leaves_no_secret(own_place: Path) -> None:
    """The endpoint turns bad after the first contact, so that there is a store."""
    bad = FAILURES["wrong key"]
    with FakeEndpoint(lambda seen: None if "quokka-17" in default_text(seen.json) else bad(seen)) as endpoint:
        project = Project.make(own_place, endpoint.url)
        done = project.read("--json")
        assert done.returncode in {1, 3}
        assert endpoint.requests

    assert list(project.leaks()) == []


SPECS = {"openai": "openai:fake-model", "langchain": "langchain:openai:fake-model"}


def settings_of(spec: str) -> str:
    return SETTINGS.replace(SPECS["openai"], spec)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_run_that_is_killed_leaves_no_secret(own_place: Path, spec: str) -> None:
    with FakeEndpoint(lambda seen: chatty(seen) if len(endpoint.requests) < 4 else Reply(delay=60.0)) as endpoint:
        project = Project.make(own_place, endpoint.url, settings_of(spec))
        process = project.start("run", "action-reason", "ad.jpg", "--options", "options.json", "--out", "out")
        while len(endpoint.requests) < 5 and process.poll() is None:
            time.sleep(0.05)
        process.kill()
        project.said.append(process.communicate(timeout=30)[0])

    assert process.returncode == -9
    assert (own_place / "store" / "cache.db").exists()
    assert list(project.leaks()) == []


def test_batches_that_are_killed_leave_no_secret(own_place: Path, tmp_path: Path) -> None:
    """Killed while a file of answers that has broken off lies on the disk."""
    echo = f"Bearer {KEY} and {HEADER}\n"
    broken: list[Reply] = []

    def fault(step: Step, when: When) -> Reply | None:
        if (step, when) != ("content", "after"):
            return None
        broken.append(Reply(body=echo * 100, cut=50 * len(echo)))
        return broken[-1]

    with BatchServer(tmp_path / "endpoint", fault=fault) as server:
        project = Project.make(own_place, server.url)
        process = project.start("run", "verbalize", "ad.jpg", "--out", "out", "--batch", first=QUICKLY)
        while not any(file.stat().st_size for file in own_place.rglob("*.answers")) and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        project.said.append(process.communicate(timeout=60)[0])

    (file,) = own_place.rglob("*.answers")
    assert (process.returncode, broken != []) == (-9, True)
    assert file.read_bytes().startswith(b"Bearer [key] and [key]\n" * 49)
    assert list(project.leaks()) == []


CRASH = """
import sys, traceback
from askance.chains import action_reason
from askance.models import Engine, RetryPolicy, get_model
from askance.tools import caption

def observer(event):
    raise RuntimeError(f"an observer fails at {event}")

def reader(image):
    raise ZeroDivisionError("a reader of scene text fails")

def show(error):
    print("".join(traceback.TracebackException.from_exception(error, capture_locals=True).format()), file=sys.stderr)

sys.excepthook = lambda kind, error, trace: show(error)
engine = Engine(observers=[observer], policy=RetryPolicy(tries=1))
model = get_model("eye", engine=engine)
print(repr(model), repr(model.settings), repr(engine))
reading = action_reason(model).with_nodes(scene_text=reader).invoke({"image": "ad.jpg", "options": ["a", "b"]})
print(repr(reading), reading.links)
for failure in ("wrong key", "rejected"):
    try:
        model.engine.retry
        caption(get_model(model, seed=len(failure))).invoke("ad.jpg")
    except Exception as error:
        show(error)
raise SystemError("the end", model, engine, reading)
"""


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_crash_shows_no_secret_even_with_its_locals(own_place: Path, spec: str) -> None:
    failures = iter((FAILURES["wrong key"], FAILURES["rejected"]))
    with FakeEndpoint(lambda seen: next(failures)(seen) if "seed" in seen.json else chatty(seen)) as endpoint:
        done = (project := Project.make(own_place, endpoint.url, settings_of(spec))).run("-c", CRASH)

    found = re.findall(r"^(?:askance\.errors\.)?(\w+): ", done.stderr, re.MULTILINE)
    assert {"RuntimeError", "AuthError", "BadRequest", "SystemError"} <= set(found)
    assert "a reader of scene text fails" in done.stdout
    assert list(project.leaks()) == []


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("reply", FAILURES.values(), ids=FAILURES)
async def test_no_error_holds_a_secret(
    reply: Callable[[Seen], Reply], spec: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "askance")
    monkeypatch.setenv("MARKED_KEY", KEY)
    monkeypatch.setenv("MARKED_HEADER", HEADER)
    # LangChain keeps connections open for as long as the process lives, unless the endpoint closes them.
    end = {"connection": "close"}
    with FakeEndpoint(lambda seen: replace(said := reply(seen), headers={**said.headers, **end})) as endpoint:
        model = get_model(
            f"{spec}@{endpoint.url}",
            engine=Engine(records=MemoryStore(), policy=RetryPolicy(tries=1)),
            key_variable="MARKED_KEY",
            headers={"X-Team-Secret": "env:MARKED_HEADER"},
        )
        with pytest.raises(CallError) as caught:
            await model.generate(model.request([Message("user", (TextPart("Look."),))]))
        assert KEY in sent(endpoint.requests[-1])
        assert HEADER in sent(endpoint.requests[-1])
        await model.aclose()

    said = [caplog.text, "".join(TracebackException.from_exception(caught.value, capture_locals=True).format())]
    left: list[BaseException | None] = [caught.value]
    while left:
        if (link := left.pop()) is not None:
            said += [str(link), repr(link), repr(vars(link))]
            left += [link.__cause__, link.__context__]
    assert [text for text in said if KEY in text or HEADER in text] == []
