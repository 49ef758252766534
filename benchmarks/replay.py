"""Replay 1,168 pictures (8,176 calls) with `askance run`, beside both forms of the bare script in `floor.py`, in turn.

    python benchmarks/replay.py [--images N] [--runs N] [--folder FOLDER]

Each run is a fresh process, imports included. The store and the pictures are made first (a minute), in a temporary
folder or in FOLDER, where they are kept.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import Contender, in_turn, measure, python, ratio, table

HERE = Path(__file__).resolve().parent
ASKANCE = "askance run action-reason … --json --replay"
FLOOR = "bare script, AsyncOpenAI and diskcache: key from the body as sent"
CAREFUL = "the same script, each picture hashed once"


def main() -> None:
    """Make what is needed, measure, check and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, default=1168, help="how many pictures")
    parser.add_argument("--runs", type=int, default=5, help="how many runs of each")
    parser.add_argument("--folder", type=Path, help="where pictures and store are made and kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).resolve()  # contenders run in it
        prepare(folder, images=given.images)
        contenders = [by_askance(folder), by_floor(folder, FLOOR, "--as-sent"), by_floor(folder, CAREFUL)]
        found = in_turn(contenders, runs=given.runs)
        check(folder / "lines.jsonl", images=given.images)
    print(f"{given.images} pictures, {7 * given.images} calls, {given.runs} runs of each\n")
    print(table(found, against=FLOOR))
    print(f"\nTo the last row: {ratio(found[ASKANCE], found[CAREFUL])}.")


def prepare(folder: Path, *, images: int) -> None:
    """Make pictures and answers in `folder`, unless they are there."""
    made = folder / "made"
    if made.exists() and made.read_text(encoding="utf-8") == str(images):
        return
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        sys.exit(f"{folder} is not empty and was not made for {images} pictures.")
    # In a process of its own: a child is charged for the memory that its parent holds when it starts.
    subprocess.run([python(), str(HERE / "workload.py"), str(folder), str(images)], check=True)
    measure(by_floor(folder, FLOOR, "--as-sent", "--fill"))
    measure(by_floor(folder, CAREFUL, "--fill"))
    made.write_text(str(images), encoding="utf-8")


def by_askance(folder: Path) -> Contender:
    """The command as a user types it."""
    words = ["run", "action-reason", "images", "--vlm", "bench", "--llm", "bench"]
    words += ["--options", "options.txt", "--json", "--replay"]
    command = [python(tool="askance"), *words]
    seen = (folder / "images", folder / ".askance")
    return Contender(name=ASKANCE, command=command, folder=folder, reads=seen, prints_to=folder / "lines.jsonl")


def by_floor(folder: Path, name: str, *more: str) -> Contender:
    """The bare script."""
    command = [python(), str(HERE / "floor.py"), str(folder), *more]
    seen = (folder / "images", folder / ("floor-as-sent" if "--as-sent" in more else "floor"))
    return Contender(name=name, command=command, folder=folder, reads=seen, prints_to=folder / "floor.jsonl")


def check(lines: Path, *, images: int) -> None:
    """Stop the program unless each picture was answered by seven replayed calls."""
    read = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    replayed = sum(int(line["meta"]["replayed"]) for line in read)
    if [line["outcome"] for line in read] != ["answered"] * images or replayed != 7 * images:
        sys.exit(f"{len(read)} lines and {replayed} replayed calls, not {images} and {7 * images}.")


if __name__ == "__main__":
    main()
