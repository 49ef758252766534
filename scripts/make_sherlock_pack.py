"""Run the Sherlock tasks over the demo's pictures with a real model, and put the runs into one file.

    .venv/bin/python scripts/make_sherlock_pack.py openai:MODEL@http://127.0.0.1:8000/v1 examples/sherlock.pack

The pictures are those of `askance demo`; regions, clues, inferences and ratings were written for this file. They are
laid out as the data set is, as if the pictures were of Visual Genome. The answers are those of whatever model is named.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import TYPE_CHECKING, Any

from make_example_pack import make_pack
from PIL import Image

from askance.demo import PICTURES
from askance.evals.controls import controlled
from askance.evals.sherlock import InferenceComparison, InferenceWriting, Localization, Retrieval

if TYPE_CHECKING:
    from askance.evals import Evaluation, Task
    from askance.models import Model

Row = dict[str, Any]
Edges = tuple[int, int, int, int]
"""Left, top, right and bottom."""

FOLDER = "VG_100K"
CORPUS = "sherlock_val_with_split_idxs_v1_1.json"
SURE = {"possibly": 1.0, "likely": 2.0, "definitely": 3.0}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A picture with its regions, and what is said of the first one."""

    name: str
    regions: tuple[tuple[tuple[Edges, ...], str, str, str], ...]
    """Of each its boxes, the clue, the inference, and how sure it is."""
    good: tuple[str, ...]
    """Inferences that both raters find good for the first region."""
    fair: tuple[str, ...]
    """Inferences that one rater finds good and the other okay."""


SCENES = (
    Scene(
        name="brick-cup",
        regions=(
            (((179, 20, 487, 367),), "a cup with a pattern of bricks", "this coffee is sold as strong", "likely"),
            (((357, 258, 461, 378),), "a spoon on the saucer", "the coffee was stirred", "possibly"),
            (((30, 476, 298, 537),), "a slogan in white letters", "this is an advertisement", "definitely"),
        ),
        good=(
            "a mason has something to do with this drink",
            "the cup is meant to look robust",
            "somebody drinks espresso",
        ),
        fair=("it is morning", "the cup breaks easily", "the coffee is still hot"),
    ),
    Scene(
        name="cat-cup",
        regions=(
            (((307, 96, 575, 311),), "a cat looks out of a cup", "this drink does not keep you awake", "possibly"),
            (((39, 32, 243, 118),), "the word Purr", "people in this country speak English", "definitely"),
            (((478, 353, 596, 493),), "a spoon that reflects light", "the lamp is above the table", "likely"),
        ),
        good=("the drink is said to be gentle", "two pictures were put together", "whoever made this likes cats"),
        fair=("the cat is at ease", "the cat is thirsty", "this café lets cats in"),
    ),
    Scene(
        name="coin-horse",
        regions=(
            (((99, 54, 607, 467),), "a horse made of coins", "somebody bets on races", "likely"),
            (((0, 450, 720, 600),), "grass below the horse", "the horse stands on a track", "possibly"),
            (((174, 497, 549, 583),), "a line about a habit", "the poster warns of gambling", "definitely"),
        ),
        good=("money is the point of this picture", "the horse stands for bets", "the horse is no living animal"),
        fair=("somebody lost a lot of money", "the coins are old", "a race begins soon"),
    ),
    Scene(
        name="coin-rocket-cup",
        regions=(
            (((310, 64, 528, 460),), "a rocket made of coins", "small sums add up to a big thing", "likely"),
            (((32, 46, 326, 184),), "a slogan about skipping a cup", "a bank wants people to save", "definitely"),
            (((178, 307, 630, 696),), "a red cup on a red saucer", "people spend money on coffee", "likely"),
        ),
        good=(
            "somebody saves for a journey",
            "the coins are worth more than the coffee",
            "this is an advertisement of a bank",
        ),
        fair=("the trip goes into space", "coffee is dear here", "the rocket is a toy"),
    ),
    Scene(
        name="cup-launch",
        regions=(
            (((273, 394, 500, 638),), "fire below a cup", "the cup is taking off", "definitely"),
            (((227, 155, 493, 409),), "a cup of espresso in the air", "this coffee wakes you up", "likely"),
            (
                ((80, 178, 117, 667), (598, 187, 642, 674)),
                "two rockets at the sides",
                "this is a launch site",
                "likely",
            ),
        ),
        good=("the cup is meant to be a rocket", "the engine has just been started", "it is hot there"),
        fair=("nobody stands nearby", "something has exploded", "the coffee gets spilt"),
    ),
    Scene(
        name="grass-rocket",
        regions=(
            (((197, 113, 423, 621),), "a rocket grown over with grass", "its fuel is clean", "likely"),
            (((7, 529, 133, 639), (453, 529, 599, 639)), "lamps on the ground", "it is getting dark", "likely"),
            (((94, 26, 503, 99),), "a slogan about green", "a company wants to look friendly to nature", "definitely"),
        ),
        good=("the rocket stands for nature", "someone sells green energy", "this rocket does not fly"),
        fair=("the rocket has not been used for years", "somebody has to mow it", "it rains a lot there"),
    ),
    Scene(
        name="plain-coffee",
        regions=(
            (((227, 98, 411, 216),), "coffee with cream on top", "the coffee was made a moment ago", "likely"),
            (((487, 3, 658, 430),), "a worn table of wood", "this café is an old one", "possibly"),
            (((420, 472, 632, 510),), "the name of an espresso bar", "one can drink coffee standing there", "possibly"),
        ),
        good=("it is an espresso", "a machine made this coffee", "nobody has drunk of it yet"),
        fair=("the coffee is strong", "somebody takes a break", "it is too hot to drink"),
    ),
    Scene(
        name="starry-cup",
        regions=(
            (((178, 138, 414, 282),), "the night sky in a cup", "this coffee is for those who stay up late", "likely"),
            (((525, 355, 695, 482),), "the words Deep roast", "the beans were roasted for long", "likely"),
            (((337, 302, 448, 443),), "a spoon on a dark saucer", "the picture was taken at night", "possibly"),
        ),
        good=("somebody works at night", "the sky was put into the cup", "the drink is as dark as the sky"),
        fair=("the drink keeps you awake", "an astronomer drinks coffee", "the coffee has gone cold"),
    ),
)


