"""Solvers answer samples. `as_solver` makes one of a chain, of any Runnable, and of a function; `solved` asks it."""

from __future__ import annotations

import asyncio
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, cast

from typing_extensions import override

from askance.chains import Chain, Reading
from askance.errors import AskanceError, StoreError, UsageError, UserCodeError, boundary
from askance.evals.job import NO_JSON
from askance.evals.sample import Prediction, Sample
from askance.models import collect_keys
from askance.nodes import Result, no_answer

if TYPE_CHECKING:
    from askance.chains import Planner
    from askance.chat import Json, JsonObject
    from askance.models import Engine, Model
    from askance.nodes import Node, Rung

PlanSample: TypeAlias = "Callable[[Sample, int], Awaitable[Prediction | None]]"
"""Counts the calls that one sample would make in one draw, and makes none.

Gives the prediction where all that it is made of is on record, for judges of its score; None where it is not.
"""


class Solver(ABC):
    """Answers samples. `answer` is all that has to be written; whatever else a solver can say has a default."""

    plannable: ClassVar[bool] = False
    """Whether `plan` can say what would be asked."""

    @abstractmethod
    async def answer(self, sample: Sample) -> Any:
        """A `Prediction`, the `Reading` of a chain, or the answer itself as JSON.

        An error that it raises becomes the outcome of this sample and stops no other; only a `StoreError` ends the run.
        """

    @property
    def models(self) -> Sequence[Model]:
        """The models that it asks, each once."""
        return ()

    @property
    def engine(self) -> Engine | None:
        """The engine whose records, mode and budget a run uses; None for that of the models."""
        return None

    @property
    def prompts(self) -> Mapping[str, str]:
        """The text of the prompt files in use, by file name; a run keeps them."""
        return {}

    @property
    def example_turns(self) -> Mapping[str, str] | None:
        """Digests of what examples look like, by prompt file; None for a solver that shows none."""
        return None

    @property
    def answers_from(self) -> Chain | None:
        """The chain whose links samples may give; None for a solver that looks at the picture itself, or at nothing."""
        return None

    @property
    def by_chain(self) -> ChainSolver | None:
        """Itself, if its answers are a chain's alone, so that they can be asked by batches and their links blamed."""
        return None

    def form(self) -> JsonObject:
        """What decides the answers, as JSON, for the run's configuration; by default the name of the class."""
        return {"solver": type(self).__qualname__}

    def plan(self, planner: Planner) -> PlanSample:  # noqa: ARG002  # a subclass counts by it
        """What counts the calls of one sample after the other.

        Args:
            planner: counts.

        Raises:
            UsageError: nobody knows beforehand what will be asked; or the mode is `replay`.
        """
        raise UsageError("The calls of a solver that is not a chain cannot be planned.", hint="Leave `--plan` out.")

    def among(self, samples: Sequence[Sample]) -> Solver:  # noqa: ARG002  # a subclass holds each against others
        """This solver for samples that were changed after it was made, such as those of a control."""
        return self

    def with_extractor(self, model: Model) -> Solver:  # noqa: ARG002  # a subclass asks it
        """This solver with a model that reads replies which cannot be read otherwise.

        Raises:
            UsageError: it reads no replies of a closed set of answers.
        """
        raise UsageError(
            "This solver reads no replies, so there is nothing to extract.", hint="Leave the extractor out."
        )


class RunnableLike(Protocol):
    """An object that is called as a LangChain Runnable."""

    async def ainvoke(self, sample: Any, /, config: Any = None) -> Any:
        """The output for one input."""
        ...


SolverLike: TypeAlias = "Solver | Chain | RunnableLike | Callable[[Sample], Any]"
"""A solver, or what `as_solver` makes one of."""


