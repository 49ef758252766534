"""The two APIs as one: a request as a body, a reply as a response, by the API that a model is asked by.

What one model takes is learnt from its error messages and kept in its `Dialect`. The calls of a batch have the same
bodies and the same replies as calls made one by one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from askance.models.openai.chat_completions import from_chat, to_chat
from askance.models.openai.responses import from_responses, to_responses

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse, JsonObject
    from askance.models.image_data import EncodeImage
    from askance.models.settings import TokenField
    from askance.models.vendor_errors import ErrorDetails

Api: TypeAlias = Literal["chat", "responses"]
"""Chat completions, or the responses API."""

PATHS: Mapping[Api, str] = {"chat": "/chat/completions", "responses": "/responses"}
"""Where each API is, behind the base address of an endpoint."""

OPTIONAL = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
"""Fields that a model with a fixed sampling rejects; without them it answers at its defaults."""

_log = logging.getLogger("askance")
_UNSUPPORTED = re.compile(
    r"not support|n't support|unsupported|deprecated|unrecognized|unknown|extra (inputs|fields)|only the default",
    re.IGNORECASE,
)


@dataclass
class Dialect:
    """The form in which one model takes requests, learnt from its error messages."""

    token_field: TokenField = "max_tokens"
    """Name under which the token limit is sent."""
    without: set[str] = field(default_factory=set[str])
    """Sampling fields that the model rejects; they are left out."""
    noticed: JsonObject = field(default_factory=dict[str, Any])
    """What was learnt: `token_field` and `without`, sorted; empty before the first such message."""
    _warned: set[str] = field(default_factory=set[str], init=False, repr=False, compare=False)

    def warn(self, model: str) -> None:
        """Warns, once for each rejected field, that the answers of `model` are drawn without it."""
        for name in sorted(self.without - self._warned):
            self._warned.add(name)
            _log.warning("%s takes no %s: its answers are drawn at its default.", model, name)

    def learn(self, details: ErrorDetails, body: Mapping[str, Any]) -> bool:
        """Whether an error says how to ask instead; from then on bodies have that form.

        Args:
            details: of the error.
            body: what was sent.
        """
        if details.status not in {400, 422} or not (
            _UNSUPPORTED.search(details.words) or "unsupported" in details.code
        ):
            return False
        named = details.param or details.words
        if "max_tokens" in body and "max_completion_tokens" in details.words:
            self.token_field = self.noticed["token_field"] = "max_completion_tokens"
            return True
        if "max_completion_tokens" in body and "max_completion_tokens" in named:
            self.token_field = self.noticed["token_field"] = "max_tokens"
            return True
        rejected = {name for name in OPTIONAL if name in body and re.search(rf"\b{name}\b", named)}
        self.without |= rejected
        if rejected:
            self.noticed["without"] = sorted(self.without)
        return bool(rejected)


def to_body(request: ChatRequest, encode: EncodeImage, *, api: Api, model: str, dialect: Dialect) -> JsonObject:
    """The body that asks `request`; see `to_chat` and `to_responses`.

    Raises:
        ConfigError: the API has no such parameter, or an extra stands where the request's own field goes.
        UsageError: a picture stands in a turn of the system or of the assistant.
        BadImage: a picture cannot be used.
    """
    if api == "responses":
        return to_responses(request, encode, model=model, without=dialect.without)
    return to_chat(request, encode, model=model, token_field=dialect.token_field, without=dialect.without)


def from_body(body: Mapping[str, Any], *, api: Api) -> ChatResponse:
    """The response in the body of a reply.

    Raises:
        MalformedReply: the reply has another shape, or the server gave the answer up.
    """
    return from_responses(body) if api == "responses" else from_chat(body)
