"""Contexts: what the answering model gets of the picture. `parse_context` reads a name, `InContext` is a model in one.

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

With `solver=investigator` the LLM looks around in the picture with tools before it answers (`askance.investigator`). It
is asked as in the context `I`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, cast, get_args

from pydantic import Field
from typing_extensions import override

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
from askance.evals.part import Answerer, Question
from askance.evals.solver import ChainSolver, Solver
from askance.evals.task_options import ROLES
from askance.investigator import DEFAULT_TOOLS, Investigator, check_held_out, toolbox
from askance.investigator.looking_node import CALLS, LEAST_CALLS
from askance.models import ModelLike, get_model
from askance.nodes import Node
from askance.replay import Budget
from askance.tools import caption

if TYPE_CHECKING:
    from askance.agents import OptionsQuestion, VisualQuestion
    from askance.chains import Reading
    from askance.chains.chain import NodeLike
    from askance.chat import JsonObject
    from askance.evals.evaluation import Evaluation
    from askance.evals.sample import Sample
    from askance.models import Engine, Model

PICTURE, CAPTION, GOLD, TEXT_ONLY = "I", "caption", "gold-caption", "text-only"
"""Contexts without a verbalization: the picture, a caption, a caption that people chose, nothing."""

NOTHING = "No description of the image is available."
"""The description in the context `text-only`."""

INVESTIGATOR: Final = "investigator"
"""The value of the option `solver` by which a task's own models look around with tools."""
LOOKING: Final = frozenset({"calls", "tools", "abstain", "eyes", "similar_index"})
"""Options of models that do."""

VERBALIZED: tuple[str, ...] = get_args(Context)
"""Contexts in which the answering model gets verbalizations."""

StatementSource: TypeAlias = Literal["s_IN", "s_TV", "s_true", "s_wrong"]
"""Where an atypicality statement comes from: detected in the narration or in T_V; or given, true or wrong."""

_SAID: Mapping[str, str] = {link.short: link.name for link in (OBJECTS, SCENE_TEXT, NARRATION, UNUSUAL)}
TOOLS: tuple[str, ...] = tuple(_SAID.values())
"""Links that tools fill in."""


