"""A model behind vLLM investigates, by JSON and by tool calls; a replay asks it nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.investigator import investigator
from askance.models import Engine, get_model
from askance.nodes import Result
from askance.replay import open_records
from tests.slow.commands import Place
from tests.slow.conftest import Switch
from tests.slow.investigations import ENDED, INVESTIGATE, checked


@pytest.mark.slow(group="servers")
@pytest.mark.xdist_group("blind")
async def test_a_tool_parser_of_vllm_takes_the_calls_of_tools(
    photos: Path, vllm_switch: Switch, tmp_path: Path
) -> None:
    """So small a model fails the probe of tools, so their form is given; vLLM holds each call to its tool's schema."""
    spec, calls = f"openai:blind-vlm@{vllm_switch.on().url}", 4
    settings: dict[str, Any] = {"temperature": 0, "max_tokens": 200, "extra": {"repetition_penalty": 1.1}}

    async def investigated(engine: Engine) -> Result[Any]:
        model = get_model(spec, engine=engine, **settings)
        agent = investigator(model, model, tools=("unusual", "zoom"), calls=calls, form="tools")
        return await agent.ask(photos / "coffee.png")

    first = await investigated(Engine(records=open_records(tmp_path)))
    again = await investigated(Engine(records=open_records(tmp_path), mode="replay"))

    looks = [step for step in first.trace["steps"] if step["tool"] in {"unusual", "zoom"}]
    assert "answered" in {look["outcome"] for look in looks}
    assert first.trace["form"] == "tools"
    assert first.trace["ended"] in ENDED
    assert len(first.calls) <= calls
    assert (again.outcome, again.value, again.trace) == (first.outcome, first.value, first.trace)


@pytest.mark.slow(group="servers")
@pytest.mark.xdist_group("blind")
def test_a_model_behind_vllm_investigates_and_is_replayed_without_a_request(
    photos: Path, vllm_switch: Switch, tmp_path: Path
) -> None:
    server = vllm_switch.on()
    settings = f'[models.blind]\nspec = "openai:blind-vlm@{server.url}"\ntemperature = 0\nmax_tokens = 160\n'
    place = Place.make(tmp_path / "place", photos, settings)

    first = checked(place.run(*INVESTIGATE, "--vlm", "blind", "-o", "first"))
    served = server.requests_served
    again = checked(place.run(*INVESTIGATE, "--vlm", "blind", "--replay"))

    assert (again, server.requests_served) == (first, served)
