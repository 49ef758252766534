"""What a model is told of the picture: contexts by name, and the chain that each stands for.

| context | what the answering model gets |
|---|---|
| `V+T`, `IN`, `UH`, `V+T+IN`, `V+T+IN+UH` | verbalizations, one after the other (Tables 1, 3, 12) |
| `T_V`, `T_V-UH` | one description combined of all, or of all but what is unusual |
| `I` | the picture |
| `I+T_V` and the like | the picture and a description (Table 3) |
| `…+s_IN` | beside it ŝ, detected in the narration (Tables 3, 12) |
| `…+s_TV` | beside it ŝ, detected in T_V (Tables 5, 12) |
| `…+s_true`, `…+s_wrong` | beside it s⁺, or s̄ with the right objects and a wrong relation (Table 5) |
| `text-only` | nothing: a control |

A detected statement is chosen by the LLM over the objects V, as in section 3.2 of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from askance.agents import OptionsQuestion, StatementQuestion
from askance.chains import (
    ANSWERS,
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
    optional,
    picture,
    required,
)
from askance.chains.catalog import atypicality, verbalize
from askance.errors import UsageError
from askance.evals.suite.context import TEXT_ONLY

if TYPE_CHECKING:
    from askance.chains import Reading
    from askance.chains.chain import NodeLike
    from askance.evals.suite.roles import Roles
    from askance.models import Model

StatementSource: TypeAlias = Literal["s_IN", "s_TV", "s_true", "s_wrong"]
"""Where an atypicality statement comes from: detected in the narration or in T_V, or given, true or wrong."""

_SAID: Mapping[str, str] = {link.short: link.name for link in (OBJECTS, SCENE_TEXT, NARRATION, UNUSUAL)}
TOOLS: tuple[str, ...] = tuple(_SAID.values())
"""Links that tools fill in."""

Make: TypeAlias = "Callable[[Model], NodeLike]"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A context, taken apart."""

    name: str
    picture: bool = False
    """Whether the answering model sees the picture."""
    description: Context | None = None
    statement: StatementSource | None = None

    @property
    def blind(self) -> bool:
        """Whether nothing is told of the picture."""
        return self.name == TEXT_ONLY

    @property
    def combined(self) -> bool:
        """Whether T_V is made, shown or not."""
        return self.description == "T_V" or self.statement == "s_TV"


def view_of(name: str) -> View:
    """The context of that name.

    Raises:
        UsageError: there is none of that name.
    """
    if name == TEXT_ONLY:
        return View(name=name)
    statement = next((source for source in get_args(StatementSource) if name.endswith(f"+{source}")), None)
    rest = name if statement is None else name.removesuffix(f"+{statement}")
    seen = rest == "I" or rest.startswith("I+")
    described = rest.removeprefix("I").removeprefix("+") if seen else rest
    if described not in get_args(Context) and not (seen and not described):
        raise _no_context(name)
    view = View(
        name=name, picture=seen, description=cast("Context", described) if described else None, statement=statement
    )
    if statement == "s_TV" and view.description not in {None, "T_V"}:
        raise UsageError(f"The context {name!r} detects a statement in T_V and shows another description.", hint=_HINT)
    return view


_HINT = (
    f"Choose one of {', '.join(get_args(Context))}, I, or I+T_V and the like; with +s_IN, +s_TV, +s_true or "
    f"+s_wrong behind it for an atypicality statement; or {TEXT_ONLY}."
)


def _no_context(name: str) -> UsageError:
    return UsageError(f"There is no context {name!r}.", hint=_HINT)


def plain_view(name: str, task: str) -> View:
    """The context of that name, for tasks in which a picture or a description stands alone.

    Raises:
        UsageError: there is none, or it is one with a statement, or with a description beside the picture.
    """
    view = view_of(name)
    if view.statement is not None or (view.picture and view.description is not None):
        raise UsageError(
            f"The task {task!r} has no context {name!r}.",
            hint=f"Choose one of {', '.join(get_args(Context))}, I or {TEXT_ONLY}.",
        )
    return view


