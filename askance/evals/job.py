"""Work on many items that can be resumed: runs, pictures that are read, negatives, questions, verdicts, trials.

A `Job` is a value: its items, what answers one, and where answers are kept. It is run, or planned; both ask by the same
function. What was kept is not asked again, so a process that is killed loses no more than the calls under way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from askance.concurrency import map_in_order
from askance.errors import FATAL, OverBudget
from askance.models.run_counters import RunCounters

if TYPE_CHECKING:
    from askance.chains import Planner
    from askance.models import Counters, Engine, Model
    from askance.nodes import Node

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Line = TypeVar("Line")
T = TypeVar("T")

Role: TypeAlias = "tuple[str, Node[Any, Any]]"
"""A node under the name of its line in a plan."""


async def _by_stream(item: object) -> Any:
    raise TypeError(f"{item!r} is answered by the stream of its job, not alone.")


def _itself(_: object, answer: Any) -> Any:
    return answer


@dataclass(kw_only=True)
class Job(Generic[Item, Answer, Line]):
    """Items that are answered side by side, and whose answers are kept one by one, in the order of the items."""

    items: Sequence[Item]
    answer: Callable[[Item], Coroutine[Any, Any, Answer | None]] = _by_stream
    """Answers one item; None where the budget had nothing left for it. A job that only has a `stream` has no plan."""
    stream: Callable[[Sequence[Item]], AsyncGenerator[Answer, None]] | None = None
    """Answers many items in the place of `answer`, in their order; where it ends before them, the others are left."""
    accepts: Callable[[Answer], bool] = lambda _: True
    """Called with each new answer, in order, before it is kept; False where the budget had nothing left for it."""
    name: Callable[[Item], str] = str
    """The name of an item among those that are finished."""
    finished: Mapping[str, Line] = field(default_factory=dict[str, Any])
    """What earlier processes have kept, by name."""
    keep: Callable[[Item, Answer], Line] = _itself
    """Keeps an answer; gives what was kept of it."""
    models: Sequence[Model] = ()
    """Asked first how they take a schema, where there is something to do; closed at the end."""
    counting: Sequence[Model] = ()
    """Models whose backends may count what they compute."""
    counted: Callable[[Mapping[str, Counters]], object] = lambda _: None
    """Called at the end, also after an error, with what they computed."""
    engine: Engine | None = None
    """Its places are how many items are under way; no further one is started once its budget is used up."""
    room: Callable[[], int] = lambda: 64
    """How many items may be under way at the moment, where there is no engine."""
    on_progress: Callable[[int, int], None] | None = None
    """Called after each answer that is kept, with the number of items that are finished, and of all."""

    todo: Sequence[Item] = field(init=False)
    """The items that are not finished."""
    done: int = field(init=False)
    """How many items are finished by now."""
    left: list[Item] = field(init=False, default_factory=list[Any])
    """Items that the budget had nothing left for; known at the end."""

    def __post_init__(self) -> None:
        self.todo = [item for item in self.items if not self._is_finished(item)]
        self.done = len(self.items) - len(self.todo)

    def _is_finished(self, item: Item) -> bool:
        return bool(self.finished) and self.name(item) in self.finished

    @asynccontextmanager
    async def answered(self, *, again: bool = False) -> AsyncGenerator[AsyncGenerator[tuple[Item, Line], None]]:
        """A context that gives each item that is answered now, with what was kept of it.

        Args:
            again: whether items that were finished before are given too, in their places.

        Raises:
            CallError: a model cannot be reached at all.
            StoreError: the records cannot be read or written.
        """
        counting = await RunCounters.begun(self.counting)
        try:
            for model in self.models if self.todo else ():
                await model.output_mode()
            async with aclosing(self._lines(again=again)) as lines:
                yield lines
        finally:
            counters = await counting.so_far()
            for model in self.models:
                await model.aclose()
            self.counted(counters)

    async def run(self) -> list[Line]:
        """What was kept of the items that are answered now; raises as `answered`."""
        async with self.answered() as lines:
            return [line async for _, line in lines]

    async def _lines(self, *, again: bool) -> AsyncGenerator[tuple[Item, Line], None]:
        async with aclosing((self.stream or self._side_by_side)(self.todo)) as answers:
            for item in self.items:
                if self._is_finished(item):
                    if again:
                        yield item, self.finished[self.name(item)]
                    continue
                answer = await anext(answers, None)
                if answer is None or not self.accepts(answer):
                    self.left.append(item)
                    continue
                line = self.keep(item, answer)
                self.done += 1
                if self.on_progress is not None:
                    self.on_progress(self.done, len(self.items))
                yield item, line
            if self.todo:
                await anext(answers, None)  # what a stream does at its end

    def _side_by_side(self, items: Sequence[Item]) -> AsyncGenerator[Answer | None, None]:
        engine = self.engine
        room = self.room if engine is None else lambda: engine.places
        return map_in_order(self.answer, self.affordable(items), room=room)

    def affordable(self, items: Iterable[T]) -> Iterable[T]:
        """The items up to where the budget is used up."""
        budget = None if self.engine is None else self.engine.budget
        return takewhile(lambda _: budget is None or not budget.used_up, items)

    async def plan(
        self, planner: Planner, roles: Iterable[Role], *, then: Callable[[Answer | None], object] = lambda _: None
    ) -> None:
        """Answers what is to be done as far as the records carry it, one by one; the planner counts the other calls.

        Args:
            planner: that counts.
            roles: the nodes that are asked.
            then: called with each answer.

        Raises:
            UsageError: the mode is `replay`, which asks nothing.
        """
        with ExitStack() as within:
            for name, node in [*roles]:
                within.enter_context(planner.counter(name, node).counting(node))
            within.enter_context(planner.counting())
            for item in self.todo:
                then(await self.answer(item))


@dataclass(kw_only=True)
class FirstFailure:
    """Ends a job whose first item failed in a way that all others would."""

    what: str = "sample"
    """Noun for an item in the message."""
    reached: bool = False
    """Whether a model has answered a call in this process; an answer on record does not count."""

    def accepts(
        self, links: Mapping[str, Any], *, answered: bool, calls: int | None = None, reason: str | None = None
    ) -> bool:
        """Whether an answer is kept: not where the budget had nothing left for one of its calls.

        Args:
            links: of the answer, as JSON.
            answered: whether it is one.
            calls: how many of its calls were answered; None where nobody counts them.
            reason: why there is no answer, if the links do not say.

        Raises:
            CallError: no model was reached by now, and the others would fail alike; the error is of the same class.
        """
        if any(link.get("error") == OverBudget.__name__ for link in links.values()):
            return False
        for link in () if self.reached or calls else links.values():
            if (kind := FATAL.get(str(link.get("error")))) is not None:
                hint = f"Stopped at the first {self.what}, since the others would fail alike."
                raise kind(str(link.get("reason") or reason), hint=hint)
        self.reached |= answered and calls != 0
        return True
