from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from askance.prompts import Input
from askance.prompts.frontmatter import SCHEMA, FrontMatter, line_of, read_front_matter

TEXT = """name: mine
summary: Asks.
output: text
inputs:
  word:
    description: A word.
    untrusted: true
  count:
    description: How many.
    type: number
    default: 3
  words: {description: Some., type: list, example: [a, b]}
"""


def faults(text: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in read_front_matter(text, path=Path("p"), validate=True)[1]]


def test_front_matter_is_read() -> None:
    head, problems = read_front_matter(TEXT, path=Path("p"), validate=True)

    assert problems == []
    assert head == FrontMatter(
        name="mine",
        summary="Asks.",
        output="text",
        source="",
        images=0,
        inputs={
            "word": Input(name="word", description="A word.", untrusted=True),
            "count": Input(name="count", description="How many.", kind="number", optional=True, default=3),
            "words": Input(name="words", description="Some.", kind="list", example=("a", "b")),
        },
    )


def test_the_schema_is_a_schema() -> None:
    schema: Any = json.loads(SCHEMA.read_text("utf-8"))

    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ([], 2),
        (["output"], 4),
        (["inputs", "count", "type"], 11),
        (["inputs", "nothing"], 5),
        (["inputs", "words"], 13),
    ],
)
def test_every_entry_has_a_line(keys: list[str | int], line: int) -> None:
    assert line_of(TEXT, keys) == line


MINE = "name: mine\nsummary: Asks.\noutput: text\n"

BROKEN = {
    "no mapping": ("- a", [(2, "`front matter`: ['a'] is not of type 'object'.")]),
    "empty": ("", [(2, "`front matter`: None is not of type 'object'.")]),
    "missing": ("name: mine\noutput: text", [(2, "`front matter`: 'summary' is a required property.")]),
    "unknown": (
        MINE + "colour: red",
        [(2, "`front matter`: Additional properties are not allowed ('colour' was unexpected).")],
    ),
    "many at once": (
        "name: 3\nsummary: Asks.\noutput: text\nimages: 2",
        [(2, "`name`: 3 is not of type 'string'."), (5, "`images`: 2 is not one of [0, 1].")],
    ),
    "no description": (
        MINE + "inputs:\n  a: {type: list}",
        [(6, "`inputs.a`: 'description' is a required property.")],
    ),
    "default of another type": (
        MINE + "inputs:\n  a:\n    description: A.\n    type: number\n    default: three",
        [(9, "`inputs.a.default`: 'three' is not of type 'integer'.")],
    ),
    "example of another type": (
        MINE + "inputs:\n  a:\n    description: A.\n    example: 3",
        [(8, "`inputs.a.example`: 3 is not of type 'string'.")],
    ),
    "twice": (MINE + "inputs:\n  a: {description: A.}\n  a: {description: B.}", [(7, "`a` stands twice.")]),
    "no YAML": ("name: [a", [(3, "{rest}")]),
    "tag": ("name: !!python/object/apply:os.system [ls]", [(2, "{rest}")]),
    "alias": ("name: &a mine\nsummary: *a", [(3, "aliases (`*name`) are not taken.")]),
    "two documents": (MINE + "--- \nname: other", [(5, "{rest}")]),
}


@pytest.mark.parametrize(("text", "expected"), BROKEN.values(), ids=BROKEN)
def test_broken_front_matter_is_named_with_its_lines(text: str, expected: list[tuple[int, str]]) -> None:
    found = faults(text)

    assert [line for line, _ in found] == [line for line, _ in expected]
    assert [message for _, message in found] == [message for _, message in expected] or expected[0][1] == "{rest}"


def test_an_input_that_no_template_could_name_is_refused() -> None:
    assert [line for line, _ in faults(MINE + "inputs:\n  loop: {description: A.}\n")] == [5]
    assert [line for line, _ in faults(MINE + "inputs:\n  Two-Words: {description: A.}\n")] == [5]


def test_a_bomb_of_aliases_is_refused_unread() -> None:
    bomb = "a: &a [x]\n" + "".join(
        f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )

    assert faults(bomb) == [(3, "aliases (`*name`) are not taken.")]


def test_front_matter_too_deep_is_named() -> None:
    """A thousand levels or more are refused by the parser of YAML itself, in its own words."""
    assert faults("name: " + "[" * 500) == [(2, "lists and maps are nested more than 8 deep.")]
    [(line, message)] = faults("name: " + "[" * 100_000)
    assert (line, "nest" in message) == (2, True)
