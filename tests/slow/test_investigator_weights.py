"""SmolLM2's real weights, in the process, investigate by one JSON object a turn, and again without the weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slow.commands import Place
from tests.slow.investigations import INVESTIGATE, checked


@pytest.mark.slow(group="local")
def test_smollm2_in_the_process_investigates_by_json(
    photos: Path, models: Path, local_python: Path, tmp_path: Path
) -> None:
    common = 'temperature = 0\nmax_tokens = 200\nlocal = { device = "cpu" }'
    settings = "\n".join(
        f'[models.{name}]\nspec = "hf:{models / folder}"\n{common}'
        for name, folder in (("eye", "blind-vlm"), ("mind", "smollm2-135m"))
    )
    place = Place.make(tmp_path / "place", photos, settings)
    command = (*INVESTIGATE, "--vlm", "eye", "--llm", "mind")

    first = checked(place.run_by(local_python, command, {"OMP_NUM_THREADS": "1"}))
    again = checked(place.run(*command, "--replay"))

    assert again == first
    assert {line["links"]["reply"]["trace"]["form"] for line in first} == {"json"}
