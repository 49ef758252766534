from __future__ import annotations

import pytest

from askance.chat import ModelId
from askance.models.settings import ModelSettings, family_of, family_of_name


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("llava-hf/llava-1.5-13b-hf", "vicuna"),
        ("liuhaotian/LLaVA-v1.6-vicuna-7b", "vicuna"),
        ("lmsys/vicuna-13b-v1.5", "vicuna"),
        ("llava-v1.6-mistral-7b", None),
        ("llava-onevision-qwen2-7b", None),
        ("Salesforce/instructblip-vicuna-7b", "blip"),
        ("Salesforce/blip2-flan-t5-xl", "blip"),
        ("minigpt-4-vicuna-13b", "minigpt-4"),
        ("gpt-4o", None),
    ],
)
def test_the_name_tells_the_family(model: str, family: str | None) -> None:
    assert family_of_name(model) == family


def test_what_is_set_by_hand_wins() -> None:
    assert family_of(ModelSettings(id=ModelId("openai", "llava-1.5-7b"), family="plain")) == "plain"
