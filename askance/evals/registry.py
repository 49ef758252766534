"""The registry of suites: packages that are installed name theirs by an entry point. To list them loads none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from askance.errors import UsageError

GROUP = "askance.suites"
"""Group of entry points. The name of an entry is that of the suite, its value the module with the tasks."""


@cache
def suites() -> Mapping[str, EntryPoint]:
    """The installed suites, by the first part of their tasks' names.

    Raises:
        UsageError: two packages have a suite of one name.
    """
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise UsageError(
                f"Two packages have a suite {entry.name!r}: {other.value} and {entry.value}.",
                hint="Uninstall one of the two.",
            )
    return dict(sorted(found.items()))


def package_of(module: str) -> str:
    """The package of a module."""
    return module.partition(".")[0]


def is_own_code(task: str | None) -> bool:
    """Whether a task is code from outside this package.

    Args:
        task: name or file of a task; None asks whether any installed suite is from outside.
    """
    if task is not None and task.partition("@")[0].lower().endswith(".py"):
        return True
    asked = [entry for name, entry in suites().items() if task is None or task.startswith(f"{name}/")]
    return any(package_of(entry.module) != package_of(__name__) for entry in asked)
