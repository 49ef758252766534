"""What of the command line a task is given: what it takes, and what it cannot do without."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from askance.errors import UsageError
from askance.evals.tasks import ROLES
from askance.workspace import Role

if TYPE_CHECKING:
    from askance.cli.evaluating import Evaluation
    from askance.evals.tasks import Definition
    from askance.workspace import Workspace

_GENERAL = ("limit", "ids", "control")
"""Options that any task can be given: those that it does not take itself are seen to for it."""


def options_of(asked: Evaluation, definition: Definition, work: Workspace) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options for the task's function, and those that are left to be seen to.

    Raises:
        UsageError: an option is given that the task does not take, or one that cannot be read.
    """
    takes = definition.takes
    options = {name: value for name, value in asked.given.items() if value is not None}
    options |= _own(asked, takes)
    general = {name: value for name in _GENERAL if (value := getattr(asked, name)) is not None}
    options |= {name: value for name, value in general.items() if name in takes}
    if asked.seed is not None and "seed" in takes:
        options["seed"] = asked.seed
    for role in get_args(Role):
        if role not in options and role in takes and _wanted(takes[role], asked) and (name := work.named(role)):
            options[role] = name
    options |= {role: work.model(options[role]) for role in ROLES if options.get(role) is not None}
    if "prompts" in takes:
        options["prompts"] = work.library
    if "engine" in takes:
        options["engine"] = work.engine
    return options, {name: value for name, value in general.items() if name not in takes}


def _wanted(parameter: inspect.Parameter, asked: Evaluation) -> bool:
    """Whether the settings file's model goes in: where there must be one, or where none is named at all."""
    named = any(asked.given.get(role) is not None for role in ROLES)
    return parameter.default is parameter.empty or not named


def _own(asked: Evaluation, takes: Mapping[str, inspect.Parameter]) -> Mapping[str, Any]:
    """The options of the task that `-T` names."""
    found: dict[str, Any] = {}
    for text in asked.own:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise UsageError(f"{text!r} is no option of a task.", hint="Write `-T name=value`.")
        found[name] = _value(value, str(takes[name].annotation) if name in takes else "")
    return found


def _value(text: str, annotation: str) -> Any:
    """What a text stands for where something of the kind `annotation` is taken: JSON, or else the text itself."""
    kinds = {part.strip() for part in annotation.split("|")}
    if kinds & {"Path"}:
        return Path(text)
    if kinds & {"str"} and not kinds & {"int", "float", "bool"}:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
