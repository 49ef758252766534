"""What each layer costs: the parts of a replayed call, the way of a live one, and LangChain's share.

    python benchmarks/layers.py [--rounds N]

CPU time of the whole process, in microseconds: of each subject the least of N rounds, since whatever else the machine
does can only add to it, and of these the mean.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableParallel
from workload import MODEL, make, reply

from askance.chains import Chain, Reading, action_reason
from askance.images import Image
from askance.models import Engine, Model, ScriptedModel, get_model
from askance.replay import MemoryStore, Records, open_records
from askance.terminal import json_text

if TYPE_CHECKING:
    from askance.chat import ChatRequest
    from askance.nodes import Node

PICTURES = 40
Work: TypeAlias = Callable[[Any], Awaitable[object] | object]
Row: TypeAlias = tuple[str, Work, Sequence[Any]]


async def least(work: Work, subjects: Sequence[Any], *, rounds: int) -> float:
    """Microseconds of CPU for `work` on one of `subjects`, each in its best round."""
    best = [float("inf")] * len(subjects)
    for _ in range(rounds):
        for place, subject in enumerate(subjects):
            start = time.process_time()
            done = work(subject)
            if isinstance(done, Awaitable):
                await done
            best[place] = min(best[place], time.process_time() - start)
    return sum(best) / len(best) * 1e6


def parts(chain: Chain, store: Records, readings: Sequence[Reading]) -> Iterator[Row]:
    """A replayed call taken apart, for the question after objects and for the one with up to 80 options."""
    paths = [reading.image.path for reading in readings if reading.image and reading.image.path]
    yield "picture: read the file and take its digest", lambda path: Image.from_path(path).sha256, paths
    for link in ("objects", "statement"):
        step = next(step for step in chain.steps if step.link.name == link)
        node: Any = step.node
        subjects = [step.subject(reading) for reading in readings]
        requests = [node.request(subject, "json_schema") for subject in subjects]
        yield f"{link}: make the request", lambda subject, node=node: node.request(subject, "json_schema"), subjects
        yield f"{link}: make it and work out its key", lambda subject, node=node: _key(node, subject), subjects
        yield f"{link}: find the record", lambda request: store.answer(request.key, request.canonical_text), requests
        yield f"{link}: the node, all of that and the reading of the reply", node.ask, subjects
    yield "line: from the reading to JSON text", lambda reading: json_text(reading.to_dict()), readings


def _key(node: Any, subject: Any) -> str:
    return node.request(subject, "json_schema").key


def calls(requests: Sequence[ChatRequest]) -> Iterator[Row]:
    """The same answer from a bare model, as a call, and from a record."""
    plain = ScriptedModel(reply, identity=MODEL)
    recording = get_model(ScriptedModel(reply, identity=MODEL), engine=Engine(records=MemoryStore(), mode="refresh"))
    there = MemoryStore()
    replayed = get_model(ScriptedModel(reply, identity=MODEL), engine=Engine(records=there))
    yield "a scripted model alone", plain.generate, requests
    yield "the same through record, single flight, retry, limits and the live loop", recording.generate, requests
    yield "the same from records in memory", replayed.generate, requests


def langchain(chain: Chain, pictures: Sequence[Image], options: Sequence[str]) -> Iterator[Row]:
    """A node and the chain: straight, as Runnables that nobody listens to, with a listener, and rewired with LCEL."""
    node: Any = chain["objects"]
    heard: RunnableConfig = {"callbacks": [AsyncCallbackHandler()]}
    given = [{"image": picture, "options": list(options)} for picture in pictures]
    yield "node: `ask`", node.ask, pictures
    yield "node: `ainvoke`, nobody listens", node.ainvoke, pictures
    yield "node: `ainvoke`, a handler listens", lambda picture: node.ainvoke(picture, heard), pictures
    yield "node: in a RunnableLambda", RunnableLambda(node.ainvoke).ainvoke, pictures
    tools: dict[str, Any] = {link: chain[link] for link in ("objects", "scene_text", "narration", "unusual")}
    asked: list[Node[Any, Any]] = [*tools.values()]
    wired: Runnable[Any, Any] = RunnableParallel(tools)
    yield "four tools: one after the other", lambda picture: _each(asked, picture), pictures
    yield "four tools: in a RunnableParallel", wired.ainvoke, pictures
    yield "chain: `read`", chain.read, given
    yield "chain: `ainvoke`, nobody listens", chain.ainvoke, given
    yield "chain: `ainvoke`, a handler listens", lambda source: chain.ainvoke(source, heard), given


async def _each(nodes: Sequence[Node[Any, Any]], picture: Image) -> None:
    for node in nodes:
        await node.ask(picture)


async def measure(folder: Path, *, rounds: int) -> None:
    """Print a row for each layer."""
    options = (folder / "options.txt").read_text(encoding="utf-8").splitlines()
    pictures = [Image.from_path(path) for path in sorted((folder / "images").iterdir())]
    with open_records(folder / ".askance", read_only=True) as store:
        model: Model = get_model(ScriptedModel(reply, identity=MODEL), engine=Engine(mode="replay", records=store))
        chain = action_reason(model)
        readings = [await chain.read({"image": picture, "options": options}) for picture in pictures]
        node: Any = chain["objects"]
        requests = [node.request(picture, "json_schema") for picture in pictures]
        for title, rows in (
            ("A replayed call", parts(chain, store, readings)),
            ("A live call", calls(requests)),
            ("LangChain", langchain(chain, pictures, options)),
        ):
            print(f"\n| {title} | microseconds |\n|---|---|")
            for name, work, subjects in rows:
                print(f"| {name} | {await least(work, subjects, rounds=rounds):.0f} |", flush=True)


def main() -> None:
    """Make a small folder, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25, help="how many rounds of each")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as temporary:
        make(Path(temporary), images=PICTURES)
        asyncio.run(measure(Path(temporary), rounds=rounds))


if __name__ == "__main__":
    main()
