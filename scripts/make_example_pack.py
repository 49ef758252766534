"""Run the ads benchmark over the demo's pictures with a real model, and put the runs into one file.

    .venv/bin/python scripts/make_example_pack.py openai:MODEL@http://127.0.0.1:8000/v1 examples/demo.pack

The pictures, options and true statements are those of `askance demo`, laid out as the data set is; the answers are
those of whatever model is named, and each is kept as it came.
"""

from __future__ import annotations

import asyncio
import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from askance.demo import FOLDER, TABLE
from askance.evals import Evaluation, Run, Task, aevaluate
from askance.evals.analysis.pack import write_pack
from askance.evals.controls import controlled
from askance.evals.pittads import ArrBaseline, ArrMulti, Mac
from askance.evals.run_tables import task_tables
from askance.models import Engine, Model, get_model
from askance.replay import MemoryStore

if TYPE_CHECKING:
    from askance.atypicality import Relation

LayOut: TypeAlias = Callable[[Path], None]
MakeTasks: TypeAlias = Callable[[Path, Model], Mapping[str, Task | Evaluation]]

SETTINGS: Mapping[str, Any] = {"max_tokens": 250, "extra": {"repetition_penalty": 1.3}}
"""Of the model of this example."""

CATEGORIES: Mapping[Relation, str] = {"TR1": "1", "TR2": "2", "OIO": "3", "OR": "8"}
"""How the data set numbers the relations."""
HEADER = ("image_url", "category", "first_explaination", "second_explanation", "bounding_box")


def lay_out(folder: Path) -> None:
    """Writes the demo as the data set is: images, statements with options, annotations."""
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["pictures"]
    keys = {row["name"]: f"{number % 10}/{number}.jpg" for number, row in enumerate(rows, start=1)}
    for row in rows:
        place = folder / "train_images" / keys[row["name"]]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((FOLDER / row["file"]).read_bytes())
    statements = {keys[row["name"]]: _statements(row) for row in rows}
    (folder / "train").mkdir()
    qa = folder / "train" / "QA_Combined_Action_Reason_train.json"
    qa.write_text(json.dumps(statements), encoding="utf-8")
    with (folder / "final_csv.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEADER, *(line for row in rows for line in _annotations(row, keys[row["name"]]))])


def _statements(row: Mapping[str, Any]) -> list[list[str]]:
    return [[text for kind, text in row["options"] if kind == "right"], [text for _, text in row["options"]]]


def _annotations(row: Mapping[str, Any], key: str) -> Iterator[tuple[str, ...]]:
    for true in row["truth"]:
        yield key, CATEGORIES[true["relation"]], true["primary"], true["secondary"], "[]"
    if not row["truth"]:
        yield key, "Regular_Object", "", "", "[]"


def tasks(data: Path, model: Model) -> dict[str, Task | Evaluation]:
    """What is run, by the name of its folder."""
    chain = ArrMulti(data=data, vlm=model, context="T_V+s_IN")
    looking = ArrMulti(data=data, vlm=model, context="I")
    labels = Mac(data=data, vlm=model, context="I")
    return {
        "arr-multi-chain": chain,
        "arr-multi-image": looking,
        "arr-multi-swapped": controlled(looking, "swapped-image", seed=0),
        "arr-multi-blind": ArrMulti(data=data, llm=model, context="text-only"),
        "mac-image": labels,
        "mac-swapped": controlled(labels, "swapped-image", seed=0),
        "arr-random": ArrBaseline(data=data, baseline="random"),
    }


async def run_all(spec: str, data: Path, out: Path, tasks: MakeTasks, **settings: Any) -> list[Run]:
    """The runs, one after the other."""
    engine = Engine(records=MemoryStore())
    model = get_model(spec, engine=engine, identity="smollm2-135m-blind", temperature=0, **settings)
    return [await aevaluate(task, out=out / name, engine=engine) for name, task in tasks(data, model).items()]


def make_pack(spec: str, target: str, lay_out: LayOut, tasks: MakeTasks, **settings: Any) -> None:
    """Runs tasks over data that are laid out for them, writes the runs into one file, and prints their tables.

    Args:
        spec: of the model.
        target: the file to write.
        lay_out: writes the data into a folder.
        tasks: gives the tasks, from that folder and the model, by the names of their run folders.
        settings: of the model, beside its temperature of 0.
    """
    with TemporaryDirectory() as place:
        folder = Path(place)
        lay_out(folder / "data")
        runs = asyncio.run(run_all(spec, folder / "data", folder / "runs", tasks, **settings))
        made = write_pack(runs, Path(target))
        for name, text in task_tables(runs).items():
            if name.endswith(".md"):
                print(text)
        print(f"{made.path}: manifest {made.digest}")


if __name__ == "__main__":
    make_pack(sys.argv[1], sys.argv[2], lay_out, tasks, **SETTINGS)
