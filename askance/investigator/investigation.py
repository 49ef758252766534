"""One investigation: the rules by which a model may look at a picture until it answers, or its budget ends.

The budget counts the turns of the model and what its tools ask. So much of it is kept as the answer takes: when no more
than that is left, the tools are closed, and the model is asked for the answer alone. Nothing but an answer that the
question's node reads is an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from askance.chat import Message, TextPart, ToolSpec
from askance.images import WHOLE_IMAGE, view_policy
from askance.investigator.look import NOT_REACHED, Look, LookStep
from askance.models.call_scope import span
from askance.nodes import Result, Unreadable
from askance.nodes.answer import list_schema
from askance.nodes.node import SCHEMA_IGNORED, unanswered
from askance.prompts import fence, neutralize, oneline
from askance.replay import Cost

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse, ImagePart, JsonObject
    from askance.images import Image, RegionView
    from askance.investigator.look import LookTool
    from askance.investigator.scene import Scene
    from askance.investigator.turns import TurnForm, WantedCall
    from askance.models import Model
    from askance.models.call_scope import BudgetLimit
    from askance.nodes import Call, Node
    from askance.prompts import Prompt

ANSWER: Final = "answer"
"""Name of the tool that ends an investigation."""
ONE_CALL: Final = Cost(calls=1)
MOST_CALLS_A_TURN: Final = 8
"""Tool calls of a turn that are heard; those behind them are left out of the history."""
LOOK_BYTES: Final = 4_000
"""Bytes of what a tool found that the model is told; the transcript has all of it."""
_LOOK_TOKENS: Final = LOOK_BYTES + 500
"""Tokens that a look adds to the next request at most: a token has a byte at least, and our own words come on top."""


def answer_schema(value: JsonObject) -> JsonObject:
    """JSON Schema of what the tool `answer` is called with.

    Args:
        value: the schema of the question's own answer.
    """
    properties: JsonObject = {
        "value": value,
        "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
        "evidence": list_schema({"type": "integer", "minimum": 1}),
        "enough": {"type": "boolean"},
    }
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """What an investigation is after."""

    node: Node[Any, Any]
    """Whose question it is, and who reads the answer."""
    subject: Any
    image: Image

    @property
    def text(self) -> str:
        """The question as the node puts it to a model that sees the picture."""
        request = self.node.request(self.subject, "prompted")
        return next(message.text for message in request.messages if message.role == "user").strip()

    def read(self, arguments: Mapping[str, Any]) -> Any:
        """The answer's value.

        Raises:
            Unreadable: there is none, or it is none of those that there are.
        """
        value: object = arguments.get("value")
        if not isinstance(value, Mapping):
            raise Unreadable("`value` must be the JSON object that the question asks for")
        return self.node.read_json(cast("Mapping[str, Any]", value), self.subject)


@dataclass(slots=True, eq=False)
class Turn:
    """One turn of the model."""

    request: ChatRequest
    tools: tuple[ToolSpec, ...]
    last: bool
    """Whether only the answer may be given."""
    again: bool = False
    """Whether it is asked anew where it is on record."""
    response: ChatResponse | None = None


@dataclass(frozen=True, slots=True)
class HeardCall:
    """A tool call of a turn, by the id that it has in the history."""

    id: str
    name: str
    arguments: JsonObject
    told: str | None = None
    """What the model is told of it; None where the tool is still to look."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of a turn: the calls, in their order; where there are none, what the model is told instead."""

    text: str
    calls: tuple[HeardCall, ...] = ()
    problem: str = ""


Asked: TypeAlias = "tuple[WantedCall, LookStep]"
"""A tool call that a turn asks for, and its step."""


