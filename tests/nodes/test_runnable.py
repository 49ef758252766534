"""Nodes are LangChain's Runnables, unless the process leaves LangChain out before it loads them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
{first}
from askance.nodes.runnable import leave_langchain_out
left_out = leave_langchain_out()
from askance.chains import verbalize
from askance.tools import objects
from tests.scripted import PICTURE, model_of, scripted

node = objects(model_of(scripted()))
reading = verbalize(model_of(scripted())).invoke(PICTURE)
print(left_out, "langchain_core" in sys.modules, hasattr(node, "pipe"))
print(node.get_name(), node.invoke(PICTURE), reading.outcome)
"""


def said(first: str = "", **environment: str) -> str:
    """What a process says whose first line is `first`."""
    here = str(Path(__file__).resolve().parents[2])
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(first=first)],
        env={**os.environ, "PYTHONPATH": here, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout


def test_without_langchain_nodes_and_chains_ask_as_ever() -> None:
    assert said() == "True False False\nobjects cup, bricks answered\n"


@pytest.mark.parametrize(
    ("first", "environment"),
    [
        ("import langchain_core.runnables", {}),
        ("import askance.chains", {}),
        ("", {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": "http://127.0.0.1:9"}),
    ],
    ids=["LangChain is loaded", "nodes are loaded", "tracing is asked for"],
)
def test_where_somebody_may_listen_nothing_changes(first: str, environment: dict[str, str]) -> None:
    assert said(first, **environment) == "False True True\nobjects cup, bricks answered\n"