def _no_steps(_: InContext) -> Sequence[Step]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteContext:
    """A context that a suite brings: how the description is made that stands in the place of the picture.

    A task's model has it among its `own_contexts`, and its name among its `contexts`.
    """

    steps: Callable[[InContext], Sequence[Step]] = _no_steps
    """Makes the steps that fill in the description. Without steps every sample brings a `description`. A link that the
    steps need and do not fill in is brought by every sample, too."""
    looks: bool = False
    """Whether a step asks about the picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedContext:
    """A context by its parts: whether the picture is shown, what describes it, which statement stands beside."""

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


def parse_context(
    name: str,
    *,
    task: str,
    among: Collection[str],
    beside: bool = False,
    suite: Mapping[str, SuiteContext] | None = None,
) -> ParsedContext:
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
        return ParsedContext(name=name, suite=suite[name])
    statement = next((each for each in get_args(StatementSource) if beside and name.endswith(f"+{each}")), None)
    base = name if statement is None else name.removesuffix(f"+{statement}")
    seen = base == PICTURE or (beside and base.startswith(f"{PICTURE}+"))
    described = base.removeprefix(PICTURE).removeprefix("+") if seen else base
    known = base in among or (seen and described in VERBALIZED)
    if not known or (statement is not None and not seen and described not in VERBALIZED):
        raise UsageError(f"The task {task!r} has no context {name!r}.", hint=_hint(among, beside=beside))
    shown = described if described in {*VERBALIZED, CAPTION} else None
    if statement == "s_TV" and shown not in {None, "T_V"}:
        raise UsageError(
            f"The context {name!r} detects a statement in T_V and shows another description.",
            hint=_hint(among, beside=beside),
        )
    return ParsedContext(name=name, picture=seen, description=shown, statement=statement)


def _hint(among: Collection[str], *, beside: bool) -> str:
    more = "; or I+T_V and the like, and with +s_IN, +s_TV, +s_true or +s_wrong behind it for an atypicality statement"
    return f"Choose one of {', '.join(among)}{more if beside else ''}."


class InContext(Answerer):
    """A model that answers in a context: from the picture, or from what is said of it."""

    settings = frozenset({"engine", "contexts", "own_contexts", "beside", "undescribed", "investigates"})
    chosen_by = ROLES

    vlm: ModelLike | None = None
    """Sees the picture."""
    llm: ModelLike | None = None
    """Reasons over words; by default the VLM does."""
    combiner: ModelLike | None = None
    """Makes T_V; by default the LLM does."""
    context: str = PICTURE
    """What the answering model gets: the picture, `I`, or a description such as `UH`, `V+T` or `T_V`."""
    calls: int = Field(default=CALLS, ge=LEAST_CALLS)
    """With solver=investigator: most calls for one sample, the agent's own and those of its tools."""
    tools: str = ",".join(DEFAULT_TOOLS)
    """With solver=investigator: how it may look, with commas between; see `askance run investigate --help`."""
    abstain: bool = False
    """With solver=investigator: whether an answer for which it had not seen enough is withheld; it counts as wrong."""
    eyes: bool = False
    """With solver=investigator: whether the LLM sees the picture, and what it zooms into."""
    similar_index: Path | None = None
    """With solver=investigator: folder of an index of another split, which the tool `similar` searches."""

    contexts: tuple[str, ...] = (*VERBALIZED, PICTURE, TEXT_ONLY)
    """Names of the contexts that there are."""
    own_contexts: Mapping[str, SuiteContext] = Field(default_factory=dict[str, SuiteContext])
    """By name, those of them that the suite brings itself."""
    beside: bool = False
    """Whether a verbalization can stand beside the picture, and an atypicality statement beside both."""
    undescribed: str = "The pictures of examples are not described"
    """Why a described context takes no examples."""
    investigates: bool = False
    """Whether the model looks around with tools before it answers."""

    @override
    def set(self, options: Mapping[str, Any], *, task: str, engine: Engine | None, stated: Mapping[str, Any]) -> Self:
        if stated.get("solver") == INVESTIGATOR and not LOOKING & self.settings:
            options = {"context": PICTURE, **options, "investigates": True}
        return super().set(options, task=task, engine=engine, stated=stated)

    @override
    def from_kept(self, kept: Mapping[str, Any], *, task: str, engine: Engine | None) -> Self:
        part = super().from_kept(kept, task=task, engine=engine)
        looks = kept.get("solver") == {"name": INVESTIGATOR}
        return part.model_copy(update={"investigates": True}) if looks else part

    @override
    def kept(self) -> JsonObject:
        form = super().kept()
        return form if self.investigates else {name: value for name, value in form.items() if name not in LOOKING}

    @override
    def check(self, options: Mapping[str, Any]) -> None:
        """Checks the context.

        Raises:
            UsageError: there is no such context, or examples cannot be shown in it, or before reasoning; or options of
                an investigator are given for another solver, or such as it does not take.
        """
        _ = self.parsed_context
        if self.investigates:
            self._check_investigator(options)
        elif unused := sorted(LOOKING & self.model_fields_set):
            raise UsageError(f"The option `{unused[0]}` is one of an investigator.", hint="Add `solver=investigator`.")
        if not options.get("shots"):
            return
        self.check_examples()
        if options.get("step_by_step"):
            raise UsageError(
                "Examples show answers without reasoning, so a model cannot be asked to reason after them.",
                hint="Give `shots` or `step_by_step`.",
            )

    def _check_investigator(self, options: Mapping[str, Any]) -> None:
        if self.context != PICTURE:
            raise UsageError(
                f"An investigator looks at the picture itself, and the context {self.context!r} says what is in it.",
                hint="Leave `context` out.",
            )
        for name in ("shots", "step_by_step"):
            if options.get(name):
                raise UsageError(f"An investigator takes no `{name}`.", hint=f"Leave `{name}` out.")
        if "similar" in self.tool_names and self.similar_index is None:
            raise UsageError(
                "The tool `similar` searches other texts, and in an evaluation those of another split alone.",
                hint="Give the folder of their index as `similar_index`, or leave the tool out.",
            )

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools that an investigator has."""
        return tuple(name for each in self.tools.split(",") if (name := each.strip()))

    def check_examples(self) -> None:
        """Checks that examples can be shown in the context.

        Raises:
            UsageError: only models fill it in, and nobody asks them about the pictures of examples.
        """
        if self.parsed_context.description is not None:
            others = [name for name in self.contexts if name not in {*VERBALIZED, CAPTION}]
            raise UsageError(
                f"{self.undescribed}, so the context {self.context!r} takes no `shots`.",
                hint=f"Choose one of {', '.join(others)}.",
            )

    @cached_property
    def parsed_context(self) -> ParsedContext:
        """The context, parsed.

        Raises:
            UsageError: there is no such context.
        """
        return parse_context(
            self.context, task=self._task, among=self.contexts, beside=self.beside, suite=self.own_contexts
        )

    @property
    @override
    def looks(self) -> bool:
        return self.parsed_context.looks

    @property
    def see(self) -> Model:
        """The model that sees the picture.

        Raises:
            UsageError: there is no model.
        """
        model = self.vlm or self.llm
        if model is None:
            raise UsageError("There is no model that could answer.", hint="Give `vlm`, `llm`, or both.")
        return get_model(model)

    @property
    def think(self) -> Model:
        """The model that reasons over words."""
        return self.see if self.llm is None else get_model(self.llm)

    @property
    def combine(self) -> Model:
        """The model that makes T_V."""
        return self.think if self.combiner is None else get_model(self.combiner)

    @property
    def answering(self) -> Model:
        """The model that answers, from the picture or from words."""
        return self.see if self.parsed_context.picture and not self.investigates else self.think

    @override
    def label(self) -> str:
        return str(self.answering.id)

    @override
    def words(self) -> tuple[str, ...]:
        if not self.investigates:
            return (self.context,)
        tools = () if self.tool_names == DEFAULT_TOOLS else (f"tools {'+'.join(self.tool_names)}",)
        marks = (*(("abstains",) if self.abstain else ()), *(("eyes",) if self.eyes else ()))
        return (INVESTIGATOR, f"{self.calls} calls", *tools, *marks)

    @override
    def prepared(self, evaluation: Evaluation, *, left_out: Collection[str]) -> Evaluation:
        """The evaluation.

        Raises:
            UsageError: the index that `similar` searches holds right answers of the evaluation, or is of its pictures.
        """
        if self.investigates and self.similar_index is not None:
            texts = {text for sample in evaluation.samples for text in _answers_of(sample)}
            images = {
                name
                for sample in evaluation.samples
                for name in (sample.id, sample.cluster, "" if sample.image is None else sample.image.name)
                if name
            }
            check_held_out(self.similar_index, texts=texts, images=images)
        return super().prepared(evaluation, left_out=left_out)

    @override
    def solver(self, question: Question) -> Solver:
        """A chain that makes what the context says of the picture, and answers.

        Raises:
            UsageError: the context shows the picture, or is the suite's own and looks at it, and there is no VLM.
        """
        parsed = self.parsed_context
        if self.vlm is None and (parsed.picture or (parsed.suite is not None and parsed.looks)):
            does = "shows" if parsed.picture else "looks at"
            raise UsageError(f"The context {parsed.name!r} {does} the picture.", hint="Give a `vlm`.")
        shown: list[Link[Any]] = [DESCRIPTION] if parsed.description is not None or not parsed.picture else []
        shown += [STATEMENT] if parsed.statement is not None else []
        node = self.node(question)
        answer = Step(link=question.target, node=node, needs=(*shown, *question.needs), subject=question.asks)
        chain = self.chain(question.name, target=question.target, steps=(answer,), given=question.given)
        return ChainSolver(question.measured(chain), given=question.inputs, value=question.value, abstains=self.abstain)

    def node(self, question: Question) -> NodeLike:
        """The node that answers.

        Raises:
            UsageError: the question is not one for a model, or not one that can be investigated.
        """
        if question.agent is None:
            raise UsageError(f"No model is asked {question.name!r}.", hint="Give another `solver`.")
        node = question.agent(self.answering, sees=self.parsed_context.picture)
        if not self.investigates:
            return node
        if not isinstance(node, Node):
            raise UsageError(
                f"The task {self._task!r} asks more than one question, which cannot be investigated.",
                hint="Leave `solver=investigator` out.",
            )
        tools = toolbox(self.tool_names, vlm=self.see, index=self.similar_index)
        goal = cast("Node[Any, Any]", node)
        return Investigator(goal, tools, budget=Budget(calls=self.calls), eyes=self.eyes)

    def chain(
        self,
        name: str,
        *,
        target: Link[Any],
        steps: Iterable[Step] = (),
        beside: Collection[Link[Any]] = (),
        given: Collection[str] = (),
    ) -> Chain:
        """The chain that fills in what the context says of a picture, as far as it is needed.

        Args:
            name: of the chain.
            target: the link that the chain is after.
            steps: further steps, which need what the context says.
            beside: links that are wanted beside the target.
            given: links that every sample brings; they, and steps that only they need, are left out.
        """
        needed = _pruned([*self._described(), *steps], (target, *beside), given)
        if self.vlm is None:
            needed = [step for step in needed if step.link.name not in TOOLS]
        return Chain(name, target=target, steps=needed, mode=self.see.mode)

    def _described(self) -> list[Step]:
        """The steps before the answer."""
        parsed, steps = self.parsed_context, dict[Link[Any], Step]()
        if parsed.suite is not None:
            return list(parsed.suite.steps(self))
        if parsed.description == CAPTION:
            return [Step(link=DESCRIPTION, node=caption(self.see), subject=picture)]
        description = cast("Context | None", "T_V" if parsed.combined else parsed.description)
        if description is not None:
            steps |= {step.link: step for step in verbalize(self.see, self.combine, context=description).steps}
        if parsed.statement in {"s_IN", "s_TV"}:
            for step in atypicality(self.see, self.think).steps:
                steps.setdefault(step.link, step)
        if parsed.statement == "s_TV":
            steps[STATEMENT] = replace(steps[STATEMENT], needs=(OBJECTS, DESCRIPTION), subject=_in_t_v)
        return list(steps.values())


def _answers_of(sample: Sample) -> Iterator[str]:
    """The texts of a sample's right answer: those in its target, and the options that it names by number."""
    options: Any = sample.inputs.get("options")
    listed: list[Any] = cast("list[Any]", options) if isinstance(options, (list, tuple)) else []
    waiting: list[Any] = [sample.target]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif type(value) is int and 1 <= value <= len(listed):
            yield str(listed[value - 1])
        elif isinstance(value, Mapping):
            waiting.extend(cast("Mapping[Any, Any]", value).values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(cast("Sequence[Any]", value))


def _in_t_v(reading: Reading) -> StatementQuestion:
    return StatementQuestion(description=reading.require(DESCRIPTION).text, objects=reading.require(OBJECTS).names)


def _pruned(steps: Iterable[Step], wanted: Iterable[Link[Any]], given: Collection[str]) -> list[Step]:
    """The steps that the links `wanted` need if the links `given` are known."""
    by_link = {step.link: step for step in steps}
    needed, waiting = set[Link[Any]](), [*wanted]
    while waiting:
        link = waiting.pop()
        if link in by_link and link.name not in given and link not in needed:
            needed.add(link)
            waiting.extend(by_link[link].needs)
    return [step for step in by_link.values() if step.link in needed]


def tools_of(context: ParsedContext, *, described: bool = False) -> tuple[str, ...]:
    """The links that tools have to fill in for a context, in their order.

    Args:
        context: the context.
        described: whether T_V is given, so that tools are needed only for the statement.
    """
    description = "T_V" if context.combined else context.description or ""
    links = {"T_V": TOOLS, "T_V-UH": TOOLS[:3]}.get(description) or tuple(
        _SAID[part] for part in description.split("+") if part
    )
    needed = set[str]() if described and context.combined else {*links}
    needed |= {"s_IN": {"objects", "narration"}, "s_TV": {"objects"}}.get(context.statement or "", set())
    return tuple(link for link in TOOLS if link in needed)
