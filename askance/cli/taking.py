"""What of the command line a task is given: what it takes, and what it cannot do without."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.cli.places import library
from askance.errors import UsageError
from askance.evals.tasks import ROLES
from askance.models import get_model

if TYPE_CHECKING:
    from askance.cli.evaluating import Evaluation
    from askance.evals.tasks import Definition
    from askance.models import Config, Engine, Model

_GENERAL = ("limit", "ids", "control")
"""Options that any task can be given: those that it does not take itself are seen to for it."""


def options_of(
    asked: Evaluation, definition: Definition, engine: Engine, config: Config
) -> tuple[dict[str, Any], dict[str, Any]]:
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
    for role in ROLES:
        default = getattr(config, role, None)
        if role not in options and role in takes and default is not None and _wanted(takes[role], asked):
            options[role] = default
    options |= dict(_models(options, engine, config))
    if "prompts" in takes:
        options["prompts"] = library(asked.prompts, config)
    if "engine" in takes:
        options["engine"] = engine
    return options, {name: value for name, value in general.items() if name not in takes}


def _wanted(parameter: inspect.Parameter, asked: Evaluation) -> bool:
    """Whether the settings file's model goes in: where there must be one, or where none is named at all."""
    named = any(asked.given.get(role) is not None for role in ROLES)
    return parameter.default is parameter.empty or not named


def _models(options: Mapping[str, Any], engine: Engine, config: Config) -> Iterator[tuple[str, Model]]:
    """The models by role; one that is named twice is one model."""
    made: dict[str, Model] = {}
    for role in ROLES:
        name = options.get(role)
        if name is not None:
            made.setdefault(name, get_model(name, engine=engine, config=config))
            yield role, made[name]


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
