"""Families of open models: what stands around the words, what stands for a picture, and what is computed once.

One table, by the architecture's name (`model_type`); the page on local models shows the same one. A chat template of
the model's own goes before the form given here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from askance.models.local.forms import FormName

Pictures = Literal["once", "each", "none"]
"""Computed once for all questions about them; computed anew for each; the model takes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One family."""

    title: str
    types: tuple[str, ...] = ()
    """Architectures, as transformers call them."""
    wording: str | None = None
    """For families that share an architecture with others: the `family` by which prompts are worded."""
    form: FormName
    """What stands around the words where the model brings no chat template."""
    mark: str = ""
    """What stands for a picture; empty where the processor puts it in, or there is none."""
    holder: Literal["image_token", "boi_token"] = "image_token"
    """Of the processor: the name under which it has `mark`."""
    before: str = ""
    """What `mark` stands between."""
    behind: str = ""
    pictures: Pictures = "none"
    single: bool = False
    """Whether it looks at one picture alone."""
    quirk: str = ""


KINDS: tuple[Kind, ...] = (
    Kind(
        title="LLaVA-1.5",
        types=("llava",),
        form="turns",
        mark="<image>",
        pictures="once",
        quirk="no preamble",
    ),
    Kind(
        title="LLaVA-1.6",
        types=("llava_next",),
        form="turns",
        mark="<image>",
        pictures="once",
        quirk="a picture is cut into tiles; those on Mistral, Llama 3 or Yi bring their template",
    ),
    Kind(title="VipLLaVA", types=("vipllava",), form="human", mark="<image>", pictures="once"),
    Kind(
        title="Idefics3, SmolVLM",
        types=("idefics3", "smolvlm"),
        form="idefics",
        mark="<image>",
        pictures="once",
        quirk="`smolvlm` needs torchvision and num2words, SmolVLM's first release (`idefics3`) does not",
    ),
    Kind(
        title="Gemma 3",
        types=("gemma3",),
        form="gemma",
        mark="<start_of_image>",
        holder="boi_token",
        pictures="once",
        quirk="no system turn: its words come first in the user's; tokens of a picture see each other both ways",
    ),
    Kind(
        title="Qwen2-VL, Qwen2.5-VL",
        types=("qwen2_vl", "qwen2_5_vl"),
        form="chatml",
        mark="<|image_pad|>",
        before="<|vision_start|>",
        behind="<|vision_end|>",
        pictures="once",
        quirk="tokens of a picture have places in two dimensions; as many tokens as the picture is large",
    ),
    Kind(
        title="InternVL",
        types=("internvl",),
        form="chatml",
        mark="<IMG_CONTEXT>",
        pictures="once",
        quirk="a picture is cut into tiles; only what transformers itself reads (names that end in `-hf`)",
    ),
    Kind(
        title="BLIP-2",
        types=("blip-2",),
        form="question",
        pictures="each",
        single=True,
        quirk="its language model answers where there is no picture",
    ),
    Kind(
        title="InstructBLIP",
        types=("instructblip",),
        form="plain",
        pictures="each",
        single=True,
        quirk="its Q-Former reads the question, so that each question sees the picture otherwise",
    ),
    Kind(title="BLIP", types=("blip",), form="plain", pictures="each", single=True),
    Kind(
        title="MiniGPT-4, Vicuna v0",
        wording="minigpt-4",
        form="human",
        quirk='by `family = "minigpt-4"`: the language model alone, for transformers does not have the rest',
    ),
    Kind(title="Vicuna v1.1 and later", wording="vicuna", form="turns", quirk="no preamble"),
    Kind(title="other language models", form="plain", quirk="what many questions begin with is computed once"),
)
"""In the order in which they are looked for; the last is for all others without eyes."""

OTHER_EYES = Kind(title="other vision-language models", form="plain", pictures="each")


def kind_of(model_type: str, *, family: str | None = None, sees: bool = False) -> Kind:
    """The family of an architecture, or else of the wording that its prompts have."""
    for kind in KINDS:
        if model_type in kind.types:
            return kind
    if sees:
        return OTHER_EYES
    return next((kind for kind in KINDS if family is not None and kind.wording == family), KINDS[-1])


def form_of(model_type: str, family: str | None) -> FormName:
    """What stands around the words for an architecture, or for the family by which prompts are worded."""
    return kind_of(model_type, family=family).form
