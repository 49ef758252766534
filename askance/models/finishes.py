"""How an answer ended: the words of all providers in one table.

A word that stands in no list is an error that names it: nobody can tell whether such an answer is whole. No word at all
is the end of an answer, for some servers give none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.errors import MalformedReply, UnknownFinish

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from askance.chat import FinishReason

LONGEST_WORD = 60
"""Characters of an unknown word that a message quotes."""

_WORDS: Mapping[FinishReason, frozenset[str]] = {
    "stop": frozenset(
        {
            "complete",
            "completed",
            "end",
            "end_turn",
            "eos",
            "eos_token",
            "finished",
            "normal",
            "stop",
            "stop_sequence",
        }
    ),
    "length": frozenset(
        {
            "length",
            "max_length",
            "max_new_tokens",
            "max_output",
            "max_output_tokens",
            "max_tokens",
            "model_context_window_exceeded",
            "model_length",
            "token_limit",
        }
    ),
    "content_filter": frozenset(
        {
            "blocklist",
            "content_filter",
            "content_filtered",
            "guardrail_intervened",
            "image_prohibited_content",
            "image_recitation",
            "image_safety",
            "prohibited_content",
            "recitation",
            "safety",
            "sensitive",
            "spii",
        }
    ),
    "refusal": frozenset({"refusal"}),
    "tool_calls": frozenset({"function_call", "tool_call", "tool_calls", "tool_use"}),
}

FINISHES: Mapping[str, FinishReason] = {word: finish for finish, words in _WORDS.items() for word in words}
"""Finish reasons by the providers' words, in lower case."""

GIVEN_UP = frozenset(
    {
        "abort",
        "aborted",
        "cancelled",
        "error",
        "insufficient_system_resource",
        "malformed_function_call",
        "malformed_model_output",
        "malformed_response",
        "malformed_tool_use",
        "network_error",
        "not_finished",
        "time_limit",
        "timeout",
    }
)
"""Words for an answer that the server gave up."""


def finish_of(words: Iterable[str], *, refused: bool, called: bool) -> FinishReason:
    """How the answer ended; some servers say `stop` although the model declined or called a tool.

    Args:
        words: all that the reply says of it, empty ones among them.
        refused: whether the model declined in so many words.
        called: whether it called a tool.

    Raises:
        MalformedReply: the server gave the answer up.
        UnknownFinish: no word of them is known.
    """
    said = [word for word in words if word]
    if refused:
        return "refusal"
    if given_up := next((word for word in said if word.lower() in GIVEN_UP), None):
        raise MalformedReply(f"The server gave the answer up (finish reason {given_up!r}).")
    known: list[FinishReason] = [FINISHES[word.lower()] for word in said if word.lower() in FINISHES]
    if said and not known:
        raise UnknownFinish(f"It ended for a reason that is not known: {said[0][:LONGEST_WORD]!r}.")
    for finish in known:
        if finish != "stop":
            return finish
    return "tool_calls" if called else "stop"


def incomplete(word: str) -> FinishReason:
    """How an answer ended that the responses API calls incomplete, for whatever reason; the limit is the usual one."""
    return "content_filter" if FINISHES.get(word.lower()) == "content_filter" else "length"