def chain_of(
    view: View,
    roles: Roles,
    *,
    given: Collection[str] = (),
    described: tuple[Make, Callable[[Reading], Any]],
    seen: tuple[Make, Callable[[Reading], Any]],
    target: Link[Any] = ANSWERS,
) -> Chain:
    """The chain of a context.

    Args:
        view: what the answering model gets.
        roles: the models.
        given: links that every sample brings; what only they would need is not asked.
        described: makes what answers from words, and its input.
        seen: makes what answers from the picture, and its input.
        target: the link that the answer fills in.

    Raises:
        UsageError: a picture has to be looked at and there is no VLM.
    """
    if view.picture and roles.vlm is None:
        raise UsageError(f"The context {view.name!r} shows the picture.", hint="Give a `vlm`.")
    make, subject = seen if view.picture else described
    node = make(roles.answering(picture=view.picture))
    answer = Step(link=target, node=node, needs=(DESCRIPTION, STATEMENT), subject=subject)
    steps = _pruned([*_told(view, roles), answer], given)
    if roles.vlm is None:
        steps = [step for step in steps if step.link.name not in TOOLS]
    return Chain(view.name, target=target, steps=steps, mode=roles.see.mode)


def _told(view: View, roles: Roles) -> list[Step]:
    """The steps before the answer."""
    steps: dict[Link[Any], Step] = {}
    context: Context | None = "T_V" if view.combined else view.description
    if context is not None:
        steps |= {step.link: step for step in verbalize(roles.see, roles.combine, context=context).steps}
    if view.statement in {"s_IN", "s_TV"}:
        for step in atypicality(roles.see, roles.think).steps:
            steps.setdefault(step.link, step)
    if view.statement == "s_TV":
        steps[STATEMENT] = replace(steps[STATEMENT], needs=(OBJECTS, DESCRIPTION), subject=_in_t_v)
    return list(steps.values())


def _in_t_v(reading: Reading) -> StatementQuestion:
    return StatementQuestion(description=required(reading, DESCRIPTION).text, objects=required(reading, OBJECTS).names)


def _pruned(steps: Sequence[Step], given: Collection[str]) -> list[Step]:
    """The steps that the last one needs, and itself, where `given` are there already."""
    by_link = {step.link: step for step in steps}
    kept, waiting = set[Link[Any]](), [steps[-1].link]
    while waiting:
        link = waiting.pop()
        if link in by_link and link.name not in given and link not in kept:
            kept.add(link)
            waiting.extend(by_link[link].needs)
    return [step for step in by_link.values() if step.link in kept]


def tools_of(view: View, *, described: bool = False) -> tuple[str, ...]:
    """What the tools have to say for a context, in the order of the links.

    Args:
        view: what the answering model gets.
        described: whether T_V is given, and the tools are asked for the statement alone.
    """
    context = "T_V" if view.combined else view.description or ""
    said = {"T_V": TOOLS, "T_V-UH": TOOLS[:3]}.get(context) or tuple(_SAID[part] for part in context.split("+") if part)
    needed = set[str]() if described and view.combined else {*said}
    needed |= {"s_IN": {"objects", "narration"}, "s_TV": {"objects"}}.get(view.statement or "", set())
    return tuple(link for link in TOOLS if link in needed)


def picture_question(view: View) -> Callable[[Reading], OptionsQuestion]:
    """Gives the options, the picture, and what the context shows beside it."""

    def question(reading: Reading) -> OptionsQuestion:
        statement = optional(reading, STATEMENT)
        shown = optional(reading, DESCRIPTION) if view.description is not None else None
        return OptionsQuestion(
            image=picture(reading),
            options=reading.options or (),
            description=None if shown is None else str(shown),
            statement=None if statement is None else str(statement),
        )

    return question
