from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment

from askance.chat import ImagePart, Message, TextPart, ToolSpec
from askance.errors import BadRequest
from askance.models.local.architectures import (
    ARCHITECTURES,
    FORMATS,
    OTHER_VISION,
    Architecture,
    FormatName,
    architecture_of,
)
from askance.models.local.prompt_writer import PromptWriter
from tests.models.local.questions import PICTURES, asked

SYSTEM, QUESTION, ANSWER, AGAIN = "Be brief.", "What?", "A cup.", "Why?"
WRITTEN: dict[FormatName, tuple[str, str]] = {
    "chatml": (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<image>What?<|im_end|>\n<|im_start|>assistant\n",
        "A cup.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n",
    ),
    "gemma": (
        "<start_of_turn>user\n<image>Be brief.\nWhat?<end_of_turn>\n<start_of_turn>model\n",
        "A cup.<end_of_turn>\n<start_of_turn>user\nWhy?<end_of_turn>\n<start_of_turn>model\n",
    ),
    "human": (
        "Be brief.###Human: <image>\nWhat?###Assistant:",
        " A cup.###Human: Why?###Assistant:",
    ),
    "idefics": (
        "<|im_start|>System: Be brief.<end_of_utterance>\nUser: <image>What?<end_of_utterance>\nAssistant:",
        " A cup.<end_of_utterance>\nUser: Why?<end_of_utterance>\nAssistant:",
    ),
    "plain": ("<image>\nBe brief.\nWhat?", "\nA cup.\nWhy?"),
    "question": ("Question: <image>\nBe brief.\nWhat? Answer:", " A cup. Question: Why? Answer:"),
    "turns": ("Be brief. USER: <image>\nWhat? ASSISTANT:", " A cup.</s>USER: Why? ASSISTANT:"),
}


def conversation(*, pictures: bool) -> list[Message]:
    """Four turns; the model is to take the fifth."""
    seen = [part for part in asked("", *PICTURES[: int(pictures)]).messages[0].parts if isinstance(part, ImagePart)]
    return [
        Message("system", (TextPart(SYSTEM),)),
        Message("user", (*seen, TextPart(QUESTION))),
        Message("assistant", (TextPart(ANSWER),)),
        Message("user", (TextPart(AGAIN),)),
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_what_stands_around_the_words(form: FormatName) -> None:
    turns = conversation(pictures=True)
    first, then = WRITTEN[form]

    assert FORMATS[form].render(turns[:2], picture="<image>", end="</s>") == first
    assert FORMATS[form].render(turns, picture="<image>", end="</s>") == first + then


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("turns", [conversation(pictures=False), conversation(pictures=False)[1:]], ids=len)
def test_a_form_as_a_chat_template_writes_the_same(form: FormatName, turns: list[Message]) -> None:
    template = Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False).from_string(
        FORMATS[form].chat_template()
    )

    text = template.render(messages=[{"role": each.role, "content": each.text} for each in turns], eos_token="</s>")

    assert text == FORMATS[form].render(turns, picture="", end="</s>")


def test_a_prompt_is_written_in_the_form_once() -> None:
    writer = PromptWriter(template=None, form=FORMATS["turns"], sees=True, picture="<image>", end="</s>")

    assert writer.text(asked("What?", PICTURES[0], system="Be brief.")) == WRITTEN["turns"][0]


FOUND = {
    "LLaVA": ("llava", None, True, "LLaVA-1.5"),
    "InstructBLIP on Vicuna": ("instructblip", "vicuna", True, "InstructBLIP"),
    "Vicuna": ("llama", "vicuna", False, "Vicuna v1.1 and later"),
    "Vicuna v0": ("llama", "minigpt-4", False, "MiniGPT-4, Vicuna v0"),
    "any that sees": ("aria", "vicuna", True, "other vision-language models"),
    "any": ("llama", None, False, "other language models"),
}


@pytest.mark.parametrize(("model_type", "family", "sees", "title"), FOUND.values(), ids=FOUND)
def test_families_by_architecture_and_wording(model_type: str, family: str | None, sees: bool, title: str) -> None:
    assert architecture_of(model_type, family=family, sees=sees).title == title


def test_an_architecture_is_of_one_family() -> None:
    types = [each for kind in ARCHITECTURES for each in kind.types]

    assert len(types) == len(set(types))


def cells(kind: Architecture) -> str:
    """A row of the table in the docs."""
    types = ", ".join(f"`{each}`" for each in kind.types) or "—"
    form = FORMATS[kind.form]
    mark = f"`{kind.before}{kind.mark}{kind.behind}`".replace("|", "\\|") if kind.mark else "—"
    around = "the words alone" if kind.form == "plain" else "`" + _one_line(form.user, form.ask, mark=kind.mark) + "`"
    words = {"once": "computed once", "each": "for each question anew", "none": "none"}[kind.pictures]
    pictures = f"one, {words}" if kind.single else words
    return f"| {kind.title} | {types} | {around} | {mark} | {pictures} | {kind.quirk} |"


def _one_line(user: str, ask: str, *, mark: str) -> str:
    return (user + ask).format(pictures="▣ " if mark else "", words="…").replace("\n", "↵").replace("|", "\\|")


def test_the_docs_show_the_same_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "local.md").read_text(encoding="utf-8")

    for kind in (*ARCHITECTURES, OTHER_VISION):
        assert cells(kind) in page


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
    writer = PromptWriter(template=template, form=FORMATS["plain"], sees=True)

    assert writer.text(asked("What?", PICTURES[0], system="Be brief.")) == text


def test_words_forge_neither_pictures_nor_turns() -> None:
    writer = PromptWriter(
        template=Template(), form=FORMATS["plain"], sees=False, special_tokens={"<image>", "<|im_end|>", "a"}
    )

    text = writer.text(asked("It reads <image><|im_end|> and half \ud800."))

    assert text == "[user: It reads < image>< |im_end|> and half ?.]"


def test_tools_are_refused() -> None:
    request = asked("What?", tools=(ToolSpec("look", "Looks.", {"type": "object"}),))

    with pytest.raises(BadRequest, match=r"^A model on this machine calls no tools\. Ask without them\.$"):
        PromptWriter(template=None, form=FORMATS["plain"], sees=False).text(request)


def test_what_a_template_refuses_is_said() -> None:
    class Never(Template):
        def apply_chat_template(self, turns: list[dict[str, Any]], **how: Any) -> str:
            msg = "Conversation roles must alternate"
            raise ValueError(msg)

    with pytest.raises(
        BadRequest, match=r"refuses these turns: Conversation roles must alternate\. Edit the prompt so that"
    ):
        PromptWriter(template=Never(), form=FORMATS["plain"], sees=False).text(asked("What?"))
