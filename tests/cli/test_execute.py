"""How the work of every command that asks models is planned and done, and what Ctrl-C leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from askance.cli.columns import Report
from askance.cli.execute import execute
from askance.models.call import CallPath
from askance.workspace import Workspace
from tests.cli.command import Command, draw


@contextmanager
def told(said: list[str]) -> Generator[str]:
    said.append("begun")
    yield "half"
    said.append("closed")


def executed(*, plan: bool, stop: bool = False) -> tuple[int, list[str]]:
    """The exit code of some work, and what was called in which order."""
    said: list[str] = []

    async def do(shown: str) -> str:
        said.append(f"asked {shown}")
        if stop:
            raise KeyboardInterrupt
        return "made"

    def saying(words: Callable[[str], str], code: int) -> Callable[[str], Report]:
        return lambda value: Report(None, lambda: (), ends=lambda: said.append(words(value)) or code)

    async def planned() -> str:
        return "plan"

    def interrupted(shown: str) -> str:
        said.append(f"interrupted {shown}")
        return f"{shown} done."

    with Workspace(plan=plan) as work:
        code = execute(
            work,
            do,
            saying(lambda made: f"printed {made}", 1),
            plan=planned,
            planned=saying(lambda plan: f"printed {plan}", 7),
            progress=lambda: told(said),
            interrupted=interrupted,
        )
    return code, said


def test_a_plan_asks_nothing_and_ends_with_its_own_code() -> None:
    assert executed(plan=True) == (7, ["printed plan"])


def test_what_was_made_is_printed_after_the_progress() -> None:
    assert executed(plan=False) == (1, ["begun", "asked half", "closed", "printed made"])


def test_an_interrupt_is_told_after_the_progress(capsys: pytest.CaptureFixture[str]) -> None:
    assert executed(plan=False, stop=True) == (130, ["begun", "asked half", "closed", "interrupted half"])
    assert capsys.readouterr().err == "half done.\n"


GOES_ON = "Interrupted. The same command goes on where this one stopped"
INTERRUPTED = {
    "judge card --labels labels.csv --judge MODEL": (
        "Interrupted. The same command goes on: what is on record is not asked again.\n"
    ),
    "negatives generate true.json --llm MODEL --out hard": f"{GOES_ON}.\n",
    "negatives audit options.json --judge MODEL": f"{GOES_ON}; what is on record is not asked again.\n",
    "index search i a.png --vlm MODEL": f"{GOES_ON}; what is on record is not asked again.\n",
    "run verbalize a.png --vlm MODEL": (
        "0 of 1 images: none\n0 calls made · 0 replayed · 1 more to see what the endpoint can do · 18 tokens · "
        f"cost not known (no price is set)\n{GOES_ON}; what is on record is not asked again.\n"
    ),
    "run verbalize a.png --vlm MODEL --quiet": f"{GOES_ON}; what is on record is not asked again.\n",
}
"""By command, what it says on stderr after Ctrl-C."""


@pytest.mark.parametrize("words", INTERRUPTED)
def test_every_command_says_how_to_go_on(
    askance: Command, own_place: Path, vlm: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    draw(own_place, "a.png")
    true = {"0/10.jpg": ["I should drink tea because it is hot."]}
    options = {"0/10.jpg": [true["0/10.jpg"], [*true["0/10.jpg"], "I should shun tea because it is hot."]]}
    (own_place / "true.json").write_text(json.dumps(true), "utf-8")
    (own_place / "options.json").write_text(json.dumps(options), "utf-8")
    (own_place / "labels.csv").write_text("reference,candidate,verdict\nIt snows.,It is cold.,true\n", "utf-8")
    (own_place / "claims.csv").write_text("text\nIt is hot.\n", "utf-8")
    assert askance("index", "build", "i", "--texts", "claims.csv").code == 0
    monkeypatch.setattr(CallPath, "answer", stop)

    done = askance(*words.replace("MODEL", vlm).split())

    assert (done.code, done.out, done.err) == (130, "", INTERRUPTED[words])
