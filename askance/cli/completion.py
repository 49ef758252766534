"""The words that a shell completes beside commands and flags: tasks, models, prompts.

What cannot be loaded completes nothing: a shell has no place for an error.
"""

from __future__ import annotations

from contextlib import suppress

from askance.errors import AskanceError


def task_names() -> list[str]:
    """The tasks of all installed suites; files complete by themselves."""
    from askance.evals.task_catalog import packaged

    with suppress(AskanceError):
        return [*packaged()]
    return []


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
