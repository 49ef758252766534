"""Investigations in chains, plans, replays and processes that die."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler

from askance.chains import Chain, Step, plan
from askance.chains.batch_passes import models_of
from askance.chains.link import REPLY
from askance.chains.output_line import SCHEMA
from askance.chat import ChatRequest, ChatResponse, ToolCall
from askance.documents import validator
from askance.errors import MissingExtra, UsageError
from askance.investigator import Investigator, investigator
from askance.models import ScriptedModel, get_model, use_draw
from askance.replay import MemoryStore, open_records
from askance.terminal import echo
from tests.conftest import ROOT
from tests.investigator.agents import IMAGE, ODD, agent_script, answer, call, eye_script, looking, tools_of
from tests.scripted import PICTURE, PICTURES


def asks_twice(request: ChatRequest) -> ToolCall:
    """Asks two questions and answers; its ids of calls are never the same."""
    found = sum(message.role == "tool" for message in request.messages)
    return answer() if found == 2 or tools_of(request) == ("answer",) else call("ask", question=f"And {found}?")


def chain_of(node: Investigator) -> Chain:
    step = Step(link=REPLY, node=node, subject=lambda reading: {"image": reading.image})
    return Chain("investigate", target=REPLY, steps=[step], mode=node.model.mode)


def without_meta(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != "meta"}


async def test_a_line_holds_the_transcript() -> None:
    reading = await chain_of(looking(agent_script(asks_twice))).ainvoke(PICTURE)
    line = reading.to_dict()

    validator(Path(sys.modules["askance.chains.output_line"].__file__ or "").with_name(SCHEMA)).validate(line)
    assert (line["outcome"], line["reply"]) == ("answered", ODD)
    link = line["links"]["reply"]
    assert [step["tool"] for step in link["trace"]["steps"]] == ["ask", "ask", "answer"]
    assert link["calls"] == [key for step in link["trace"]["steps"] for key in step["calls"]]
    assert line["meta"]["calls"] == 5


async def test_two_runs_ask_with_equal_keys_whatever_ids_the_endpoint_gives() -> None:
    ids = iter(range(100))

    def with_ids(request: ChatRequest) -> ChatResponse:
        wanted = asks_twice(request)
        own = ToolCall(f"chatcmpl-{next(ids)}", wanted.name, wanted.arguments)
        return ChatResponse(tool_calls=(own,), finish="tool_calls")

    store = MemoryStore()
    runs = [await looking(agent_script(with_ids)).ask(IMAGE) for _ in range(2)]
    once = await looking(agent_script(with_ids), records=store).ask(IMAGE)
    replayed = await looking(agent_script([]), eye_script(), records=store, mode="replay").ask(IMAGE)

    keys = [[each.key for each in result.calls] for result in (*runs, once, replayed)]
    assert keys == [keys[0]] * 4
    assert replayed.trace == once.trace
    assert all(each.meta.replayed for each in replayed.calls)


async def test_handlers_hear_of_the_graph_its_turns_and_its_tools_and_see_no_picture() -> None:
    class Listening(AsyncCallbackHandler):
        def __init__(self) -> None:
            self.heard: list[str] = []

        async def on_chain_start(self, serialized: Any, inputs: Any, **about: Any) -> None:
            self.heard.append(about.get("name") or "")

        async def on_chat_model_start(self, serialized: Any, messages: Any, **about: Any) -> None:
            self.heard.append(f"turn of {len(messages[0])} messages")
            assert "base64" not in str(messages)

    listening = Listening()
    agent = looking(agent_script(asks_twice), eyes=True)
    value = await agent.ainvoke(IMAGE, config={"callbacks": [listening]})

    assert str(value) == ODD
    assert listening.heard[0] == "investigate"
    turns = [heard for heard in listening.heard if heard.startswith("turn")]
    assert turns == ["turn of 2 messages", "turn of 4 messages", "turn of 6 messages"]
    assert set(agent.graph.get_graph().nodes) == {"__start__", "model", "tools", "__end__"}


async def test_a_hundred_investigations_at_once_keep_the_limits_of_the_engine() -> None:
    at_once = most = 0

    class Busy(ScriptedModel):
        async def generate(self, request: ChatRequest) -> ChatResponse:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0)
            at_once -= 1
            return await super().generate(request)

    script = agent_script(asks_twice)
    agent = Busy(script._reply, identity="agent", capabilities=script.capabilities)  # pyright: ignore[reportPrivateUsage]
    node = looking(agent, records=MemoryStore(), concurrency=4)
    results = await asyncio.gather(*(node.ask({"image": IMAGE}) for _ in range(100)))

    assert {result.outcome for result in results} == {"answered"}
    assert most <= 4


async def test_a_plan_counts_the_most_that_there_can_be() -> None:
    store = MemoryStore()
    node = looking(agent_script(asks_twice), records=store, calls=6)
    sources = sorted(PICTURES.glob("*.jpg"))[:2]

    first = await plan(chain_of(node), sources)
    await node.ask({"image": str(sources[0])})
    then = await plan(chain_of(node), sources)

    (line,) = first.links
    assert (first.calls, first.hits, line.known, line.at_most) == (11, 0, 1, True), "the first turn is the same for all"
    assert (then.calls, then.hits, then.links[0].known) == (5, 5, 1)


@pytest.mark.parametrize(
    ("llm", "vlm", "dearest"),
    [("cheap", "dear", "dear"), ("dear", "cheap", "dear"), ("cheap", "unpriced", "unpriced")],
)
async def test_a_plan_counts_all_calls_at_the_price_of_the_dearest_model(llm: str, vlm: str, dearest: str) -> None:
    models = {
        "cheap": get_model("openai:cheap", price={"input": 0.1, "output": 0.4}),
        "dear": get_model("openai:dear", price={"input": 2, "output": 8}),
        "unpriced": get_model("openai:unpriced"),
    }
    node = investigator(models[llm], models[vlm], calls=6)

    (line,) = (await plan(chain_of(node), sorted(PICTURES.glob("*.jpg"))[:2])).links

    assert (str(line.model), line.price) == (f"openai:{dearest}", models[dearest].price)


def test_an_investigator_is_pickled_without_its_graph() -> None:
    agent = investigator("openai:gpt-4o", "openai:gpt-4o", calls=5)
    assert agent.graph is agent.graph

    opened = pickle.loads(pickle.dumps(agent))

    assert (opened.settings, "graph" in vars(opened)) == (agent.settings, False)


def test_no_batch_holds_an_investigation() -> None:
    with pytest.raises(UsageError, match="decides after each answer what it asks next"):
        models_of(chain_of(looking(agent_script([]))))


def test_without_langgraph_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(name: str) -> Any:
        return None if name == "langgraph" else find_spec(name)

    monkeypatch.setattr(sys.modules[Investigator.__module__], "find_spec", lacking)
    with pytest.raises(MissingExtra, match=r"An investigator needs langgraph. pip install 'askance\[agent\]'"):
        looking(agent_script([]))


def process(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """This module as a program, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tests.investigator.test_investigation_runs", str(folder), *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


