"""Runs whose files somebody spoilt: every command says so in one message, with file and place, and the way out."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command, Workplace
from tests.evals.guilty import run_of

COMMANDS: dict[str, list[str]] = {
    "report": ["report", "odd"],
    "compare": ["compare", "good", "odd"],
    "compare with": ["compare", "odd", "good", "--html", "pair.html"],
    "watch": ["watch", "odd", "--once"],
    "export": ["export", "odd", "--to", "csv"],
    "log": ["export", "odd", "--to", "inspect"],
    "score": ["eval", "score", "odd"],
    "reread": ["eval", "score", "odd", "--reread"],
    "blame": ["blame", "odd", "--replay", "--vlm", "openai:gpt-4o"],
}
"""What reads all of a run. A table and a pack read its description alone."""
OF_DESCRIPTION = {**COMMANDS, "table": ["eval", "table", "odd", "good"], "pack": ["pack", "odd"]}


@pytest.fixture(scope="module")
def made(workplace: Workplace) -> Workplace:
    with workplace.entered() as work:
        run_of(work / "pictures", None, out="good")
        run_of(work / "pictures", "narration", of=["01"], out="odd")
    return workplace


@pytest.fixture(autouse=True)
def runs(made: Workplace, own_place: Path) -> None:
    made.copy_to(own_place)


def each_of(commands: Collection[str], spoilt: Collection[str]) -> list[tuple[str, str]]:
    """Every command with one of the spoilt files, in turn, and the first of them with every one."""
    first, names = next(iter(commands)), [*spoilt]
    turns = [(command, names[place % len(names)]) for place, command in enumerate(commands)]
    return list(dict.fromkeys([*turns, *((first, name) for name in names)]))


def written(text: str) -> None:
    Path("odd/run.json").write_text(text, encoding="utf-8")


def described(**changes: Any) -> None:
    written(json.dumps({**json.loads(Path("odd/run.json").read_text(encoding="utf-8")), **changes}))


def configured(**changes: Any) -> None:
    form = json.loads(Path("odd/run.json").read_text(encoding="utf-8"))
    described(configuration={**form["configuration"], **changes})


def second(**changes: Any) -> None:
    """Changes entries of the second sample's line."""
    file = Path("odd/samples.jsonl")
    first, line, *more = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([first, json.dumps({**json.loads(line), **changes}), *more, ""]), encoding="utf-8")


def sampled(**changes: Any) -> None:
    """Changes what the second line says of its sample."""
    line = json.loads(Path("odd/samples.jsonl").read_text(encoding="utf-8").splitlines()[1])
    second(sample={**line["sample"], **changes})


DESCRIPTIONS: dict[str, tuple[Callable[[], object], str]] = {
    "no JSON": (lambda: written("{"), "'odd/run.json' describes no run: it is no JSON ("),
    "a list": (lambda: written("[]"), "'odd/run.json' describes no run: it is not a JSON object.\n"),
    "bottomless": (
        lambda: written("[" * 90_000),
        "'odd/run.json' describes no run: it is nested deeper than 100 levels.\n",
    ),
    "older": (lambda: described(format=0), "The run 'odd' has the format 0, of an older version, and this is askance"),
    "types": (
        lambda: described(totals=[1]),
        "'odd/run.json' describes no run: totals is [1], not a valid dictionary.\n",
    ),
    "missing": (
        lambda: described(configuration={"task": "tests/guilty"}),
        "'odd/run.json' describes no run: configuration.options is missing.\n",
    ),
    "huge": (lambda: described(left=10**40), "'odd/run.json' describes no run: it holds 100000000000000000…, a number"),
}


@pytest.mark.parametrize(("command", "spoilt"), each_of(OF_DESCRIPTION, DESCRIPTIONS))
def test_a_spoilt_description_is_told(command: str, spoilt: str, askance: Command) -> None:
    spoil, message = DESCRIPTIONS[spoilt]
    spoil()

    done = askance(*OF_DESCRIPTION[command])

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"askance: {message}")
    assert done.err.count("\n  → ") == 1


LINES: dict[str, tuple[dict[str, Any], str]] = {
    "epoch": ({"epoch": None}, "epoch is null, not a valid integer"),
    "links": ({"links": {"narration": {"outcome": "answered", "calls": "k"}}}, 'links.narration.calls is "k", not a '),
    "spent": ({"meta": {"tokens": {"input": "many"}}}, 'meta.tokens.input is "many", not a valid integer'),
}


@pytest.mark.parametrize(("command", "spoilt"), each_of(COMMANDS, LINES))
def test_a_spoilt_line_is_told(command: str, spoilt: str, askance: Command) -> None:
    changes, wrong = LINES[spoilt]
    second(**changes)

    done = askance(*COMMANDS[command])

    assert done.code == 2
    assert f"askance: Line 2 of 'odd/samples.jsonl' is no line of a run: {wrong}" in done.err
    assert done.err.count("\n  → ") == 1


OF_THE_TASK: dict[str, tuple[Callable[[], object], list[str], str]] = {
    "a statement": (
        lambda: second(trace={"statement": {"relation": "TR1"}}),
        COMMANDS["blame"],
        "The links of the sample '01' cannot be read: {'relation': 'TR1'} cannot stand for the link 'statement'.",
    ),
    "a target": (
        lambda: (sampled(target=1), described(left=1), configured(samples={"count": 5, "digest": ""})),
        COMMANDS["score"],
        "The scoring of the sample '01' raised TypeError: ",
    ),
    "no model": (
        lambda: configured(models={}),
        COMMANDS["reread"],
        "Nothing says which `vlm` to take.\n  → ",
    ),
}


@pytest.mark.parametrize(("spoil", "command", "message"), OF_THE_TASK.values(), ids=OF_THE_TASK)
def test_what_a_task_cannot_take_is_told(
    spoil: Callable[[], object], command: list[str], message: str, askance: Command
) -> None:
    spoil()

    done = askance(*command)

    assert done.code == 2
    assert f"askance: {message}" in done.err


def test_pictures_that_moved_are_told_and_the_page_is_made(askance: Command) -> None:
    Path("elsewhere").mkdir()

    done = askance("report", "odd", "--images", "elsewhere")

    assert (done.code, done.out.splitlines()[1]) == (0, "0 pictures; pictures not found, or not readable: 4.")


def test_a_run_without_samples_becomes_a_page_that_says_so(askance: Command) -> None:
    Path("odd/samples.jsonl").write_text("", encoding="utf-8")
    described(finished="", figures=[])

    done = askance("report", "odd")

    assert done.code == 0
    assert "Not finished: there are no figures yet." in Path("report.html").read_text(encoding="utf-8")
