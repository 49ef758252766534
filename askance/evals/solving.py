"""Solvers: what answers a sample. A chain, any Runnable, or a function."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from askance.chains.line import line_of
from askance.errors import CallError, StoreError
from askance.evals.values import Prediction
from askance.models import noting

if TYPE_CHECKING:
    from askance.chains import Chain, Reading
    from askance.chat import Json, JsonObject, Outcome
    from askance.evals.values import Sample


class RunnableLike(Protocol):
    """What a LangChain Runnable is called by."""

    async def ainvoke(self, sample: Any, /, config: Any = None) -> Any:
        """The output for one input."""
        ...


Solver: TypeAlias = "RunnableLike | Callable[[Sample], Any]"
"""From a sample to a `Prediction`, or to the answer itself as JSON; sync or async."""


class ChainSolver:
    """A chain as a solver.

    Args:
        chain: what reads the sample's picture.
        given: from a sample to the chain's input; by default the picture, and what the sample says beside it.
        value: from a reading and its sample to the answer, as JSON; by default the numbers of the chosen options.
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
        self._value = value or chosen

    async def ainvoke(self, sample: Sample, /, config: Any = None) -> Prediction:
        """The prediction for one sample."""
        return self.prediction(await self.chain.ainvoke(self.given(sample), config), sample)

    def prediction(self, reading: Reading, sample: Sample) -> Prediction:
        """What `reading` says of `sample`."""
        line = line_of(reading)
        trace = {name: line[name] for name in ("verbalization", "statement", "statement_reason", "answers")}
        answered = reading.outcome == "answered"
        return Prediction(
            outcome=reading.outcome,
            value=self._value(reading, sample) if answered else None,
            reason=reading.reason,
            links=line["links"],
            trace=trace,
            meta=line["meta"],
        )

    @property
    def prompts(self) -> Mapping[str, str]:
        """Text of the prompt files in use, by name."""
        used = {prompt.path for node in self.chain.nodes for prompt in node.prompts_in_use}
        return {path.name: path.read_text(encoding="utf-8") for path in sorted(used)}

    def form(self) -> JsonObject:
        """Everything that decides the answers: the chain's links, its models and prompts."""
        nodes = self.chain.nodes
        return {
            "chain": self.chain.get_name(),
            "links": [step.link for step in self.chain.steps],
            "models": {node.name: node.model.form() for node in nodes},
            "prompts": {prompt.path.name: prompt.digest for node in nodes for prompt in node.prompts_in_use},
        }


def given_of(sample: Sample) -> Mapping[str, Any]:
    """The picture of a sample, its name, and its inputs."""
    return {"name": sample.id, "image": sample.image, **sample.inputs}


def chosen(reading: Reading, sample: Sample) -> Json:  # noqa: ARG001  # the signature of every such function
    """The numbers of the options that were chosen, best first, counted from 1."""
    return list(reading.answers.value.numbers) if reading.answers and reading.answers.value else None


async def solved(solver: Solver, sample: Sample) -> Prediction:
    """The prediction of any solver; what it raises is the outcome of this sample and never stops the others."""
    with noting() as keys:
        prediction = await _ended(solver, sample)
    if prediction.links or not keys:
        return prediction
    link: JsonObject = {"outcome": prediction.outcome, "calls": keys}
    return replace(prediction, links={"solver": link})


async def _ended(solver: Solver, sample: Sample) -> Prediction:
    try:
        found: Any = await _called(solver, sample)
    except StoreError:
        raise
    except CallError as error:
        return Prediction(outcome=cast("Outcome", error.outcome), reason=str(error))
    except Exception as error:  # noqa: BLE001  # a fault in somebody's own solver
        return Prediction(outcome="failed", reason=f"the solver raised {type(error).__name__}: {error}")
    return found if isinstance(found, Prediction) else Prediction(outcome="answered", value=found)


async def _called(solver: Solver, sample: Sample) -> object:
    ainvoke: Callable[[Sample], Awaitable[object]] | None = getattr(solver, "ainvoke", None)
    if ainvoke is not None:
        return await ainvoke(sample)
    function = cast("Callable[[Sample], object]", solver)
    found = function(sample) if iscoroutinefunction(function) else await asyncio.to_thread(function, sample)
    return await cast("Awaitable[object]", found) if isawaitable(found) else found


def form_of(solver: Solver) -> JsonObject:
    """What is known of a solver, as JSON: everything that decides its answers where it can say so, else its name."""
    form: Callable[[], JsonObject] | None = getattr(solver, "form", None)
    if form is not None:
        return form()
    name = getattr(solver, "__qualname__", None) or type(solver).__qualname__
    return {"solver": str(name)}
