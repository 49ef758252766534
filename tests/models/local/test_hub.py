from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.models.local.hub import LIST, Machine, how_to_bring, is_downloaded, open_model_for, open_models

GB = 10**9
CHOSEN = {
    "hardly any memory": (Machine(memory=2 * GB), "HuggingFaceTB/SmolVLM-256M-Instruct"),
    "memory": (Machine(memory=8 * GB), "HuggingFaceTB/SmolVLM-500M-Instruct"),
    "much memory is no accelerator": (Machine(memory=512 * GB), "HuggingFaceTB/SmolVLM-500M-Instruct"),
    "nothing known": (Machine(memory=0), "HuggingFaceTB/SmolVLM-256M-Instruct"),
    "a small accelerator": (Machine(memory=8 * GB, accelerator=4 * GB), "HuggingFaceTB/SmolVLM-500M-Instruct"),
    "an accelerator": (Machine(memory=8 * GB, accelerator=12 * GB), "Qwen/Qwen2-VL-2B-Instruct"),
    "a large accelerator": (Machine(memory=8 * GB, accelerator=24 * GB), "Qwen/Qwen2.5-VL-7B-Instruct"),
}


@pytest.mark.parametrize(("machine", "name"), CHOSEN.values(), ids=CHOSEN)
def test_what_a_machine_has_room_for(machine: Machine, name: str) -> None:
    assert open_model_for(machine).name == name


def test_the_list_is_dated_and_orderly() -> None:
    listed = open_models()

    assert len(json.loads(LIST.read_text(encoding="utf-8"))["as_of"]) == len("2026-11-21")
    assert [each.bytes for each in listed] == sorted(each.bytes for each in listed)
    assert {each.license for each in listed} == {"Apache-2.0"}
    assert all(each.fits(Machine(memory=1 << 50, accelerator=1 << 50)) for each in listed)
    assert all(each.bytes < each.accelerator for each in listed if each.accelerator)


def test_it_is_named_with_size_and_licence() -> None:
    assert str(open_model_for(Machine(memory=8 * GB))) == (
        "HuggingFaceTB/SmolVLM-500M-Instruct (500 million parameters, 1.0 GB, Apache-2.0)"
    )
    assert str(Machine(memory=8 * GB)) == "8 GB of memory and no accelerator"
    assert str(Machine(memory=8 * GB, accelerator=24 * GB)) == "an accelerator with 24 GB"


def test_this_machine_has_memory() -> None:
    assert Machine.here().memory > GB // 2


def test_what_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))

    assert not is_downloaded("HuggingFaceTB/SmolVLM-256M-Instruct")
    assert "`hf download a/b --local-dir FOLDER`" in how_to_bring("a/b")
