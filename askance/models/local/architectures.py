"""Families of open models: how a conversation is written for each, and how its pictures are computed.

One table, `architectures.yaml`, by the architecture's name (`model_type`); the page on local models shows the same one.
A model that brings a chat template goes by that. For the others a conversation format says what stands around the
words, which are those of the prompt files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from askance.chat import ImagePart, Message
from askance.documents import read_yaml

FormatName = Literal["chatml", "gemma", "human", "idefics", "plain", "question", "turns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFormat:
    """What is written around each turn, with `{words}`, `{pictures}` and, where it ends a turn, `{end}`."""

    user: str
    assistant: str
    ask: str
    """Behind the last turn: where the model goes on."""
    begin: str = ""
    system: str | None = None
    """None puts the system's words in front of the user's first ones, on a line of their own."""
    picture: str = "{mark}\n"
    """A picture, in front of the words of its turn."""

    def render(self, messages: Sequence[Message], *, picture: str, end: str) -> str:
        """`messages` as one text that the model continues.

        Args:
            messages: the conversation.
            picture: what stands for a picture; empty where the processor puts it in.
            end: what ends a turn of the model's.
        """
        text, system = self.begin, ""
        for message in messages:
            words = message.text
            if message.role == "system" and self.system is None:
                system += f"{words}\n"
                continue
            if message.role == "user":
                words, system = f"{system}{words}", ""
            turn = {"system": self.system, "assistant": self.assistant}.get(message.role) or self.user
            count = sum(isinstance(part, ImagePart) for part in message.parts)
            pictures = self.picture.format(mark=picture) * count if picture else ""
            text += turn.format(words=words, pictures=pictures, end=end)
        return f"{text}{self.ask}" if self.ask else f"{text}{system}".removesuffix("\n")

    def chat_template(self) -> str:
        """The same as a chat template in Jinja, for servers that put the marks of pictures into the words."""
        words = "{{ message['content'] }}"

        def turn(text: str) -> str:
            return text.format(words=words, pictures="", end="{{ eos_token }}").replace("\n", "{{ '\\n' }}")

        system = (
            "{% set ns.lead = ns.lead + message['content'] + '\\n' %}" if self.system is None else turn(self.system)
        )
        user = turn(self.user).replace(words, "{{ ns.lead }}" + words + "{% set ns.lead = '' %}")
        return (
            "{% set ns = namespace(lead='') %}"
            + turn(self.begin)
            + "{% for message in messages %}"
            + "{% if message['role'] == 'system' %}"
            + system
            + "{% elif message['role'] == 'assistant' %}"
            + turn(self.assistant)
            + "{% else %}"
            + (user if self.ask else user.replace("{{ '\\n' }}", "{% if not loop.last %}{{ '\\n' }}{% endif %}"))
            + "{% endif %}{% endfor %}"
            + turn(self.ask)
        )


_TABLE: Mapping[str, Any] = read_yaml(Path(__file__).with_name("architectures.yaml"), what="a table")

FORMATS: Mapping[FormatName, ConversationFormat] = {
    name: ConversationFormat(**form) for name, form in _TABLE["formats"].items()
}


# --- architectures ---

PictureReuse = Literal["once", "each", "none"]
"""A picture is computed once for all questions about it; anew for each question; or the model takes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A family of models, and what its prompts need."""

    title: str
    types: Sequence[str] = ()
    """Their `model_type` in transformers."""
    wording: str | None = None
    """For families that share a `model_type` with others: the `family` by which prompts are worded."""
    form: FormatName
    """Conversation format where the model brings no chat template."""
    mark: str = ""
    """Marks a picture in the text; empty where the processor puts it in, or the model takes none."""
    attribute: Literal["image_token", "boi_token"] = "image_token"
    """Of the processor: it holds `mark`, where the processor knows it."""
    before: str = ""
    """Written in front of `mark`."""
    behind: str = ""
    """Written behind `mark`."""
    pictures: PictureReuse = "none"
    single: bool = False
    """Whether it takes no more than one picture."""
    quirk: str = ""

    @property
    def format(self) -> ConversationFormat:
        """What is written around each turn where the model brings no chat template."""
        return FORMATS[self.form]


ARCHITECTURES = tuple(Architecture(**entry) for entry in _TABLE["architectures"])
"""In the order in which they are looked for; the last is for all other language models."""

OTHER_VISION = Architecture(**_TABLE["other_vision"])


def architecture_of(model_type: str, *, family: str | None = None, sees: bool = False) -> Architecture:
    """The entry of a `model_type`, or else of the family by which prompts are worded.

    Args:
        model_type: as transformers call it.
        family: by which prompts are worded.
        sees: whether the model takes pictures.
    """
    for each in ARCHITECTURES:
        if model_type in each.types:
            return each
    if sees:
        return OTHER_VISION
    return next((each for each in ARCHITECTURES if family is not None and each.wording == family), ARCHITECTURES[-1])
