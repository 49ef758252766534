"""What is done with a run that is there, beside replaying it into a fresh folder; and memory by the number of samples.

    python benchmarks/evaluations.py [--samples N] [--runs N] [--growth 250 10000] [--folder FOLDER]

A task with no Python over pictures that are all different, 7 calls a sample, all on record. Each sample has 18
options of its own; where memory is compared, all share them. `eval score`, `report` (without pictures) and `compare`
(with a run of another context) read the folder that `eval run --replay` has made; each is a fresh process, imports
included, in turn.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import Contender, Run, in_turn, measure, python, table
from workload import MODEL, OPTIONS, SETTINGS, make_pictures, reply

RUN = "askance eval run … --replay, into a fresh folder"
CONTEXTS = ("T_V", "IN")
"""What the descriptions of the two runs are made of."""
TASK = """\
name: claims
data: samples.jsonl
chain: action-reason
count: 3
score: choice
"""


def main() -> None:
    """Make what is needed, measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000, help="how many samples")
    parser.add_argument("--runs", type=int, default=5, help="how many runs of each")
    parser.add_argument("--growth", type=int, nargs="*", default=(250, 10_000), help="runs whose memory is compared")
    parser.add_argument("--folder", type=Path, help="where pictures, store and runs are made and kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).resolve()
        prepare(folder / "task", samples=given.samples)
        print(f"{given.samples} samples, {7 * given.samples} calls, {given.runs} runs of each\n")
        print(table(in_turn(contenders(folder / "task"), runs=given.runs), against=RUN))
        if given.growth:
            print("\n| samples | peak memory of `eval run --replay`, MB | ratio |\n|---|---|---|")
            sizes = {size: largest(folder / f"task-{size}", size) for size in given.growth}
            for size, run in sizes.items():
                ratio = run.megabytes / sizes[given.growth[0]].megabytes
                print(f"| {size:,} | {run.megabytes:.0f} | {ratio:.2f} |")


def contenders(folder: Path) -> list[Contender]:
    """The replay, and what reads the folder that it makes."""
    askance, seen = python(tool="askance"), (folder / "images", folder / ".askance", folder / "runs")
    words = {
        "askance eval score": ["eval", "score", "runs/T_V"],
        "askance report": ["report", "runs/T_V", "--out", "page.html"],
        "askance compare": ["compare", "runs/T_V", "runs/IN"],
        "askance compare --html": ["compare", "runs/T_V", "runs/IN", "--html", "compare.html"],
    }
    reading = [
        Contender(name=name, command=[askance, *more], folder=folder, reads=seen) for name, more in words.items()
    ]
    return [replay(folder), *reading]


def replay(folder: Path) -> Contender:
    """The first of the two runs, made anew."""
    fresh = folder / "fresh"
    return Contender(
        name=RUN,
        command=command("T_V", fresh),
        folder=folder,
        reads=(folder / "images", folder / ".askance"),
        clears=fresh,
    )


def command(context: str, out: Path) -> list[str]:
    """The evaluation as a user types it."""
    words = ["eval", "run", "claims.yaml", "--vlm", MODEL, "--llm", MODEL, "--context", context]
    return [python(tool="askance"), *words, "--replay", "--out", str(out)]


def largest(folder: Path, samples: int) -> Run:
    """A replay of so many samples."""
    prepare(folder, samples=samples, contexts=CONTEXTS[:1], own_options=False)
    return measure(replay(folder))


def prepare(folder: Path, *, samples: int, contexts: tuple[str, ...] = CONTEXTS, own_options: bool = True) -> None:
    """Makes pictures, data, answers and a finished run of each context in `folder`, unless they are there.

    Data are held in memory as long as a run lasts: what grows beside them shows where all samples share their options.
    """
    if not (folder / "claims.yaml").exists():
        folder.mkdir(parents=True)
        # In a process of its own: a child is charged for the memory that its parent holds when it starts.
        make = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import evaluations; "
        make += f"evaluations.make({str(folder)!r}, {samples}, {contexts}, own_options={own_options})"
        subprocess.run([python(), "-c", make], check=True)
    for context in contexts:
        place = folder / "runs" / context
        if not place.exists():
            measure(Contender(name=RUN, command=command(context, place), folder=folder))


def make(folder: str, samples: int, contexts: tuple[str, ...], *, own_options: bool) -> None:
    """Fills the empty `folder` with pictures, the task, its data, and a store with the answers of a scripted model."""
    from askance.evals import evaluate, find_task
    from askance.models import Engine, ScriptedModel, get_model
    from askance.replay import open_records

    place = Path(folder)
    shared = make_pictures(place, images=samples)
    rows = [row(number, own_options=own_options) for number in range(samples)]
    (place / "samples.jsonl").write_text("".join(rows), encoding="utf-8")
    (place / "claims.yaml").write_text(f"{TASK}options: {json.dumps(shared)}\n", encoding="utf-8")
    (place / "askance.toml").write_text(SETTINGS, encoding="utf-8")
    with open_records(place / ".askance") as store:
        model = get_model(ScriptedModel(reply, identity=MODEL), engine=Engine(records=store))
        for context in contexts:
            with tempfile.TemporaryDirectory() as runs:
                evaluate(find_task(f"{place}/claims.yaml")(vlm=model, context=context), out=Path(runs) / "run")


def row(number: int, *, own_options: bool) -> str:
    """A line of the data; three of the options are right."""
    words = f"I should buy cup {number}-{{}} because it lasts as long as a wall and keeps its heat."
    options = {"options": [words.format(n) for n in range(OPTIONS)]} if own_options else {}
    return json.dumps({"image": f"images/{number:05}.jpg", **options, "target": [1, 2, 3]}) + "\n"


if __name__ == "__main__":
    sys.exit(main())
