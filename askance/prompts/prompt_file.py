"""A prompt file as text: its name, its front matter, its role blocks, and what is wrong with it.

The text is split into roles before anything is rendered, so a value can never forge a role.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast, get_args

Form = Literal["json", "text"]
FORMS: tuple[Form, ...] = get_args(Form)
TurnRole = Literal["system", "user", "assistant"]
ROLES: tuple[TurnRole, ...] = get_args(TurnRole)

SUFFIX: Final = ".prompt"
MAX_FILE: Final = 256 * 1024
"""Largest prompt file, in bytes."""

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
FAMILY: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

_MARKER = re.compile(r"(system|user|assistant|example):\s*")
_LIKE_A_MARKER = re.compile(r"\s*((system|user|human|assistant)\s*:|<image>)\s*", re.IGNORECASE)

Level = Literal["error", "note"]


@dataclass(frozen=True, slots=True, order=True)
class PromptProblem:
    """One thing that is wrong in one line of a prompt file."""

    path: Path
    line: int
    """Counted from 1."""
    message: str
    level: Level = "error"
    """`error`: the file does not work, or overrides nothing; `note`: it works, but may not be what was meant."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class FileName:
    """The parts of the name of a prompt file: `NAME[.FORM[.FAMILY]].prompt`."""

    name: str
    form: Form | None = None
    """None: the file serves every form; only a user's own file may do so."""
    family: str | None = None

    @classmethod
    def parse(cls, file: str) -> FileName | None:
        """The parts of `file`, or None where it is no name of a prompt file."""
        name, *rest = file.removesuffix(SUFFIX).split(".")
        form, family = (*rest, None, None)[:2]
        fits = (
            file.endswith(SUFFIX)
            and NAME.fullmatch(name)
            and len(rest) <= 2
            and form in (*FORMS, None)
            and (family is None or FAMILY.fullmatch(family))
        )
        return cls(name, cast("Form | None", form), family) if fits else None

    def __str__(self) -> str:
        return ".".join(part for part in (self.name, self.form, self.family) if part) + SUFFIX


@dataclass(frozen=True, slots=True)
class RoleBlock:
    """The text under one role marker, as written."""

    role: TurnRole
    text: str
    """Without the blank lines around it."""
    line: int
    """Line of the file on which `text` begins."""
    example: bool = False
    """Whether it is the block `example:`, the assistant's turn of an example."""


@dataclass(frozen=True, slots=True)
class PromptFile:
    """The parts of a prompt file."""

    front_matter: str
    blocks: tuple[RoleBlock, ...]
    """One for each turn of a request."""
    example: RoleBlock | None = None
    """The answer of an example turn; None for a prompt that shows no examples."""


_Lines: TypeAlias = list[tuple[int, str]]


def read_text(path: Path) -> tuple[str, list[PromptProblem]]:
    """The text of `path` with newlines as line ends, or why it cannot be read."""
    try:
        if not path.is_file():
            return "", [PromptProblem(path, 1, "this is not a file.")]
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        return "", [PromptProblem(path, 1, f"the file cannot be read: {error.strerror}.")]
    if len(data) > MAX_FILE:
        return "", [PromptProblem(path, 1, f"the file is larger than {MAX_FILE // 1024} kB.")]
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n"), []
    except UnicodeDecodeError as error:
        return "", [PromptProblem(path, data.count(b"\n", 0, error.start) + 1, "the file is not UTF-8.")]


def split_prompt_file(text: str, *, path: Path) -> tuple[PromptFile | None, list[PromptProblem]]:
    """Front matter and role blocks of `text`, or what is wrong with it."""
    lines = list(enumerate(text.split("\n"), 1))
    if lines[0][1].rstrip() != "---":
        return None, [PromptProblem(path, 1, "the file does not begin with front matter: a line `---`.")]
    end = next((number for number, line in lines[1:] if line.rstrip() == "---"), None)
    if end is None:
        return None, [PromptProblem(path, 1, "the front matter has no end: a second line `---`.")]
    front_matter = "\n".join(line for _, line in lines[1 : end - 1])
    parts, problems = _split_roles(lines[end:], path)
    blocks, examples = ([block for block in parts if block.example == each] for each in (False, True))
    problems += _example_problems(parts, path) + _role_order_problems(blocks, path, len(lines))
    return PromptFile(front_matter, tuple(blocks), next(iter(examples), None)), problems