class ChainSolver(Solver):
    """A chain as a solver.

    Args:
        chain: reads the sample's picture.
        given: makes the chain's input from a sample; by default the picture and the sample's inputs.
        value: makes the answer, as JSON, from a reading and its sample; by default the numbers of the chosen options,
            or the value of the chain's target.
        abstains: whether it may withhold answers: those of which the target's trace says that it had not `enough`.
    """

    plannable = True

    def __init__(
        self,
        chain: Chain,
        *,
        given: Callable[[Sample], Mapping[str, Any]] | None = None,
        value: Callable[[Reading, Sample], Json] | None = None,
        abstains: bool = False,
    ) -> None:
        self.chain = chain
        self.given = given or given_of
        self._value = value or target_value
        self._abstains = abstains

    @property
    @override
    def models(self) -> Sequence[Model]:
        return self.chain.models

    @property
    @override
    def answers_from(self) -> Chain:
        return self.chain

    @property
    @override
    def by_chain(self) -> ChainSolver:
        return self

    @override
    def with_extractor(self, model: Model) -> ChainSolver:
        """This solver with a model that reads replies which the chain cannot read; see `Chain.with_extractor`."""
        return self.with_chain(self.chain.with_extractor(model))

    def with_chain(self, chain: Chain) -> ChainSolver:
        """This solver by another chain."""
        return ChainSolver(chain, given=self.given, value=self._value, abstains=self._abstains)

    @override
    async def answer(self, sample: Sample) -> Prediction:
        return self.prediction(await self.chain.ainvoke(self.given(sample)), sample)

    @override
    def plan(self, planner: Planner) -> PlanSample:
        walk = planner.walk(self.chain)

        async def count(sample: Sample, draw: int) -> Prediction:
            return await self.predicted(await walk.read(self.given(sample), draw=draw), sample)

        return count

    async def predicted(self, reading: Reading, sample: Sample) -> Prediction:
        """As `prediction`, for a plan: a reading that waits for a call which is not on record has no answer."""

        async def read(sample: Sample) -> Prediction:
            return self.prediction(reading, sample)

        return await solved(as_solver(read), sample)

    def prediction(self, reading: Reading, sample: Sample) -> Prediction:
        """The prediction for `sample` from its reading."""
        return _of_reading(reading, lambda: self._value(reading, sample), abstains=self._abstains)

    @property
    @override
    def prompts(self) -> Mapping[str, str]:
        return prompt_files(self.chain.nodes)

    @property
    @override
    def example_turns(self) -> Mapping[str, str]:
        used = [prompt for node in self.chain.nodes for prompt in node.prompts_in_use]
        return {prompt.path.name: prompt.example_digest for prompt in used if prompt.example_digest is not None}

    @override
    def form(self) -> JsonObject:
        """Everything that decides the answers but examples: the chain's links, its models and prompts."""
        return {
            "chain": self.chain.get_name(),
            "links": [step.link.name for step in self.chain.steps],
            **nodes_form(self.chain.nodes),
            **({"abstains": True} if self._abstains else {}),
        }


def prompt_files(nodes: Iterable[Node[Any, Any]]) -> Mapping[str, str]:
    """The text of the prompt files that nodes use, by file name."""
    used = {prompt.path for node in nodes for prompt in node.prompts_in_use}
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(used)}


def nodes_form(nodes: Sequence[Node[Any, Any]]) -> JsonObject:
    """What decides the answers of nodes: their models, the digests of their prompts, and settings of their own."""
    settings = {node.name: node.settings for node in nodes if node.settings}
    return {
        "models": {node.name: node.model.form() for node in nodes},
        "prompts": {prompt.path.name: prompt.digest for node in nodes for prompt in node.prompts_in_use},
        **({"settings": settings} if settings else {}),
    }


def given_of(sample: Sample) -> Mapping[str, Any]:
    """A chain's input for a sample: its id as name, its picture, and its inputs."""
    return {"name": sample.id, "image": sample.image, **sample.inputs}


def target_value(reading: Reading, sample: Sample) -> Json:  # noqa: ARG001  # the signature of every such function
    """The value of the chain's target as JSON: numbers of chosen options (best first, from 1), a text, or a form."""
    link, result = reading.target, reading.get(reading.target)
    return None if result is None or result.value is None else (link.answer or link.write)(result.value)


def _of_reading(reading: Reading, value: Callable[[], Json], *, abstains: bool = False) -> Prediction:
    line = reading.to_dict()
    answered, result = reading.outcome == "answered", reading.get(reading.target)
    trace: Mapping[str, Any] = {} if result is None or not answered else result.trace
    sure: float | None = trace.get("confidence")
    return Prediction(
        outcome=reading.outcome,
        value=value() if answered else None,
        reason=reading.reason,
        links=line["links"],
        rung=_rung(reading),
        abstained=abstains and trace.get("enough") is False,
        confidence=None if sure is None else sure / 100,
        trace={name: line[name] for name in ("verbalization", "statement", "statement_reason", "answers")},
        meta=line["meta"],
    )


