"""What a chat model of LangChain sends to be let in, kept out of its answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage
from pydantic import BaseModel, SecretBytes, SecretStr

from askance.models.secrets import Secrets

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

DEPTH = 4
"""How deep models, dictionaries and lists are searched for secrets."""

_PRIVATE = ("auth", "cookie", "key", "secret", "token")
"""Pieces of names of headers that let a request in."""

_TEXTS = ("content", "additional_kwargs", "response_metadata", "tool_calls", "invalid_tool_calls")
"""Fields of a message that answers are read from."""


class Unseen(dict[str, Any]):
    """A dictionary whose values show nowhere."""

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: …' for name in self)}}}"


def secrets_in(chat_model: BaseChatModel) -> Secrets:
    """What `chat_model` keeps as a secret: the values of its `SecretStr` fields, and of headers that let it in."""
    return Secrets(set(_secret_values(chat_model, depth=DEPTH)))


def unseen(chat_model: BaseChatModel, secrets: Secrets) -> dict[str, Unseen]:
    """The fields in which a secret stands in clear, so that a traceback with its locals would show it."""
    fields = {name: cast("dict[str, Any]", value) for name, value in vars(chat_model).items() if type(value) is dict}
    return {name: Unseen(value) for name, value in fields.items() if secrets.stand_in(repr(value))}


def cleared(message: object, secrets: Secrets) -> object:
    """A model's message with every secret blanked out; anything else as it is."""
    if not secrets or not isinstance(message, AIMessage):
        return message
    return message.model_copy(update={name: secrets.cleared(getattr(message, name)) for name in _TEXTS})


def _secret_values(value: object, *, depth: int, headers: bool = False) -> Iterator[str]:
    if isinstance(value, (SecretStr, SecretBytes)):
        secret = value.get_secret_value()
        yield secret if isinstance(secret, str) else secret.decode(errors="replace")
    elif depth and isinstance(value, BaseModel):
        yield from _secret_values({**vars(value), **(value.__pydantic_private__ or {})}, depth=depth)
    elif depth and isinstance(value, Mapping):
        for name, inner in cast("Mapping[object, object]", value).items():
            if headers and isinstance(inner, str) and any(piece in str(name).lower() for piece in _PRIVATE):
                # The key alone as well as with the word before it, as in `Bearer …`.
                yield from (inner, inner.rpartition(" ")[2])
            yield from _secret_values(inner, depth=depth - 1, headers="header" in str(name).lower())
    elif depth and isinstance(value, (list, tuple)):
        for inner in cast("list[object]", value):
            yield from _secret_values(inner, depth=depth - 1)
