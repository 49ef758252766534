from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from askance import errors
from askance.chat import Try
from askance.errors import AskanceError, CallError

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, AskanceError)]
VALUES: dict[str, Any] = {
    "hint": "Look.",
    "raw": "a cup",
    "status": 418,
    "retry_after": 2.5,
    "diff": "+a",
    "nearest": "b",
}


def made(kind: type[AskanceError]) -> AskanceError:
    """An error of `kind` in which every field says something."""
    fields = {
        name: VALUES.get(name, f"some {name}")
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    error = kind("It broke.", **fields)
    if isinstance(error, CallError):
        error.tries = (Try(1.0, 0.5, "It broke."),)
    error.add_note("by hand")
    return error


def by_pickle(error: AskanceError) -> AskanceError:
    return pickle.loads(pickle.dumps(error))


@pytest.mark.parametrize("again", [by_pickle, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_can_be_sent_and_copied(
    kind: type[AskanceError], again: Callable[[AskanceError], AskanceError]
) -> None:
    error = made(kind)
    got = again(error)
    assert (type(got), got.args, vars(got), str(got)) == (kind, error.args, vars(error), str(error))
