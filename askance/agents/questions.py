"""What the agents are asked: typed inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from askance.errors import BadOptions, UsageError
from askance.tools.tool import as_texts

if TYPE_CHECKING:
    from askance.images import Image
    from askance.tools import Objects, SceneText

Asked = TypeVar("Asked")

_HINT = "Give at least two different options, one a line or as a JSON list."


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbalizations:
    """What the tools said of one picture; what is None was not asked and is left out of the prompt."""

    objects: Objects | None = None
    scene_text: SceneText | None = None
    narration: str | None = None
    unusual: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementQuestion:
    """Which atypicality statement over `objects` holds, given a description of the picture."""

    description: str
    objects: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "objects", as_texts(self.objects))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionsQuestion:
    """Which of the options interpret a described picture."""

    description: str
    options: tuple[str, ...]
    statement: str | None = None
    """An atypicality statement about the picture, where one is known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", as_texts(self.options))


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureQuestion:
    """Which of the options interpret a picture that the model sees, with or without words beside it."""

    image: Image
    options: tuple[str, ...]
    description: str | None = None
    statement: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", as_texts(self.options))


def question_of(kind: type[Asked], given: Any) -> Asked:
    """`given` as a question of `kind`: one, or a mapping of its fields.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(given, kind):
        return given
    try:
        return kind(**given)
    except TypeError as error:
        raise UsageError(
            f"{given!r} is no {kind.__name__}: {error}.", hint="Give one, or a mapping with its fields."
        ) from error


def check_options(options: Iterable[Any]) -> tuple[str, ...]:
    """The options, exactly as they are.

    Raises:
        BadOptions: fewer than two, one that is blank or no text, or one that stands twice.
    """
    if isinstance(options, str):
        raise BadOptions("The options are one text, not a list.", hint=_HINT)
    given = tuple(options)
    try:
        return _checked(given)
    except TypeError:  # one of them is no text, and cannot be looked up
        return _checked.__wrapped__(given)


@lru_cache(maxsize=64)
def _checked(given: tuple[Any, ...]) -> tuple[str, ...]:
    """The options of many pictures are the same ones."""
    if len(given) < 2:
        raise BadOptions(f"There {'is one option' if given else 'are no options'} to choose from.", hint=_HINT)
    for number, option in enumerate(given, start=1):
        if not isinstance(option, str) or not option.strip():
            raise BadOptions(f"Option {number} is blank or no text: {option!r}.", hint=_HINT)
    if len(set(given)) < len(given):
        option = next(option for option, times in Counter(given).items() if times > 1)
        same = " and ".join(str(number) for number, other in enumerate(given, start=1) if other == option)
        raise BadOptions(f"Options {same} are the same: {option!r}.", hint="Remove all but one of them.")
    return given
