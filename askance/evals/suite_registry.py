"""The suites of tasks, all of them brought by entry points. To list them loads none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from askance.registry import Registry

SUITES = Registry(group="askance.suites", what="suite")
"""By the first part of their tasks' names: the module with the tasks."""


def shipped_grids() -> Mapping[str, Path]:
    """By suite, the grids that ship."""
    return {file.parent.name: file for file in sorted(Path(__file__).parent.glob("*/grid.yaml"))}


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
    suites = SUITES.names() if task is None else [task.partition("/")[0]]
    return any(package_of(module) != package_of(__name__) for name in suites for module in SUITES.modules(name))
