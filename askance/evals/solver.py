"""Solvers answer samples: a chain (`ChainSolver`), any Runnable, or a function. `solved` calls any of them."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from askance.chains import Reading
from askance.chains.output_line import line_of
from askance.errors import AskanceError, StoreError, UsageError, UserCodeError, boundary
from askance.evals.sample import Prediction
from askance.models import collect_keys
from askance.nodes import Result, no_answer

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.chat import Json, JsonObject
    from askance.evals.sample import Sample
    from askance.models import Model
    from askance.nodes import Node, Rung


class RunnableLike(Protocol):
    """An object that is called as a LangChain Runnable."""

    async def ainvoke(self, sample: Any, /, config: Any = None) -> Any:
        """The output for one input."""
        ...


Solver: TypeAlias = "RunnableLike | Callable[[Sample], Any]"
"""Takes a sample, and gives a `Prediction` or the answer itself as JSON; sync or async."""


class ChainSolver:
    """A chain as a solver.

    Args:
        chain: reads the sample's picture.
        given: makes the chain's input from a sample; by default the picture and the sample's inputs.
        value: makes the answer, as JSON, from a reading and its sample; by default the numbers of the chosen options,
            or the value of the chain's target.
    """

    def __init__(
        self,
        chain: Chain,
        *,
        given: Callable[[Sample], Mapping[str, Any]] | None = None,
        value: Callable[[Reading, Sample], Json] | None = None,
    ) -> None:
        self.chain = chain
        self.given = given or given_of
        self._value = value or target_value

    def with_extractor(self, model: Model) -> ChainSolver:
        """This solver with a model that reads replies which the chain cannot read; see `Chain.with_extractor`."""
        return ChainSolver(self.chain.with_extractor(model), given=self.given, value=self._value)

    async def ainvoke(self, sample: Sample, /, config: Any = None) -> Prediction:
        """The prediction for one sample."""
        return self.prediction(await self.chain.ainvoke(self.given(sample), config), sample)

    def prediction(self, reading: Reading, sample: Sample) -> Prediction:
        """The prediction for `sample` from its reading."""
        return _of_reading(reading, lambda: self._value(reading, sample))

    @property
    def prompts(self) -> Mapping[str, str]:
        """The text of the prompt files in use, by file name."""
        return prompt_files(self.chain.nodes)

    @property
    def example_turns(self) -> Mapping[str, str]:
        """Digests of the prompt files in use that can show examples, by file name; what examples look like."""
        used = [prompt for node in self.chain.nodes for prompt in node.prompts_in_use]
        return {prompt.path.name: prompt.example_digest for prompt in used if prompt.example_digest is not None}

    def form(self) -> JsonObject:
        """Everything that decides the answers but examples: the chain's links, its models and prompts."""
        return {
            "chain": self.chain.get_name(),
            "links": [step.link.name for step in self.chain.steps],
            **nodes_form(self.chain.nodes),
        }


def prompt_files(nodes: Iterable[Node[Any, Any]]) -> Mapping[str, str]:
    """The text of the prompt files that nodes use, by file name."""
    used = {prompt.path for node in nodes for prompt in node.prompts_in_use}
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(used)}


def nodes_form(nodes: Sequence[Node[Any, Any]]) -> JsonObject:
    """What decides the answers of nodes: their models, and the digests of their prompts."""
    return {
        "models": {node.name: node.model.form() for node in nodes},
        "prompts": {prompt.path.name: prompt.digest for node in nodes for prompt in node.prompts_in_use},
    }


def given_of(sample: Sample) -> Mapping[str, Any]:
    """A chain's input for a sample: its id as name, its picture, and its inputs."""
    return {"name": sample.id, "image": sample.image, **sample.inputs}


def target_value(reading: Reading, sample: Sample) -> Json:  # noqa: ARG001  # the signature of every such function
    """The value of the chain's target as JSON: numbers of chosen options (best first, from 1), a text, or a form."""
    link, found = reading.target, reading.get(reading.target)
    return None if found is None or found.value is None else (link.answer or link.write)(found.value)


def _of_reading(reading: Reading, value: Callable[[], Json]) -> Prediction:
    line = line_of(reading)
    return Prediction(
        outcome=reading.outcome,
        value=value() if reading.outcome == "answered" else None,
        reason=reading.reason,
        links=line["links"],
        rung=_rung(reading),
        trace={name: line[name] for name in ("verbalization", "statement", "statement_reason", "answers")},
        meta=line["meta"],
    )


def _rung(reading: Reading) -> Rung | None:
    """The rung of the ladder that read the answer; None where there is none, and for that of a schema."""
    found = reading.get(reading.target)
    return None if found is None or found.rung == "schema" or reading.outcome != "answered" else found.rung


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
            found: Any = await _called(solver, sample)
    except StoreError:
        raise
    except AskanceError as error:
        return _unanswered(no_answer(error))
    if isinstance(found, Reading):
        return _of_reading(found, lambda: target_value(found, sample))
    return found if isinstance(found, Prediction) else Prediction(outcome="answered", value=found)


def _unanswered(result: Result[Any]) -> Prediction:
    link: JsonObject = {"outcome": result.outcome, "calls": [], "error": result.error}
    return Prediction(outcome=result.outcome, reason=result.reason, links={_LINK: link})


def plain(prediction: Prediction) -> Prediction:
    """`prediction` as it will be read from the run's folder: with lists for tuples, and texts for keys."""
    try:
        value, trace = json.loads(json.dumps([prediction.value, dict(prediction.trace)], allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"the solver gave what is no JSON: {error}"
        return _unanswered(Result(outcome="failed", reason=reason, error=type(error).__name__))
    return replace(prediction, value=value, trace=trace)


async def _called(solver: Solver, sample: Sample) -> object:
    ainvoke: Callable[[Sample], Awaitable[object]] | None = getattr(solver, "ainvoke", None)
    if ainvoke is not None:
        return await ainvoke(sample)
    function = cast("Callable[[Sample], object]", solver)
    found = function(sample) if inspect.iscoroutinefunction(function) else await asyncio.to_thread(function, sample)
    return await cast("Awaitable[object]", found) if inspect.isawaitable(found) else found


def with_extractor(solver: Solver, model: Model) -> Solver:
    """`solver` with a model that reads replies which cannot be read otherwise.

    Raises:
        UsageError: it reads no replies of a closed set of answers.
    """
    extracting: Callable[[Model], Solver] | None = getattr(solver, "with_extractor", None)
    if extracting is None:
        raise UsageError(
            "This solver reads no replies, so there is nothing to extract.", hint="Leave the extractor out."
        )
    return extracting(model)


def form_of(solver: Solver) -> JsonObject:
    """What decides a solver's answers, as JSON; it is part of the run's configuration.

    A solver with a method `form` says so itself. For a function it is the name and the digest of its source, so that a
    run does not continue after an edit; for anything else it is the name alone.
    """
    form: Callable[[], JsonObject] | None = getattr(solver, "form", None)
    if form is not None:
        return form()
    name = getattr(solver, "__qualname__", None) or type(solver).__qualname__
    source = _source(solver)
    return {"solver": str(name), **({} if source is None else {"source": source})}


def _source(solver: Solver) -> str | None:
    if not inspect.isfunction(solver):
        return None
    try:
        return sha256(inspect.getsource(solver).encode("utf-8", "surrogatepass")).hexdigest()
    except (OSError, TypeError):  # typed at a prompt
        return None
