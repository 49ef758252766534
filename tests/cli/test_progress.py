"""How far a command is, where no terminal watches; and the word of one that is asked to stop."""

from __future__ import annotations

import asyncio
import json
import re
import signal

import pytest

from askance.chat import ChatRequest, ChatResponse
from askance.cli import progress
from askance.cli.progress import Progress, calls_state
from askance.cli.tally import Tally
from askance.errors import ModelError
from askance.models import Engine, get_model
from askance.replay import MemoryStore
from tests.cli.command import Command, finish, picture_of, start, telling
from tests.replies import SILENT
from tests.servers import Answer, FakeEndpoint, Seen


def test_a_log_gets_a_line_at_times(
    askance: Command, ads: list[str], endpoint: FakeEndpoint, vlm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.05)
    endpoint.delay = 0.1
    done = askance("run", "verbalize", "ads", "--vlm", vlm)
    lines = [line for line in done.err.splitlines() if line.startswith("askance: ")]
    assert done.code == 0
    assert re.fullmatch(r"askance: 0 of 3 images · 0 made · 0 replayed", lines[0])
    assert len(lines) > 3


def test_no_line_where_all_is_done_before(askance: Command, ads: list[str], vlm: str) -> None:
    assert "of 3 images ·" not in askance("run", "verbalize", "ads", "--vlm", vlm).err


async def test_what_a_model_does_just_now_stands_beside_the_counts() -> None:
    class Slow:
        id = "slow"
        doing = ""

        async def generate(self, request: ChatRequest) -> ChatResponse:
            self.doing = "slow writes 1 answer, 12 tokens so far"
            await released.wait()
            self.doing = ""
            return ChatResponse(text="a cup")

    slow, released, engine = Slow(), asyncio.Event(), Engine(records=MemoryStore())
    model = get_model(slow, engine=engine)
    with Progress("images", 2, state=calls_state(Tally(), engine)) as seen:
        assert str(seen) == "0 of 2 images · 0 made · 0 replayed"
        call = asyncio.create_task(model.backend.generate(model.request([])))
        await asyncio.sleep(0)
        assert str(seen) == "0 of 2 images · slow writes 1 answer, 12 tokens so far · 0 made · 0 replayed"
        released.set()
        await call
        seen.update(1)
        assert str(seen) == "1 of 2 images · 0 made · 0 replayed"


@pytest.mark.parametrize("interrupts", [signal.SIG_DFL, signal.SIG_IGN], ids=["terminal", "background"])
def test_sigterm_ends_a_run_as_ctrl_c_does_and_says_so(
    askance: Command, ads: list[str], interrupts: signal.Handlers
) -> None:
    first = ""

    def hangs_after_the_first_picture(seen: Seen) -> Answer:
        nonlocal first
        first = first or picture_of(seen)
        return SILENT if picture_of(seen) not in {"", first} else telling(seen)

    with FakeEndpoint(hangs_after_the_first_picture) as endpoint:
        command = ["run", "verbalize", *ads, "--context", "IN", "--vlm", f"openai:m@{endpoint.url}", "--json"]
        process = start(*command, "--concurrency", "1", interrupts=interrupts)
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        done = finish(process)

    assert (done.code, json.loads(line)["image"]) == (143, "ads/a.png")
    assert done.err.startswith("askance: asked to stop (SIGTERM).\n1 of 3 images: 1 answered\n")
    assert done.err.endswith("stopped; what is on record is not asked again.\n")


def test_no_reason_names_a_place_in_memory() -> None:
    assert str(ModelError("<Tensor at 0x7f12ab34cd56> is odd.")) == "<Tensor> is odd."
