"""Contexts: what the answering model gets of the picture. `view_of` parses a name, `chain_of` makes the chain.

A suite may bring contexts of its own beside these: see `SuiteContext`.

| context | what the answering model gets |
|---|---|
| `I` | the picture: end to end |
| `V+T`, `IN`, `UH`, `V+T+IN`, `V+T+IN+UH` | verbalizations, one after the other |
| `T_V`, `T_V-UH` | one description combined of all, or of all but what is unusual |
| `caption` | a caption that the VLM writes |
| `gold-caption` | the caption that people chose: an oracle |
| `I+T_V` and the like | the picture and a description |
| `…+s_IN` | beside it ŝ, detected in the narration |
| `…+s_TV` | beside it ŝ, detected in T_V |
| `…+s_true`, `…+s_wrong` | beside it s⁺, or s̄ with the right objects and a wrong relation |
| `text-only` | nothing: a control |

A detected statement is chosen by the LLM over the objects V (section 3.2 of the paper on atypical ads).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from askance.agents import StatementQuestion
from askance.chains import (
    DESCRIPTION,
    NARRATION,
    OBJECTS,
    SCENE_TEXT,
    STATEMENT,
    UNUSUAL,
    Chain,
    Context,
    Link,
    Step,
    picture,
)
from askance.chains.catalog import atypicality, options_question, verbalize, visual_question
from askance.errors import UsageError
from askance.tools import caption

if TYPE_CHECKING:
    from askance.agents import OptionsQuestion, VisualQuestion
    from askance.chains import Reading
    from askance.chains.chain import NodeLike
    from askance.evals.suite.suite_task import ModelTask

PICTURE, CAPTION, GOLD, TEXT_ONLY = "I", "caption", "gold-caption", "text-only"
"""Contexts without a verbalization: the picture, a caption, a caption that people chose, nothing."""

NOTHING = "No description of the image is available."
"""The description in the context `text-only`."""

VERBALIZED: tuple[str, ...] = get_args(Context)
"""Contexts in which the answering model gets verbalizations."""

StatementSource: TypeAlias = Literal["s_IN", "s_TV", "s_true", "s_wrong"]
"""Where an atypicality statement comes from: detected in the narration or in T_V; or given, true or wrong."""

_SAID: Mapping[str, str] = {link.short: link.name for link in (OBJECTS, SCENE_TEXT, NARRATION, UNUSUAL)}
TOOLS: tuple[str, ...] = tuple(_SAID.values())
"""Links that tools fill in."""


def _no_steps(_: ModelTask) -> Sequence[Step]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteContext:
    """A context that a suite brings: how the description is made that stands in the place of the picture.

    A task lists its name in `contexts`, and the context itself under that name in `suite_contexts`.
    """

    steps: Callable[[ModelTask], Sequence[Step]] = _no_steps
    """Makes the steps that fill in the description. Without steps every sample brings a `description`. A link that the
    steps need and do not fill in is brought by every sample, too."""
    looks: bool = False
    """Whether a step asks about the picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A context, parsed."""

    name: str
    picture: bool = False
    """Whether the answering model sees the picture."""
    description: str | None = None
    """How the description is made: a verbalization or a caption; None for no description, or one that is given."""
    statement: StatementSource | None = None
    suite: SuiteContext | None = None
    """The context as its suite declares it; None for one that all suites know."""

    @property
    def blind(self) -> bool:
        """Whether the model gets nothing of the picture."""
        return self.name == TEXT_ONLY

    @property
    def looks(self) -> bool:
        """Whether some model looks at the picture, unless what it would say is given."""
        return self.name not in {GOLD, TEXT_ONLY} if self.suite is None else self.suite.looks

    @property
    def combined(self) -> bool:
        """Whether T_V is made, even if only to detect a statement in it."""
        return self.description == "T_V" or self.statement == "s_TV"

    def visual_question(self, reading: Reading) -> VisualQuestion:
        """The picture or its description, and the question if there is one."""
        return visual_question(reading, sees=self.picture)

    def options_question(self, reading: Reading) -> OptionsQuestion:
        """The options, and what the context shows of the picture."""
        question = options_question(reading, sees=self.picture)
        hidden = self.picture and self.description is None
        return question.model_copy(update={"description": None}) if hidden else question


def view_of(
    name: str,
    *,
    task: str,
    among: Collection[str],
    beside: bool = False,
    suite: Mapping[str, SuiteContext] | None = None,
) -> View:
    """The context of that name, parsed.

    Args:
        name: of the context.
        task: name of the task, for messages.
        among: contexts of the task.
        beside: whether the task allows a verbalization beside the picture, and an atypicality statement beside both.
        suite: by name, the contexts that the suite brings itself; `among` has their names as well.

    Raises:
        UsageError: the task has no such context.
    """
    if suite and name in suite and name in among:
        return View(name=name, suite=suite[name])
    statement = next((each for each in get_args(StatementSource) if beside and name.endswith(f"+{each}")), None)
    rest = name if statement is None else name.removesuffix(f"+{statement}")
    seen = rest == PICTURE or (beside and rest.startswith(f"{PICTURE}+"))
    described = rest.removeprefix(PICTURE).removeprefix("+") if seen else rest
    known = rest in among or (seen and described in VERBALIZED)
    if not known or (statement is not None and not seen and described not in VERBALIZED):
        raise UsageError(f"The task {task!r} has no context {name!r}.", hint=_hint(among, beside=beside))
    shown = described if described in {*VERBALIZED, CAPTION} else None
    if statement == "s_TV" and shown not in {None, "T_V"}:
        raise UsageError(
            f"The context {name!r} detects a statement in T_V and shows another description.",
            hint=_hint(among, beside=beside),
        )
    return View(name=name, picture=seen, description=shown, statement=statement)


def _hint(among: Collection[str], *, beside: bool) -> str:
    more = "; or I+T_V and the like, and with +s_IN, +s_TV, +s_true or +s_wrong behind it for an atypicality statement"
    return f"Choose one of {', '.join(among)}{more if beside else ''}."


def chain_of(
    name: str,
    task: ModelTask,
    *,
    agent: Callable[..., NodeLike],
    subject: Callable[[Reading], Any],
    target: Link[Any],
    needs: Collection[Link[Any]] = (),
    given: Collection[str] = (),
) -> Chain:
    """The chain of a task in its context.

    Args:
        name: of the chain.
        task: has the context and the models.
        agent: makes the node that answers, from a model and `sees` (whether it sees the picture).
        subject: makes that node's input from a reading.
        target: the link that the answer fills in.
        needs: links that the answer needs beside what the context shows of the picture, such as a caption; every sample
            brings them.
        given: links that every sample brings; they, and steps that only they need, are left out.

    Raises:
        UsageError: the context shows the picture, or is the suite's own and looks at it, and there is no VLM.
    """
    view = task.view
    if task.vlm is None and (view.picture or (view.suite is not None and view.looks)):
        does = "shows" if view.picture else "looks at"
        raise UsageError(f"The context {view.name!r} {does} the picture.", hint="Give a `vlm`.")
    shown: list[Link[Any]] = [DESCRIPTION] if view.description is not None or not view.picture else []
    shown += [STATEMENT] if view.statement is not None else []
    node = agent(task.answering, sees=view.picture)
    answer = Step(link=target, node=node, needs=(*shown, *needs), subject=subject)
    return context_chain(name, task, target=target, steps=(answer,), given=given)


def context_chain(
    name: str,
    task: ModelTask,
    *,
    target: Link[Any],
    steps: Iterable[Step] = (),
    beside: Collection[Link[Any]] = (),
    given: Collection[str] = (),
) -> Chain:
    """The chain that fills in what the context of a task says of a picture, as far as it is needed.

    Args:
        name: of the chain.
        task: has the context and the models.
        target: the link that the chain is after.
        steps: further steps, which need what the context says.
        beside: links that are wanted beside the target.
        given: links that every sample brings; they, and steps that only they need, are left out.
    """
    kept = _pruned([*_described(task), *steps], (target, *beside), given)
    if task.vlm is None:
        kept = [step for step in kept if step.link.name not in TOOLS]
    return Chain(name, target=target, steps=kept, mode=task.see.mode)


def _described(task: ModelTask) -> list[Step]:
    """The steps before the answer, in the context of a task."""
    view, steps = task.view, dict[Link[Any], Step]()
    if view.suite is not None:
        return list(view.suite.steps(task))
    if view.description == CAPTION:
        return [Step(link=DESCRIPTION, node=caption(task.see), subject=picture)]
    context = cast("Context | None", "T_V" if view.combined else view.description)
    if context is not None:
        steps |= {step.link: step for step in verbalize(task.see, task.combine, context=context).steps}
    if view.statement in {"s_IN", "s_TV"}:
        for step in atypicality(task.see, task.think).steps:
            steps.setdefault(step.link, step)
    if view.statement == "s_TV":
        steps[STATEMENT] = replace(steps[STATEMENT], needs=(OBJECTS, DESCRIPTION), subject=_in_t_v)
    return list(steps.values())


def _in_t_v(reading: Reading) -> StatementQuestion:
    return StatementQuestion(description=reading.require(DESCRIPTION).text, objects=reading.require(OBJECTS).names)


def _pruned(steps: Iterable[Step], wanted: Iterable[Link[Any]], given: Collection[str]) -> list[Step]:
    """The steps that the links `wanted` need if the links `given` are known."""
    by_link = {step.link: step for step in steps}
    kept, waiting = set[Link[Any]](), [*wanted]
    while waiting:
        link = waiting.pop()
        if link in by_link and link.name not in given and link not in kept:
            kept.add(link)
            waiting.extend(by_link[link].needs)
    return [step for step in by_link.values() if step.link in kept]


def tools_of(view: View, *, described: bool = False) -> tuple[str, ...]:
    """The links that tools have to fill in for a context, in their order.

    Args:
        view: the context.
        described: whether T_V is given, so that tools are needed only for the statement.
    """
    context = "T_V" if view.combined else view.description or ""
    said = {"T_V": TOOLS, "T_V-UH": TOOLS[:3]}.get(context) or tuple(_SAID[part] for part in context.split("+") if part)
    needed = set[str]() if described and view.combined else {*said}
    needed |= {"s_IN": {"objects", "narration"}, "s_TV": {"objects"}}.get(view.statement or "", set())
    return tuple(link for link in TOOLS if link in needed)
