"""Nodes are LangChain's Runnables, unless the process leaves LangChain out before it loads them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.runnables import Runnable

from askance.nodes import runnable

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


def test_where_nodes_are_loaded_nothing_changes() -> None:
    assert said("import askance.chains.chain") == "False True True\nobjects cup, bricks answered\n"


@pytest.mark.parametrize(("loaded", "traced"), [(True, False), (False, True)], ids=["LangChain is loaded", "traced"])
def test_where_runs_may_be_traced_nothing_changes(loaded: bool, traced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runnable, "_left_out", False)
    if not loaded:
        monkeypatch.delitem(sys.modules, "langchain_core", raising=False)
    if traced:
        monkeypatch.setenv("LANGSMITH_TRACING", "true")

    assert (runnable.leave_langchain_out(), runnable.may_be_traced()) == (False, True)
    assert runnable.Runnable is Runnable


def test_where_nobody_may_listen_the_base_is_bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runnable, "_left_out", False)
    monkeypatch.delitem(sys.modules, "langchain_core", raising=False)

    assert (runnable.leave_langchain_out(), runnable.Runnable) == (True, runnable.Bare)
