"""The chains that ship: verbalize, atypicality, action-reason, end to end.

Each is a wiring of the nodes in `askance.tools` and `askance.agents`. A model is asked for what its role says: the VLM
sees the picture, the LLM reads words. `with_nodes` exchanges or drops any link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from askance.agents import (
    Mode,
    OptionsQuestion,
    PictureQuestion,
    StatementQuestion,
    Verbalizations,
    choose_action_reasons,
    choose_from_picture,
    combine,
    detect_statement,
)
from askance.agents.choose import COUNT
from askance.chains.chain import Chain, NodeLike, Step, optional, picture, required
from askance.errors import UsageError
from askance.models import get_model
from askance.tools import narration, objects, scene_text, unusual

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.chains.reading import Link, Reading
    from askance.models import Model, ModelLike
    from askance.prompts import PromptLibrary

Context = Literal["T_V", "T_V-UH", "V+T", "IN", "UH", "V+T+IN", "V+T+IN+UH"]
"""What the description is made of: combined by the LLM (`T_V`, and without what is unusual `T_V-UH`), or set one after
the other."""

_ASKED: Mapping[Context, tuple[Link, ...]] = {
    "T_V": ("objects", "scene_text", "narration", "unusual"),
    "T_V-UH": ("objects", "scene_text", "narration"),
    "V+T": ("objects", "scene_text"),
    "IN": ("narration",),
    "UH": ("unusual",),
    "V+T+IN": ("objects", "scene_text", "narration"),
    "V+T+IN+UH": ("objects", "scene_text", "narration", "unusual"),
}
_HEADINGS: Mapping[Link, str] = {
    "objects": "Objects",
    "scene_text": "Text in the image",
    "narration": "Description",
    "unusual": "What is unusual",
}


def verbalize(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    context: Context = "T_V",
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A picture to one description: the tools side by side, then `combine` (section 3.2, step i).

    Args:
        vlm: sees the picture.
        llm: combines; by default the VLM does. Not asked for a concatenation.
        context: what the description is made of.
        prompts: where prompts are looked up.
    """
    see, think = _roles(vlm, llm)
    steps = _description_steps(see, think, context, prompts=prompts)
    return Chain("verbalize", target="description", steps=steps, mode=see.mode)


def atypicality(vlm: ModelLike, llm: ModelLike | None = None, *, prompts: PromptLibrary | None = None) -> Chain:
    """A picture to the atypicality statement that holds: objects, narration, then the choice (section 3.2, ii)."""
    see, think = _roles(vlm, llm)
    steps = [_tool(link, see, prompts) for link in ("objects", "narration")]
    return Chain("atypicality", target="statement", steps=[*steps, _statement_step(think, prompts)], mode=see.mode)


