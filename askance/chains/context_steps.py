"""Contexts: what a description of a picture is made of, and the steps of a chain that make it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from askance.agents import StatementQuestion, Verbalizations, combine, detect_statement
from askance.chains.chain import NodeLike, Step
from askance.chains.link import DESCRIPTION, NARRATION, OBJECTS, SCENE_TEXT, STATEMENT, UNUSUAL, Link
from askance.chains.reading import Reading, picture
from askance.errors import UsageError
from askance.tools import caption, narration, objects, scene_text, unusual

if TYPE_CHECKING:
    from askance.models import Model
    from askance.prompts import PromptLibrary

Context = Literal["T_V", "T_V-UH", "V+T", "IN", "UH", "V+T+IN", "V+T+IN+UH"]
"""What the description is made of: combined by the LLM (`T_V`, and without what is unusual `T_V-UH`), or set one after
the other."""

SeenContext = Literal["I", "caption", "T_V", "T_V-UH", "V+T", "IN", "UH", "V+T+IN", "V+T+IN+UH"]
"""What the answering model gets: the picture itself (`I`), a caption of it, or a description made as by `Context`."""

_ASKED: Mapping[Context, tuple[Link[Any], ...]] = {
    "T_V": (OBJECTS, SCENE_TEXT, NARRATION, UNUSUAL),
    "T_V-UH": (OBJECTS, SCENE_TEXT, NARRATION),
    "V+T": (OBJECTS, SCENE_TEXT),
    "IN": (NARRATION,),
    "UH": (UNUSUAL,),
    "V+T+IN": (OBJECTS, SCENE_TEXT, NARRATION),
    "V+T+IN+UH": (OBJECTS, SCENE_TEXT, NARRATION, UNUSUAL),
}
_HEADINGS: Mapping[str, str] = {
    "objects": "Objects",
    "scene_text": "Text in the image",
    "narration": "Description",
    "unusual": "What is unusual",
}
_TOOLS: Mapping[str, Any] = {"objects": objects, "scene_text": scene_text, "narration": narration, "unusual": unusual}


def tool_step(link: Link[Any], vlm: Model, *, prompts: PromptLibrary | None = None) -> Step:
    """The step of V, T, IN or UH: a tool that looks at the picture."""
    return Step(link=link, node=_TOOLS[link.name](vlm, prompts=prompts), subject=picture)


def description_steps(
    vlm: Model, llm: Model, context: SeenContext, *, prompts: PromptLibrary | None = None
) -> list[Step]:
    """The steps that make a description: the tools of a context, then the node that joins their answers; or a caption.

    Raises:
        UsageError: no such context, or the picture itself, which nobody describes.
    """
    if context == "caption":
        return [Step(link=DESCRIPTION, node=caption(vlm, prompts=prompts), subject=picture)]
    if context not in get_args(Context):
        raise UsageError(f"There is no context {context!r}.", hint=f"Choose one of {', '.join(get_args(Context))}.")
    links = _ASKED[cast("Context", context)]
    node: NodeLike = combine(llm, prompts=prompts) if context.startswith("T_V") else concatenate
    last = Step(
        link=DESCRIPTION,
        node=node,
        needs=links,
        subject=partial(verbalizations, links=links),
        asks_nobody=node is concatenate,
    )
    return [*(tool_step(link, vlm, prompts=prompts) for link in links), last]


def statement_steps(
    vlm: Model, llm: Model, *, existing: Collection[Step] = (), prompts: PromptLibrary | None = None
) -> list[Step]:
    """The steps that detect the atypicality statement, without those whose link a step of `existing` fills in."""
    have = {step.link.name for step in existing}
    node = detect_statement(llm, prompts=prompts)
    last = Step(link=STATEMENT, node=node, needs=(OBJECTS, NARRATION), subject=_statement_question)
    tools = [link for link in (OBJECTS, NARRATION) if link.name not in have]
    return [*(tool_step(link, vlm, prompts=prompts) for link in tools), last]


def _statement_question(reading: Reading) -> StatementQuestion:
    return StatementQuestion(description=reading.require(NARRATION).text, objects=reading.require(OBJECTS).names)


def verbalizations(reading: Reading, links: Collection[Link[Any]]) -> Verbalizations:
    """What the tools of the links `links` have said."""
    said: dict[str, Any] = {link.name: reading.value(link) for link in links}
    return Verbalizations(**said)


def text_of(value: object) -> str | None:
    """A value as text; None where there is none."""
    return None if value is None else str(value)


def concatenate(answers: Verbalizations) -> str:
    """What the tools said, one after the other, each under its heading."""
    texts = {link: str(value) for link, value in answers if value is not None}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n".join(f"{_HEADINGS[link]}: {text}" for link, text in texts.items())
