"""Plain words of a command are read as the command line's own package reads them, and others are left to it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import typer
from typer.core import TyperCommand

from askance.cli.run import run
from askance.cli.words import PlainCommand, read_plainly


def command(kind: type[TyperCommand]) -> Any:
    app = typer.Typer(add_completion=False)
    app.command("run", cls=kind)(run)
    return typer.main.get_command(app)


def values(kind: type[TyperCommand], *words: str) -> dict[str, Any]:
    """What the command is called with."""
    return command(kind).make_context("run", [*words]).params


PLAIN = {
    "arguments": "verbalize a.jpg b.jpg",
    "flags": "action-reason ads --json --replay --no-statement",
    "options between": "action-reason --vlm openai:gpt-4o ads --options list.txt other --llm x",
    "equals": "end-to-end a.jpg --vlm=x=y --options=o.json --store=s",
    "names out of a list": "end-to-end a.jpg --choose single --mode live --protocol paper --image-policy original",
    "twice": "verbalize a.jpg --vlm a --vlm b",
}


@pytest.mark.parametrize("words", PLAIN.values(), ids=PLAIN)
def test_plain_words_give_the_same_values(words: str) -> None:
    found = read_plainly(command(TyperCommand).params, inspect.unwrap(run), words.split())

    assert found == values(TyperCommand, *words.split()) == values(PlainCommand, *words.split())
    assert found is not None
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in values(TyperCommand, *words.split()).items()
    }


OTHERS = {
    "a number": "verbalize a.jpg --count 2",
    "no image": "verbalize",
    "no such chain": "verbalise a.jpg",
    "no such option": "verbalize a.jpg --vml x",
    "no value": "verbalize a.jpg --vlm",
    "an option for a value": "verbalize a.jpg --vlm --json",
    "no such name": "verbalize a.jpg --mode life",
    "help": "verbalize a.jpg --help",
    "the end of options": "verbalize -- -a.jpg",
    "a flag with a value": "verbalize a.jpg --json=yes",
}


@pytest.mark.parametrize("words", OTHERS.values(), ids=OTHERS)
def test_other_words_are_left_to_the_package(words: str) -> None:
    assert read_plainly(command(TyperCommand).params, inspect.unwrap(run), words.split()) is None
