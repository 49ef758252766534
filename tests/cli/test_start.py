"""What the command loads: a replay does without LangChain, and without the client of any provider."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import Command, finish, start
from tests.evals.report.runs import plain_run

CHAIN = ("run", "action-reason")
HEAVY = {"PIL", "diskcache", "genai_prices", "httpx2", "langchain_core", "langsmith", "openai", "torch"}
UNASKED = {f"askance.{name}" for name in ("chains.batch_passes", "chains.planner", "models.batch", "replay.cassette")}
"""Modules of which a replay into no folder asks nothing."""


def loaded(*arguments: str) -> set[str]:
    """Packages and modules that `askance` loads as a process of its own, which must end well."""
    done = finish(start(*arguments))
    named = [line.rpartition("|")[2].strip() for line in done.err.splitlines() if line.startswith("import time:")]
    assert (done.code, "askance.cli.main" in named) == (0, True)
    return {*named, *(name.partition(".")[0] for name in named)}


def test_a_replay_loads_neither_langchain_nor_a_client(
    monkeypatch: pytest.MonkeyPatch, askance: Command, vlm: str, ads: list[str], options: str
) -> None:
    run = (*CHAIN, *ads, "--vlm", vlm, "--options", options, "--json")
    assert askance(*run).code == 0
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")

    assert loaded(*run, "--replay") & {*HEAVY, *UNASKED} == set()


@pytest.mark.parametrize("form", [("--json",), ()], ids=["lines", "cards"])
def test_the_demo_loads_neither(monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")

    assert loaded("demo", *form) & HEAVY == set()


@pytest.mark.parametrize("words", [("report", "--out", "page.html"), ("eval", "table")], ids=" ".join)
def test_what_is_made_of_runs_does_without_langchain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    run = plain_run(tmp_path / "run")
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")

    assert "langchain_core" not in loaded(*words, str(run.path))


def test_with_and_without_langchain_the_lines_are_the_same(
    askance: Command, vlm: str, ads: list[str], options: str
) -> None:
    run = (*CHAIN, *ads, "--vlm", vlm, "--options", options, "--json")
    made = askance(*run)

    replayed = finish(start(*run, "--replay"))

    assert (replayed.code, replayed.stable) == (0, made.stable)


LISTED = """
import asyncio, sys
from askance.chat import ChatRequest, ChatResponse, Message, ModelId, TextPart, Usage
from askance.models import Engine, get_model
from askance.replay import MemoryStore, Record

store, told = MemoryStore(), []
model = get_model("openai:gpt-4o", engine=Engine(mode="replay", records=store, observers=[told.append]))
request = ChatRequest(model=ModelId("openai", "gpt-4o"), messages=(Message("user", (TextPart("What?"),)),))
answer = ChatResponse(text="red", usage=Usage(input=1_000_000, output=0))
store.put(Record.make("chat", request.canonical(), answer.canonical()))
asyncio.run(model.generate(request))
print([event.phase for event in told], "genai_prices" in sys.modules)
print(model.cost(answer.usage), "genai_prices" in sys.modules)
"""


def test_a_replay_of_a_model_with_a_list_price_loads_no_price_list() -> None:
    done = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True, check=False)

    assert (done.stderr, done.stdout) == ("", "['replayed'] False\n2.5 True\n")
