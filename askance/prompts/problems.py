"""What is wrong with a prompt file: a place and a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from askance.errors import PromptError

Level = Literal["error", "note"]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong in one line of a prompt file."""

    path: Path
    line: int
    """Counted from 1."""
    message: str
    level: Level = "error"
    """`error`: the file, or what it was meant for, does not work; `note`: it works, and may not be what was meant."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def broken(path: Path, problems: Iterable[Problem], *, overlay: bool) -> PromptError:
    """The error that names every problem of one file, and the way out."""
    faults = "; ".join(f"line {problem.line}: {problem.message.removesuffix('.')}" for problem in sorted(problems))
    mend = "Mend it (`askance prompts check` names all that is wrong in all files)"
    way_out = f"{mend}, or remove it: the package's own prompt is then used." if overlay else "Install askance again."
    return PromptError(f"Prompt file {str(path)!r} cannot be used: {faults}.", hint=way_out)
