"""The examples run as their first lines say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scripted import PICTURE
from tests.servers import FakeEndpoint

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture
def endpoint_url() -> Iterator[str]:
    with FakeEndpoint() as endpoint:
        yield endpoint.url


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_backend_of_ones_own_answers() -> None:
    assert run("own_backend.py", str(PICTURE)) == "A dark picture.\n"


def test_nodes_and_chains_are_wired_with_langchain(endpoint_url: str) -> None:
    printed = run("ask_for_more.py", f"openai:any@{endpoint_url}", str(PICTURE))

    assert printed.strip()
