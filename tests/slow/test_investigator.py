"""Investigations by real small weights: SmolLM2 in the process by one JSON object a turn, and a model behind vLLM.

What they find is of no interest, but that every investigation ends in a named outcome within its budget, and says the
same in a replay without the weights or the server.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.chat import OUTCOMES
from tests.slow.commands import Place, Ran
from tests.slow.conftest import Switch

CALLS = 4
PHOTOGRAPHS = ("coffee.png", "chelsea.png")
RUN = (
    *("run", "investigate", *(f"photos/{name}" for name in PHOTOGRAPHS), "--goal", "explain"),
    *("--calls", str(CALLS), "--tools", "ask,zoom,unusual", "--json"),
)
ENDED = {*OUTCOMES, "answered", "forced", "budget", "unreadable", "recursion"}


def checked(ran: Ran) -> list[dict[str, Any]]:
    """The lines of investigations, each of which ends as it may."""
    assert ran.code in {0, 1}, ran.err
    assert len(ran.lines) == len(PHOTOGRAPHS), ran.err
    for line in ran.lines:
        trace = line["links"]["reply"]["trace"]
        assert line["outcome"] in OUTCOMES
        assert trace["ended"] in ENDED
        assert 1 <= len(line["links"]["reply"]["calls"]) <= CALLS
        assert sum(len(step.get("calls", ())) for step in trace["steps"]) <= CALLS
    return ran.lasting


@pytest.mark.slow(group="local")
def test_smollm2_in_the_process_investigates_by_json(
    photos: Path, models: Path, local_python: Path, tmp_path: Path
) -> None:
    common = 'temperature = 0\nmax_tokens = 300\nlocal = { device = "cpu" }'
    settings = "\n".join(
        f'[models.{name}]\nspec = "hf:{models / folder}"\n{common}'
        for name, folder in (("eye", "blind-vlm"), ("mind", "smollm2-135m"))
    )
    place = Place.make(tmp_path / "place", photos, settings)
    command = (*RUN, "--vlm", "eye", "--llm", "mind")

    first = checked(place.run_by(local_python, command, {"OMP_NUM_THREADS": "1"}))
    again = checked(place.run(*command, "--replay"))

    assert again == first
    assert {line["links"]["reply"]["trace"]["form"] for line in first} == {"json"}


@pytest.mark.slow(group="servers")
@pytest.mark.xdist_group("blind")
def test_a_model_behind_vllm_investigates_and_is_replayed_with_the_server_gone(
    photos: Path, vllm_switch: Switch, tmp_path: Path
) -> None:
    settings = f'[models.blind]\nspec = "openai:blind-vlm@{vllm_switch.on().url}"\ntemperature = 0\nmax_tokens = 160\n'
    place = Place.make(tmp_path / "place", photos, settings)

    first = checked(place.run(*RUN, "--vlm", "blind", "-o", "first"))
    vllm_switch.off()
    again = checked(place.run(*RUN, "--vlm", "blind", "--replay"))

    assert again == first
