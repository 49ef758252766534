"""The chain `investigate`: an agent looks around in a picture until it can answer, within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from askance.agents.choose import COUNT
from askance.chains.catalog import Count, Mode  # noqa: TC001  # the types of options are read
from askance.chains.chain import Chain, Step
from askance.errors import UsageError
from askance.investigator.goals import GoalName, goal_named
from askance.investigator.looking_node import CALLS, Investigator
from askance.investigator.toolbox import DEFAULT_TOOLS, toolbox
from askance.models import get_model
from askance.replay import Budget

if TYPE_CHECKING:
    from askance.models import ModelLike
    from askance.prompts import PromptLibrary


def investigate(  # noqa: PLR0913  # each option is a flag
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    goal: Annotated[GoalName, Field(description="What is to be found out.")] = "explain",
    question: Annotated[str | None, Field(description="What the goal `answer` asks.")] = None,
    mode: Mode = "multi",
    count: Count = COUNT,
    tools: Annotated[
        Sequence[str],
        Field(
            description="How the agent may look, with commas between: objects, scene_text, narration, unusual, "
            f"caption, ocr, ask, zoom, compare, similar. By default {','.join(DEFAULT_TOOLS)}."
        ),
    ] = (),
    index: Annotated[Path | None, Field(description="Folder of the index that the tool `similar` searches.")] = None,
    calls: Annotated[
        int | None,
        Field(
            ge=1,
            description="Most calls of models for one picture, the agent's own and those of its tools. By default "
            f"{CALLS}, if --budget-each limits nothing else.",
        ),
    ] = None,
    budget_each: Annotated[
        str | None, Field(description="The most that one picture may take: 20000tokens, or 0.05 for US dollars.")
    ] = None,
    eyes: Annotated[bool, Field(description="Whether the LLM sees the picture and what it zooms into.")] = False,
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A picture to an answer that an agent gives after it looked around.

    Args:
        vlm: sees the picture; the tools ask it.
        llm: decides what to look at, and answers; by default the VLM does.
        goal: what is to be found out; see `askance.investigator.goals`.
        question: what the goal `answer` asks where a picture brings no question of its own.
        mode: of the goal `choose`: `multi` asks for the best options in order, `single` for one.
        count: of the goal `choose`: how many options `multi` asks for.
        tools: their names, each text one or several with commas between; none are `DEFAULT_TOOLS`.
        index: what the tool `similar` searches.
        calls: most calls for one picture.
        budget_each: the most tokens or dollars for one picture.
        eyes: whether the LLM sees the picture, and the regions that it looks at.
        prompts: where prompts are looked up.

    Raises:
        UsageError: an option is unknown, goes with another goal, or limits nothing.
        MissingExtra: what an agent or one of its tools needs is not installed.
    """
    see = get_model(vlm)
    think = see if llm is None else get_model(llm)
    chosen = goal_named(goal, question=question)
    make = chosen.make
    if goal == "choose":
        make = partial(make, mode=mode, count=count)
    elif (mode, count) != ("multi", COUNT):
        raise UsageError(f"The goal {goal!r} chooses one answer.", hint="Leave `choose` and `count` out.")
    names = [name.strip() for text in tools for name in text.split(",") if name.strip()] or DEFAULT_TOOLS
    node = Investigator(
        make(think, prompts=prompts),
        toolbox(names, vlm=see, index=index, prompts=prompts),
        budget=_budget(calls, budget_each),
        eyes=eyes,
        prompts=prompts,
    )
    step = Step(link=chosen.link, node=node, subject=chosen.subject)
    return Chain("investigate", target=chosen.link, steps=[step], mode=see.mode)


def _budget(calls: int | None, each: str | None) -> Budget:
    if each is None:
        return Budget(calls=CALLS if calls is None else calls)
    budget = Budget.parse(each)
    return budget if calls is None else replace(budget, calls=calls)
