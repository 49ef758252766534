"""A folder to replay from: small pictures that are all different, options, and a store with seven answers a picture.

python workload.py FOLDER IMAGES
"""

from __future__ import annotations

import asyncio
import io
import random
import sys
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from askance.chains import action_reason
from askance.chat import ChatRequest, canonical_json
from askance.models import Engine, ScriptedModel, get_model
from askance.replay import open_records

MODEL = "bench"
SETTINGS = f"""\
[models.{MODEL}]
spec = "openai:{MODEL}@http://127.0.0.1:9/v1"  # nobody listens there
identity = "{MODEL}"
"""
SIZE = (480, 360)
OPTIONS = 18


def make(folder: Path, *, images: int) -> None:
    """Fill the empty `folder` with `images` pictures, the options, the settings and the store."""
    reasons = make_pictures(folder, images=images)
    (folder / "askance.toml").write_text(SETTINGS, encoding="utf-8")
    asyncio.run(_record(folder, reasons))


def make_pictures(folder: Path, *, images: int) -> list[str]:
    """Fill the empty `folder` with `images` pictures and the options; returns these."""
    (folder / "images").mkdir()
    for number in range(images):
        (folder / "images" / f"{number:05}.jpg").write_bytes(picture(number))
    reasons = [f"I should buy cup {n} because it lasts as long as a wall and keeps its heat." for n in range(OPTIONS)]
    (folder / "options.txt").write_text("\n".join(reasons) + "\n", encoding="utf-8")
    return reasons


def picture(number: int) -> bytes:
    """A JPEG of about 40 kB that is like no other."""
    noise = random.Random(number).randbytes(SIZE[0] * SIZE[1] * 3 // 16)
    small = Pillow.frombytes("RGB", (SIZE[0] // 4, SIZE[1] // 4), noise)
    out = io.BytesIO()
    small.resize(SIZE, Pillow.Resampling.BICUBIC).save(out, "JPEG", quality=58)
    return out.getvalue()


async def _record(folder: Path, options: list[str]) -> None:
    """Run the chain over all pictures with a scripted model, recording."""
    paths = sorted((folder / "images").iterdir())
    with open_records(folder / ".askance") as store:
        model = get_model(ScriptedModel(reply, identity=MODEL), engine=Engine(records=store))
        chain = action_reason(model)
        async for _ in chain.read_all({"image": path, "options": options} for path in paths):
            pass


def reply(request: ChatRequest) -> str:
    """An answer of the form asked for; what it says follows from the request."""
    schema = (request.response.schema if request.response else None) or {}
    properties: dict[str, Any] = schema["properties"]
    return canonical_json({name: _value(form, request.key) for name, form in properties.items()})


def _value(form: dict[str, Any], key: str) -> Any:
    seed = int(key[:8], 16)
    if "enum" in form:
        return form["enum"][0]
    if form["type"] == "integer":
        return seed % form["maximum"] + 1
    if form["type"] == "array" and form["items"]["type"] == "integer":
        return [(seed + step) % form["items"]["maximum"] + 1 for step in (0, 5, 11)]
    if form["type"] == "array":
        words = ("cup", "cat", "wall", "sky", "car")[: form.get("maxItems", 1)]
        return [f"{word} {key[place : place + 4]}" for place, word in enumerate(words)]
    return f"A cup stands on a wall before a city at dusk, and its side is laid in bricks ({key[:12]}). " * 4


if __name__ == "__main__":
    make(Path(sys.argv[1]), images=int(sys.argv[2]))
