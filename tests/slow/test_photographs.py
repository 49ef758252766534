"""The chain of seven calls over eight photographs on `hf:` alone: every call counted, each picture encoded once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.slow.commands import OPTIONS, Place

pytestmark = pytest.mark.slow(group="local")

SETTINGS = """\
[models.blind]
spec = "hf:{folder}"
temperature = 0
max_tokens = 48
extra = {{ repetition_penalty = 1.3 }}
timeout = 2700
local = {{ dtype = "float32", device = "cpu", batch = 16 }}
"""
TOOLS = ("objects", "scene_text", "narration", "unusual")
CROPS = ((0, 0, 60, 60), (0, 0, 100, 100))
"""In hundredths of the width and the height."""


@pytest.fixture
def eight(models: Path, photos: Path, tmp_path: Path) -> Place:
    """A user's folder with two views of each photograph."""
    place = Place.make(tmp_path / "place", photos, SETTINGS.format(folder=models / "blind-vlm"))
    options: dict[str, list[str]] = {}
    (place.folder / "eight").mkdir()
    for name, choices in OPTIONS.items():
        with Image.open(photos / name) as photo:
            for number, box in enumerate(CROPS):
                sides = [part * (photo.width, photo.height)[place % 2] // 100 for place, part in enumerate(box)]
                view = f"{Path(name).stem}-{number}.png"
                photo.convert("RGB").crop((sides[0], sides[1], sides[2], sides[3])).save(place.folder / "eight" / view)
                options[view] = choices
    (place.folder / "eight.json").write_text(json.dumps(options), encoding="utf-8")
    return place


def test_seven_calls_over_eight_photographs(local_python: Path, eight: Place) -> None:
    words = ("run", "action-reason", "eight", "--vlm", "blind", "--options", "eight.json", "--json", "--out", "out")
    live = eight.run_by(local_python, words, {"OMP_NUM_THREADS": "1"}, seconds=2700)
    replayed = eight.run("run", *words[1:-2], "--replay")

    form: dict[str, Any] = json.loads((eight.folder / "out" / "run.json").read_text(encoding="utf-8"))
    ((name, counters),) = form["counters"].items()
    tools = [line["links"][tool] for line in live.lines for tool in TOOLS]
    asked_again = sum(len(link["calls"]) - 1 for link in tools)
    assert len(live.lines) == 8
    assert len(tools) == 32
    assert name.startswith("hf:idefics3:")
    assert counters["encodes"] == 8
    assert counters["pictures"] == 32 + asked_again
    assert counters["prefix_reused"] > counters["prefix_computed"] > 0
    # Of the model it was asked once what it can do.
    assert counters["answers"] == live.meta("calls") + 1 == len(set(live.calls)) + 1
    assert f"8 encodes for {counters['pictures']} pictures asked about" in " ".join(live.err.split())
    assert replayed.lasting == live.lasting
    assert {link["outcome"] for link in live.links} <= {"answered", "truncated", "invalid", "skipped"}
    assert [len(line["links"]) for line in live.lines] == [7] * 8
