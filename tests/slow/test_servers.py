"""The servers are what the other slow tests take them for."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from askance.models.vllm import server_process
from tests.slow import wording
from tests.slow.conftest import KEY
from tests.slow.servers import Server

pytestmark = pytest.mark.slow(group="servers")
with_pictures, of_text = (pytest.mark.xdist_group(name) for name in ("blind", "guarded"))
"""Tests go where their server runs already."""


@with_pictures
def test_vllm_still_says_what_is_on_record(vllm: Server) -> None:
    assert said_by(vllm, "vllm") == on_record("vllm")


@of_text
def test_vllm_with_text_alone_still_says_what_is_on_record(guarded: Server) -> None:
    assert said_by(guarded, "vllm, text only", key=KEY) == on_record("vllm, text only")


@of_text
def test_transformers_still_says_what_is_on_record(transformers: Server) -> None:
    assert said_by(transformers, "transformers") == on_record("transformers")


@with_pictures
def test_the_language_model_is_a_real_one(vllm: Server) -> None:
    question = {"role": "user", "content": "What is the capital of France?"}
    body = {"model": vllm.model, "messages": [question], "temperature": 0, "max_tokens": 12}
    request = urllib.request.Request(
        f"{vllm.url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as reply:
        assert "Paris" in json.load(reply)["choices"][0]["message"]["content"]


@of_text
def test_a_command_ends_with_its_starter(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    endless = f"import pathlib, time\nwhile True: pathlib.Path({str(mark)!r}).write_text('alive'); time.sleep(0.1)"
    command = [sys.executable, server_process.__file__, "run", sys.executable, "-c", endless]
    starter = f"import subprocess, time\nsubprocess.Popen({command!r}, stdin=subprocess.PIPE)\ntime.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", starter])
    wait_for(mark)
    process.kill()
    process.wait()
    time.sleep(1.5)
    mark.unlink()
    time.sleep(0.5)
    assert not mark.exists()


def said_by(server: Server, name: str, *, key: str | None = None) -> dict[str, wording.JsonObject]:
    """What `server` says to each question on record for `name`, without numbers."""
    questions = wording.record()[name]
    return {
        question: wording.without_numbers(wording.ask(server.url, server.model, question, key=key))
        for question in questions
    }


def on_record(name: str) -> dict[str, wording.JsonObject]:
    return {question: wording.without_numbers(said) for question, said in wording.record()[name].items()}


def wait_for(path: Path, *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert path.exists()
