"""What work that is no chain would ask: nodes are asked as they will be, and what is not on record is counted alone.

A call whose request is known is counted with its own text. Whoever rehearses says how many calls stand behind an answer
that is not there yet; those are counted with what calls like them took on record, or else with an estimate.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from askance.chains.planned import LinkPlan, Plan
from askance.errors import UsageError
from askance.models import Capabilities
from askance.models.capabilities import endpoint_key
from askance.models.scope import Pending, on_miss
from askance.models.spending.measured import Measured, measure
from askance.models.spending.spread import NOTHING, Spread
from askance.models.spending.tokens import UNSEEN_ANSWER, answer_limit, size_of, text_tokens

if TYPE_CHECKING:
    from askance.chat import ChatRequest
    from askance.errors import CallError
    from askance.models import Model, ModelSettings
    from askance.nodes import Node, Result

UNSEEN_TEXT = 300
"""Bytes of the texts of a call that cannot be known yet, where nothing like it is on record."""

_asking: ContextVar[str | None] = ContextVar("asking", default=None)
"""The role of the node that the current task asks."""

AnyNode = TypeVar("AnyNode", bound="Node[Any, Any]")


@dataclass
class _Seen:
    """What a rehearsal saw of one role."""

    node: Node[Any, Any]
    hits: set[str] = field(default_factory=set[str])
    missing: set[str] = field(default_factory=set[str])
    input: Spread = NOTHING
    limit: int = 0
    behind: int = 0


class Rehearsal:
    """Counts calls by role, and makes none.

    Args:
        unit: what is gone through, such as `pair`.
    """

    told = False

    def __init__(self, *, unit: str) -> None:
        self._unit = unit
        self._seen: dict[str, _Seen] = {}
        self._probed: dict[str, Model] = {}

    @property
    def roles(self) -> frozenset[str]:
        """The roles that were taken so far."""
        return frozenset(self._seen)

    @property
    def probed(self) -> frozenset[str]:
        """Endpoints that would be asked first what they can do, by their keys."""
        return frozenset(self._probed)

    def stand_in(self, role: str, node: AnyNode) -> AnyNode:
        """A node that asks what `node` asks, in its role."""
        twin = copy.copy(node)  # what it learns here must not stay with the node itself
        seen = self._seen.setdefault(role, _Seen(node))
        kind = cast("type[Node[Any, Any]]", type(node))

        async def ask(given: Any, config: Any = None) -> Result[Any]:
            token = _asking.set(role)
            try:
                result = await kind.ask(twin, given, config)
            finally:
                _asking.reset(token)
            seen.hits.update(call.key for call in result.calls)
            return result

        cast("Any", twin).ask = ask
        return twin

    @contextmanager
    def hearing(self, role: str, node: Node[Any, Any]) -> Generator[None]:
        """Within it, what `node` itself is asked counts for this role, whoever holds it."""
        cast("Any", node).ask = self.stand_in(role, node).ask
        try:
            yield
        finally:
            vars(node).pop("ask", None)

    @contextmanager
    def walking(self, *models: Model) -> Generator[None]:
        """Within it nothing is asked; endpoints that nobody knows count as ones that hold answers to a schema.

        Args:
            models: that are asked beside those of the nodes.

        Raises:
            UsageError: the mode is `replay`, which asks nothing.
        """
        asked = dict.fromkeys([*(seen.node.model for seen in self._seen.values()), *models])
        if any(model.mode == "replay" for model in asked):
            raise UsageError("`replay` asks nothing, so there is nothing to plan.", hint="Use the mode `auto`.")
        for model in asked:
            key = endpoint_key(model.id)
            if model.protocol is None and model.known is None:
                model.engine.endpoints[key] = Capabilities(schema="enforced")
                self._probed[key] = model
        try:
            with on_miss(self):
                yield
        finally:
            for key, model in self._probed.items():
                model.engine.endpoints.pop(key, None)

    async def missing(self, request: ChatRequest, settings: ModelSettings) -> CallError:  # noqa: ARG002  # a walk's
        """Counts the call; equal ones count once, as they are made once."""
        role = _asking.get()
        if role is not None and not any(request.key in seen.missing for seen in self._seen.values()):
            seen = self._seen[role]
            seen.missing.add(request.key)
            seen.input += size_of(request).input
            seen.limit = max(seen.limit, answer_limit(request))
        return Pending("to be asked")

    def behind(self, role: str, count: int) -> None:
        """Counts calls that depend on answers which are not there yet."""
        self._seen[role].behind += count

    def plan(self, units: int) -> Plan:
        """The plan for so many of what is gone through."""
        nodes = [seen.node for seen in self._seen.values()]
        found = _measured(nodes)
        links = tuple(_link(role, seen, found[id(seen.node.model.engine)]) for role, seen in self._seen.items())
        return Plan(images=units, unusable=0, links=links, probes=len(self._probed), unit=self._unit)


def _measured(nodes: Sequence[Node[Any, Any]]) -> Mapping[int, Mapping[Any, Measured]]:
    """By engine, which has records of its own: what calls like those of its nodes took."""
    engines = {id(node.model.engine): node.model.engine for node in nodes}
    return {
        name: measure(engine.shelf.records, {node.model.id for node in nodes if node.model.engine is engine})
        for name, engine in engines.items()
    }


def _link(role: str, seen: _Seen, found: Mapping[Any, Measured]) -> LinkPlan:
    node, price = seen.node, seen.node.model.price
    like = found.get((node.model.id, node.prompt)) or Measured()
    known = seen.input
    if like.factor is not None:
        known = Spread(0.9, 1.0, 1.1) * (known.expected * like.factor)
    calls = len(seen.missing) + seen.behind
    answer = like.output.spread or UNSEEN_ANSWER
    limit = float(seen.limit or _limit(node))
    return LinkPlan(
        link=role,
        model=node.model.id,
        price=None if price is None else replace(price, batch=None),
        hits=len(seen.hits),
        known=len(seen.missing),
        below=seen.behind,
        input=known + (like.input.spread or _unseen(node)) * seen.behind,
        output=Spread(*(min(each, limit) for each in (answer.low, answer.expected, answer.high))) * calls,
        measured=like.output.spread is not None,
    )


def _unseen(node: Node[Any, Any]) -> Spread:
    """Tokens of one call whose texts are not known."""
    form = "text" if node.model.protocol == "paper" else "json"
    prompt = node.prompts.find(node.prompt_name, form=form, family=node.model.family)
    return Spread.around(text_tokens(prompt.path.stat().st_size + UNSEEN_TEXT).expected)


def _limit(node: Node[Any, Any]) -> int:
    return node.model.settings.sampling.max_tokens or node.model.room(node.max_tokens)
