"""What the agents are asked: typed inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

from askance.errors import BadOptions
from askance.images import Image
from askance.tools import Objects, SceneText


class Question(BaseModel):
    """A typed input: frozen, equal by value."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Verbalizations(Question):
    """What the tools said of one picture; what is None was not asked and is left out of the prompt."""

    objects: Objects | None = None
    scene_text: SceneText | None = None
    narration: str | None = None
    unusual: str | None = None


class StatementQuestion(Question):
    """Which atypicality statement over `objects` holds, given a description of the picture."""

    description: str
    objects: tuple[str, ...]


class OptionsQuestion(Question):
    """Which of the options interpret a described picture."""

    description: str
    options: tuple[str, ...]
    statement: str | None = None
    """An atypicality statement about the picture, where one is known."""


class PictureQuestion(Question):
    """Which of the options interpret a picture that the model sees, with or without words beside it."""

    image: Image
    options: tuple[str, ...]
    description: str | None = None
    statement: str | None = None


def check_options(options: Iterable[Any]) -> tuple[str, ...]:
    """The options, exactly as they are.

    Raises:
        BadOptions: fewer than two, one that is blank or no text, or one that stands twice.
    """
    hint = "Give at least two different options, one a line or as a JSON list."
    if isinstance(options, str):
        raise BadOptions("The options are one text, not a list.", hint=hint)
    given = list(options)
    if len(given) < 2:
        raise BadOptions(f"There {'is one option' if given else 'are no options'} to choose from.", hint=hint)
    for number, option in enumerate(given, start=1):
        if not isinstance(option, str) or not option.strip():
            raise BadOptions(f"Option {number} is blank or no text: {option!r}.", hint=hint)
    if len(set(given)) < len(given):
        option = next(option for option, times in Counter(given).items() if times > 1)
        same = " and ".join(str(number) for number, other in enumerate(given, start=1) if other == option)
        raise BadOptions(f"Options {same} are the same: {option!r}.", hint="Remove all but one of them.")
    return tuple(given)
