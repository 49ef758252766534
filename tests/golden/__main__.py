"""Writes the golden files anew: all of them, or those that are named.

    .venv/bin/python -m tests.golden [prompts.json tasks/whoops-vqa.json …]

What is in `files/project` is written by hand. Commit what changes by itself, with a line in CHANGELOG.md that says what
users lose.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.evals.pittads.test_grid import figures_of, grid_runner
from tests.golden import commands, keys, state, tasks
from tests.golden.comparison import DIGESTS, FILES, digests, text_of
from tests.golden.task_worlds import WORLDS


def grid_figures() -> str:
    """The figures of the whole grid, over a made-up data set."""
    return text_of(figures_of(asyncio.run(grid_runner(Path.cwd()).run())))


def of_task(task: str) -> str:
    """What a packaged task is with each set of its options."""
    return tasks.outcomes(task, WORLDS[task.partition("/")[0]](Path.cwd()))


TEXTS: Mapping[str, Callable[[], str]] = {
    "prompts.json": lambda: text_of(keys.of_prompts()),
    "settings.json": lambda: text_of(keys.of_settings()),
    "records.json": lambda: text_of(keys.of_records()),
    "help.txt": commands.help_text,
    "demo.jsonl": commands.demo_lines,
    "printed.json": lambda: text_of(state.printed()),
    "grid.json": grid_figures,
}
"""By file, what it holds."""

TASKS: Mapping[str, Callable[[], str]] = {tasks.file_of(name): partial(of_task, name) for name in tasks.CASES}
"""The same of the packaged tasks."""


def write_state() -> None:
    """Writes what users have on their disks."""
    state.write()
    for name in state.STATE:
        source, target = Path(name), FILES / name
        if source.is_file():
            shutil.copyfile(source, target)
            continue
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=state.LEFT_OUT, copy_function=shutil.copyfile)


def main(names: list[str]) -> None:
    """Writes the files of these names, `state` for what is on the disk, `tasks` for tasks, and the digests of all."""
    files = {**TEXTS, **TASKS}
    unknown = {*names} - {"state", "tasks", *files}
    if unknown:
        sys.exit(f"No golden file is called {min(unknown)!r}. There are {', '.join(['state', 'tasks', *files])}.")
    if not names or "state" in names:
        with TemporaryDirectory() as place, chdir(place):
            write_state()
    for name, make in files.items():
        if not names or name in names or ("tasks" in names and name in TASKS):
            with TemporaryDirectory() as place, chdir(place):
                (FILES / name).write_text(make(), encoding="utf-8")
    DIGESTS.write_text(digests(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
