"""Finding the class of a task: in a suite by its name, or in a user's own Python or YAML file."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.errors import ConfigError, UsageError, boundary
from askance.evals.suite_registry import SUITES
from askance.evals.task import Task, defined
from askance.evals.yaml_task import YamlTask, read_task, task_from_form
from askance.python_file import load_file

if TYPE_CHECKING:
    from askance.evals.run import Run

_log = logging.getLogger("askance")

PYTHON, YAML = frozenset({".py"}), frozenset({".yaml", ".yml"})
"""Suffixes of files with tasks."""


def packaged() -> dict[str, type[Task]]:
    """The tasks of all installed suites, by name; no model and no data are loaded.

    A suite that cannot be loaded is left out, and a warning says why.
    """
    tasks: dict[str, type[Task]] = {}
    for suite in SUITES.names():
        try:
            tasks |= tasks_of_suite(suite)
        except UsageError as error:
            _log.warning("%s", error)
    return tasks


@cache
def tasks_of_suite(suite: str) -> Mapping[str, type[Task]]:
    """The tasks of a suite, by name: the public names of its module whose task name begins with the suite's.

    Raises:
        UsageError: it cannot be loaded.
    """
    module = SUITES.load(suite)

    def unloadable(words: str) -> UsageError:
        hint = "Mend its package, or uninstall it."
        return UsageError(f"The tasks of the suite {suite!r} ({module.__name__}) cannot be loaded: {words}.", hint=hint)

    with boundary(unloadable, passes=()):  # names of a lazy module are loaded as they are asked for
        names: list[str] = getattr(module, "__all__", [*vars(module)])
        tasks = _tasks_among({name: getattr(module, name) for name in names})
    return {name: task for name, task in sorted(tasks.items()) if name.startswith(f"{suite}/")}


def find_task(name: str, *, named_by: str = "") -> type[Task]:
    """The class of a task, which makes the task: `find_task("pittads/mac")(data=…, vlm=…)`.

    Args:
        name: name of a suite's task, such as `pittads/mac`; or a Python file, followed by `@NAME` if it has several
            tasks; or a YAML file.
        named_by: what says so, such as `the run 'runs/a'`; empty where the user does. Python that the user does not
            name needs consent.

    Raises:
        UsageError: there is no such task, or the file has none.
        ConfigError: the user does not agree to run the Python file.
    """
    file, _, which = name.partition("@")
    suffix = Path(file).suffix.lower()
    if suffix in PYTHON:
        return _in_python(Path(file), which, named_by)
    if suffix in YAML and not which:
        return read_task(Path(file))
    suite = name.partition("/")[0]
    task = tasks_of_suite(suite).get(name) if suite in SUITES else defined().get(name)
    if task is None:
        raise _unknown(name)
    return task


def task_of(run: Run, task: str | None = None) -> type[Task]:
    """The class of a run's task.

    Args:
        run: finished or not.
        task: name or file of the task, if it is not where the run says.

    Raises:
        UsageError: the task is not found, or the run has none.
        ConfigError: only the run names it, it is in a Python file, and the user does not agree to run that.
    """
    if run.of_pictures:
        raise UsageError(
            f"The run {str(run.path)!r} is of pictures that nobody scores: it has no task.",
            hint="`askance report`, `compare`, `export` and `watch` take it; `askance eval run` runs a task.",
        )
    place = str(task or run.origin.get("task") or run.task)
    known = defined().get(run.task)
    if task is None and known is not None and known.origin() == run.origin and not issubclass(known, YamlTask):
        return known  # this process has loaded it already
    try:
        return find_task(place, named_by="" if task else f"the run {str(run.path)!r}")
    except ConfigError:
        raise  # nobody has agreed to run it
    except UsageError as error:
        declaration: Any = run.origin.get("declaration")
        if task is None and declaration is not None:
            return task_from_form(declaration, name=run.task)
        raise UsageError(
            f"The task of the run {str(run.path)!r} is not found: {error.message}",
            hint="Say where it is: `--task FILE`." if "task" in run.origin else error.hint,
        ) from error


def _in_python(path: Path, which: str, named_by: str) -> type[Task]:
    """The task in a Python file; the file is executed."""
    module = load_file(path, named_by=named_by)
    tasks = {name: task for name, task in _tasks_among(vars(module)).items() if task.__module__ == module.__name__}
    if not tasks:
        raise UsageError(
            f"The file {str(path)!r} has no task.", hint="Write a class of `askance.evals.Task` that has a `name`."
        )
    taken = next((name for name in tasks if name.partition("/")[0] in SUITES), None)
    if taken is not None:
        raise UsageError(
            f"The task {taken!r} of the file {str(path)!r} has a name of a suite's.", hint="Give it another name."
        )
    if not which and len(tasks) == 1:
        return next(iter(tasks.values()))
    names = ", ".join(repr(f"{path}@{name}") for name in tasks)
    if not which:
        raise UsageError(f"The file {str(path)!r} has {len(tasks)} tasks.", hint=f"Name one: {names}.")
    if which not in tasks:
        raise UsageError(f"The file {str(path)!r} has no task {which!r}.", hint=f"It has {names}.")
    return tasks[which]


def _tasks_among(contents: Mapping[str, object]) -> dict[str, type[Task]]:
    tasks = (value for value in contents.values() if isinstance(value, type) and issubclass(value, Task))
    return {task.name: task for task in tasks if task.name}


def _unknown(name: str) -> UsageError:
    names = [*packaged()]
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    return UsageError(
        f"There is no task {name!r}.",
        hint=f"{'Near it' if near else 'There are'}: {', '.join(near or names)}. "
        "A task of your own is named by its file: my_task.py or my_task.yaml.",
    )
