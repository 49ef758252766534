"""Work on many items that can be resumed: runs, pictures that are read, negatives, questions, verdicts, trials.

A `Job` is a value: its items, what answers one, and where answers are kept. It is run, or planned: then a planner
counts what would be asked. What was kept is not asked again, so a process that is killed loses no more than the calls
under way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from askance import chains
from askance.concurrency import map_in_order
from askance.errors import FATAL, OverBudget, UsageError
from askance.models.call_scope import span
from askance.models.run_counters import RunCounters

if TYPE_CHECKING:
    from askance.chains import Plan, Planner
    from askance.chains.planner import Role
    from askance.models import Counters, Engine, Model

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Line = TypeVar("Line")
Kept = TypeVar("Kept")
T = TypeVar("T")

NO_JSON = "NoJson"
"""The `error` of an answer that JSON cannot write."""

CountItem: TypeAlias = "Callable[[Item], Coroutine[Any, Any, object]]"
"""Counts what answering one item would ask, and asks nobody."""

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called by work of several jobs with what is counted, such as `calls`, how many of it are done, and of how many."""


async def _by_stream(item: object) -> Any:
    raise TypeError(f"{item!r} is answered by the stream of its job, not alone.")


def _itself(_: object, answer: Any) -> Any:
    return answer


@dataclass(kw_only=True)
class Job(Generic[Item, Answer, Line]):
    """Items that are answered side by side, and whose answers are kept one by one, in the order of the items."""

    items: Sequence[Item]
    answer: Callable[[Item], Coroutine[Any, Any, Answer | None]] = _by_stream
    """Answers one item; None where the budget had nothing left for it."""
    stream: Callable[[Sequence[Item]], AsyncGenerator[Answer, None]] | None = None
    """Answers many items in the place of `answer`, in their order; where it ends before them, the others are left."""
    accepts: Callable[[Answer], bool] = lambda _: True
    """Called with each new answer, in order, before it is kept; False where the budget had nothing left for it."""
    name: Callable[[Item], str] = str
    """The name of an item among those that are finished."""
    title: str = "work"
    """What traces call the whole of it."""
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
    roles: Sequence[Role] = ()
    """The nodes that `answer` asks, by the names of their lines in a plan."""
    counts: Callable[[Planner], AbstractContextManager[CountItem[Item]]] | None = None
    """A context in which a planner counts what items ask; by default `answer` is called, and the `roles` count."""
    unit: str = "image"
    """What a plan counts, such as `pair`."""
    units: int | None = None
    """How many of these there are; by default as many as items to be answered."""
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

    def kept_in(self, finished: Mapping[str, Kept], keep: Callable[[Item, Answer], Kept]) -> Job[Item, Answer, Kept]:
        """This job with a place that its answers are kept in: see `finished` and `keep`."""
        return cast("Job[Item, Answer, Kept]", replace(self, finished=finished, keep=keep))

    def tell(self, on_progress: OnProgress | None, what: str) -> None:
        """Has work of several jobs told how far this one is.

        Args:
            on_progress: called after each answer that is kept.
            what: its items are called.
        """
        self.on_progress = None if on_progress is None else partial(on_progress, what)

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
            with span("run", self.title, items=len(self.items), left=len(self.todo)):
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
        return map_in_order(self.answer, affordable(items, engine), room=room)

    async def plan(self) -> Plan:
        """What would be asked of whom to answer what is to be done, and what that would cost; nothing is asked.

        Raises:
            UsageError: nobody knows beforehand what will be asked; or the mode is `replay`, which asks nothing.
        """
        return await plan_of([self])

    async def count(self, planner: Planner) -> None:
        """Has a planner count what answering would ask, one item after the other; raises as `plan`."""
        with (self.counts or self._by_answering)(planner) as one:
            for item in self.todo:
                await one(item)

    @contextmanager
    def _by_answering(self, planner: Planner) -> Generator[CountItem[Item]]:
        with planner.counting(self.roles):
            yield self.answer


async def plan_of(jobs: Iterable[Job[Any, Any, Any]]) -> Plan:
    """The plan of several jobs as one. A call that several would make counts once.

    Args:
        jobs: counted in their order, each when it is taken, so that one may depend on what was on record for another.

    Raises:
        UsageError: as for `Job.plan`.
    """
    planner, units, unit = chains.Planner(), 0, "image"
    for job in jobs:
        await job.count(planner)
        units, unit = max(units, len(job.todo) if job.units is None else job.units), job.unit
    return planner.plan(units, unit=unit)


def affordable(items: Iterable[T], engine: Engine | None) -> Iterable[T]:
    """The items up to where the budget is used up."""
    budget = None if engine is None else engine.budget
    return takewhile(lambda _: budget is None or not budget.used_up, items)


@dataclass(kw_only=True)
class FirstFailure:
    """Ends a job whose first item failed in a way that all others would."""

    what: str = "sample"
    """Noun for an item in the message."""
    reached: bool = False
    """Whether a model has answered a call in this process; an answer on record does not count."""
    begun: bool = False
    """Whether an answer was kept."""

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
            UsageError: the first answer is no JSON.
        """
        if any(link.get("error") == OverBudget.__name__ for link in links.values()):
            return False
        for link in () if self.reached or calls else links.values():
            if (kind := FATAL.get(str(link.get("error")))) is not None:
                hint = f"Stopped at the first {self.what}, since the others would fail alike."
                raise kind(str(link.get("reason") or reason), hint=hint)
        if not self.begun and any(link.get("error") == NO_JSON for link in links.values()):
            raise UsageError(
                f"At the first {self.what} {reason}.", hint="Give what JSON has: texts, numbers, lists, mappings."
            )
        self.begun = True
        self.reached |= answered and calls != 0
        return True