def without_example(text: str, inputs: Collection[str]) -> str:
    """The text of a prompt file without its block `example:` and the entries of `inputs`, as it stood before them.

    Args:
        text: of a file that has the block.
        inputs: that the block alone uses.
    """
    lines = text.split("\n")
    end = next(number for number, line in enumerate(lines) if number and line.rstrip() == "---")
    marker = next(number for number, line in enumerate(lines) if number > end and line.rstrip() == "example:")
    head: list[str] = []
    depth, leaving = 0, False
    for line in lines[:end]:
        indent = len(line) - len(line.lstrip())
        if head[-1:] == ["inputs:"] and not depth:
            depth = indent
        if line.strip() and indent <= depth:
            leaving = indent == depth > 0 and line.partition(":")[0].strip() in inputs
        if not leaving:
            head.append(line)
    if head[-1] == "inputs:":
        head.pop()
    return "\n".join([*head, *lines[end:marker]]).rstrip() + "\n"


def _split_roles(lines: _Lines, path: Path) -> tuple[list[RoleBlock], list[PromptProblem]]:
    problems: list[PromptProblem] = []
    parts: list[tuple[str, int, _Lines]] = []
    for number, line in lines:
        if marker := _MARKER.fullmatch(line):
            parts.append((marker[1], number, []))
        elif _LIKE_A_MARKER.fullmatch(line):
            problems.append(PromptProblem(path, number, _marker_message(line)))
        elif parts:
            parts[-1][2].append((number, line))
        elif line.strip():
            problems.append(
                PromptProblem(path, number, "this stands before the first role marker (`system:`, `user:`).")
            )
    return [_block(name, number, body) for name, number, body in parts], problems


def _block(name: str, marker: int, body: _Lines) -> RoleBlock:
    first = next((number for number, line in body if line.strip()), marker)
    text = "\n".join(line for number, line in body if number >= first).strip()
    role: TurnRole = "assistant" if name == "example" else cast("TurnRole", name)
    return RoleBlock(role, text, first, name == "example")


def _marker_message(line: str) -> str:
    return (
        f"{line.strip()!r} is no role marker: these are `system:`, `user:` and `assistant:`, lower case, "
        "at the beginning of a line. Special tokens of a model family do not belong into prompt files."
    )


def _example_problems(blocks: list[RoleBlock], path: Path) -> list[PromptProblem]:
    """What is wrong with the block `example:`: there is at most one, at the end of the file, with text in it."""
    last = len(blocks) - 1
    problems: list[PromptProblem] = []
    for place, block in enumerate(blocks):
        if not block.example:
            continue
        if place != last:
            what = "stands twice" if blocks[last].example else "stands before other blocks"
            problems.append(
                PromptProblem(path, block.line, f"`example:` {what}; there is one, at the end of the file.")
            )
        if not block.text:
            problems.append(PromptProblem(path, block.line, "the `example:` block is empty."))
    return problems


def _role_order_problems(blocks: list[RoleBlock], path: Path, last: int) -> list[PromptProblem]:
    """What is wrong with the order of the roles: an optional system, then user and assistant in turn, user last."""
    if not blocks:
        return [PromptProblem(path, last, "there is no role block: a line `user:` and the words under it.")]
    problems = [
        PromptProblem(path, block.line, f"the `{block.role}:` block is empty.") for block in blocks if not block.text
    ]
    turns = blocks[1:] if blocks[0].role == "system" else blocks
    for index, block in enumerate(turns):
        expected: TurnRole = ROLES[1 + index % 2]
        if block.role != expected:
            message = f"`{block.role}:` stands where `{expected}:` has to follow."
            return [*problems, PromptProblem(path, block.line, message)]
    if blocks[-1].role != "user":
        problems.append(PromptProblem(path, blocks[-1].line, "the last block is not `user:`."))
    return problems
