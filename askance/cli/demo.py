"""`askance demo`: the whole chain over pictures that ship with the package, offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askance.cli.process import OK, SOME
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.cli.display import ReadingDisplay
    from askance.demo import DemoPicture

_HEAD = """\
The answers below were written by hand and are replayed through the real chain.
✓ is true of the picture, ✗ is not: some answers are wrong on purpose.
TR1 texture of another · TR2 made of many small ones
OIO one inside another · OR one in another's place
"""

_NEXT = """
Every picture whole:
  askance demo --all
The same, step by step, with no key; the model `demo` gives the hand-written answers:
  askance demo --copy ads
  askance run action-reason ads --options ads/options.json --vlm demo
Then with a server of your own, or an API, whose key is in OPENAI_API_KEY:
  askance run verbalize ads --vlm openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1
  askance run verbalize ads --vlm openai:gpt-4o
"""


def demo(
    every: Annotated[bool, typer.Option("--all", help="Print every picture whole, not the first alone.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line for each image.")] = False,
    copy: Annotated[
        Path | None,
        typer.Option(help="Copy the pictures and their options into this folder instead, for a run of your own."),
    ] = None,
) -> None:
    """Run the whole chain offline over pictures that ship with askance; the answers on record are hand-written."""
    if copy is not None:
        _copy(copy)
        return
    raise typer.Exit(_demonstrate(every=every, as_json=as_json))


def _demonstrate(*, every: bool, as_json: bool) -> int:
    """Replays the demo and prints it; returns the exit code."""
    import time

    from askance.cli.display import ReadingDisplay
    from askance.cli.tally import Tally
    from askance.demo import read_table
    from askance.models import run_sync

    start = time.perf_counter()
    tally = Tally()
    entries = read_table()
    show = ReadingDisplay(len(entries), as_json=as_json, tally=tally)
    if not as_json:
        echo(_HEAD)
    right, chosen = run_sync(_replay(_chain(tally), entries, show, every=every))
    show.close()
    if not as_json:
        _print_summary(show, right=right, chosen=chosen, seconds=time.perf_counter() - start)
    return OK if not show.unanswered else SOME


def _copy(folder: Path) -> None:
    """Copies the pictures, `options.json` with their options, and `samples.jsonl` with what is true of them as well.

    Raises:
        UsageError: the folder has a file of the same name with another content.
    """
    import shlex

    from askance.cli.output import write_new
    from askance.demo import project_files, read_table

    write_new(folder, project_files())
    echo(f"{len(read_table())} pictures, options.json and samples.jsonl are in {folder}. With hand-written answers:")
    where, options = shlex.quote(str(folder)), shlex.quote(str(folder / "options.json"))
    echo(f"  askance run action-reason {where} --options {options} --vlm demo")
    echo("A model of yours, on a server or behind an API, takes the place of `demo`.")


def _chain(*observers: Any) -> Chain:
    """The chain over the packaged records; nothing outside the package is read, no overlay and no settings file."""
    from askance.chains import action_reason
    from askance.demo import CASSETTE
    from askance.models import Config, Engine, get_model
    from askance.prompts import PromptLibrary
    from askance.replay import Cassette

    engine = Engine(mode="replay", records=Cassette(CASSETTE, check=False), observers=list(observers))
    return action_reason(get_model("demo", engine=engine, config=Config()), prompts=PromptLibrary([]))


async def _replay(chain: Chain, entries: list[DemoPicture], show: ReadingDisplay, *, every: bool) -> tuple[int, int]:
    """How many of the chosen action-reasons are right, and how many were chosen."""
    from contextlib import aclosing

    right = chosen = 0
    inputs = [{"image": entry.path, "name": entry.name, "options": entry.options} for entry in entries]
    async with aclosing(chain.read_all(inputs)) as readings:
        for entry in entries:
            line = (await anext(readings)).to_dict()
            truth = {"answers": entry.right, "statements": entry.statements}
            show.reading(line, entry.options, truth, brief=not every and entry is not entries[0])
            numbers: list[int] = line["answers"] or []
            right += sum(number in entry.right for number in numbers)
            chosen += len(numbers)
    return right, chosen


def _print_summary(show: ReadingDisplay, *, right: int, chosen: int, seconds: float) -> None:
    from askance.demo import CASSETTE

    total = sum(show.outcomes.values())
    echo(f"\n{total} pictures, {right} of {chosen} chosen action-reasons are true · {seconds:.1f} s")
    echo(show.calls)
    echo(f"Pictures, options and answers: {CASSETTE.parent}")
    echo(_NEXT, end="")
