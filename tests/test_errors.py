from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from askance import errors
from askance.chat import Try
from askance.errors import AskanceError, BadData, CallError, UsageError, UserCodeError, boundary
from askance.nodes import no_answer

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


def runs(raises: Exception, *, passes: Any = AskanceError) -> None:
    with boundary(lambda words: UsageError(f"It is broken: {words}."), passes=passes):
        raise raises


def test_what_the_code_of_others_raises_becomes_an_error_with_its_words() -> None:
    cause = ZeroDivisionError("division by zero")
    with pytest.raises(UsageError, match=r"^It is broken: ZeroDivisionError: division by zero\.$") as caught:
        runs(cause)
    assert caught.value.__cause__ is cause


def test_errors_of_the_tree_pass_where_they_may() -> None:
    with pytest.raises(BadData, match=r"^No rows\.$"):
        runs(BadData("No rows."))
    with pytest.raises(UsageError, match=r"^It is broken: BadData: No rows\.\.$"):
        runs(BadData("No rows."), passes=())
    with pytest.raises(UsageError, match=r"^It is broken: CallError: No answer\.\.$"):
        runs(CallError("No answer."), passes=UsageError)
    with pytest.raises(KeyboardInterrupt), boundary(UsageError):
        raise KeyboardInterrupt


def test_the_outcome_of_the_user_s_own_code_names_the_error_that_it_raised() -> None:
    with pytest.raises(UserCodeError) as caught, boundary(lambda words: UserCodeError(f"mine raised {words}")):
        raise OSError("no scanner")
    found = no_answer(caught.value)
    assert (found.outcome, found.reason, found.error) == ("failed", "mine raised OSError: no scanner", "OSError")
