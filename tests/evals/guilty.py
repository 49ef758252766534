"""A task whose model lies in one link of the chain, so that it is known which link is to blame."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from askance.chains import action_reason
from askance.chat import ChatRequest, ImagePart
from askance.evals import ChainSolver, Run, Sample, Scorer, Task, evaluate
from askance.evals.yaml_scorer import scorer_of
from askance.images import Image
from askance.models import Model, ModelLike, ScriptedModel
from askance.replay import Records
from tests.evals.odd import write_pictures
from tests.scripted import ENFORCED, model_of, name_of

LIE = "LIE"
OPTIONS = ["I should drink tea", "I should sleep"]
PROMPTS = {
    "objects": "objects",
    "scene_text": "scene_text",
    "narration": "narration",
    "unusual": "unusual",
    "description": "combine",
    "statement": "detect_statement",
    "answers": "choose_action_reasons",
}
"""By link, the name of what is asked for it."""


def truth(number: str) -> Mapping[str, Any]:
    """What an honest model says of the picture of that number, by link."""
    return {
        "objects": ["cup", f"brick {number}"],
        "scene_text": [f"BUY {number}"],
        "narration": f"A cup of {number}.",
        "unusual": f"Bricks in {number}.",
        "description": f"A cup of bricks in {number}.",
        "statement": {"relation": "TR1", "primary": "cup", "secondary": f"brick {number}"},
    }


class Guilty(Task):
    """Which of two texts is about the picture."""

    name = "tests/guilty"
    data: Path
    vlm: ModelLike
    count: int = Field(default=4, exclude=True)

    def samples(self) -> list[Sample]:
        return [
            Sample(
                id=f"{number:02}",
                image=Image.from_path(self.data / f"{number:02}.png"),
                inputs={"options": OPTIONS},
                target=[1],
                tags=truth(f"{number:02}"),
            )
            for number in range(self.count)
        ]

    def solver(self) -> ChainSolver:
        return ChainSolver(action_reason(self.vlm, mode="single"))

    def scorer(self) -> Scorer:
        return scorer_of("choice", labels=(), count=1)


def liar(
    folder: Path,
    link: str | None,
    *,
    of: Collection[str] = ("00", "01", "02", "03"),
    asked: list[str] | None = None,
    records: Records | None = None,
    script: type[ScriptedModel] = ScriptedModel,
) -> Model:
    """A model that lies in `link` about the pictures `of`; a lie is passed on, and who believes one chooses wrong."""
    numbers = {Image.from_path(path).sha256: path.stem for path in folder.glob("*.png")}

    def reply(request: ChatRequest) -> str:
        name, part = name_of(request), request.messages[-1]
        shown = [numbers[each.shown.image.sha256] for each in part.parts if isinstance(each, ImagePart)]
        found = [*shown, *re.findall(r"\b0\d\b", part.text)]
        lies = link is not None and name == PROMPTS[link] and found[0] in of
        if asked is not None:
            asked.append(name)
        return json.dumps(said(name, found[0], part.text, lies=lies))

    return model_of(script(reply, capabilities=ENFORCED, identity=f"liar in {link} of {sorted(of)}"), records)


def said(name: str, number: str, text: str, *, lies: bool) -> dict[str, Any]:
    """What is answered to the question of that name."""
    believed = lies or LIE in text
    honest, lie = truth(number), f" {LIE}" if believed else ""
    match name:
        case "objects":
            return {"objects": [*honest["objects"], *([LIE] if lies else [])]}
        case "scene_text":
            return {"lines": [f"{honest['scene_text'][0]}{lie}"]}
        case "narration" | "combine":
            return {"description": f"{honest['narration' if name == 'narration' else 'description']}{lie}"}
        case "unusual":
            return {"unusual": f"{honest['unusual']}{lie}"}
        case "detect_statement":
            return {"statement": 2 if believed else 1}
        case _:
            return {"answers": [2 if believed or wrong_statement(text) else 1]}


def wrong_statement(text: str) -> bool:
    """Whether the second of the statements that could be detected is told."""
    return "appears to be composed of" in text


def run_of(folder: Path, link: str | None, *, out: str, **model: Any) -> Run:
    pictures = write_pictures(folder, count=4)
    return evaluate(Guilty(data=pictures, vlm=liar(pictures, link, **model)), out=out)