def image_of(scene: Scene) -> Row:
    with Image.open(PICTURES / f"{scene.name}.jpg") as picture:
        width, height = picture.size
    return {"url": f"demo/{FOLDER}/{scene.name}.jpg", "width": width, "height": height}


def forms_of(boxes: tuple[Edges, ...]) -> list[Row]:
    return [
        {"left": left, "top": top, "width": right - left, "height": bottom - top} for left, top, right, bottom in boxes
    ]


def digest(form: object) -> str:
    return md5(json.dumps(form, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def corpus() -> Iterator[Row]:
    """The rows of the corpus: all in one chunk."""
    for scene in SCENES:
        for place, (boxes, clue, inference, sure) in enumerate(scene.regions):
            inputs = {
                "image": image_of(scene),
                "bboxes": forms_of(boxes),
                "clue": clue,
                "confidence": SURE[sure],
                "obs_idx": place,
            }
            targets = {"inference": inference}
            yield {"inputs": inputs, "targets": targets, "instance_id": digest(inputs), "split_idx": 0}


def comparison() -> tuple[list[Row], Row]:
    """Ten inferences for the first region of each picture with their ratings: the pairs, and the answer key."""
    rows: list[Row] = []
    places: dict[str, Row] = {}
    annotations: list[Row] = []
    for place, scene in enumerate(SCENES):
        others = [SCENES[(place + step) % len(SCENES)].regions[step % 3][2] for step in range(1, 5)]
        rated = [
            *((text, 3, 3) for text in scene.good),
            *((text, 2 + at % 2, 3 - at % 2) for at, text in enumerate(scene.fair)),
        ]
        rated += [(text, 1, 1 + (at == 3)) for at, text in enumerate(others)]
        rated = sorted(rated, key=lambda each: digest(each[0]))
        for text, _, _ in rated:
            row = {"image": image_of(scene), "region": forms_of(scene.regions[0][0]), "inference": text}
            test_id = digest(row)
            rows.append({**row, "test_id": test_id, "extra_info": {"task": "comparison"}})
            places[test_id] = {"Input_iid": scene.name, "candidate": digest(text)}
        candidates = [{"source_iid": digest(text), "annot1": one, "annot2": two} for text, one, two in rated]
        annotations.append({"Input_iid": scene.name, "candidates": candidates})
    return rows, {"test_id_map": places, "annotations": annotations}


def lay_out(folder: Path) -> None:
    """Writes corpus, rated pairs and pictures as they are published."""
    pictures = folder / "images" / FOLDER
    pictures.mkdir(parents=True)
    for scene in SCENES:
        shutil.copy(PICTURES / f"{scene.name}.jpg", pictures)
    rows, answers = comparison()
    home = folder / "val_comparison"
    home.mkdir()
    ids = sorted(row["test_id"] for row in rows)
    files = {"instances": rows, "instance_ids": ids, "answer_key": answers}
    for name, content in files.items():
        (home / f"val_comparison_{name}.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / CORPUS).write_text(json.dumps(list(corpus())), encoding="utf-8")


def tasks(data: Path, model: Model) -> dict[str, Task | Evaluation]:
    """What is run, by the name of its folder."""
    asked = InferenceComparison(data=data, vlm=model)
    written = InferenceWriting(data=data, vlm=model, judge=model, limit=8)
    return {
        "comparison-yes-no": asked,
        "comparison-swapped": controlled(asked, "swapped-region", seed=0),
        "comparison-choice": InferenceComparison(data=data, vlm=model, by="choice", orders=2),
        "comparison-described": InferenceComparison(data=data, vlm=model, llm=model, context="region"),
        "localization-yes-no": Localization(data=data, vlm=model),
        "retrieval-random": Retrieval(data=data, solver="random"),
        "inference": written,
        "inference-swapped": controlled(written, "swapped-region", seed=0),
    }


if __name__ == "__main__":
    make_pack(sys.argv[1], sys.argv[2], lay_out, tasks, max_tokens=150)
