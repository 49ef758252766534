from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.errors import ConfigError
from askance.models.config import settings_from
from askance.models.local.adapter_folder import find_adapter
from askance.models.local.folder import digest_of, find_folder, identity_of
from askance.models.settings import Local
from tests.models.local.conftest import MakeFolder, safetensors

LORA: dict[str, Any] = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"], "bias": "none"}


def adapter(folder: Path, *, weights: bytes = b"abcd", base: str | None = None, **changes: Any) -> Path:
    """A folder as PEFT writes it, made by hand."""
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({**LORA, **changes}), encoding="utf-8")
    (folder / "adapter_model.safetensors").write_bytes(safetensors(weights))
    if base is not None:
        (folder / "train.json").write_text(json.dumps({"base": {"digest": base}}), encoding="utf-8")
    return folder


def test_the_adapter_has_a_part_in_the_identity(make_folder: MakeFolder, tmp_path: Path) -> None:
    base = find_folder(str(make_folder()), Local())
    first, second = adapter(tmp_path / "a"), adapter(tmp_path / "b", weights=b"wxyz")

    identities = [identity_of(base, Local(adapter=each)) for each in (None, str(first), str(second))]

    assert len(set(identities)) == 3
    assert all(each.startswith("hf:llama:") and each.endswith(":bfloat16") for each in identities)


def test_what_the_base_was_called_has_no_part_in_it(tmp_path: Path) -> None:
    here = adapter(tmp_path / "a", base_model_name_or_path="/home/me/llama", inference_mode=True)
    there = adapter(tmp_path / "b", base_model_name_or_path="meta/llama")

    assert find_adapter(str(here)).digest == find_adapter(str(there)).digest
    assert find_adapter(str(here)).digest != find_adapter(str(adapter(tmp_path / "c", r=8))).digest


def test_an_adapter_of_another_base_is_refused(make_folder: MakeFolder, tmp_path: Path) -> None:
    base, other = make_folder("base"), make_folder("other", weights=b"5678")
    digest = digest_of(find_folder(str(base), Local()), Local())
    made = adapter(tmp_path / "adapter", base=digest)

    assert identity_of(find_folder(str(base), Local()), Local(adapter=str(made)))
    with pytest.raises(ConfigError, match="was trained on another base") as caught:
        settings_from({"spec": f"hf:{other}?adapter={made}"}, where="it")

    assert digest[:12] in caught.value.message


def test_a_spec_names_an_adapter(make_folder: MakeFolder, tmp_path: Path) -> None:
    base, made = make_folder(), adapter(tmp_path / "adapter")

    settings = settings_from({"spec": f"hf:{base}?adapter={made}&temperature=0", "local": {"batch": 2}}, where="it")

    assert settings.local == Local(adapter=str(made), batch=2)
    assert settings.sampling.temperature == 0
    plain = settings_from({"spec": f"hf:{base}"}, where="it")
    assert settings.id.name != plain.id.name


@pytest.mark.parametrize("spec", ["openai:gpt-4o?adapter=folder", "hf:folder?adapter="])
def test_other_models_have_no_adapter_and_it_has_a_name(spec: str) -> None:
    with pytest.raises(ConfigError, match="'adapter'"):
        settings_from({"spec": spec}, where="it")


def test_train_json_changes_no_identity(make_folder: MakeFolder) -> None:
    folder = make_folder()
    before = identity_of(find_folder(str(folder), Local()), Local())

    (folder / "train.json").write_text("{}", encoding="utf-8")

    assert identity_of(find_folder(str(folder), Local()), Local()) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"peft_type": "PREFIX_TUNING"}, "is 'PREFIX_TUNING', and no LoRA"),
        ({"missing": "adapter_model.safetensors"}, "has no weights"),
        ({"pickled": True}, "is pickled, which can run any code"),
        ({"missing": "adapter_config.json"}, "There is no adapter in"),
        ({"text": '{"peft_type": "LO'}, "its adapter_config.json cannot be read"),
        ({"text": " " * 10_000_001}, "its adapter_config.json cannot be read"),
    ],
)
def test_what_is_no_adapter_is_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    changes = {name: value for name, value in change.items() if name == "peft_type"}
    folder = adapter(tmp_path / "adapter", **changes)
    if change.get("pickled"):
        (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    if "text" in change:
        (folder / "adapter_config.json").write_text(change["text"], encoding="utf-8")
    if "missing" in change:
        (folder / change["missing"]).unlink()

    with pytest.raises(ConfigError, match=message):
        find_adapter(str(folder))


def test_only_what_describes_matrices_is_read(tmp_path: Path) -> None:
    hostile = adapter(tmp_path / "a", megatron_core="os", megatron_config={}, auto_mapping={"parent_library": "os"})

    assert find_adapter(str(hostile)).shape == {name: LORA[name] for name in LORA if name != "peft_type"}


def test_an_adapter_is_no_model_of_its_own(tmp_path: Path) -> None:
    made = adapter(tmp_path / "adapter")

    with pytest.raises(ConfigError, match="holds an adapter, which is a part of a model") as caught:
        find_folder(str(made), Local())

    assert f"hf:BASE?adapter={made}" in (caught.value.hint or "")