def _rung(reading: Reading) -> Rung | None:
    """The rung of the ladder that read the answer; None where there is none, and for that of a schema."""
    result = reading.get(reading.target)
    return None if result is None or result.rung == "schema" or reading.outcome != "answered" else result.rung


_LINK = "solver"
"""Name of the only link of a solver that is not a chain."""


async def solved(solver: Solver, sample: Sample) -> Prediction:
    """The prediction of any solver. An error that it raises becomes the outcome of this sample and stops no other.

    Raises:
        StoreError: the records cannot be read or written.
    """
    with collect_keys() as keys:
        prediction = plain(await _ended(solver, sample))
    if prediction.links.keys() - {_LINK} or not keys:
        return prediction
    link: JsonObject = {"outcome": prediction.outcome, **prediction.links.get(_LINK, {}), "calls": keys}
    return replace(prediction, links={_LINK: link})


async def _ended(solver: Solver, sample: Sample) -> Prediction:
    try:
        with boundary(lambda words: UserCodeError(f"the solver raised {words}")):
            answer: Any = await solver.answer(sample)
    except StoreError:
        raise
    except AskanceError as error:
        return _unanswered(no_answer(error))
    if isinstance(answer, Reading):
        return _of_reading(answer, lambda: target_value(answer, sample))
    return answer if isinstance(answer, Prediction) else Prediction(outcome="answered", value=answer)


def _unanswered(result: Result[Any]) -> Prediction:
    link: JsonObject = {"outcome": result.outcome, "calls": [], "error": result.error}
    return Prediction(outcome=result.outcome, reason=result.reason, links={_LINK: link})


def plain(prediction: Prediction) -> Prediction:
    """`prediction` as it will be read from the run's folder: with lists for tuples, and texts for keys."""
    try:
        value, trace = json.loads(json.dumps([prediction.value, dict(prediction.trace)], allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"the solver gave what is no JSON: {error}"
        return _unanswered(Result(outcome="failed", reason=reason, error=NO_JSON))
    return replace(prediction, value=value, trace=trace)


class _RunnableSolver(Solver):
    """A Runnable as a solver; a run knows it by the name of its class."""

    def __init__(self, runnable: RunnableLike) -> None:
        self._runnable = runnable

    @override
    async def answer(self, sample: Sample) -> Any:
        return await self._runnable.ainvoke(sample)

    @override
    def form(self) -> JsonObject:
        return {"solver": type(self._runnable).__qualname__}


class _FunctionSolver(Solver):
    """A function as a solver; a run knows it by its name and the digest of its source, so an edit makes another run."""

    def __init__(self, function: Callable[[Sample], object]) -> None:
        self._function = function

    @override
    async def answer(self, sample: Sample) -> Any:
        function = self._function
        value = function(sample) if inspect.iscoroutinefunction(function) else await asyncio.to_thread(function, sample)
        return await cast("Awaitable[object]", value) if inspect.isawaitable(value) else value

    @override
    def form(self) -> JsonObject:
        name = getattr(self._function, "__qualname__", None) or type(self._function).__qualname__
        source = _source(self._function)
        return {"solver": str(name), **({} if source is None else {"source": source})}


def as_solver(solver: SolverLike) -> Solver:
    """`solver` itself if it is a solver, else the solver that a chain, a Runnable or a function makes.

    Raises:
        UsageError: it is none of these.
    """
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, Chain):
        return ChainSolver(solver)
    if hasattr(solver, "ainvoke"):
        return _RunnableSolver(cast("RunnableLike", solver))
    if callable(solver):
        return _FunctionSolver(solver)
    raise UsageError(
        f"A {type(solver).__name__} answers no samples.", hint="Give a `Solver`, a chain, a Runnable or a function."
    )


def _source(function: Callable[[Sample], object]) -> str | None:
    if not inspect.isfunction(function):
        return None
    try:
        return sha256(inspect.getsource(function).encode("utf-8", "surrogatepass")).hexdigest()
    except (OSError, TypeError):  # typed at a prompt
        return None
