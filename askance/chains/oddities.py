"""Chains that say what is odd about a picture: `explain` in a sentence, `identify` as weird or normal.

A model that sees answers from the picture (end to end); or one that reasons over words answers from what the other says
of it: a caption, as in the pipelines of *WHOOPS!* (section 5), or any verbalization, such as T_V.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from askance.agents import (
    AboutDescription,
    AboutPicture,
    explain_from_description,
    explain_from_picture,
    identify_from_description,
    identify_from_picture,
)
from askance.chains.chain import Chain, NodeLike, Step, picture, required
from askance.chains.factories import Context, verbalize
from askance.errors import UsageError
from askance.models import get_model
from askance.tools import caption

if TYPE_CHECKING:
    from typing import Any

    from askance.chains.reading import Link, Reading
    from askance.models import Model, ModelLike
    from askance.prompts import PromptLibrary

SeenContext = Literal["I", "caption", "T_V", "T_V-UH", "V+T", "IN", "UH", "V+T+IN", "V+T+IN+UH"]
"""What the answering model gets: the picture itself (`I`), a caption of it, or a description as of the other chains."""

Asker: TypeAlias = "tuple[Callable[[Model], NodeLike], Callable[[Reading], Any]]"
"""Makes the node that answers, and gives its input."""


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
        target="reply",
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
        target="reply",
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
    target: Link,
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
        target: the link that the answer fills in: `reply`, or `answers` where it is chosen among options.
        context: what the answering model gets.
        vlm: sees the picture; None is enough where the description is given.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        seen: what answers in the context `I`.
        described: what answers in the others.
        given: links that every input brings.
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
        steps = [] if see is None else _described(see, combine, context, given=given, prompts=prompts)
        steps.append(Step(link=target, node=described[0](think), needs=("description",), subject=described[1]))
    return Chain(name, target=target, steps=steps, mode=(see or think).mode)


def _described(
    vlm: Model, combiner: Model, context: SeenContext, *, given: Collection[str], prompts: PromptLibrary | None
) -> list[Step]:
    """The steps that make the description, as far as it is not given."""
    if "description" in given:
        return []
    if context == "caption":
        return [Step(link="description", node=caption(vlm, prompts=prompts), subject=picture)]
    steps = verbalize(vlm, combiner, context=cast("Context", context), prompts=prompts).steps
    return [step for step in steps if step.link not in given]


def about_seen(reading: Reading) -> AboutPicture:
    """The picture, and the question where there is one."""
    return AboutPicture(image=picture(reading), question=reading.question)


def about_described(reading: Reading) -> AboutDescription:
    """The description, and the question where there is one."""
    return AboutDescription(description=required(reading, "description").text, question=reading.question)
