"""The chains that ship: verbalize, atypicality, action-reason, end to end; and explain and identify, about what is odd.

Each is a wiring of the nodes in `askance.tools` and `askance.agents`. A model is asked for what its role says: the VLM
sees the picture, the LLM reads words. `with_nodes` exchanges or drops any link.

To say what is odd about a picture, a model that sees answers from the picture (end to end); or one that reasons over
words answers from what the other says of it: a caption, as in the pipelines of *WHOOPS!* (section 5), or any
verbalization, such as T_V.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

from askance.agents import (
    Mode,
    OptionsQuestion,
    VisualQuestion,
    choose_action_reasons,
    choose_from_picture,
    explain_from_description,
    explain_from_picture,
    identify_from_description,
    identify_from_picture,
)
from askance.agents.choose import COUNT
from askance.chains.chain import Chain, NodeLike, Step
from askance.chains.context import Context, SeenContext, description_steps, statement_steps, text_of
from askance.chains.state import ANSWERS, DESCRIPTION, REPLY, STATEMENT, Link, Reading, optional, picture, required
from askance.errors import UsageError
from askance.models import get_model

if TYPE_CHECKING:
    from askance.models import Model, ModelLike
    from askance.prompts import PromptLibrary

GROUP = "askance.chains"
"""Entry points by which installed packages bring chains of their own."""

Asker: TypeAlias = "tuple[Callable[[Model], NodeLike], Callable[[Reading], Any]]"
"""Makes the node that answers, and gives its input."""


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
    steps = description_steps(see, think, context, prompts=prompts)
    return Chain("verbalize", target=DESCRIPTION, steps=steps, mode=see.mode)


def atypicality(vlm: ModelLike, llm: ModelLike | None = None, *, prompts: PromptLibrary | None = None) -> Chain:
    """A picture to the atypicality statement that holds: objects, narration, then the choice (section 3.2, ii)."""
    see, think = _roles(vlm, llm)
    steps = statement_steps(see, think, prompts=prompts)
    return Chain("atypicality", target=STATEMENT, steps=steps, mode=see.mode)


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
    steps = description_steps(see, think, context, prompts=prompts)
    if statement:
        steps += statement_steps(see, think, there=steps, prompts=prompts)
    chooser = choose_action_reasons(think, mode=mode, count=count, prompts=prompts)
    choose = Step(link=ANSWERS, node=chooser, needs=(DESCRIPTION, STATEMENT), subject=options_question)
    return Chain("action_reason", target=ANSWERS, steps=[*steps, choose], mode=see.mode)


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
    steps = description_steps(see, think, context, prompts=prompts) if context else []
    if statement:
        steps += statement_steps(see, think, there=steps, prompts=prompts)
    chooser = choose_from_picture(see, mode=mode, count=count, step_by_step=step_by_step, prompts=prompts)
    choose = Step(link=ANSWERS, node=chooser, needs=(DESCRIPTION, STATEMENT), subject=_picture_question)
    return Chain("end_to_end", target=ANSWERS, steps=[*steps, choose], mode=see.mode)


def _roles(vlm: ModelLike, llm: ModelLike | None) -> tuple[Model, Model]:
    see = get_model(vlm)
    return see, see if llm is None else get_model(llm)


def options_question(reading: Reading) -> OptionsQuestion:
    """The options, the description, and the statement where there is one."""
    return OptionsQuestion(
        description=required(reading, DESCRIPTION).text,
        options=reading.options or (),
        statement=text_of(optional(reading, STATEMENT)),
    )


def _picture_question(reading: Reading) -> OptionsQuestion:
    return OptionsQuestion(
        image=picture(reading),
        options=reading.options or (),
        description=text_of(optional(reading, DESCRIPTION)),
        statement=text_of(optional(reading, STATEMENT)),
    )


def explain(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    context: SeenContext = "I",
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A picture to one sentence that says what is unusual about it, and why (*WHOOPS!*, section 4.1).

    Args:
        vlm: sees the picture.
        llm: explains what is described to it, and makes T_V; by default the VLM does. Not asked in the context `I`.
        context: what the explaining model gets.
        prompts: where prompts are looked up.
    """
    return about_picture(
        "explain",
        target=REPLY,
        context=context,
        vlm=vlm,
        llm=llm,
        seen=(lambda model: explain_from_picture(model, prompts=prompts), about_seen),
        described=(lambda model: explain_from_description(model, prompts=prompts), about_described),
        prompts=prompts,
    )


