"""Finding tasks: those of the package by name, those of others by the file that they stand in."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from hashlib import sha256
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from askance.errors import UsageError
from askance.evals import declared
from askance.evals.tasks import Definition, defined

if TYPE_CHECKING:
    from askance.evals.run import Run

SUITES: Mapping[str, str] = {"pittads": "askance.evals.pittads.tasks", "whoops": "askance.evals.whoops.tasks"}
"""Where the packaged tasks are defined, by the first part of their names."""

PYTHON, DECLARED = frozenset({".py"}), frozenset({".yaml", ".yml"})
"""Suffixes of files that tasks stand in."""


def packaged() -> dict[str, Definition]:
    """The tasks of the package, by name; no model and no data are loaded for it."""
    for module in SUITES.values():
        import_module(module)
    return {name: definition for name, definition in defined().items() if name.partition("/")[0] in SUITES}


def find_task(name: str) -> Definition:
    """The definition of a task.

    Args:
        name: that of a packaged task, such as `pittads/mac`; a Python file, with `@NAME` behind it where it defines
            several tasks; or a YAML file.

    Raises:
        UsageError: there is no such task, or the file defines none.
    """
    file, _, which = name.partition("@")
    suffix = Path(file).suffix.lower()
    if suffix in PYTHON:
        return _in_python(Path(file), which)
    if suffix in DECLARED and not which:
        return declared.read_task(Path(file))
    if name.partition("/")[0] in SUITES:
        import_module(SUITES[name.partition("/")[0]])
    found = defined().get(name)
    if found is None:
        raise _unknown(name)
    return found


def definition_of(run: Run, task: str | None = None) -> Definition:
    """The definition of a run's task.

    Args:
        run: finished or not.
        task: where to find it, if not where the run says.

    Raises:
        UsageError: it is not there any more.
    """
    place = str(task or run.origin.get("task") or run.task)
    known = defined().get(run.task)
    if task is None and known is not None and known.origin.get("task") == run.origin.get("task"):
        return known  # it has been defined in this process already
    try:
        if task is None:
            _check_place(place, run)
        return find_task(place)
    except UsageError as error:
        declaration: Any = run.origin.get("declaration")
        if task is None and declaration is not None:
            return declared.from_form(declaration, name=run.task)
        raise UsageError(
            f"The task of the run {str(run.path)!r} is not found: {error.message}",
            hint="Say where it is: `--task FILE`." if "task" in run.origin else error.hint,
        ) from error


def _check_place(place: str, run: Run) -> None:
    """Refuses to run Python that a run's folder brings along, or that lies elsewhere: a stranger may have made it.

    Raises:
        UsageError: it does.
    """
    file = Path(place.partition("@")[0])
    if file.suffix.lower() not in PYTHON:
        return
    inside, here = file.resolve().is_relative_to(run.path.resolve()), file.resolve().is_relative_to(Path.cwd())
    if inside or not here:
        raise UsageError(
            f"{place!r} is Python that only the run names, and it is not run unasked.",
            hint="Read it, and name it yourself then: `--task FILE`.",
        )


def _in_python(path: Path, which: str) -> Definition:
    """The task that a Python file defines; the file is run, as any Python that somebody names is."""
    there = dict(_defined_in(path))
    if not there:
        raise UsageError(
            f"The file {str(path)!r} defines no task.", hint="Put `@task(name)` of `askance.evals` over a function."
        )
    if not which and len(there) == 1:
        return next(iter(there.values()))
    names = ", ".join(repr(f"{path}@{name}") for name in there)
    if not which:
        raise UsageError(f"The file {str(path)!r} defines {len(there)} tasks.", hint=f"Name one: {names}.")
    if which not in there:
        raise UsageError(f"The file {str(path)!r} defines no task {which!r}.", hint=f"It has {names}.")
    return there[which]


def _defined_in(path: Path) -> Iterator[tuple[str, Definition]]:
    contents: Mapping[str, object] = vars(_loaded(path))
    for value in contents.values():
        if isinstance(value, Definition) and Path(value.make.__code__.co_filename).resolve() == path.resolve():
            yield value.name, value


def _loaded(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"There is no file {str(path)!r}.", hint="Check the name of the task's file.")
    name = f"askance_task_{sha256(str(path.resolve()).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"The file {str(path)!r} cannot be loaded as Python.", hint="Give the file the ending `.py`.")
    module = module_from_spec(spec)
    sys.modules[name] = module  # so that its dataclasses and pickles find it
    try:
        spec.loader.exec_module(module)
    except UsageError:
        raise
    except Exception as error:
        del sys.modules[name]
        raise UsageError(
            f"The file {str(path)!r} cannot be loaded: {type(error).__name__}: {error}.", hint="Mend it."
        ) from error
    return module


def _unknown(name: str) -> UsageError:
    names = [*packaged()]
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    return UsageError(
        f"There is no task {name!r}.",
        hint=f"{'Near it' if near else 'There are'}: {', '.join(near or names)}. "
        "A task of your own is named by its file: my_task.py or my_task.yaml.",
    )
