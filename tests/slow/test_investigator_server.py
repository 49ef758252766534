"""A model behind vLLM investigates, and again with the server gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slow.commands import Place
from tests.slow.conftest import Switch
from tests.slow.investigations import INVESTIGATE, checked


@pytest.mark.slow(group="servers")
@pytest.mark.xdist_group("blind")
def test_a_model_behind_vllm_investigates_and_is_replayed_with_the_server_gone(
    photos: Path, vllm_switch: Switch, tmp_path: Path
) -> None:
    settings = f'[models.blind]\nspec = "openai:blind-vlm@{vllm_switch.on().url}"\ntemperature = 0\nmax_tokens = 160\n'
    place = Place.make(tmp_path / "place", photos, settings)

    first = checked(place.run(*INVESTIGATE, "--vlm", "blind", "-o", "first"))
    vllm_switch.off()
    again = checked(place.run(*INVESTIGATE, "--vlm", "blind", "--replay"))

    assert again == first
