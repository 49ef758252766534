"""A model that was trained in other prompts than those of a run is warned of, once and by name."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from askance.chains import end_to_end
from askance.chat import ChatRequest
from askance.evals import evaluate
from askance.evals.prompt_check import warn_once
from askance.evals.reading_folder import read_pictures
from askance.models import Engine, Model, ScriptedModel, get_model
from askance.models.backend import Backend
from askance.replay import MemoryStore
from tests.evals.odd import Odd, write_pictures
from tests.models.local.conftest import safetensors
from tests.scripted import ENFORCED


@pytest.fixture
def student(tmp_path: Path) -> Callable[[Mapping[str, object] | None], Model]:
    """Makes an `hf:` model whose folder says what it was trained in; in place of its weights a script answers."""
    warn_once.cache_clear()
    folder = tmp_path / "student"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(safetensors(b"1234"))

    def reply(_: ChatRequest) -> str:
        return json.dumps({"answers": [1]})

    def make(data: Mapping[str, object] | None) -> Model:
        if data is not None:
            (folder / "train.json").write_text(json.dumps({"data": data}), encoding="utf-8")
        engine = Engine(records=MemoryStore())
        settings = get_model(f"hf:{folder}", engine=engine).settings
        return Model(settings, Backend(lambda: ScriptedModel(reply, capabilities=ENFORCED)), engine)

    return make


def digests(model: Model) -> dict[str, str]:
    """Of the prompts that the task of the tests asks in."""
    (node,) = end_to_end(model).nodes
    return {prompt.path.name: prompt.digest for prompt in node.prompts_in_use}


def test_a_run_in_other_prompts_warns_once_and_names_them(
    student: Callable[[Mapping[str, object] | None], Model], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="askance")
    data = write_pictures(tmp_path / "pictures")
    model = student({"prompts": {"end_to_end_multi.json.prompt": ["0" * 64]}})

    evaluate(Odd(data=data, vlm=model, count=3), out=tmp_path / "run")
    (name,) = digests(model)

    said = f"{model.id} was trained in other prompts than {name!r}, so its answers to them may be worse."
    assert [line[: len(said)] for line in caplog.messages] == [said]
    warn_once.cache_clear()
    evaluate(Odd(data=data, vlm=model, count=3), out=tmp_path / "run")  # nothing is left to ask
    assert len(caplog.messages) == 1
    for _ in range(2):
        read_pictures(end_to_end(model), dict.fromkeys(sorted(data.glob("*.png")), ("a cup", "a cat")))
    assert [line[: len(said)] for line in caplog.messages] == [said, said]


@pytest.mark.parametrize("known", ["the same", "nothing", "no training"])
def test_nothing_is_said_where_prompts_are_equal_or_not_known(
    known: str,
    student: Callable[[Mapping[str, object] | None], Model],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, logger="askance")
    own = {name: ["0" * 64, digest] for name, digest in digests(student(None)).items()}
    model = student({"the same": {"prompts": own}, "nothing": {"digest": "1"}, "no training": None}[known])

    evaluate(Odd(data=write_pictures(tmp_path / "pictures"), vlm=model, count=3), out=tmp_path / "run")

    assert caplog.messages == []
