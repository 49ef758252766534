"""The chains of the package: verbalize, atypicality, action_reason, end_to_end, explain, identify and ask.

Each wires nodes of `askance.tools` and `askance.agents`. The VLM is asked where the picture has to be seen, the LLM
where words are enough. `Chain.with_nodes` exchanges or drops the node of any link.

`explain` and `identify` are about what is odd in a picture. Either the VLM answers from the picture, or the LLM answers
from what the VLM says of it: a caption, as in the pipelines of *WHOOPS!* (section 5), or another verbalization.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, get_args

from pydantic import Field

from askance.agents import (
    ChoiceMode,
    OptionsQuestion,
    VisualQuestion,
    choose_action_reasons,
    choose_from_picture,
)
from askance.agents.choose import COUNT, ActionReasonChooser
from askance.agents.explain import Explainer, Identifier
from askance.agents.vqa import PictureQuestion, ask_about_picture
from askance.chains.chain import Chain, Step
from askance.chains.context_steps import Context, SeenContext, description_steps, statement_steps, text_of
from askance.chains.link import ANSWERS, DESCRIPTION, REPLY, STATEMENT
from askance.chains.reading import Reading, picture
from askance.errors import UsageError
from askance.models import get_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from askance.agents.explain import Replier
    from askance.models import Model, ModelLike
    from askance.prompts import PromptLibrary

Mode = Annotated[
    ChoiceMode, Field(alias="choose", description="multi: the best options in order; single: the one best.")
]
Count = Annotated[int, Field(ge=1, description="How many options `multi` asks for.")]


def verbalize(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    context: Annotated[Context, Field(description="What the description is made of.")] = "T_V",
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A picture to one description: the tools side by side, then `combine` (section 3.2, step i).

    Args:
        vlm: sees the picture.
        llm: combines; by default the VLM does. Not asked for a concatenation.
        context: what the description is made of.
        prompts: where prompts are looked up.
    """
    see, think = _models(vlm, llm)
    steps = description_steps(see, think, context, prompts=prompts)
    return Chain("verbalize", target=DESCRIPTION, steps=steps, mode=see.mode)


def atypicality(vlm: ModelLike, llm: ModelLike | None = None, *, prompts: PromptLibrary | None = None) -> Chain:
    """A picture to the atypicality statement that holds: objects, narration, then the choice (section 3.2, ii)."""
    see, think = _models(vlm, llm)
    steps = statement_steps(see, think, prompts=prompts)
    return Chain("atypicality", target=STATEMENT, steps=steps, mode=see.mode)


