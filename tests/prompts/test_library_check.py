from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from askance.prompts import PromptLibrary, PromptProblem, library
from askance.prompts.prompt import read_prompt

from .conftest import Write

read_once = cache(partial(read_prompt, overlay=False))


@pytest.fixture(autouse=True)
def package_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's own files, which no test changes, are read and held to the rules once."""

    def read(path: Path, *, overlay: bool, **more: Any) -> Any:
        return read_prompt(path, overlay=overlay, **more) if overlay else read_once(path)

    monkeypatch.setattr(library, "read_prompt", read)


def test_nothing_is_wrong_with_the_package() -> None:
    assert PromptLibrary([]).check() == []


def test_a_problem_is_a_place_and_a_sentence() -> None:
    assert str(PromptProblem(Path("a.prompt"), 3, "This is wrong.")) == "a.prompt:3: This is wrong."


CASES = {
    "misspelt": (
        "unusal.text.prompt",
        1,
        "the package has no prompt 'unusal', so this overrides nothing; nearest is 'unusual'.",
        "error",
    ),
    "new": ("haiku.text.prompt", 1, "the package has no prompt 'haiku': this is a prompt of your own.", "note"),
    "no form": (
        "unusual.vicuna.prompt",
        1,
        "the name of a prompt file is NAME.prompt, NAME.FORM.prompt or NAME.FORM.FAMILY.prompt, FORM json or text.",
        "error",
    ),
    "another ending": (
        "unusual.text.prompt.txt",
        1,
        "this is not read: the name does not end in `.prompt`.",
        "note",
    ),
}


@pytest.mark.parametrize(("file", "line", "message", "level"), CASES.values(), ids=CASES)
def test_a_file_that_overrides_nothing_is_named(
    file: str, line: int, message: str, level: str, write: Write, overlay: Path
) -> None:
    path = write("user:\nHi\n", file=file)

    assert PromptLibrary([overlay]).check() == [
        PromptProblem(path, line, message, "note" if level == "note" else "error")
    ]


def test_other_files_in_the_folder_do_not_matter(overlay: Path) -> None:
    (overlay / "README.md").write_text("Mine.", "utf-8")
    (overlay / "unusual.text").mkdir()

    assert PromptLibrary([overlay]).check() == []


def test_all_problems_of_all_files_are_named(write: Write, overlay: Path) -> None:
    first = write("user:\n{{ a }} {{ b }}\n", file="caption.text.prompt")
    second = write("Hi\n", file="unusual.text.prompt")

    assert PromptLibrary([overlay]).check() == [
        PromptProblem(first, 8, "`a` is not declared under `inputs`."),
        PromptProblem(first, 8, "`b` is not declared under `inputs`."),
        PromptProblem(second, 7, "this stands before the first role marker (`system:`, `user:`)."),
        PromptProblem(second, 8, "there is no role block: a line `user:` and the words under it."),
    ]


def test_inputs_that_differ_from_the_packages_are_named(write: Write, overlay: Path) -> None:
    inputs = (
        "  options: {description: Options.}\n"
        "  statement: {description: A statement.}\n"
        "  mood: {description: A mood.}\n"
        "  taste: {description: A taste., optional: true}\n"
    )
    path = write(
        "user:\n{{ options }} {{ statement | fenced('x') }} {{ mood }}\n",
        file="choose_action_reason.text.prompt",
        inputs=inputs,
    )
    base = "choose_action_reason.json.prompt"

    assert PromptLibrary([overlay]).check() == [
        PromptProblem(
            path,
            2,
            f"there is no block `example:`, and {base} has one: this prompt shows no examples.",
            level="note",
        ),
        PromptProblem(
            path, 5, f"`description` is not declared, and {base} has it; where it is not used, make it optional."
        ),
        PromptProblem(
            path, 5, f"`step_by_step` is not declared, and {base} has it; where it is not used, make it optional."
        ),
        PromptProblem(path, 6, f"`options` is declared as text, and {base} has it as list."),
        PromptProblem(path, 7, f"`statement` must be given, and {base} has it as optional."),
        PromptProblem(path, 8, f"`mood` must be given, and {base} has no such input."),
    ]


def test_a_file_without_inputs_is_held_against_the_packages(write: Write, overlay: Path) -> None:
    path = write("user:\nHi\n", file="reask.text.prompt")

    assert PromptLibrary([overlay]).check() == [
        PromptProblem(
            path, 5, "`error` is not declared, and reask.json.prompt has it; where it is not used, make it optional."
        )
    ]


def test_an_input_that_must_be_given_and_is_not_used_is_named(write: Write, overlay: Path) -> None:
    path = write("user:\nHi\n", file="reask.text.prompt", inputs="  error: {description: The fault.}\n")

    assert PromptLibrary([overlay]).check() == [PromptProblem(path, 6, "`error` must be given and is not used.")]


def test_a_prompt_is_tried_with_its_examples_and_without_what_is_optional(write: Write, overlay: Path) -> None:
    inputs = "  statement: {description: A statement., optional: true, example: It is odd.}\n"
    path = write("user:\n{{ statement }}\n", file="haiku.text.prompt", inputs=inputs)

    assert PromptLibrary([overlay]).check()[1] == PromptProblem(
        path,
        5,
        f"with its examples: Prompt 'haiku' uses an input that was not given in {str(path)!r}, line 9: "
        "'statement' is undefined.",
    )


def test_a_name_that_differs_from_the_files_is_named(write: Write, overlay: Path) -> None:
    path = write("user:\nHi\n", file="unusual.text.prompt")
    path.write_text(path.read_text("utf-8").replace("name: unusual", "name: caption"), "utf-8")

    assert PromptLibrary([overlay]).check() == [
        PromptProblem(path, 2, "`name` is 'caption', and the file's name says 'unusual'.")
    ]
