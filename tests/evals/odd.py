"""A small task of the tests: which of three texts is about the picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typing_extensions import override

from askance.chains import end_to_end
from askance.chat import Message, TextPart
from askance.evals import ChainSolver, Sample, Score, Scorer, Solver, Task, mean
from askance.images import Image, RegionView
from askance.models import Capabilities, Engine, Model, ModelLike, ScriptedModel, get_model
from askance.replay import MemoryStore
from tests.images import samples as pictures

OPTIONS = ("a cup", "a cat", "a tree")


def score(sample: Sample, value: Any) -> Score:
    return Score(values={"accuracy": float(value[:1] == [sample.target])}, notes={"chose": value})


SCORING = Scorer(
    score=score,
    metrics=(mean("accuracy"),),
    if_wrong=lambda _: Score(values={"accuracy": 0.0}),
    if_right=lambda _: Score(values={"accuracy": 1.0}),
    notes=("The first of the chosen options counts.",),
)


class Odd(Task):
    """Which of three texts is about the picture."""

    name = "tests/odd"
    data: Path
    """Folder of pictures."""
    vlm: ModelLike
    """Sees the picture."""
    count: int = 6
    """How many there are."""

    def samples(self) -> list[Sample]:
        return [
            Sample(
                id=f"{number:02}.png",
                image=Image.from_path(self.data / f"{number:02}.png"),
                inputs={"options": list(OPTIONS)},
                target=1 + number % 3,
            )
            for number in range(self.count)
        ]

    def solver(self) -> Solver:
        return ChainSolver(end_to_end(self.vlm))

    def scorer(self) -> Scorer:
        return SCORING


class Corner(Odd):
    """The same question about the upper left corner of the picture, which is cut out and highlighted."""

    name = "tests/corner"

    def solver(self) -> Solver:
        return CornerSolver(get_model(self.vlm))


class CornerSolver(Solver):
    """Shows a model two views of a picture in one request."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @property
    @override
    def models(self) -> list[Model]:
        return [self.model]

    @override
    async def answer(self, sample: Sample) -> Any:
        assert sample.image is not None
        box = (0, 0, 9, 9)
        views = (RegionView("crop", (box,), "native pixels"), RegionView("highlight", (box,), style="sherlock"))
        parts = (*(self.model.image(sample.image, view) for view in views), TextPart("Which?"))
        reply = await self.model.generate(self.model.request([Message("user", parts)]))
        return json.loads(reply.text)["answers"]


def scored_by(task: type[Task], by: Scorer) -> type[Task]:
    """A task that is `task` but for how its answers are scored."""

    class Other(task):
        def scorer(self) -> Scorer:
            return by

    return Other


def write_pictures(folder: Path, count: int = 6) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"{number:02}.png").write_bytes(pictures.encoded(pictures.photo(seed=number), "PNG"))
    return folder


def engine() -> Engine:
    return Engine(records=MemoryStore())


def chooser(chosen: int, run: Engine | None = None) -> Model:
    """A model that always chooses the same option, and says so in JSON."""
    scripted = ScriptedModel(
        lambda _: json.dumps({"answers": [chosen]}),
        identity=f"always-{chosen}",
        capabilities=Capabilities(schema="enforced", images=True),
    )
    return get_model(scripted, engine=run or engine())
