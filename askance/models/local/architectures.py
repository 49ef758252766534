"""Families of open models: how a conversation is written for each, and how its pictures are computed.

One table, by the architecture's name (`model_type`); the page on local models shows the same one. A model that brings a
chat template goes by that. For the others a conversation format says what stands around the words, which are those of
the prompt files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from askance.chat import ImagePart, Message

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


FORMATS: Mapping[FormatName, ConversationFormat] = {
    "chatml": ConversationFormat(
        system="<|im_start|>system\n{words}<|im_end|>\n",
        user="<|im_start|>user\n{pictures}{words}<|im_end|>\n",
        assistant="<|im_start|>assistant\n{words}<|im_end|>\n",
        ask="<|im_start|>assistant\n",
        picture="{mark}",
    ),
    "gemma": ConversationFormat(
        user="<start_of_turn>user\n{pictures}{words}<end_of_turn>\n",
        assistant="<start_of_turn>model\n{words}<end_of_turn>\n",
        ask="<start_of_turn>model\n",
        picture="{mark}",
    ),
    "human": ConversationFormat(
        system="{words}",
        user="###Human: {pictures}{words}",
        assistant="###Assistant: {words}",
        ask="###Assistant:",
    ),
    "idefics": ConversationFormat(
        begin="<|im_start|>",
        system="System: {words}<end_of_utterance>\n",
        user="User: {pictures}{words}<end_of_utterance>\n",
        assistant="Assistant: {words}<end_of_utterance>\n",
        ask="Assistant:",
        picture="{mark}",
    ),
    "plain": ConversationFormat(user="{pictures}{words}\n", assistant="{words}\n", ask=""),
    "question": ConversationFormat(user="Question: {pictures}{words} ", assistant="Answer: {words} ", ask="Answer:"),
    "turns": ConversationFormat(
        system="{words} ",
        user="USER: {pictures}{words} ",
        assistant="ASSISTANT: {words}{end}",
        ask="ASSISTANT:",
    ),
}


# --- architectures ---

PictureReuse = Literal["once", "each", "none"]
"""A picture is computed once for all questions about it; anew for each question; or the model takes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A family of models, and what its prompts need."""

    title: str
    types: tuple[str, ...] = ()
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


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture(
        title="LLaVA-1.5",
        types=("llava",),
        form="turns",
        mark="<image>",
        pictures="once",
        quirk="no preamble",
    ),
    Architecture(
        title="LLaVA-1.6",
        types=("llava_next",),
        form="turns",
        mark="<image>",
        pictures="once",
        quirk="a picture is cut into tiles; those on Mistral, Llama 3 or Yi bring their template",
    ),
    Architecture(title="VipLLaVA", types=("vipllava",), form="human", mark="<image>", pictures="once"),
    Architecture(
        title="Idefics3, SmolVLM",
        types=("idefics3", "smolvlm"),
        form="idefics",
        mark="<image>",
        pictures="once",
        quirk="`smolvlm` needs torchvision and num2words, SmolVLM's first release (`idefics3`) does not",
    ),
    Architecture(
        title="Gemma 3",
        types=("gemma3",),
        form="gemma",
        mark="<start_of_image>",
        attribute="boi_token",
        pictures="once",
        quirk="no system turn: its words come first in the user's; tokens of a picture see each other both ways",
    ),
    Architecture(
        title="Qwen2-VL, Qwen2.5-VL",
        types=("qwen2_vl", "qwen2_5_vl"),
        form="chatml",
        mark="<|image_pad|>",
        before="<|vision_start|>",
        behind="<|vision_end|>",
        pictures="once",
        quirk="tokens of a picture have places in two dimensions; as many tokens as the picture is large",
    ),
    Architecture(
        title="InternVL",
        types=("internvl",),
        form="chatml",
        mark="<IMG_CONTEXT>",
        pictures="once",
        quirk="a picture is cut into tiles; only what transformers itself reads (names that end in `-hf`)",
    ),
    Architecture(
        title="BLIP-2",
        types=("blip-2",),
        form="question",
        pictures="each",
        single=True,
        quirk="its language model answers where there is no picture",
    ),
    Architecture(
        title="InstructBLIP",
        types=("instructblip",),
        form="plain",
        pictures="each",
        single=True,
        quirk="its Q-Former reads the question, so that each question sees the picture otherwise",
    ),
    Architecture(title="BLIP", types=("blip",), form="plain", pictures="each", single=True),
    Architecture(
        title="MiniGPT-4, Vicuna v0",
        wording="minigpt-4",
        form="human",
        quirk='by `family = "minigpt-4"`: the language model alone, for transformers does not have the rest',
    ),
    Architecture(title="Vicuna v1.1 and later", wording="vicuna", form="turns", quirk="no preamble"),
    Architecture(title="other language models", form="plain", quirk="what many questions begin with is computed once"),
)
"""In the order in which they are looked for; the last is for all other language models."""

OTHER_VISION = Architecture(title="other vision-language models", form="plain", pictures="each")


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
