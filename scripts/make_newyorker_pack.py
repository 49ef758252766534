"""Run the New Yorker tasks over the demo's pictures with a real model, and put the runs into one file.

    .venv/bin/python scripts/make_newyorker_pack.py openai:MODEL@http://127.0.0.1:8000/v1 examples/newyorker.pack

The pictures are those of `askance demo`, and no cartoons; their descriptions, captions and explanations were written
for this file. They are laid out as the data set is, in one fold. The answers are those of whatever model is named.
"""

from __future__ import annotations

import json
import shutil
import sys
from hashlib import md5
from pathlib import Path
from typing import TYPE_CHECKING, Any

from make_example_pack import make_pack

from askance.demo import PICTURES
from askance.evals.controls import controlled
from askance.evals.newyorker import CartoonMatching, CartoonRanking, JokeExplanation

if TYPE_CHECKING:
    from askance.evals import Evaluation, Task
    from askance.models import Model

Row = dict[str, Any]

CARTOONS: dict[str, tuple[str, ...]] = {
    "brick-cup": (
        "a table of wood",
        "A cup of espresso stands on a saucer, with a spoon beside it.",
        "The cup is built of bricks and mortar.",
        "Brick, Espresso",
        "It is our strongest roast. It is load-bearing.",
        "This is a nice cup of coffee.",
        "Coffee is called strong; a cup of bricks is strong as a wall is, which bears loads.",
    ),
    "grass-rocket": (
        "a launch pad",
        "A rocket stands on its pad, ready to start.",
        "The rocket is grown over with grass.",
        "Rocket, Lawn",
        "We have a window of two hours, and then somebody must mow it.",
        "Here is a rocket that is green.",
        "A launch window is a stretch of time; a rocket of grass has to be mown before it grows too long to fly.",
    ),
    "coin-horse": (
        "a meadow",
        "A horse stands on a meadow and looks at us.",
        "The horse is made of coins.",
        "Horse, Coin",
        "I told you never to bet on him. Now you can bet with him.",
        "Look at this animal over there.",
        "People bet money on horses; this horse is money itself.",
    ),
    "starry-cup": (
        "a dark table",
        "A cup of coffee stands on a saucer.",
        "In the place of coffee there is the sky at night.",
        "Galaxy, Coffee",
        "He takes it black, with two billion lumps.",
        "Somebody would like a drink.",
        "Coffee is taken black with lumps of sugar; the night sky is black, and its lumps are stars.",
    ),
    "cat-cup": (
        "a table",
        "A cup with a handle stands on a saucer.",
        "The cup has the fur of a cat.",
        "Cat, Mug",
        "Do not put it in the dishwasher. It will sulk for days.",
        "Cats are pets and cups are cups.",
        "Cups go into the dishwasher; a cup that is a cat hates water, and sulks.",
    ),
    "cup-launch": (
        "a launch site by the sea",
        "Smoke and fire come from below as something rises into the sky.",
        "A cup of coffee takes off in the place of a rocket.",
        "Rocket launch, Coffee",
        "Houston, we have a break.",
        "It is flying very high today.",
        "A play on the words of Apollo 13, we have a problem: with coffee one has a coffee break.",
    ),
    "coin-rocket-cup": (
        "a kitchen table",
        "A cup and a rocket stand side by side.",
        "All of it is stamped out of coins.",
        "Coin, Rocket",
        "The change is out of this world.",
        "There are many round things in this picture.",
        "Change means coins as well as a difference; a rocket leaves this world.",
    ),
    "plain-coffee": (
        "a cafe",
        "A cup of coffee stands on a saucer.",
        "Nothing is unusual, which is unusual enough here.",
        "Coffee",
        "And what would this one like to be when it grows up?",
        "Coffee is a drink made of beans.",
        "All other cups became something else, so one asks a plain cup, as one asks a child, what it wants to be.",
    ),
}
"""By picture: place, description, what is unusual, entities, a good caption, an okay one, why the good one is funny."""
NAMES = tuple(CARTOONS)
GOOD, OKAY, WHY = 4, 5, 6


def rows(task: str) -> list[Row]:
    """The items of a task; each good caption is right once and wrong four times."""
    found: list[Row] = []
    for place, (name, said) in enumerate(CARTOONS.items()):
        row: Row = {
            "contest_number": place + 1,
            **dict(zip(("image_location", "image_description", "image_uncanny_description"), said, strict=False)),
            "entities": [f"https://en.wikipedia.org/wiki/{each.replace(' ', '_')}" for each in said[3].split(", ")],
            "questions": [],
            "n_tokens_label": 1,
        }
        if task == "matching":
            others = [CARTOONS[NAMES[(place + step) % len(NAMES)]][GOOD] for step in range(1, 5)]
            right = place % 5
            row |= {"caption_choices": [*others[:right], said[GOOD], *others[right:]], "label": "ABCDE"[right]}
        elif task == "ranking":
            pair = [said[GOOD], said[OKAY]]
            row |= {"caption_choices": pair[:: 1 if place % 2 else -1], "label": "BA"[place % 2]}
            row["winner_source"] = "official_winner"
        else:
            row |= {"caption_choices": said[GOOD], "label": said[WHY], "n_tokens_label": len(said[WHY].split())}
        found.append({**row, "instance_id": md5(f"{task} {name}".encode(), usedforsecurity=False).hexdigest()})
    return found


def lay_out(folder: Path) -> None:
    """Writes the items as the loader's archives hold them, unpacked, and the pictures beside."""
    pictures = folder / "all_contest_images"
    pictures.mkdir(parents=True)
    for place, name in enumerate(NAMES, start=1):
        shutil.copy(PICTURES / f"{name}.jpg", pictures / f"{place}.jpeg")
    for task in ("matching", "ranking", "explanation"):
        (folder / task).mkdir()
        text = "\n".join(map(json.dumps, rows(task)))
        (folder / task / "test.jsonl").write_text(f"{text}\n", encoding="utf-8")


def tasks(data: Path, model: Model) -> dict[str, Task | Evaluation]:
    """What is run, by the name of its folder."""
    looking = CartoonMatching(data=data, vlm=model, fold=0)
    return {
        "matching-image": looking,
        "matching-swapped": controlled(looking, "swapped-image", seed=0),
        "matching-description": CartoonMatching(data=data, llm=model, context="description", fold=0),
        "matching-caption-only": CartoonMatching(data=data, llm=model, context="caption-only", fold=0),
        "ranking-description": CartoonRanking(data=data, llm=model, context="description", fold=0, orders=2),
        "explanation-description": JokeExplanation(data=data, llm=model, context="description", fold=0),
    }


if __name__ == "__main__":
    make_pack(sys.argv[1], sys.argv[2], lay_out, tasks, max_tokens=150)
