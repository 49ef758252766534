"""How likely a model finds a text that is given to it as the answer to a request.

Such a request has the text in `ChatRequest.given`. A backend that can weigh it has a method beside `generate`:

    async def likelihood(self, request: ChatRequest) -> ChatResponse: ...

Its response has no text; its `logprobs` hold a mapping for each token of the given text. Everything else about such a
call is as for any other: it is on record (kind `score`), has a place and a pace at its endpoint, and counts against the
budget. A backend that cannot weigh a text refuses it, which is recorded too: a replay then says the same.

The text is weighed as the turn of the assistant, behind the chat template's beginning of that turn and without its end:
the token that ends a turn is not part of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, cast

from askance.chat import ChatResponse, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from askance.chat import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLikelihood:
    """How likely a text is, given what stands before it."""

    nll: float
    """Sum over its tokens of the negative log-probability, in nats."""
    tokens: int
    """Number of its tokens, by the model's tokenizer."""


def likelihood_of(response: ChatResponse) -> TextLikelihood | None:
    """The likelihood in the response to a request with a given text; None where the backend cannot tell it."""
    if not response.logprobs:
        return None
    values = [float(token["logprob"]) for token in response.logprobs]
    return TextLikelihood(nll=-fsum(values), tokens=len(values))


def not_offered(why: str) -> ChatResponse:
    """The response of a backend that cannot weigh a given text; it is recorded, so that nobody is asked again.

    Args:
        why: a clause for people.
    """
    return ChatResponse(finish="refusal", refusal=why, usage=Usage(input=0, output=0))


def end_of_prompt(prompt: Sequence[tuple[str, float] | None], given: str) -> tuple[JsonObject, ...] | None:
    """Of the tokens of a prompt, those of the given text that it ends with, as `ChatResponse.logprobs` has them.

    Blanks are not compared, since tokenizers add and drop them.

    Args:
        prompt: each token as text, with its log-probability; None for a first one, which has none. A token within a
            character may be empty, and the one that completes it then has the whole character.
        given: the text.

    Returns:
        None where the prompt does not end with the text.
    """
    target, end = "".join(given.split()), ""
    start = len(prompt)
    while end != target:
        start -= 1
        token = prompt[start] if start >= 0 else None
        if token is None or len(end) > len(target):
            return None
        end = "".join(token[0].split()) + end
    while start > 0 and (before := prompt[start - 1]) is not None and not before[0]:
        start -= 1
    tokens = cast("Sequence[tuple[str, float]]", prompt[start:])
    return tuple({"token": text, "logprob": logprob} for text, logprob in tokens)