def action_reason(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    context: Context = "T_V",
    statement: bool = True,
    mode: Mode = "multi",
    count: int = COUNT,
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A picture and options to the action-reasons that it argues for (section 3.2).

    Seven calls: four to the VLM, three to the LLM.

    Args:
        vlm: sees the picture.
        llm: combines, detects and chooses; by default the VLM does.
        context: what the description is made of.
        statement: whether the atypicality statement is detected and stands beside the description (T_V + ŝ).
        mode: `multi` asks for the best options in order, `single` for one.
        count: how many options `multi` asks for.
        prompts: where prompts are looked up.
    """
    see, think = _roles(vlm, llm)
    steps = _description_steps(see, think, context, prompts=prompts)
    if statement:
        have = {step.link for step in steps}
        steps += [_tool(link, see, prompts) for link in ("objects", "narration") if link not in have]
        steps.append(_statement_step(think, prompts))
    chooser = choose_action_reasons(think, mode=mode, count=count, prompts=prompts)
    choose = Step(link="answers", node=chooser, needs=("description", "statement"), subject=options_question)
    return Chain("action_reason", target="answers", steps=[*steps, choose], mode=see.mode)


def end_to_end(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    context: Context | None = None,
    statement: bool = False,
    mode: Mode = "multi",
    count: int = COUNT,
    step_by_step: bool = False,
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A picture and options to an answer in one call of the VLM: the baseline that the other chains are held against.

    Args:
        vlm: sees the picture and chooses.
        llm: makes what stands beside the picture, where `context` or `statement` ask for it; by default the VLM does.
        context: a description to stand beside the picture; None leaves it out, unless the caller gives one.
        statement: whether a detected atypicality statement stands beside the picture; a given one does in any case.
        mode: `multi` asks for the best options in order, `single` for one.
        count: how many options `multi` asks for.
        step_by_step: whether the model is asked to reason first (Table 9).
        prompts: where prompts are looked up.
    """
    see, think = _roles(vlm, llm)
    steps = _description_steps(see, think, context, prompts=prompts) if context else []
    if statement:
        have = {step.link for step in steps}
        steps += [_tool(link, see, prompts) for link in ("objects", "narration") if link not in have]
        steps.append(_statement_step(think, prompts))
    chooser = choose_from_picture(see, mode=mode, count=count, step_by_step=step_by_step, prompts=prompts)
    choose = Step(link="answers", node=chooser, needs=("description", "statement"), subject=_picture_question)
    return Chain("end_to_end", target="answers", steps=[*steps, choose], mode=see.mode)


def _roles(vlm: ModelLike, llm: ModelLike | None) -> tuple[Model, Model]:
    see = get_model(vlm)
    return see, see if llm is None else get_model(llm)


def _tool(link: Link, vlm: Model, prompts: PromptLibrary | None) -> Step:
    makers: dict[Link, Any] = {
        "objects": objects,
        "scene_text": scene_text,
        "narration": narration,
        "unusual": unusual,
    }
    return Step(link=link, node=makers[link](vlm, prompts=prompts), subject=picture)


def _description_steps(vlm: Model, llm: Model, context: Context, *, prompts: PromptLibrary | None) -> list[Step]:
    if context not in _ASKED:
        raise UsageError(f"There is no context {context!r}.", hint=f"Choose one of {', '.join(get_args(Context))}.")
    asked = _ASKED[context]
    node: NodeLike = combine(llm, prompts=prompts) if context.startswith("T_V") else concatenate
    last = Step(
        link="description",
        node=node,
        needs=asked,
        subject=lambda reading: _verbalizations(reading, asked),
    )
    return [*(_tool(link, vlm, prompts) for link in asked), last]


def _statement_step(llm: Model, prompts: PromptLibrary | None) -> Step:
    node = detect_statement(llm, prompts=prompts)
    return Step(link="statement", node=node, needs=("objects", "narration"), subject=_statement_question)


def _verbalizations(reading: Reading, asked: tuple[Link, ...]) -> Verbalizations:
    said = {link: optional(reading, link) for link in asked}
    return Verbalizations(
        objects=said.get("objects"),
        scene_text=said.get("scene_text"),
        narration=_text(said.get("narration")),
        unusual=_text(said.get("unusual")),
    )


def _statement_question(reading: Reading) -> StatementQuestion:
    return StatementQuestion(
        description=required(reading, "narration").text, objects=required(reading, "objects").names
    )


def options_question(reading: Reading) -> OptionsQuestion:
    """The options, the description, and the statement where there is one."""
    return OptionsQuestion(
        description=required(reading, "description").text,
        options=reading.options or (),
        statement=_text(optional(reading, "statement")),
    )


def _picture_question(reading: Reading) -> PictureQuestion:
    return PictureQuestion(
        image=picture(reading),
        options=reading.options or (),
        description=_text(optional(reading, "description")),
        statement=_text(optional(reading, "statement")),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def concatenate(said: Verbalizations) -> str:
    """What the tools said, one after the other, each under its heading."""
    parts: dict[Link, Any] = {
        "objects": said.objects,
        "scene_text": said.scene_text,
        "narration": said.narration,
        "unusual": said.unusual,
    }
    there = {link: str(value) for link, value in parts.items() if value is not None}
    if len(there) == 1:
        return next(iter(there.values()))
    return "\n".join(f"{heading}: {there[link]}" for link, heading in _HEADINGS.items() if link in there)
