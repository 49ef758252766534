"""The options that chains declare, on the command line: help, completion, and what cannot be an option there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from tests.cli.command import Command
from tests.distributions import install

ENTRIES = {
    "surprise": "tests.chains.test_own_links:surprise",
    "broken": "tests.nowhere:chain",
    "failing": "failing_chain:chain",
    "taken": "tests.cli.test_chain_command:taken",
    "kept": "tests.cli.test_chain_command:kept",
    "listed": "tests.cli.test_chain_command:listed",
    "needing": "tests.cli.test_chain_command:needing",
}


def taken(vlm: Any, llm: Any = None, *, seed: Annotated[int, Field()] = 0, prompts: Any = None) -> Any: ...


def kept(vlm: Any, llm: Any = None, *, models: Annotated[int, Field()] = 0, prompts: Any = None) -> Any: ...


def listed(vlm: Any, llm: Any = None, *, words: Annotated[list[str], Field()] = [], prompts: Any = None) -> Any: ...  # noqa: B006


def needing(
    vlm: Any, llm: Any = None, *, tone: Annotated[str, Field(description="How it is told.")], prompts: Any = None
) -> Any: ...


@pytest.fixture(autouse=True)
def installed(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that brings chains."""
    there = own_place / "installed"
    install(there, "surprise", {"askance.chains": ENTRIES}, {"failing_chain": "raise ValueError('no such wiring')"})
    monkeypatch.setattr(sys, "path", [*sys.path, str(there)])


SHIPPED = {
    "verbalize": "--context <T_V|T_V-UH|V+T|IN|UH|V+T+IN|V+T+IN+UH> What the description is made of. By default T_V.",
    "action-reason": "--choose <single|multi> multi: the best options in order; single: the one best.",
    "end-to-end": "--statement / --no-statement Whether the atypicality statement stands beside the image. By default "
    "--no-statement.",
    "identify": "--context <I|caption|T_V|T_V-UH|V+T|IN|UH|V+T+IN|V+T+IN+UH>",
    "infer": "--box <list[str]> A box of the region, LEFT,TOP,RIGHT,BOTTOM, of which the last two are outside",
    "brainstorm": "How many candidate captions there are to be; a model writes them. By default 1. [x>=1]",
    "needing": "How it is told. Needed.",
}


@pytest.mark.parametrize(("chain", "option"), SHIPPED.items(), ids=SHIPPED)
def test_help_shows_the_options_of_the_chain_that_is_named(chain: str, option: str, askance: Command) -> None:
    done = askance("run", chain, "--help")

    assert (done.code, done.err) == (0, "")
    assert option in " ".join(done.out.split())
    assert "Options of the chains" not in done.out
    assert chain == "brainstorm" or "--draws" not in done.out


def test_help_without_a_chain_names_them_all_and_loads_none(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded(_: str) -> None:
        raise AssertionError("a chain was loaded")

    monkeypatch.setattr("askance.cli.chain_command.find_chain", loaded)
    listed = (
        askance("run", "--help").out.partition("askance run CHAIN --help describes them:\n")[2].partition("\n\n")[0]
    )

    assert " ".join(listed.split()).split(", ") == [*NAMES, *sorted(ENTRIES)]


REFUSED = {
    "taken": "The option 'seed' of the chain 'taken' has a name that `askance run` needs itself.",
    "kept": "The option 'models' of the chain 'kept' has a name that `askance run` needs itself.",
    "listed": "The option 'words' of the chain 'listed' can be no flag: its type is list[str].",
    "needing": "The chain 'needing' needs the option 'tone'.",
    "failing": "The chain 'failing' of the package 'surprise' cannot be loaded from 'failing_chain:chain': ValueError",
    "broken": "The chain 'broken' of the package 'surprise' cannot be loaded from 'tests.nowhere:chain'",
}


@pytest.mark.parametrize(("chain", "message"), REFUSED.items(), ids=REFUSED)
def test_options_that_cannot_be_flags_are_named(chain: str, message: str, askance: Command) -> None:
    done = askance("run", chain, "a.png", "--vlm", "demo")

    assert (done.code, done.err.startswith(f"askance: {message}")) == (2, True), done.err


NAMES = [
    *("verbalize", "atypicality", "action-reason", "end-to-end", "explain"),
    *("identify", "ask", "brainstorm", "infer", "investigate"),
]
COMPLETED = {
    "askance run ": [*NAMES, "broken", "failing", "kept", "listed", "needing", "surprise", "taken"],
    "askance run --quiet su": ["surprise"],
    "askance run verbalize --cont": ["--context"],
    "askance run surprise --sc": ["--scene"],
    "askance run verbalize --sc": [],
    "askance run surprise a.png --scene n": ["narration"],
    "askance run end-to-end --choose ": ["single", "multi"],
    "askance run broken --dra": [],
    "askance run verbalize --vlm d": ["demo"],
    "askance eval run whoops/exp": ["whoops/explain", "whoops/explain-choice"],
    "askance prompts show capt": ["caption", "caption_from_description"],
}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(("line", "words"), COMPLETED.items(), ids=COMPLETED)
def test_a_shell_completes_the_chain_and_its_options(
    line: str, words: list[str], shell: str, askance: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_ASKANCE_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(f"{line}.".split()) - 1))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")

    done = askance()

    text = done.out.removeprefix("_arguments '*: :((").removesuffix("))'\n")
    offered = [each.partition("\t")[0].partition(":")[0].strip('"\\') for each in text.splitlines()]
    assert (done.code, done.err, [each for each in offered if each not in {"", "_files"}]) == (0, "", words)