@dataclass(eq=False, kw_only=True)
class Investigation:
    """The state of one investigation; `turn` and `heard` alternate, and `look` runs the tools between them."""

    question: OpenQuestion
    model: Model
    form: TurnForm
    tools: Mapping[str, LookTool]
    scene: Scene
    limit: BudgetLimit
    told: Prompt
    """Says in each turn how much is left."""
    call_of: Callable[[ChatRequest, ChatResponse], Call]
    """What is kept of a call."""
    eyes: bool = False
    """Whether the model is shown the picture, and each region that was looked at."""
    fenced: bool = True
    """Whether what tools find is fenced, and called no instruction."""
    again: bool = False
    """Whether turns on record are asked anew."""
    opening: tuple[Message, ...] = ()
    """The turn of the system, and that of the user which asks the question."""
    steps: list[LookStep] = field(default_factory=list["LookStep"])
    result: Result[Any] | None = None
    """How it ended; None while it goes on."""
    ended: str = ""
    """What ended it: `answered`, `forced` where the last call was kept for the answer, or why there is no answer."""
    answered: JsonObject = field(default_factory=dict[str, Any])
    """What the tool `answer` was called with, where it was read."""
    malformed: int = 0
    """Turns and tool calls that could not be understood."""
    repeated: int = 0
    """Looks that were taken before."""
    _left_told: dict[int, str] = field(default_factory=dict[int, str])
    _bad_answers: int = 0
    _in_order: asyncio.Lock = field(default_factory=asyncio.Lock)
    _held: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        specs = [ToolSpec(tool.name, tool.description, tool.schema(self.scene)) for tool in self.tools.values()]
        self._answer = ToolSpec(
            ANSWER, "Ends with the answer.", answer_schema(self.question.node.schema(self.question.subject))
        )
        self.specs: tuple[ToolSpec, ...] = (*specs, self._answer)

    def open(self, prompt: Prompt) -> None:
        """Begins with the turns of `prompt`, which asks the question; a model that has eyes sees the picture in it."""
        turns = prompt.render(question=self.question.text, eyes=self.eyes or None, unfenced=not self.fenced or None)
        opening = [Message(turn.role, (TextPart(turn.text),)) for turn in turns]
        if self.eyes:
            opening[-1] = replace(opening[-1], parts=(self.shown(), *opening[-1].parts))
        self.opening = tuple(opening)

    # --- turns ---

    def turn(self, history: Sequence[Message]) -> Turn:
        """The next turn.

        Args:
            history: all turns behind the question, without what `told` says of the budget.
        """
        self._settle()
        turn = self._turn(history, last=False)
        worst = self.limit.worst_case(turn.request, self.model.settings)
        if not self.limit.fits(worst + self._answer_cost(turn.request, looks=1)):
            turn = self._turn(history, last=True)
        self._left_told[len(history)] = self._left_words(last=turn.last)
        return turn

    def _turn(self, history: Sequence[Message], *, last: bool) -> Turn:
        told = {**self._left_told, len(history): self._left_words(last=last)}
        messages = [*self.opening, *history]
        first = len(self.opening)
        for place, words in told.items():
            message = messages[place + first - 1]
            messages[place + first - 1] = replace(message, parts=(*message.parts, TextPart(f"\n\n{words}")))
        tools = (self._answer,) if last else self.specs
        return Turn(self.form.request(self.model, messages, tools), tools, last, self.again)

    def _left_words(self, *, last: bool) -> str:
        return self.told.render(left=self.limit.told(), last=last or None)[0].text.strip()

    def _answer_cost(self, request: ChatRequest, *, looks: int) -> Cost:
        """The most that the answer can take after `request` and so many looks."""
        budget = self.limit.budget
        if budget.tokens is None and budget.dollars is None:
            return ONE_CALL
        room = (request.sampling.max_tokens or 0) + looks * _LOOK_TOKENS
        longer = replace(request, messages=(*request.messages, Message("user", (TextPart("x" * room),))))
        return self.limit.worst_case(longer, self.model.settings)

    def heard(self, turn: Turn) -> Heard:
        """Reads the reply to a turn; where that ends the investigation, `result` is there."""
        response = cast("ChatResponse", turn.response)
        call = self.call_of(turn.request, response)
        if response.outcome != "answered":
            self._add("", turn=call, look=Look(outcome=response.outcome))
            self._end(unanswered(response, None, ()), response.outcome)
            return Heard("")
        said = self.form.read(response)
        if not said.wanted:
            if self.form.schema_sent and not response.meta.replayed:
                self.model.notice(SCHEMA_IGNORED, schema="ignored")
            self.malformed += 1
            self._add(said.thought, turn=call, look=Look(outcome="invalid", reason=said.problem))
            self._go_on_or_end(turn, said.problem, response.text)
            return Heard(said.thought, problem=said.problem)
        wanted, begin = said.wanted[:MOST_CALLS_A_TURN], len(self.steps)
        self._add(said.thought, turn=call, wanted=wanted[0])
        for each in wanted[1:]:
            self._add("", turn=None, wanted=each)
        asked = list(zip(wanted, self.steps[begin:], strict=True))
        bad = self._read_answers(asked, last=turn.last)
        if self.result is not None:
            return Heard(said.thought)
        if bad or turn.last:
            self._bad_answers += bool(bad)
            self._go_on_or_end(turn, bad or "it did not answer when only the answer was left", response.text)
        return Heard(said.thought, tuple(self._planned(asked, turn)))

    def _add(
        self, thought: str, *, turn: Call | None, look: Look = NOT_REACHED, wanted: WantedCall | None = None
    ) -> None:
        """Adds a step; `turn` is the call of the turn, with the first step of it."""
        step = LookStep(
            number=len(self.steps) + 1,
            thought=thought,
            tool=wanted.name if wanted else "",
            arguments=(wanted.arguments if wanted else None) or {},
            look=look,
            turn=() if turn is None else (turn,),
        )
        self.steps.append(step)

    def _read_answers(self, asked: Sequence[Asked], *, last: bool) -> str:
        """Ends with the first answer of a turn that can be read; else says what is wrong with the first one."""
        problem = ""
        for each, step in asked:
            if each.name != ANSWER:
                continue
            try:
                if each.arguments is None:
                    raise Unreadable("the arguments are no JSON object")
                value = self.question.read(each.arguments)
            except Unreadable as error:
                problem = problem or str(error)
                step.look = Look(outcome="invalid", reason=str(error))
                self.malformed += 1
            else:
                step.look = Look(outcome="answered")
                self.answered = each.arguments
                self._end(Result(outcome="answered", value=value, rung="schema"), "forced" if last else "answered")
                return ""
        return problem

    def _planned(self, asked: Sequence[Asked], turn: Turn) -> Sequence[HeardCall]:
        """What each tool call of a turn comes to: the budget is given out in their order, before any tool looks."""
        planned: list[HeardCall] = []
        most = self._most_calls(turn, sum(each.name in self.tools for each, _ in asked))
        for each, step in asked:
            tool, told = self.tools.get(each.name), None
            if each.name == ANSWER:
                why = step.look.reason or ""
                told = f"Your answer could not be read: {neutralize(oneline(why))}. Call `{ANSWER}` once more."
            elif tool is None:
                told = self._refused(step, f"There is no tool {each.name!r}. There are {self._names}.")
            elif each.arguments is None:
                told = self._refused(step, "The arguments are no JSON object.")
            elif turn.last:
                told = self._not_done(step, "the tools are closed")
            else:
                takes = tool.calls(self.scene, each.arguments)
                if takes > most:
                    told = self._not_done(step, "no more is left beside the call for the answer")
                else:
                    most -= takes
            planned.append(HeardCall(_id_of(step), each.name, step.arguments, told))
        return planned

    def _most_calls(self, turn: Turn, looks: int) -> int:
        """Calls that the tools of a turn may make; what the answer takes is held back until they have looked."""
        if self.limit.budget.tokens is None and self.limit.budget.dollars is None:
            amount, most = ONE_CALL, looks
        else:
            most = next(
                (n for n in range(looks, 0, -1) if self.limit.fits(self._answer_cost(turn.request, looks=n))), 0
            )
            amount = self._answer_cost(turn.request, looks=most)
        self._held.enter_context(self.limit.hold_back(amount))
        calls = self.limit.budget.calls
        return most if calls is None else min(most, max(self.limit.left.calls - 1, 0))

    @property
    def _names(self) -> str:
        return ", ".join([*self.tools, ANSWER])

    def _refused(self, step: LookStep, why: str) -> str:
        self.malformed += 1
        return self._set(step, Look(outcome="invalid", reason=why))

    def _not_done(self, step: LookStep, why: str) -> str:
        return self._set(step, Look(outcome="skipped", reason=f"Not done: {why}."))

    # --- tools ---

    async def look(self, id: str) -> tuple[str, tuple[RegionView, ...]]:  # noqa: A002  # LangChain calls it so
        """Has the tool of a call look; gives what the model is told, and the regions that it may be shown."""
        step = next(step for step in self.steps if _id_of(step) == id)
        tool = self.tools[step.tool]
        with span("tool", tool.name, call_id=id) as ended:
            if self.limit.budget.tokens is None and self.limit.budget.dollars is None:
                look = await tool.look(self.scene, step.arguments)
            else:  # what is under way at once stands at its worst case, and a replay must end where the run did
                async with self._in_order:
                    look = await tool.look(self.scene, step.arguments)
            ended(outcome=look.outcome)
        self.repeated += look.repeated
        if look.outcome == "invalid" and not look.calls and not look.repeated:
            self.malformed += 1
        return self._set(step, look), look.views if look.outcome == "answered" else ()

    def _set(self, step: LookStep, look: Look) -> str:
        """Keeps what a step came to; gives what the model is told of it."""
        step.look = look
        parts = [f"Step {step.number}.", look.note]
        if look.outcome == "answered":
            text, label = _cut(look.text), f"{step.tool} says".replace("_", " ")
            parts += [fence(text, label) if self.fenced else text] if text else []
        elif look.reason and not look.calls and look.outcome in {"invalid", "skipped"}:
            parts.append(neutralize(oneline(look.reason)))
        else:  # a reason may name files or addresses
            parts.append(f"No answer: {look.outcome}.")
        return "\n".join(part for part in parts if part)

    def shown(self, view: RegionView = WHOLE_IMAGE) -> ImagePart:
        """The picture, or a region of it, as the model is shown it."""
        policy = self.model.settings.image_policy
        return self.model.image(self.question.image, view, policy if view == WHOLE_IMAGE else view_policy(policy))

    # --- the end ---

    def _settle(self) -> None:
        """Notes what is left behind the steps of the turn that is over."""
        self._held.close()
        for step in reversed(self.steps):
            if step.left:
                break
            step.left = self.limit.told()

    def _go_on_or_end(self, turn: Turn, problem: str, raw: str) -> None:
        """Ends where nothing is left to ask once more, or two answers could not be read."""
        nothing_left = not self.limit.fits(self.limit.worst_case(turn.request, self.model.settings))
        if nothing_left or self._bad_answers > 1:
            ended = "budget" if nothing_left else "unreadable"
            self._end(Result(outcome="invalid", reason=problem, raw=raw or None), ended)

    def give_up(self, reason: str) -> None:
        """Ends because the graph takes no more steps."""
        self._end(Result(outcome="failed", reason=reason), "recursion")

    def _end(self, result: Result[Any], ended: str) -> None:
        self.result, self.ended = result, ended

    def outcome(self, result: Result[Any]) -> Result[Any]:
        """`result` with the calls and the transcript of the investigation."""
        self._settle()
        calls = tuple(call for step in self.steps for call in (*step.turn, *step.look.calls))
        return replace(result, calls=calls, trace=self._trace())

    def _trace(self) -> JsonObject:
        numbers = {step.number for step in self.steps}
        confidence, evidence = self.answered.get("confidence"), self.answered.get("evidence")
        form: JsonObject = {
            "steps": [step.form() for step in self.steps],
            "confidence": confidence if _is_percentage(confidence) else None,
            "enough": self.answered.get("enough", True) is not False if self.answered else None,
            "evidence": [each for each in cast("list[Any]", evidence) if type(each) is int and each in numbers]
            if isinstance(evidence, list)
            else [],
            "budget": str(self.limit.budget),
            "form": self.form.name,
            "malformed": self.malformed,
            "repeated": self.repeated,
            "ended": self.ended,
        }
        return {name: value for name, value in form.items() if value is not None and value != []}


def _cut(text: str) -> str:
    """As much of a text as a model is told."""
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= LOOK_BYTES else f"{data[:LOOK_BYTES].decode('utf-8', 'ignore')} …"


def _is_percentage(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 100


def _id_of(step: LookStep) -> str:
    """Nine letters and digits, which every endpoint takes as the id of a call."""
    return f"step{step.number:05}"
