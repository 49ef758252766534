"""The prompt of a request as text.

A prompt is written by the model's own chat template, or else in its family's conversation format. Where a text holds a
special token, such as `<image>` or the end of a turn, a blank is put into it: text that came from a picture can forge
neither pictures nor turns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from askance.chat import ChatRequest, Message, TextPart
from askance.errors import BadRequest
from askance.models.local.runtime import tokenizable

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.models.local.architectures import ConversationFormat


@dataclass(frozen=True, kw_only=True)
class PromptWriter:
    """Writes requests as prompts for one model."""

    template: Any
    """Whatever has `apply_chat_template`, a processor or a tokenizer; None where the model brings no template."""
    form: ConversationFormat
    """What is used without a template."""
    sees: bool
    """Whether turns are lists of parts, as templates of vision-language models want them."""
    picture: str = ""
    """Marks a picture in the text."""
    end: str = ""
    """Ends a turn of the model's."""
    special_tokens: Collection[str] = ()
    """As they are written."""

    def text(self, request: ChatRequest) -> str:
        """The prompt.

        Raises:
            BadRequest: it asks for tools, or the template refuses the turns.
        """
        refuse_tools(request, hint="Ask without them.")
        messages = [_without_special_tokens(message, self.special_tokens) for message in request.messages]
        if self.template is None:
            return self.form.render(messages, picture=self.picture, end=self.end)
        more: Mapping[str, Any] = request.extra.get("chat_template_kwargs", {})
        refusal: Exception | None = None
        try:
            text = self._rendered(messages, more)
            if _has_system(messages, text):
                return text
        except Exception as error:  # noqa: BLE001  # a template raises what it likes
            refusal = error
        # Templates without a system turn refuse it, or drop it without a word.
        try:
            return self._rendered(_system_in_user(messages), more)
        except Exception as error:
            reason = " ".join(str(refusal or error).split())[:200].rstrip(".")
            raise BadRequest(
                f"The chat template of the model refuses these turns: {reason}.",
                hint="Edit the prompt so that user and assistant take turns, or give another model.",
            ) from error

    def _rendered(self, messages: Sequence[Message], more: Mapping[str, Any]) -> str:
        turns = [self._turn(message) for message in messages]
        return self.template.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **more)

    def _turn(self, message: Message) -> JsonObject:
        if not self.sees:
            return {"role": message.role, "content": message.text}
        parts = [
            {"type": "text", "text": part.text} if isinstance(part, TextPart) else {"type": "image"}
            for part in message.parts
        ]
        return {"role": message.role, "content": parts}


def refuse_tools(request: ChatRequest, *, hint: str) -> None:
    """Refuses a request that no model in this process can answer.

    Raises:
        BadRequest: it asks for tools, or holds a tool's turn.
    """
    if request.tools or any(message.tool_calls or message.role == "tool" for message in request.messages):
        raise BadRequest("A model on this machine calls no tools.", hint=hint)


def without_special_tokens(request: ChatRequest, tokens: Collection[str]) -> ChatRequest:
    """`request` with a blank in every special token that its words hold."""
    messages = tuple(_without_special_tokens(message, tokens) for message in request.messages)
    given = request.given and split_special_tokens(request.given, tokens)
    same = messages == request.messages and given == request.given
    return request if same else replace(request, messages=messages, given=given)


def _without_special_tokens(message: Message, tokens: Collection[str]) -> Message:
    parts = [
        TextPart(split_special_tokens(part.text, tokens)) if isinstance(part, TextPart) else part
        for part in message.parts
    ]
    return replace(message, parts=tuple(parts))


def split_special_tokens(text: str, tokens: Collection[str]) -> str:
    """`text` as a tokenizer takes it, with a blank in each of `tokens`."""
    text = tokenizable(text)
    special = sorted((token for token in tokens if len(token.strip()) > 1), key=len, reverse=True)
    if not any(token in text for token in special):
        return text
    return re.sub("|".join(map(re.escape, special)), lambda match: f"{match[0][0]} {match[0][1:]}", text)


def _has_system(messages: Sequence[Message], text: str) -> bool:
    return all(message.text.strip() in text for message in messages if message.role == "system")


def _system_in_user(messages: Sequence[Message]) -> list[Message]:
    """The system's words at the beginning of what the user says first, behind the pictures that lead it."""
    system = "\n".join(message.text for message in messages if message.role == "system")
    others = [message for message in messages if message.role != "system"]
    first = next((place for place, message in enumerate(others) if message.role == "user"), None)
    if first is None or not system:
        return others
    parts = others[first].parts
    lead = next((place for place, part in enumerate(parts) if isinstance(part, TextPart)), len(parts))
    user = replace(others[first], parts=(*parts[:lead], TextPart(f"{system}\n\n"), *parts[lead:]))
    return [*others[:first], user, *others[first + 1 :]]
