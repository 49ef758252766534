"""From a request to the text that a model continues: by its own chat template, else by its family's form.

Words that happen to be a mark of the model's own, such as `<image>` or what ends a turn, are broken by a blank: text
that came from a picture forges neither pictures nor turns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from askance.chat import ImagePart, Message, TextPart
from askance.errors import BadRequest
from askance.models.local.forms import FormName, written

if TYPE_CHECKING:
    from askance.chat import ChatRequest, JsonObject


@dataclass(frozen=True, kw_only=True)
class Prompter:
    """Writes requests down for one model."""

    template: Any
    """Whatever has `apply_chat_template`, a processor or a tokenizer; None where the model brings no template."""
    form: FormName
    """What is used without a template."""
    sees: bool
    """Whether turns are lists of parts, as templates of models with eyes want them."""
    picture: str = ""
    """The mark that stands for a picture."""
    end: str = ""
    """What ends a turn."""
    marks: Collection[str] = ()
    """Every special token, as it is written."""

    def text(self, request: ChatRequest) -> str:
        """The prompt.

        Raises:
            BadRequest: it asks for tools, or the template refuses the turns.
        """
        if request.tools or any(message.tool_calls or message.role == "tool" for message in request.messages):
            raise BadRequest("A model on this machine calls no tools.", hint="Ask without them.")
        messages = [self._harmless(message) for message in request.messages]
        if self.template is None:
            return written(messages, self.form, picture=self.picture, end=self.end)
        more: Mapping[str, Any] = request.extra.get("chat_template_kwargs", {})
        try:
            text = self._rendered(messages, more)
        except Exception as error:  # noqa: BLE001  # a template raises what it likes
            text = None
            refusal = error
        else:
            refusal = None
        if text is None or not _has_system(messages, text):
            # Templates without a system turn refuse it, or drop it without a word.
            try:
                text = self._rendered(_folded(messages), more)
            except Exception as error:
                said = " ".join(str(refusal or error).split())[:200].rstrip(".")
                raise BadRequest(
                    f"The chat template of the model refuses these turns: {said}.",
                    hint="Edit the prompt so that user and assistant take turns, or give another model.",
                ) from error
        return text

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

    def _harmless(self, message: Message) -> Message:
        parts = [part if isinstance(part, ImagePart) else TextPart(self._broken(part.text)) for part in message.parts]
        return replace(message, parts=tuple(parts))

    def _broken(self, text: str) -> str:
        """`text` with a blank in each mark; half a surrogate pair, which no tokenizer takes, as a question mark."""
        return broken(text.encode("utf-8", "replace").decode("utf-8"), self.marks)


def broken(text: str, marks: Collection[str]) -> str:
    """`text` with a blank in each of `marks`, so that it forges none."""
    known = sorted((mark for mark in marks if len(mark.strip()) > 1), key=len, reverse=True)
    if not any(mark in text for mark in known):
        return text
    return re.sub("|".join(map(re.escape, known)), lambda found: f"{found[0][0]} {found[0][1:]}", text)


def _has_system(messages: Sequence[Message], text: str) -> bool:
    return all(message.text.strip() in text for message in messages if message.role == "system")


def _folded(messages: Sequence[Message]) -> list[Message]:
    """The system's words at the beginning of what the user says first, behind the pictures that lead it."""
    system = "\n".join(message.text for message in messages if message.role == "system")
    others = [message for message in messages if message.role != "system"]
    first = next((place for place, message in enumerate(others) if message.role == "user"), None)
    if first is None or not system:
        return others
    parts = others[first].parts
    lead = next((place for place, part in enumerate(parts) if isinstance(part, TextPart)), len(parts))
    told = (*parts[:lead], TextPart(f"{system}\n\n"), *parts[lead:])
    return [*others[:first], replace(others[first], parts=told), *others[first + 1 :]]
