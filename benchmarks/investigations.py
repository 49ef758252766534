"""What an investigation costs beside its model calls: CPU for each step, and its replay beside that of a fixed chain.

    python benchmarks/investigations.py [--pictures 100] [--runs 5]

A scripted agent asks three questions about each picture and answers: four turns and three calls of a tool. The fixed
chain is that of action-reasons, which makes seven calls as well. Both are answered once, at no cost, and then replayed
in one process, in turn, picture after picture. Beside them runs LangChain's `create_agent` alone, in as many turns. The
time that loading LangGraph takes is shown apart. Needs `pip install 'askance[agent]'`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from askance.chains import Chain, action_reason
from askance.chains.named_chain import CHAINS
from askance.chat import ChatRequest, ChatResponse, ToolCall
from askance.models import Capabilities, Engine, Model, ScriptedModel, get_model
from askance.replay import MemoryStore

QUESTIONS = 3
STEPS = QUESTIONS + 1
OPTIONS = ["I should drink tea", "I should lay bricks", "I should sleep", "I should sing"]
CAN = Capabilities(schema="enforced", tools=True)
ANSWERS: dict[str, Any] = {
    "objects": {"objects": ["cup", "bricks"]},
    "scene_text": {"lines": ["A solid start."]},
    "narration": {"description": "A cup on a table."},
    "unusual": {"unusual": "The cup is made of bricks."},
    "combine": {"description": "A cup made of bricks, with a slogan."},
    "detect_statement": {"statement": 1},
    "choose_action_reasons": {"answers": [2, 1, 3]},
    "ask_about_picture": {"answer": "It is made of bricks."},
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pictures", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    start = time.perf_counter()
    import_module("askance.investigator.graph")
    print(f"LangGraph and what is built on it load in {time.perf_counter() - start:.1f} s, once.\n")
    with tempfile.TemporaryDirectory() as folder:
        pictures = made_pictures(Path(folder), given.pictures)
        agent, fixed = asyncio.run(measured(pictures, runs=given.runs))
    bare = asyncio.run(measured_bare(given.pictures, runs=given.runs))
    rows = {"a fixed chain of 7 calls": fixed, "an investigation of 7 calls": agent, "`create_agent` alone": bare}
    each = 1000 / given.pictures
    print("| replay | CPU for a picture, ms, median (least – most) | ratio |\n|---|---|---|")
    for name, seconds in rows.items():
        middle, ratio = statistics.median(seconds), statistics.median(seconds) / statistics.median(fixed)
        print(f"| {name} | {middle * each:.1f} ({min(seconds) * each:.1f} – {max(seconds) * each:.1f}) | {ratio:.1f} |")
    print(f"\nA step takes {statistics.median(agent) * each / STEPS:.1f} ms of CPU beside the model.")


def made_pictures(folder: Path, count: int) -> list[Path]:
    """So many small pictures, each of its own colour."""
    chance, places = random.Random(7), [folder / f"{number}.png" for number in range(count)]
    for place in places:
        Pillow.new("RGB", (64, 48), tuple(chance.randrange(256) for _ in range(3))).save(place)
    return places


async def measured(pictures: list[Path], *, runs: int) -> tuple[list[float], list[float]]:
    """Seconds of CPU of each replay: of investigations, and of the fixed chain."""
    records = MemoryStore()
    agents, chains = made(Engine(records=records))
    for chain in (agents, chains):
        await replay(chain, pictures)
    engine = Engine(records=records, mode="replay")
    found: tuple[list[float], list[float]] = ([], [])
    for turn in range(-1, runs):
        for chain, kept in zip(made(engine), found, strict=True):
            start = time.process_time()
            await replay(chain, pictures)
            if turn >= 0:
                kept.append(time.process_time() - start)
    return found


async def measured_bare(count: int, *, runs: int) -> list[float]:
    """Seconds of CPU of so many runs of a graph that looks nothing up, each time."""
    graph = import_module("bare_agent").bare_graph(calls=QUESTIONS)
    seconds: list[float] = []
    for _ in range(runs + 1):
        start = time.process_time()
        for _ in range(count):
            await graph.ainvoke({"messages": [("user", "What is odd?")]})
        seconds.append(time.process_time() - start)
    return seconds[1:]


def made(engine: Engine) -> tuple[Chain, Chain]:
    """The chain of an investigator, and the fixed one."""
    eye = model(lambda request: json.dumps(ANSWERS[name_of(request)]), "eye", engine)
    investigate: Callable[..., Chain] = CHAINS.load("investigate")
    return investigate(eye, model(turn_of, "agent", engine), tools=["ask"]), action_reason(eye)


def model(reply: Callable[[ChatRequest], Any], name: str, engine: Engine) -> Model:
    """A scripted model."""
    return get_model(ScriptedModel(reply, identity=name, capabilities=CAN), engine=engine)


def name_of(request: ChatRequest) -> str:
    """What is asked."""
    return (request.response and request.response.name) or ""


def turn_of(request: ChatRequest) -> ChatResponse:
    """The agent's next turn."""
    asked = sum(message.role == "tool" for message in request.messages)
    tool, arguments = "ask", dict[str, Any](question=f"What is it made of, for the {asked + 1}. time?")
    if asked == QUESTIONS:
        answer = {"explanation": "A cup is made of bricks."}
        tool, arguments = "answer", {"value": answer, "confidence": 80, "evidence": [1], "enough": True}
    return ChatResponse(tool_calls=(ToolCall("1", tool, json.dumps(arguments)),), finish="tool_calls")


async def replay(chain: Chain, pictures: list[Path]) -> None:
    """Reads every picture."""
    async for reading in chain.read_all({"image": path, "options": OPTIONS} for path in pictures):
        if reading.outcome != "answered":
            raise SystemExit(f"{reading.name} ended as {reading.outcome}: {reading.reason}")


if __name__ == "__main__":
    main()