def identify(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    context: SeenContext = "I",
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A picture to `weird` or `normal` (*WHOOPS!*, section 4.1).

    Args:
        vlm: sees the picture.
        llm: decides from what is described to it, and makes T_V; by default the VLM does. Not asked in the context `I`.
        context: what the deciding model gets.
        prompts: where prompts are looked up.
    """
    return about_picture(
        "identify",
        target=REPLY,
        context=context,
        vlm=vlm,
        llm=llm,
        seen=(lambda model: identify_from_picture(model, prompts=prompts), about_seen),
        described=(lambda model: identify_from_description(model, prompts=prompts), about_described),
        prompts=prompts,
    )


def about_picture(  # noqa: PLR0913  # each is part of the wiring
    name: str,
    *,
    target: Link[Any],
    context: SeenContext,
    vlm: ModelLike | None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    seen: Asker,
    described: Asker,
    given: Collection[str] = (),
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A chain that answers from a picture, or from what is said of it.

    Args:
        name: how the chain shows up in traces.
        target: the link that the answer fills in, such as `REPLY`, or `ANSWERS` where it is chosen among options.
        context: what the answering model gets.
        vlm: sees the picture; None is enough where the description is given.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        seen: what answers in the context `I`.
        described: what answers in the others.
        given: names of the links that every input brings.
        prompts: where prompts are looked up.

    Raises:
        UsageError: no such context, or a model is missing.
    """
    if context not in get_args(SeenContext):
        raise UsageError(f"There is no context {context!r}.", hint=f"Choose one of {', '.join(get_args(SeenContext))}.")
    looks = context == "I" or "description" not in given
    if vlm is None and (looks or llm is None):
        said = f"The context {context!r} looks at the picture." if looks else "There is no model that could answer."
        raise UsageError(said, hint="Give a `vlm`." if looks else "Give `vlm`, `llm`, or both.")
    see = None if vlm is None else get_model(vlm)
    think = cast("Model", see) if llm is None else get_model(llm)
    if context == "I":
        steps = [Step(link=target, node=seen[0](cast("Model", see)), subject=seen[1])]
    else:
        combine = think if combiner is None else get_model(combiner)
        made = [] if see is None or not looks else description_steps(see, combine, context, prompts=prompts)
        steps = [step for step in made if step.link.name not in given]
        steps.append(Step(link=target, node=described[0](think), needs=(DESCRIPTION,), subject=described[1]))
    return Chain(name, target=target, steps=steps, mode=(see or think).mode)


def about_seen(reading: Reading) -> VisualQuestion:
    """The picture, and the question where there is one."""
    return VisualQuestion(image=picture(reading), question=reading.question)


def about_described(reading: Reading) -> VisualQuestion:
    """The description, and the question where there is one."""
    return VisualQuestion(description=required(reading, DESCRIPTION).text, question=reading.question)


def installed_chain(name: str) -> Callable[..., Chain] | None:
    """What makes the chain that an installed package brings under `name`; None where no package does.

    It is called with the VLM, the LLM or None, and `prompts`, a library or None.

    Raises:
        UsageError: it cannot be loaded.
    """
    from importlib.metadata import entry_points  # most chains are the package's own

    for found in entry_points(group=GROUP, name=name):
        try:
            return found.load()
        except (ImportError, AttributeError) as error:
            raise UsageError(
                f"The chain {name!r} cannot be loaded from {found.value!r}: {error}.",
                hint="Mend the package that brings it, or take it out.",
            ) from error
    return None
