"""Suites of tasks that installed packages bring, each by an entry point; nothing of them is loaded to find them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from askance.errors import UsageError

GROUP = "askance.suites"
"""Of entry points: the name of a suite, which its tasks begin with, and the module that has them."""


@cache
def suites() -> Mapping[str, EntryPoint]:
    """The suites that are installed, by the first part of their tasks' names.

    Raises:
        UsageError: two packages bring suites of one name.
    """
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise UsageError(
                f"Two packages bring a suite {entry.name!r}: {other.value} and {entry.value}.",
                hint="Uninstall one of the two.",
            )
    return dict(sorted(found.items()))


def package_of(module: str) -> str:
    """The package that a module is of."""
    return module.partition(".")[0]


def is_own_code(task: str | None) -> bool:
    """Whether a task is somebody's own Python, by the name or file that it is found by; None stands for all suites."""
    if task is not None and task.partition("@")[0].lower().endswith(".py"):
        return True
    asked = [entry for name, entry in suites().items() if task is None or task.startswith(f"{name}/")]
    return any(package_of(entry.module) != package_of(__name__) for entry in asked)
