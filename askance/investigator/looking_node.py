"""The investigator: a model that answers a node's question by looking around in the picture with tools.

It takes what the node takes and gives what the node gives, so it stands in a chain where the node would. How the answer
came about is the trace of its `Result`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast

from typing_extensions import override

from askance.errors import BadImage, CallError, MissingExtra, OverLimit, PromptTooLong, ReplayMiss, UsageError
from askance.investigator.goals import goal_named
from askance.investigator.investigation import ANSWER, Investigation, OpenQuestion
from askance.investigator.json_turns import JsonTurns
from askance.investigator.scene import Scene
from askance.investigator.toolbox import DEFAULT_TOOLS, toolbox
from askance.investigator.turns import MOST_TOKENS, ToolTurns
from askance.models.call_scope import limit_budget
from askance.nodes import Node, Result, Unreadable, no_answer
from askance.nodes.tracing import trace_value, traced_run
from askance.replay import Budget

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManager
    from langchain_core.runnables import RunnableConfig

    from askance.chat import JsonObject
    from askance.investigator.graph import Graph
    from askance.investigator.look import LookTool
    from askance.investigator.turns import TurnForm
    from askance.models import Model, ModelLike
    from askance.models.call_scope import BudgetLimit
    from askance.nodes import AnswerField
    from askance.prompts import Form, Prompt, PromptLibrary
    from askance.retrieval import IndexLike

CALLS: Final = 8
"""Calls that an investigation may make where the caller does not say."""
LEAST_CALLS: Final = 2
"""Fewest calls of an investigation: a turn in which a tool is called, and the answer."""
MOST_TURNS: Final = 50
"""Turns of an investigation whose calls are not limited."""

_GRAPH: Final = "askance.investigator.graph"
"""The module that loads LangGraph, which takes seconds; so it is loaded by the first question."""
_VENDORS: Final = ("langchain", "langgraph")

TurnFormName = Literal["tools", "json"]


class Investigator(Node[Any, Any]):
    """Answers the question of a node by looking around in its picture.

    Args:
        goal: its question is asked; its model calls the tools.
        tools: what the model may look with.
        budget: the most that one investigation may take, its tools included: `8 calls`, `20000 tokens`, `0.05` for
            dollars.
        eyes: whether the model is shown the picture, and each region that a tool has looked at; else it knows what the
            tools say.
        form: how tools are called: `tools` as the endpoint's own, or `json` as one JSON object a turn; None is `tools`
            where the endpoint takes them.
        fenced: whether what the tools find is fenced, and called no instruction. Without it, orders that stand in a
            picture are easily obeyed: it is for measuring that.
        prompts: where prompts are looked up.
        name: how it shows up in traces and graphs.

    Raises:
        UsageError: the budget is none, or too small for a tool and the answer; there are no tools, or two of one name,
            or one is called as the answer.
        MissingExtra: LangChain or LangGraph is not installed.
    """

    prompt = "investigate"
    takes: ClassVar[type[Any]] = object
    gives: ClassVar[type[Any]] = object
    max_tokens = MOST_TOKENS

    def __init__(
        self,
        goal: Node[Any, Any],
        tools: Sequence[LookTool],
        *,
        budget: Budget | str = f"{CALLS} calls",
        eyes: bool = False,
        form: TurnFormName | None = None,
        fenced: bool = True,
        prompts: PromptLibrary | None = None,
        name: str | None = None,
    ) -> None:
        self.goal = goal
        self.tools = tuple(tools)
        self.budget = Budget.parse(budget) if isinstance(budget, str) else budget
        self.eyes = eyes
        self.form = form
        self.fenced = fenced
        if self.budget.calls is not None and self.budget.calls < LEAST_CALLS:
            raise UsageError(
                f"An investigation takes at least {LEAST_CALLS} calls, and may make {self.budget.calls}.",
                hint="Give it more, or ask in one go.",
            )
        names = [tool.name for tool in self.tools]
        if ANSWER in names or len({*names}) < len(names):
            raise UsageError(f"Tools need names of their own, other than {ANSWER!r}.", hint="Rename one of them.")
        if not tools:
            raise UsageError("An investigator without a tool cannot look.", hint="Give it one, such as `ask`.")
        if (lacking := missing_vendor()) is not None:
            raise lacking
        super().__init__(goal.model, prompts=prompts, name=name)

    @override
    def _begin(self) -> None:
        super()._begin()
        self.goal._prompt_for("json")  # so that it is among the prompts in use from the beginning
        forms: tuple[Form, ...] = ("text", "json")
        self._words = {form: (self._prompt_for(form), self._turn_prompt(form)) for form in forms}

    def _turn_prompt(self, form: Form) -> Prompt:
        return self.prompts.find("investigate_turn", form=form, family=self.model.family)

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name not in {"_words", "graph"}}

    @cached_property
    def graph(self) -> Graph:
        """The compiled graph of LangGraph; it is run with an `Investigation` as its context."""
        return import_module(_GRAPH).compiled(self.model, {"type": "object"}, name=self.name)

    @property
    @override
    def models(self) -> tuple[Model, ...]:
        return tuple(dict.fromkeys([self.model, *(model for tool in self.tools for model in tool.models)]))

    @property
    @override
    def prompts_in_use(self) -> tuple[Prompt, ...]:
        own = [prompt for pair in self._words.values() for prompt in pair]
        return (*own, *self.goal.prompts_in_use, *(prompt for tool in self.tools for prompt in tool.prompts_in_use))

    @property
    @override
    def settings(self) -> JsonObject:
        return {
            "goal": self.goal.name,
            "tools": {tool.name: tool.form() for tool in self.tools},
            "budget": str(self.budget),
            "eyes": self.eyes,
            "form": self.form,
            **({} if self.fenced else {"fenced": False}),
        }

    def unfenced(self) -> Investigator:
        """This investigator without a fence around what its tools find, to measure what the fence is worth."""
        investigator = copy(self)
        investigator.fenced = False
        return investigator

    @property
    @override
    def most_calls(self) -> int:
        return self.budget.calls or MOST_TURNS

    @override
    def accept(self, inputs: Any) -> Any:
        return self.goal.accept(inputs)

    @override
    def fields(self, subject: Any) -> Sequence[AnswerField]:
        return self.goal.fields(subject)

    @override
    def read_text(self, text: str, subject: Any) -> Any:
        raise Unreadable("an investigation is answered by a tool")

    @override
    async def ask(self, inputs: Any, config: RunnableConfig | None = None) -> Result[Any]:
        if config is None:
            return await self._investigate(inputs, None)

        from langchain_core.runnables.config import patch_config  # a process in which nobody listens does without

        async def work(manager: AsyncCallbackManager) -> Result[Any]:
            return await self._investigate(inputs, patch_config(config, callbacks=manager))

        return await traced_run(self.get_name(), config, inputs={"input": trace_value(inputs)}, work=work)

    async def _investigate(self, inputs: Any, config: RunnableConfig | None) -> Result[Any]:
        result = await self._once(inputs, config, again=False)
        replayed = any(call.meta.replayed for call in result.calls)
        if result.outcome == "invalid" and replayed and self.model.asks_again("invalid"):
            result = await self._once(inputs, config, again=True)
        return result

    async def _once(self, inputs: Any, config: RunnableConfig | None, *, again: bool) -> Result[Any]:
        investigation: Investigation | None = None
        try:
            subject = self.accept(inputs)
            unasked = self.goal.unasked(subject)
            if unasked is not None:
                return unasked
            form = await self._turn_form()
            with limit_budget(self.budget) as limit:
                investigation = await self._opened(subject, form, limit, again=again)
                await import_module(_GRAPH).run(self.graph, investigation, steps=self._most_steps, config=config)
        except (CallError, ReplayMiss, BadImage, PromptTooLong) as error:
            result = no_answer(error)
            if investigation is None:
                return result
            over = isinstance(error, OverLimit)
            investigation.ended = investigation.ended or ("budget" if over else result.outcome)
            return investigation.outcome(result)
        return investigation.outcome(cast("Result[Any]", investigation.result))

    @property
    def _most_steps(self) -> int:
        """Steps of the graph: two for each turn, and some to begin and to end."""
        return 2 * self.most_calls + 5

    @property
    def _seeing(self) -> Model | None:
        """The model in whose unit boxes are given; None where no tool takes any.

        An agent that does not see the picture knows of places what the model that its tools ask says.
        """
        tool = next((tool for tool in self.tools if tool.takes_boxes), None)
        return None if tool is None else self.model if self.eyes or not tool.models else tool.models[0]

    async def _turn_form(self) -> TurnForm:
        """How tools are called.

        Raises:
            CallError: the endpoint had to be asked what it can do and did not answer.
            ReplayMiss: the mode is `replay` and that is not on record.
        """
        if self.form == "tools" or (self.form is None and await self.model.calls_tools()):
            return ToolTurns()
        mode = await self.model.output_mode()
        return JsonTurns("prompted" if mode == "paper" else mode)

    async def _opened(self, subject: Any, form: TurnForm, limit: BudgetLimit, *, again: bool) -> Investigation:
        """An investigation that begins.

        Raises:
            UsageError: examples are to be shown, or the goal shows no picture.
            BadImage: the picture cannot be used.
        """
        pictures = self.goal.pictures(subject)
        if not pictures or self.goal.examples(subject):
            why = "it shows examples" if pictures else "it sees no picture"
            raise UsageError(f"`{self.goal.name}` cannot be investigated: {why}.", hint="Ask it in one go.")
        question = OpenQuestion(node=self.goal, subject=subject, image=pictures[0])
        choices = self.goal.closed_set(subject)
        seeing = self._seeing
        scene = Scene(
            question.image,
            unit="thousandths" if seeing is None else await seeing.box_unit(),
            policy=(seeing or self.model).settings.image_policy,
            options=() if choices is None else choices.options.values(),
        )
        prompt, told = self._words[form.prompt_form]
        investigation = Investigation(
            question=question,
            model=self.model,
            form=form,
            tools={tool.name: tool for tool in self.tools},
            scene=scene,
            limit=limit,
            told=told,
            call_of=self._call,
            eyes=self.eyes,
            fenced=self.fenced,
            again=again,
        )
        investigation.open(prompt)
        return investigation


def missing_vendor() -> MissingExtra | None:
    """The error of a library that investigators need and that is not installed; None where all are."""
    lacking = next((vendor for vendor in _VENDORS if find_spec(vendor) is None), None)
    hint = "pip install 'askance[agent]'"
    return None if lacking is None else MissingExtra(f"An investigator needs {lacking}.", hint=hint)


def investigator(  # noqa: PLR0913  # each is a choice of its own
    llm: ModelLike,
    vlm: ModelLike,
    *,
    goal: str | Node[Any, Any] = "explain",
    tools: Iterable[str | LookTool] = DEFAULT_TOOLS,
    calls: int = CALLS,
    budget: Budget | str | None = None,
    eyes: bool = False,
    index: IndexLike | None = None,
    form: TurnFormName | None = None,
    prompts: PromptLibrary | None = None,
    name: str | None = None,
) -> Investigator:
    """An investigator by `llm`, whose tools ask `vlm`.

    ```python
    agent = investigator("openai:gpt-4o", "openai:gpt-4o", goal="explain", tools=("zoom", "ask"), calls=8)
    agent.invoke("photo.jpg")
    ```

    Args:
        llm: calls the tools and answers.
        vlm: sees the picture for the tools.
        goal: see `askance.investigator.GOALS`, or a node that is asked about a picture that it sees.
        tools: names of `askance.investigator.TOOLS`, or tools of your own.
        calls: of models that one investigation may make, those of its tools included.
        budget: replaces `calls` by a budget such as `20000 tokens`.
        eyes: whether `llm` is shown the picture, too.
        index: what the tool `similar` searches.
        form: as `Investigator` has it.
        prompts: where prompts are looked up; by default the overlay folder in use and the package's own.
        name: how it shows up in traces and graphs.

    Raises:
        UsageError: as for `Investigator` and `toolbox`, or there is no such goal.
        MissingExtra: LangChain or LangGraph is not installed, or what a tool needs.
    """
    node = goal_named(goal).make(llm, prompts=prompts) if isinstance(goal, str) else goal
    looking = toolbox(tools, vlm=vlm, index=index, prompts=prompts)
    return Investigator(
        node,
        looking,
        budget=f"{calls} calls" if budget is None else budget,
        eyes=eyes,
        form=form,
        prompts=prompts,
        name=name,
    )
