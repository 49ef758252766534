"""How a conversation is written for models that bring no chat template: what stands around the words, once.

The words are those of the prompt files. Which family has which form is in `kinds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from askance.chat import ImagePart, Message

FormName = Literal["chatml", "gemma", "human", "idefics", "plain", "question", "turns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
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


FORMS: Mapping[FormName, Form] = {
    "chatml": Form(
        system="<|im_start|>system\n{words}<|im_end|>\n",
        user="<|im_start|>user\n{pictures}{words}<|im_end|>\n",
        assistant="<|im_start|>assistant\n{words}<|im_end|>\n",
        ask="<|im_start|>assistant\n",
        picture="{mark}",
    ),
    "gemma": Form(
        user="<start_of_turn>user\n{pictures}{words}<end_of_turn>\n",
        assistant="<start_of_turn>model\n{words}<end_of_turn>\n",
        ask="<start_of_turn>model\n",
        picture="{mark}",
    ),
    "human": Form(
        system="{words}",
        user="###Human: {pictures}{words}",
        assistant="###Assistant: {words}",
        ask="###Assistant:",
    ),
    "idefics": Form(
        begin="<|im_start|>",
        system="System: {words}<end_of_utterance>\n",
        user="User: {pictures}{words}<end_of_utterance>\n",
        assistant="Assistant: {words}<end_of_utterance>\n",
        ask="Assistant:",
        picture="{mark}",
    ),
    "plain": Form(user="{pictures}{words}\n", assistant="{words}\n", ask=""),
    "question": Form(user="Question: {pictures}{words} ", assistant="Answer: {words} ", ask="Answer:"),
    "turns": Form(
        system="{words} ",
        user="USER: {pictures}{words} ",
        assistant="ASSISTANT: {words}{end}",
        ask="ASSISTANT:",
    ),
}


def written(messages: Sequence[Message], form: FormName, *, picture: str, end: str) -> str:
    """`messages` as one text that the model continues.

    Args:
        messages: the conversation.
        form: what stands around the words.
        picture: what stands for a picture; empty where the processor puts it in.
        end: what ends a turn of the model's.
    """
    around = FORMS[form]
    text, system = around.begin, ""
    for message in messages:
        words = message.text
        if message.role == "system" and around.system is None:
            system += f"{words}\n"
            continue
        if message.role == "user":
            words, system = f"{system}{words}", ""
        turn = {"system": around.system, "assistant": around.assistant}.get(message.role) or around.user
        text += turn.format(words=words, pictures=_pictures(message, around, picture), end=end)
    return f"{text}{around.ask}" if around.ask else f"{text}{system}".removesuffix("\n")


def _pictures(message: Message, form: Form, mark: str) -> str:
    count = sum(isinstance(part, ImagePart) for part in message.parts)
    return form.picture.format(mark=mark) * count if mark else ""


def chat_template(form: FormName) -> str:
    """`form` as a chat template in Jinja, for servers that put the marks of pictures into the words themselves."""
    around = FORMS[form]
    words = "{{ message['content'] }}"

    def turn(text: str) -> str:
        return text.format(words=words, pictures="", end="{{ eos_token }}").replace("\n", "{{ '\\n' }}")

    system = (
        turn(around.system) if around.system is not None else "{% set ns.lead = ns.lead + message['content'] + '\\n' %}"
    )
    user = turn(around.user).replace(words, "{{ ns.lead }}" + words + "{% set ns.lead = '' %}")
    return (
        "{% set ns = namespace(lead='') %}"
        + turn(around.begin)
        + "{% for message in messages %}"
        + "{% if message['role'] == 'system' %}"
        + system
        + "{% elif message['role'] == 'assistant' %}"
        + turn(around.assistant)
        + "{% else %}"
        + (user if around.ask else user.replace("{{ '\\n' }}", "{% if not loop.last %}{{ '\\n' }}{% endif %}"))
        + "{% endif %}{% endfor %}"
        + turn(around.ask)
    )
