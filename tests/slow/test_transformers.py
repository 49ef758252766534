"""The command against `transformers serve`, which takes a JSON schema and does as it likes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.chat import OUTCOMES
from tests.slow.commands import Place
from tests.slow.servers import Server

pytestmark = [pytest.mark.slow(group="servers"), pytest.mark.xdist_group("guarded")]

SETTINGS = """\
[models.blind]
spec = "openai:blind-vlm@{url}"
temperature = 0
max_tokens = 40
"""
PHOTOS = ["photos/coffee.png", "photos/rocket.jpg"]
END_TO_END = ("run", "end-to-end", *PHOTOS, "--vlm", "blind", "--options", "options.json", "--json")


@pytest.fixture(scope="module")
def place(transformers: Server, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A user's folder beside the server."""
    folder = tmp_path_factory.mktemp("transformers") / "work"
    return Place.make(folder, photos, SETTINGS.format(url=transformers.url))


def test_the_schema_is_found_to_be_ignored(place: Place, transformers: Server) -> None:
    found = json.loads(place.run("models", "check", "blind", "--json").out)
    assert found.pop("at")
    assert found == {
        "model": f"openai:blind-vlm@{transformers.url}",
        "schema": "ignored",
        "json_object": False,
        "images": True,
        "seed": True,
        "logprobs": False,
        "tools": False,
        "boxes": "none",
        "served_model": "blind-vlm@main",
        "asks_by": "prompted",
        "asked_now": True,
    }


def test_prose_is_no_answer_and_replays_with_the_server_stopped(place: Place, transformers: Server) -> None:
    live = place.run(*END_TO_END)
    transformers.stop()
    replayed = place.run(*END_TO_END, "--replay")
    assert [line["image"] for line in live.lines] == PHOTOS
    assert {link["rung"] for link in live.links} == {"prompted"}
    assert {line["outcome"] for line in live.lines} <= set(OUTCOMES) - {"failed", "skipped"}
    assert replayed.lasting == live.lasting
    assert (replayed.meta("calls"), replayed.meta("replayed")) == (0, len(live.calls))


def test_a_server_that_is_down_is_said_to_be(place: Place, transformers: Server) -> None:
    transformers.stop()
    ran = place.run("run", "verbalize", "photos/coffee.png", "--vlm", f"openai:other@{transformers.url}")
    assert (ran.code, ran.out) == (3, "")
    assert "Traceback" not in ran.err
    assert transformers.url in ran.err
