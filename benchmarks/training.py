"""Steps a second of `askance train lora`, beside a script of TRL and PEFT alone (`stock_lora.py`) on the same set.

    python benchmarks/training.py MODEL [--examples 24] [--batch 2] [--runs 3]

MODEL is a folder of a text model of transformers. The set is made first: chats of some hundred tokens. Both programs
train one epoch on the processor, on one core, in turn, each in a process of its own. A step's time is that between two
ends of steps, so neither the start nor the first step counts. Needs `pip install 'askance[train]'`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
from pathlib import Path

from measuring import Contender, measure, python

from askance.training import ChatExample, Source, write_training_set

ASKANCE, STOCK = "askance train lora", "TRL and PEFT alone"
WORDS = (
    "a",
    "cup",
    "of",
    "bricks",
    "stands",
    "in",
    "the",
    "street",
    "horse",
    "coin",
    "feather",
    "tonight",
    "tea",
    "red",
)


def main() -> None:
    """Make the set, measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--examples", type=int, default=24)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_training_set(folder / "set", {"train": chats(given.examples)}, source=Source(origin={"from": "words"}))
        contenders = [
            by_stock(folder, given.model.resolve(), given.batch),
            by_askance(folder, given.model, given.batch),
        ]
        steps: dict[str, list[float]] = {contender.name: [] for contender in contenders}
        whole: dict[str, list[float]] = {contender.name: [] for contender in contenders}
        for turn in range(given.runs):
            for contender in contenders[:: 1 if turn % 2 else -1]:
                whole[contender.name].append(measure(contender).cpu)
                steps[contender.name].append(seconds_a_step(contender))
    print(f"{given.examples} chats, {given.examples // given.batch} steps, {given.runs} runs of each\n")
    print(
        "| | seconds a step, median (least – most) | steps a second, ratio | CPU of all, seconds |\n|---|---|---|---|"
    )
    for name, seconds in steps.items():
        ratio = statistics.median(steps[STOCK]) / statistics.median(seconds)
        shown = f"{statistics.median(seconds):.2f} ({min(seconds):.2f} – {max(seconds):.2f})"
        print(f"| {name} | {shown} | {ratio:.2f} | {statistics.median(whole[name]):.0f} |")


def chats(count: int) -> list[ChatExample]:
    """So many chats of words that mean nothing, all different."""
    draw = random.Random(0)

    def turn(role: str, words: int) -> dict[str, object]:
        return {"role": role, "content": [{"type": "text", "text": " ".join(draw.choices(WORDS, k=words))}]}

    return [
        ChatExample(
            prompt=(turn("system", 20), turn("user", draw.randint(60, 120))), completion=(turn("assistant", 30),)
        )
        for _ in range(count)
    ]


def by_askance(folder: Path, model: Path, batch: int) -> Contender:
    """The command as a user types it, with the values of the script."""
    out = folder / "askance"
    words = ["train", "lora", "set", "--base", f"hf:{model}", "-o", str(out), "--device", "cpu"]
    words += ["--epochs", "1", "--batch", str(batch), "-R", "patience=null"]
    command = [python(tool="askance"), *words]
    return Contender(name=ASKANCE, command=command, folder=folder, clears=out, reads=[model])


def by_stock(folder: Path, model: Path, batch: int) -> Contender:
    """The bare script."""
    out = folder / "stock"
    script = Path(__file__).resolve().parent / "stock_lora.py"
    command = [python(), str(script), "set", str(model), str(out), str(batch)]
    return Contender(name=STOCK, command=command, folder=folder, clears=out, reads=[model])


def seconds_a_step(contender: Contender) -> float:
    """Of the last run, the first step left out."""
    out = contender.clears or contender.folder
    if contender.name == STOCK:
        ends = json.loads((out / "steps.json").read_text(encoding="utf-8"))
    else:
        lines = map(json.loads, (out / "log.jsonl").read_text(encoding="utf-8").splitlines())
        ends = [line["seconds"] for line in lines if "loss" in line]
    return (ends[-1] - ends[0]) / (len(ends) - 1)


if __name__ == "__main__":
    main()
