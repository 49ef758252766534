"""A fake server that gives the scripted replies of `askance.testing` in OpenAI's wire formats, on this machine."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from askance.chat import ChatResponse, ToolCall, Usage
from askance.errors import (
    AuthError,
    BadRequest,
    CallError,
    CallTimeout,
    ContextExceeded,
    ImagesRejected,
    MalformedReply,
    ModelNotFound,
    RateLimited,
    ServerFault,
    Unreachable,
)
from askance.testing import ScriptedReply
from tests import replies
from tests.servers import FakeEndpoint, Reply, Seen, chat_body, error, responses_body

NEVER = Reply(delay=math.inf)
ERRORS: Mapping[type[CallError], Reply] = {
    AuthError: replies.WRONG_KEY,
    BadRequest: error(400, "That is no request."),
    CallTimeout: NEVER,
    ContextExceeded: replies.OPENAI_TOO_LONG,
    ImagesRejected: replies.OPENAI_NO_IMAGES,
    MalformedReply: replies.CUT_JSON,
    ModelNotFound: replies.OPENAI_UNKNOWN_MODEL,
    RateLimited: replies.SLOW_DOWN,
    ServerFault: replies.OVERLOADED,
    Unreachable: replies.RESET,
}
"""What a server does where the vendor's client is to meet an error."""

FINISHES = {"refusal": "stop", "tool_calls": "tool_calls"}
"""Where chat completions say it by another word."""


class FarSides:
    """Endpoints, one for each scripted reply."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._running: list[tuple[ScriptedReply, FakeEndpoint]] = []

    def url(self, reply: ScriptedReply) -> str:
        """Address of the endpoint that gives `reply`."""
        for known, endpoint in self._running:
            if known == reply:
                return endpoint.url
        endpoint = self._stack.enter_context(FakeEndpoint(lambda seen: played(reply, seen)))
        self._running.append((reply, endpoint))
        return endpoint.url


def patience(reply: ScriptedReply) -> float | None:
    """Seconds that the vendor's client is to wait, where the reply is a timeout."""
    return 0.2 if isinstance(reply, CallTimeout) else None


def played(reply: ScriptedReply, seen: Seen) -> Reply:
    """What goes back to one request."""
    if reply is None:
        return NEVER
    if isinstance(reply, CallError):
        return ERRORS[type(reply)]
    return Reply(body=(in_responses if "/responses" in seen.path else in_chat)(reply))


def in_chat(reply: ChatResponse) -> dict[str, Any]:
    """`reply` as a chat completion."""
    message: dict[str, Any] = {}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.refusal is not None:
        message["refusal"] = reply.refusal
    if reply.tool_calls:
        message["tool_calls"] = [_chat_call(call) for call in reply.tool_calls]
    body = chat_body(
        reply.text, model=reply.model or "fake-model", finish=FINISHES.get(reply.finish, reply.finish), **message
    )
    if reply.logprobs:
        body["choices"][0]["logprobs"] = {"content": [_token(token) for token in reply.logprobs]}
    if reply.usage != Usage():
        body["usage"] = {
            "prompt_tokens": reply.usage.input,
            "completion_tokens": reply.usage.output,
            "prompt_tokens_details": {"cached_tokens": reply.usage.cached},
        }
    return body


def in_responses(reply: ChatResponse) -> dict[str, Any]:
    """`reply` as a reply of the responses API."""
    body = responses_body(reply.text, model=reply.model or "fake-model")
    (message,) = body["output"]
    if reply.refusal is not None:
        message["content"] = [{"type": "refusal", "refusal": reply.refusal}]
    if reply.logprobs:
        message["content"][0]["logprobs"] = [_token(token) for token in reply.logprobs]
    if reply.thinking:
        summary = {"type": "summary_text", "text": reply.thinking}
        body["output"].insert(0, {"type": "reasoning", "id": "r-1", "summary": [summary]})
    body["output"] += [_responses_call(call) for call in reply.tool_calls]
    if reply.finish in {"length", "content_filter"}:
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}[reply.finish]
        body |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
    if reply.usage != Usage():
        body["usage"] = {
            "input_tokens": reply.usage.input,
            "output_tokens": reply.usage.output,
            "input_tokens_details": {"cached_tokens": reply.usage.cached},
        }
    return body


def _chat_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _responses_call(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "function_call", "id": "fc-1", "call_id": call.id, "name": call.name, "arguments": call.arguments,
        "status": "completed",
    }  # fmt: skip


def _token(token: Mapping[str, Any]) -> dict[str, Any]:
    top = [{"token": text, "logprob": value, "bytes": None} for text, value in token.get("top", {}).items()]
    shown = json.loads(json.dumps({"token": token["token"], "logprob": token["logprob"], "bytes": None}))
    return {**shown, "top_logprobs": top}