def action_reason(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    context: Annotated[Context, Field(description="What the description is made of.")] = "T_V",
    statement: Annotated[
        bool, Field(description="Whether the atypicality statement stands beside the description.")
    ] = True,
    mode: Mode = "multi",
    count: Count = COUNT,
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
    see, think = _models(vlm, llm)
    chooser = choose_action_reasons(think, mode=mode, count=count, prompts=prompts)
    steps = _choice_steps(chooser, see, think, context=context, statement=statement, prompts=prompts)
    return Chain("action_reason", target=ANSWERS, steps=steps, mode=see.mode)


def end_to_end(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    context: Annotated[
        Context | None, Field(description="What a description beside the image is made of; by default there is none.")
    ] = None,
    statement: Annotated[bool, Field(description="Whether the atypicality statement stands beside the image.")] = False,
    mode: Mode = "multi",
    count: Count = COUNT,
    step_by_step: Annotated[bool, Field(description="Whether the model is asked to reason before it answers.")] = False,
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
    see, think = _models(vlm, llm)
    chooser = choose_from_picture(see, mode=mode, count=count, step_by_step=step_by_step, prompts=prompts)
    steps = _choice_steps(chooser, see, think, context=context, statement=statement, prompts=prompts)
    return Chain("end_to_end", target=ANSWERS, steps=steps, mode=see.mode)


def ask(
    vlm: ModelLike,
    question: str | None = None,
    *,
    labels: Sequence[str] = (),
    several: bool = False,
    prompt: str | None = None,
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A picture to the answer to a question of the user's own, in one call.

    Args:
        vlm: sees the picture and answers.
        question: what is asked about pictures that bring no question of their own.
        labels: the answers that there are; none leaves the answer free.
        several: whether several labels may be true.
        prompt: name of a prompt of the user's own.
        prompts: where prompts are looked up.

    Raises:
        UsageError: labels that cannot all be labels.
    """
    node = ask_about_picture(vlm, question=question, labels=labels, several=several, prompt=prompt, prompts=prompts)
    return Chain(
        "ask", target=REPLY, steps=[Step(link=REPLY, node=node, subject=picture_question)], mode=node.model.mode
    )


def picture_question(reading: Reading) -> PictureQuestion:
    """The picture, the question that is asked about it alone, if there is one, and the examples."""
    return PictureQuestion(image=picture(reading), question=reading.question, examples=reading.examples)


def _models(vlm: ModelLike, llm: ModelLike | None) -> tuple[Model, Model]:
    """The model that sees and the one that reasons over words."""
    see = get_model(vlm)
    return see, see if llm is None else get_model(llm)


def _choice_steps(
    chooser: ActionReasonChooser,
    see: Model,
    think: Model,
    *,
    context: Context | None,
    statement: bool,
    prompts: PromptLibrary | None,
) -> list[Step]:
    """The description and the statement, where they are asked for, then the choice among the options."""
    steps = description_steps(see, think, context, prompts=prompts) if context else []
    if statement:
        steps += statement_steps(see, think, existing=steps, prompts=prompts)
    subject = partial(options_question, sees=chooser.sees)
    return [*steps, Step(link=ANSWERS, node=chooser, needs=(DESCRIPTION, STATEMENT), subject=subject)]


def options_question(reading: Reading, *, sees: bool) -> OptionsQuestion:
    """The options, the description, the statement and the examples, and the picture for a model that sees it.

    There may be no statement; a model that sees the picture needs no description either.
    """
    description = reading.value(DESCRIPTION) if sees else reading.require(DESCRIPTION)
    return OptionsQuestion(
        image=picture(reading) if sees else None,
        options=reading.options or (),
        description=text_of(description),
        statement=text_of(reading.value(STATEMENT)),
        examples=reading.examples,
    )


ReplyContext = Annotated[
    SeenContext, Field(description="What the answering model gets: the image itself (I), a caption, a description.")
]


def explain(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    context: ReplyContext = "I",
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A picture to one sentence that says what is unusual about it, and why (*WHOOPS!*, section 4.1).

    Args:
        vlm: sees the picture.
        llm: explains what is described to it, and makes T_V; by default the VLM does. Not asked in the context `I`.
        context: what the explaining model gets.
        prompts: where prompts are looked up.

    Raises:
        UsageError: there is no such context.
    """
    return _reply_chain("explain", Explainer, vlm=vlm, llm=llm, context=context, prompts=prompts)


def identify(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    context: ReplyContext = "I",
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A picture to `weird` or `normal` (*WHOOPS!*, section 4.1).

    Args:
        vlm: sees the picture.
        llm: decides from what is described to it, and makes T_V; by default the VLM does. Not asked in the context `I`.
        context: what the deciding model gets.
        prompts: where prompts are looked up.

    Raises:
        UsageError: there is no such context.
    """
    return _reply_chain("identify", Identifier, vlm=vlm, llm=llm, context=context, prompts=prompts)


def _reply_chain(
    name: str,
    agent: type[Replier],
    *,
    vlm: ModelLike,
    llm: ModelLike | None,
    context: SeenContext,
    prompts: PromptLibrary | None,
) -> Chain:
    """A chain whose agent answers from the picture in the context `I`, and from a description in the others."""
    if context not in get_args(SeenContext):
        raise UsageError(f"There is no context {context!r}.", hint=f"Choose one of {', '.join(get_args(SeenContext))}.")
    see, think = _models(vlm, llm)
    sees = context == "I"
    steps = [] if sees else description_steps(see, think, context, prompts=prompts)
    answer = Step(
        link=REPLY,
        node=agent(see if sees else think, sees=sees, prompts=prompts),
        needs=() if sees else (DESCRIPTION,),
        subject=partial(visual_question, sees=sees),
    )
    return Chain(name, target=REPLY, steps=[*steps, answer], mode=see.mode)


def visual_question(reading: Reading, *, sees: bool) -> VisualQuestion:
    """The picture, or its description for a model that does not see it; the question, if any, and the examples."""
    shown = picture(reading) if sees else None
    described = None if sees else reading.require(DESCRIPTION).text
    return VisualQuestion(image=shown, description=described, question=reading.question, examples=reading.examples)
