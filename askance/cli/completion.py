"""The words that a shell completes beside commands and flags: tasks, their options, grids, figures, models, prompts.

What cannot be loaded completes nothing: a shell has no place for an error. Nobody's Python file is run.
"""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

import typer

from askance.errors import AskanceError
from askance.terminal import echo

_BREAKS = ("=", ":")
"""Signs at which bash splits words."""


def task_names(incomplete: str) -> list[str]:
    """The tasks of the installed suites that fit; files complete by themselves."""
    from askance.evals.suite_registry import SUITES

    _leave_langchain_out(None)
    from askance.evals.task_catalog import tasks_of_suite

    names: list[str] = []
    for suite in SUITES.names():
        if suite.startswith(incomplete) or incomplete.startswith(f"{suite}/"):
            with suppress(AskanceError):
                names += tasks_of_suite(suite)
    return names


def task_options(context: typer.Context, incomplete: str) -> list[str | tuple[str, str]]:
    """What `-T` takes for the task of the command: `name=`; values, where the name is known and they are few."""
    task = context.params.get("task") or next(iter(context.args), None)  # these stand before an option with no value
    if not isinstance(task, str) or task.partition("@")[0].lower().endswith(".py"):
        return []
    _leave_langchain_out(task)
    from askance.evals.task_catalog import find_task

    with suppress(AskanceError):
        options = find_task(task).takes()
        name, equals, _ = incomplete.partition("=")
        fitting = [each for each in options if (each == name if equals else each.startswith(name))]
        if len(fitting) == 1 and (values := _values(options[fitting[0]])):
            return [f"{fitting[0]}={value}" for value in values]
        return [] if equals else [(f"{each}=", _first_line(options[each].description)) for each in fitting]
    return []


def _values(option: Any) -> list[str]:
    """The values that an option can have, where they are few."""
    from askance.evals.task_options import kinds_of

    values: list[str] = []
    for kind in kinds_of(option):
        values += ["true", "false"] if kind is bool else map(str, get_args(kind) if get_origin(kind) is Literal else ())
    return values


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]


def grid_names() -> list[str]:
    """The grids that ship; files complete by themselves."""
    from askance.evals.suite_registry import shipped_grids

    return [*shipped_grids()]


def figure_names(context: typer.Context) -> list[str]:
    """The figures of the runs that stand in the command."""
    from askance.evals.run_format import DESCRIPTION, read_description

    names: dict[str, None] = {}
    for place in (*map(Path, context.args), *_paths(context.params)):
        for folder in (place, *sorted(each.parent for each in place.glob(f"*/{DESCRIPTION}"))):
            with suppress(AskanceError, OSError):
                names |= dict.fromkeys(figure["metric"] for figure in read_description(folder).get("figures", ()))
    return [*names]


def _paths(values: Mapping[str, Any]) -> Iterator[Path]:
    """The paths among the values of a command."""
    for value in values.values():
        several = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else (value,)
        yield from (each for each in several if isinstance(each, Path))


def model_names() -> list[str]:
    """The models of the settings file, and the beginnings of specs."""
    from askance.models import Config
    from askance.models.spec import BACKENDS

    with suppress(AskanceError):
        bare = ("demo",)  # they take nothing behind a colon
        return [*Config.find().models, *bare, *(f"{name}:" for name in BACKENDS.names() if name not in bare)]
    return []


def prompt_names() -> list[str]:
    """The prompts in use, the user's own among them."""
    from askance.workspace import Workspace

    with suppress(AskanceError):
        return [*Workspace(mode="replay").library.names()]
    return []


def _leave_langchain_out(task: str | None) -> None:
    """Loads no LangChain with what is imported from now on, unless a task is somebody's own code: it takes longest."""
    from askance.evals.suite_registry import is_own_code
    from askance.nodes.runnable import leave_langchain_out

    if not is_own_code(task):
        leave_langchain_out()


@contextmanager
def whole_words() -> Generator[None]:
    """In bash, which splits words at `=` and `:`, completes whole words, and prints what is behind the last split."""
    given = os.environ.get("COMP_WORDS", "")
    between = "\n" if "\n" in given else " "  # bash has a line for each word
    words = given.split(between)
    if os.environ.get("COMP_CWORD") != str(len(words) - 1):  # a word holds blanks, or the cursor is not at the end
        yield
        return
    whole = _joined(words)
    os.environ |= {"COMP_WORDS": between.join(whole), "COMP_CWORD": str(len(whole) - 1)}
    known = max(whole[-1].rfind(sign) for sign in _BREAKS) + 1
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        echo("".join(line[known:] for line in printed.getvalue().splitlines(keepends=True)), end="")


def _joined(words: Collection[str]) -> list[str]:
    """The words as they were typed."""
    whole: list[str] = []
    glued = False
    for word in words:
        if whole and (glued or word in _BREAKS):
            whole[-1] += word
        else:
            whole.append(word)
        glued = word in _BREAKS
    return whole