async def lines_of(chain: Chain, many: int) -> list[str]:
    """The lines of `many` investigations of one picture, told apart by their draws, as text."""
    lines: list[str] = []
    for draw in range(many):
        with use_draw(draw):
            lines.append(json.dumps(without_meta((await chain.ainvoke(PICTURE)).to_dict())))
    return lines


@pytest.mark.parametrize("many", [10, pytest.param(100, marks=pytest.mark.soak)])
async def test_replays_in_another_process_are_byte_equal_and_connect_to_nobody(tmp_path: Path, many: int) -> None:
    """A fixed chain is replayed first: it loads no LangGraph."""
    with open_records(tmp_path / "records") as records:
        node = looking(agent_script(asks_twice), records=records)
        lines = await lines_of(chain_of(node), many)
        fixed = (await Chain("fixed", target=REPLY, steps=[_fixed(node)]).ainvoke(PICTURE)).to_dict()

    done = process(tmp_path, "replay", str(many))

    assert done.returncode == 0, done.stderr
    told = [json.dumps(without_meta(fixed)), '{"langgraph": false}', *lines, '{"langgraph": true, "clients": []}']
    assert done.stdout.splitlines() == told


async def test_a_process_that_is_killed_loses_only_the_call_under_way(tmp_path: Path) -> None:
    done = process(tmp_path, "die")
    assert done.returncode == -9

    with open_records(tmp_path / "records") as records:
        agent, eye = agent_script(asks_twice), eye_script()
        result = await looking(agent, eye, records=records).ask({"image": PICTURE})

    assert (result.outcome, [each.meta.replayed for each in result.calls]) == ("answered", [True] * 3 + [False] * 2)
    assert (len(agent.requests), len(eye.requests)) == (1, 1)


def _fixed(node: Investigator) -> Step:
    return Step(link=REPLY, node=node.goal, subject=lambda reading: {"image": reading.image})


async def _replayed(folder: Path) -> None:
    def no_connection(*_: Any) -> None:
        raise AssertionError("a replay connects to nobody")

    socket.socket.connect = no_connection
    with open_records(folder / "records", read_only=True) as records:
        node = looking(agent_script([]), eye_script([]), records=records, mode="replay")
        fixed = Chain("fixed", target=REPLY, steps=[_fixed(node)], mode="replay")
        echo(json.dumps(without_meta((await fixed.ainvoke(PICTURE)).to_dict())))
        echo(json.dumps({"langgraph": "langgraph" in sys.modules}))
        for line in await lines_of(chain_of(node), int(sys.argv[3])):
            echo(line)
        clients = sorted({"openai", "aiohttp"} & sys.modules.keys())
        echo(json.dumps({"langgraph": "langgraph" in sys.modules, "clients": clients}))


async def _dying(folder: Path) -> None:
    def dies(request: ChatRequest) -> str:
        if "And 1?" in request.messages[-1].text:
            os.kill(os.getpid(), signal.SIGKILL)
        return "bricks"

    with open_records(folder / "records") as records:
        await looking(agent_script(asks_twice), eye_script(dies), records=records).ask({"image": PICTURE})


if __name__ == "__main__":
    asyncio.run({"replay": _replayed, "die": _dying}[sys.argv[2]](Path(sys.argv[1])))
