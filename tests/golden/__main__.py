"""Writes the golden files anew: all of them, or those that are named.

    .venv/bin/python -m tests.golden [prompts.json …]

What is in `files/project` is written by hand. Commit what changes by itself, with a line in CHANGELOG.md that says what
users lose.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.evals.pittads.test_grid import figures_of, grid_runner
from tests.golden import commands, keys, state, tasks
from tests.golden.comparison import DIGESTS, FILES, digests, text_of
from tests.golden.task_worlds import WORLDS


def grid_figures() -> str:
    """The figures of the whole grid, over a made-up data set."""
    return text_of(figures_of(asyncio.run(grid_runner(Path.cwd()).run())))


TEXTS: Mapping[str, Callable[[], str]] = {
    "prompts.json": lambda: text_of(keys.of_prompts()),
    "settings.json": lambda: text_of(keys.of_settings()),
    "records.json": lambda: text_of(keys.of_records()),
    "help.txt": commands.help_text,
    "demo.jsonl": commands.demo_lines,
    "printed.json": lambda: text_of(state.printed()),
    "grid.json": grid_figures,
}
"""By file, what writes it."""


def write_tasks() -> None:
    """Writes what each packaged task is with each set of its options."""
    for suite, make in WORLDS.items():
        with TemporaryDirectory() as place:
            world = make(Path(place))
            for name in tasks.CASES:
                if name.startswith(f"{suite}/"):
                    (FILES / tasks.file_of(name)).write_text(tasks.outcomes(name, world), encoding="utf-8")


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
    several = {"state": write_state, "tasks": write_tasks}
    unknown = {*names} - {*TEXTS, *several}
    if unknown:
        sys.exit(f"No golden file is called {min(unknown)!r}. There are {', '.join([*several, *TEXTS])}.")
    for name, make in {**several, **TEXTS}.items():
        if names and name not in names:
            continue
        with TemporaryDirectory() as place, chdir(place):
            text = make()
        if text is not None:
            (FILES / name).write_text(text, encoding="utf-8")
    DIGESTS.write_text(digests(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
