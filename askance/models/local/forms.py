"""How a conversation is written for models that bring no chat template: what stands around the words, once.

| form | families | one turn |
|---|---|---|
| `turns` | LLaVA, Vicuna | `USER: <image>` and the words on the next line, `ASSISTANT:` |
| `question` | BLIP-2 | `Question: … Answer:`; the processor puts the picture first |
| `plain` | InstructBLIP, models that only continue | the words alone |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from askance.chat import ImagePart, Message

FormName = Literal["turns", "question", "plain"]

_BY_KIND: dict[str, FormName] = {
    "blip": "plain",
    "blip-2": "question",
    "instructblip": "plain",
    "llava": "turns",
    "llava_next": "turns",
    "vipllava": "turns",
}
"""By architecture."""


def form_of(kind: str, family: str | None) -> FormName:
    """The form of an architecture, or of the family by which prompts are worded."""
    return _BY_KIND.get(kind) or ("turns" if family == "vicuna" else "plain")


def written(messages: Sequence[Message], form: FormName, *, picture: str, end: str) -> str:
    """`messages` as one text that the model continues.

    Args:
        messages: the conversation.
        form: what stands around the words.
        picture: what stands for a picture; empty where the processor puts it in.
        end: what ends a turn of the model's.
    """
    if form == "turns":
        return _turns(messages, picture, end)
    words = "\n".join(message.text for message in messages if message.text)
    seen = "" if form == "question" else _pictures(messages, picture)
    return f"Question: {words} Answer:" if form == "question" else f"{seen}{words}"


def _turns(messages: Sequence[Message], picture: str, end: str) -> str:
    text = ""
    for message in messages:
        if message.role == "assistant":
            text += f"ASSISTANT: {message.text}{end}"
        elif message.role == "system":
            text += f"{message.text} "
        else:
            text += f"USER: {_pictures([message], picture)}{message.text} "
    return f"{text}ASSISTANT:"


def _pictures(messages: Sequence[Message], picture: str) -> str:
    count = sum(isinstance(part, ImagePart) for message in messages for part in message.parts)
    return f"{picture}\n" * count if picture else ""
