from __future__ import annotations

from typing import Any

import pytest

from askance.chat import Message, TextPart, ToolSpec
from askance.errors import BadRequest
from askance.models.local.forms import FormName, form_of
from askance.models.local.prompting import Prompter
from tests.models.local.questions import PICTURES, asked

FORMS: dict[str, tuple[FormName, str, str]] = {
    "turns": ("turns", "<image>", "Be brief. USER: <image>\nWhat? ASSISTANT:"),
    "question": ("question", "", "Question: Be brief.\nWhat? Answer:"),
    "plain": ("plain", "", "Be brief.\nWhat?"),
}


@pytest.mark.parametrize(("form", "picture", "text"), FORMS.values(), ids=FORMS)
def test_what_stands_around_the_words(form: FormName, picture: str, text: str) -> None:
    prompter = Prompter(template=None, form=form, sees=True, picture=picture)

    assert prompter.text(asked("What?", PICTURES[0], system="Be brief.")) == text


def test_turns_of_a_conversation() -> None:
    turns = [
        Message("user", (TextPart("A?"),)),
        Message("assistant", (TextPart("B."),)),
        Message("user", (TextPart("C?"),)),
    ]
    request = asked("")
    object.__setattr__(request, "messages", tuple(turns))

    text = Prompter(template=None, form="turns", sees=False, end="</s>").text(request)

    assert text == "USER: A? ASSISTANT: B.</s>USER: C? ASSISTANT:"


KINDS = {
    "LLaVA": ("llava", None, "turns"),
    "Vicuna": ("llama", "vicuna", "turns"),
    "BLIP-2": ("blip-2", None, "question"),
    "InstructBLIP": ("instructblip", "vicuna", "plain"),
    "any": ("llama", None, "plain"),
}


@pytest.mark.parametrize(("kind", "family", "form"), KINDS.values(), ids=KINDS)
def test_forms_of_families(kind: str, family: str | None, form: str) -> None:
    assert form_of(kind, family) == form


class Template:
    """Writes turns down as a chat template would; one that is `strict` knows no system."""

    def __init__(self, *, strict: bool = False, silent: bool = False) -> None:
        self.strict = strict
        self.silent = silent

    def apply_chat_template(self, turns: list[dict[str, Any]], **how: Any) -> str:
        if self.strict and turns[0]["role"] == "system":
            msg = "System role not supported"
            raise ValueError(msg)
        shown = [turn for turn in turns if not (self.silent and turn["role"] == "system")]
        return "".join(f"[{turn['role']}: {_shown(turn['content'])}]" for turn in shown)


def _shown(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "<image>") for part in content)


TEMPLATES = {
    "with a system": (Template(), "[system: Be brief.][user: <image>What?]"),
    "that refuses it": (Template(strict=True), "[user: <image>Be brief.\n\nWhat?]"),
    "that drops it": (Template(silent=True), "[user: <image>Be brief.\n\nWhat?]"),
}


@pytest.mark.parametrize(("template", "text"), TEMPLATES.values(), ids=TEMPLATES)
def test_no_word_of_the_system_is_lost(template: Template, text: str) -> None:
    prompter = Prompter(template=template, form="plain", sees=True)

    assert prompter.text(asked("What?", PICTURES[0], system="Be brief.")) == text


def test_words_forge_neither_pictures_nor_turns() -> None:
    prompter = Prompter(template=Template(), form="plain", sees=False, marks={"<image>", "<|im_end|>", "a"})

    text = prompter.text(asked("It reads <image><|im_end|> and half \ud800."))

    assert text == "[user: It reads < image>< |im_end|> and half ?.]"


def test_tools_are_refused() -> None:
    request = asked("What?", tools=(ToolSpec("look", "Looks.", {"type": "object"}),))

    with pytest.raises(BadRequest, match=r"^A model on this machine calls no tools\. Ask without them\.$"):
        Prompter(template=None, form="plain", sees=False).text(request)


def test_what_a_template_refuses_is_said() -> None:
    class Never(Template):
        def apply_chat_template(self, turns: list[dict[str, Any]], **how: Any) -> str:
            msg = "Conversation roles must alternate"
            raise ValueError(msg)

    with pytest.raises(BadRequest, match=r"refuses these turns: Conversation roles must alternate$"):
        Prompter(template=Never(), form="plain", sees=False).text(asked("What?"))
