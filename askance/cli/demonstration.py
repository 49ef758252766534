"""The demo: the action-reason chain in replay over pictures, options and hand-written answers in the package."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

from askance.chains import Chain, action_reason
from askance.chains.line import line_of
from askance.cli.display import ReadingDisplay
from askance.cli.exits import OK, SOME
from askance.cli.tally import Tally
from askance.demo import CASSETTE, DemoPicture, read_table
from askance.errors import UsageError
from askance.models import Config, Engine, get_model
from askance.prompts import PromptLibrary
from askance.replay import Cassette

_HEAD = """\
Every answer below was written by hand and is replayed through the real chain; no model was asked.
✓ marks what is true of the picture, ✗ what is not: some answers are wrong on purpose.
TR1 texture of another · TR2 made of many small ones · OIO one inside another · OR one in another's place
"""

_NEXT = """
The same, step by step, with no key: the model `demo` gives these hand-written answers wherever a model is asked.
  askance demo --copy ads
  askance run action-reason ads --options ads/options.json --vlm demo
Then with a real model: a server of your own, or an API, whose key is in the environment (OPENAI_API_KEY).
  askance run verbalize ads --vlm openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1
  askance run verbalize ads --vlm openai:gpt-4o
"""


def demonstrate(*, as_json: bool) -> int:
    """Replays the demo and prints it; returns the exit code."""
    start = time.perf_counter()
    tally = Tally()
    entries = read_table()
    show = ReadingDisplay(len(entries), as_json=as_json, tally=tally)
    if not as_json:
        print(_HEAD)
    right, chosen = asyncio.run(_replay(demo_chain(tally), entries, show))
    show.close()
    if not as_json:
        _tell(show, right=right, chosen=chosen, seconds=time.perf_counter() - start)
    return OK if not show.unanswered else SOME


def copy_demo(folder: Path) -> int:
    """Copies the pictures, `options.json` with their options, and `samples.jsonl` with what is true of them as well.

    Returns:
        The exit code.

    Raises:
        UsageError: a file of that name with another content is there.
    """
    entries = read_table()
    options = {entry.path.name: list(entry.options) for entry in entries}
    files = {entry.path.name: entry.path.read_bytes() for entry in entries}
    files["options.json"] = (json.dumps(options, ensure_ascii=False, indent=1) + "\n").encode()
    files["samples.jsonl"] = "".join(f"{_sample(entry)}\n" for entry in entries).encode()
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        target = folder / name
        if target.exists() and target.read_bytes() != content:
            raise UsageError(f"{str(target)!r} is there already and differs.", hint="Name another folder.")
    for name, content in files.items():
        (folder / name).write_bytes(content)
    print(f"{len(entries)} pictures, options.json and samples.jsonl are in {folder}. With hand-written answers:")
    where, options = shlex.quote(str(folder)), shlex.quote(str(folder / "options.json"))
    print(f"  askance run action-reason {where} --options {options} --vlm demo")
    print("A model of yours, on a server or behind an API, takes the place of `demo`.")
    return OK


def _sample(entry: DemoPicture) -> str:
    """The row of a picture in data of one's own: what can be chosen from, and the numbers of what is true."""
    row = {
        "id": entry.name,
        "image": entry.path.name,
        "options": list(entry.options),
        "target": sorted(entry.right),
        "tags": {"odd": bool(entry.statements)},
    }
    return json.dumps(row, ensure_ascii=False)


def demo_chain(*observers: Any) -> Chain:
    """The chain over the packaged records; nothing outside the package is read, no overlay and no settings file."""
    engine = Engine(mode="replay", records=Cassette(CASSETTE, check=False), observers=list(observers))
    return action_reason(get_model("demo", engine=engine, config=Config()), prompts=PromptLibrary([]))


async def _replay(chain: Chain, entries: list[DemoPicture], show: ReadingDisplay) -> tuple[int, int]:
    """How many of the chosen action-reasons are right, and how many were chosen."""
    right = chosen = 0
    inputs = [{"image": entry.path, "name": entry.name, "options": entry.options} for entry in entries]
    async with aclosing(chain.read_all(inputs)) as readings:
        for entry in entries:
            line = line_of(await anext(readings))
            show.reading(line, entry.options, {"answers": entry.right, "statements": entry.statements})
            numbers: list[int] = line["answers"] or []
            right += sum(number in entry.right for number in numbers)
            chosen += len(numbers)
    return right, chosen


def _tell(show: ReadingDisplay, *, right: int, chosen: int, seconds: float) -> None:
    total = sum(show.outcomes.values())
    print(f"{total} pictures, {right} of {chosen} chosen action-reasons are true · {show.calls} · {seconds:.1f} s")
    print("The pictures, the options and the table of hand-written answers:", CASSETTE.parent)
    print(_NEXT, end="")
    sys.stdout.flush()
