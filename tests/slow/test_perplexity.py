"""Perplexity of references by the command, with real weights behind real vLLM, whom a replay asks nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evals.newyorker import cartoons
from tests.slow.commands import Place
from tests.slow.conftest import Switch

pytestmark = [pytest.mark.slow(group="servers"), pytest.mark.xdist_group("chains")]

SETTINGS = """\
[models.blind]
spec = "openai:blind-vlm@{url}"
temperature = 0
max_tokens = 40
extra = {{ repetition_penalty = 1.3 }}
"""
TASK = ("eval", "run", "newyorker/explanation", "--data", "made", "--llm", "blind", "--context", "description")
RUN = (*TASK, "-T", "perplexity=true", "--limit", "3", "--json")


def evaluated(place: Place, *more: str) -> dict[str, Any]:
    """The run as `--json` tells it."""
    done = place.run(*RUN, *more)
    assert done.code in {0, 1}, done.err
    assert done.out, done.err
    return done.lines[0]


def samples(place: Place, out: str) -> list[dict[str, Any]]:
    """The samples of a run, without what is volatile."""
    lines = (place.folder / out / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    return sorted(({**json.loads(line), "meta": None} for line in lines), key=lambda line: str(line["id"]))


def test_references_are_weighed_as_planned_and_replayed_without_a_request(
    tmp_path: Path, photos: Path, vllm_switch: Switch
) -> None:
    server = vllm_switch.on()
    place = Place.make(tmp_path / "place", photos, SETTINGS.format(url=server.url))
    cartoons.lines(place.folder / "made")
    assert place.run("models", "check", "blind").code == 0

    planned = evaluated(place, "--plan")
    run = evaluated(place, "--out", "live")
    left = evaluated(place, "--plan")
    served = server.requests_served
    again = evaluated(place, "--out", "again", "--replay")

    assert {link: line["known"] for link, line in planned["links"].items()} == {"reply": 3, "likelihood": 3}
    assert (left["calls"], server.requests_served) == (0, served)
    weighed = [line["links"]["likelihood"] for line in samples(place, "live")]
    assert {link["outcome"] for link in weighed} == {"answered"}
    assert all(link["value"]["nll"] > 0 < link["value"]["tokens"] for link in weighed)
    figure = {each["metric"]: each for each in run["figures"]}["perplexity by own tokens"]
    assert figure["samples"] == run["outcomes"].get("answered", 0) > 0
    assert figure["value"] > 1
    assert again["figures"] == run["figures"]
    assert samples(place, "again") == samples(place, "live")
