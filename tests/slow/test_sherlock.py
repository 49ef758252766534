"""How plausible inferences are to a small model behind real vLLM: asked as planned, and nothing by a replay."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from askance.images import Image, RegionView
from askance.models import Engine, get_scorer
from askance.replay import MemoryStore
from tests.evals.sherlock import corpus
from tests.slow.commands import Place
from tests.slow.conftest import Switch

pytestmark = [pytest.mark.slow(group="servers"), pytest.mark.xdist_group("chains")]

SETTINGS = """\
[models.blind]
spec = "openai:blind-vlm@{url}"
temperature = 0
"""
CANDIDATES = 4
"""Inferences about a rated region of the data."""
WAYS = ("yes-no", "rating")


def evaluated(place: Place, by: str, *more: str) -> dict[str, Any]:
    """The run over one region as `--json` tells it."""
    task = ("eval", "run", "sherlock/comparison", "--data", "made", "--vlm", "blind", "-T", f"by={by}")
    done = place.run(*task, "--limit", "1", "--json", *more)
    assert done.code in {0, 1}, done.err
    assert done.out, done.err
    return done.lines[0]


async def test_log_odds_of_a_photograph_tell_inferences_apart(photos: Path, vllm_switch: Switch) -> None:
    scorer = get_scorer(f"vlm:openai:blind-vlm@{vllm_switch.on().url}?by=yes-no", engine=Engine(records=MemoryStore()))
    view = RegionView("highlight", ((100, 100, 300, 300),), style="sherlock")

    scores = await scorer.score(
        Image.load(photos / "coffee.png"), ["somebody had breakfast", "the sea is near"], view=view
    )
    await scorer.aclose()

    assert len({*scores}) == 2
    assert all(math.isfinite(score) for score in scores)


def test_inferences_are_scored_as_planned_and_replayed_without_a_request(
    tmp_path: Path, photos: Path, vllm_switch: Switch
) -> None:
    server = vllm_switch.on()
    place = Place.make(tmp_path / "place", photos, SETTINGS.format(url=server.url))
    corpus.write(place.folder / "made")

    planned = {by: evaluated(place, by, "--plan") for by in WAYS}
    runs = {by: evaluated(place, by, "--out", by) for by in WAYS}
    left = {by: evaluated(place, by, "--plan") for by in WAYS}
    served = server.requests_served
    again = {by: evaluated(place, by, "--out", f"{by}-again", "--replay") for by in WAYS}
    assert server.requests_served == served

    for by in WAYS:
        assert (planned[by]["calls"], left[by]["calls"]) == (CANDIDATES, 0)
        assert runs[by]["outcomes"] == {"answered": 1}
        assert again[by]["figures"] == runs[by]["figures"]
