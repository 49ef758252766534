"""Training sets of drawn pictures, each with a colour and a shape that its texts speak of."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from PIL import Image as Pillow
from PIL import ImageDraw

from askance.images import Image
from askance.training import ChatExample, ChoiceExample, PairExample, Source, TextExample, TrainingExample, TrainingSet
from askance.training.training_set import write_training_set

COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 180, 60),
    "blue": (50, 70, 220),
    "yellow": (230, 210, 40),
    "purple": (150, 50, 180),
}
SHAPES = ("circle", "triangle", "cross")
THINGS = [(colour, shape) for colour in COLOURS for shape in SHAPES]
SIDE = 32
KindOfSet = Literal["chat", "words", "pairs", "choices", "text"]
"""`words` is a set of chats without pictures."""


def picture(colour: str, shape: str, draw: random.Random) -> Image:
    """A shape somewhere on a dark ground."""
    canvas = Pillow.new("RGB", (SIDE, SIDE), tuple(draw.randint(0, 60) for _ in range(3)))
    pen, r = ImageDraw.Draw(canvas), draw.randint(9, 13)
    x, y, ink = draw.randint(r, SIDE - r), draw.randint(r, SIDE - r), COLOURS[colour]
    match shape:
        case "circle":
            pen.ellipse((x - r, y - r, x + r, y + r), fill=ink)
        case "triangle":
            pen.polygon([(x, y - r), (x - r, y + r), (x + r, y + r)], fill=ink)
        case _:
            pen.line((x - r, y, x + r, y), fill=ink, width=5)
            pen.line((x, y - r, x, y + r), fill=ink, width=5)
    file = io.BytesIO()
    canvas.save(file, "PNG")
    return Image.from_bytes(file.getvalue(), name=f"{colour}-{shape}.png")


def examples(kind: KindOfSet, count: int, *, seed: int) -> Iterator[TrainingExample]:
    """So many examples, drawn by a seed."""
    draw = random.Random(seed)
    for number in range(count):
        yield _example(kind, draw, f"{seed}-{number}")


def _example(kind: KindOfSet, draw: random.Random, group: str) -> TrainingExample:
    thing = colour, shape = THINGS[draw.randrange(len(THINGS))]
    image = picture(colour, shape, draw)
    match kind:
        case "choices":
            names = draw.sample([other for other in THINGS if other != thing], 4)
            names.insert(label := draw.randrange(5), thing)
            texts = tuple(f"a {colour} {shape}" for colour, shape in names)
            return ChoiceExample(image=image, choices=texts, label=label, group=group)
        case "pairs":
            kind_of_text: Literal["clue", "inference"] = "clue" if draw.random() < 0.5 else "inference"
            return PairExample(image=image, text=f"a {colour} {shape}", kind=kind_of_text, group=group)
        case "text":
            return TextExample(input=f"The {shape} is {colour}.", target=f"{colour} {shape}", group=group)
        case _:
            seen = [{"type": "image"}] if kind == "chat" else []
            asked = {"type": "text", "text": "What is this?" if seen else f"What is the {colour} {shape}?"}
            return ChatExample(
                prompt=({"role": "user", "content": [*seen, asked]},),
                completion=(
                    {"role": "assistant", "content": [{"type": "text", "text": f"It is a {colour} {shape}."}]},
                ),
                images=(image,) if seen else (),
                group=group,
            )


def make_set(folder: Path, kind: KindOfSet, *, train: int = 24, validation: int = 8, seed: int = 0) -> TrainingSet:
    """A training set in a new folder; without validation where that is 0."""
    splits = {"train": list(examples(kind, train, seed=seed)), "validation": []}
    if validation:
        splits["validation"] = list(examples(kind, validation, seed=seed + 1))
    return write_training_set(folder, splits, source=Source(origin={"made": kind}))  # pyright: ignore[reportArgumentType]
