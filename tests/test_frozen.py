from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest

from askance.chains.reading import Reading
from askance.chat import ChatRequest, ChatResponse, Message, ModelId
from askance.frozen import quickly
from askance.models import CallEvent
from askance.nodes import Call, Result

MODEL = ModelId("openai", "m")
VALUES: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "request": (ChatRequest, {"model": MODEL, "messages": (Message("user"),), "draw": 2}),
    "response": (ChatResponse, {"text": "a cup", "finish": "length"}),
    "message": (Message, {"role": "user"}),
    "event": (CallEvent, {"phase": "replayed", "key": "k", "model": MODEL}),
    "call": (Call, {"key": "k", "model": "m"}),
    "result": (Result, {"outcome": "answered", "value": 3}),
    "reading": (Reading, {"name": "a.jpg"}),
}


@pytest.mark.parametrize(("kind", "fields"), VALUES.values(), ids=VALUES)
def test_a_value_made_quickly_is_like_any_other(kind: type[Any], fields: dict[str, Any]) -> None:
    made, plain = quickly(kind)(**fields), kind(**fields)

    assert (type(made), made, repr(made)) == (kind, plain, repr(plain))
    assert pickle.loads(pickle.dumps(made)) == replace(made) == plain


@pytest.mark.parametrize(("kind", "fields"), VALUES.values(), ids=VALUES)
def test_it_is_frozen(kind: type[Any], fields: dict[str, Any]) -> None:
    made, name = quickly(kind)(**fields), next(iter(fields))

    with pytest.raises(FrozenInstanceError):
        setattr(made, name, fields[name])
    with pytest.raises(FrozenInstanceError):
        delattr(made, name)


def test_each_has_defaults_of_its_own() -> None:
    @dataclass(frozen=True, slots=True)
    class Shelf:
        books: list[str] = field(default_factory=list[str])

    make = quickly(Shelf)
    make().books.append("a")

    assert make() == Shelf()


def test_arguments_that_the_class_does_not_take_are_refused() -> None:
    with pytest.raises(TypeError):
        quickly(Message)(rôle="user")  # pyright: ignore[reportCallIssue]


def test_checks_are_not_passed_over() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked:
        number: int

        def __post_init__(self) -> None:
            raise ValueError

    with pytest.raises(TypeError, match="Checked checks its values"):
        quickly(Checked)
