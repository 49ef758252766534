"""The plan of a run: what it would ask of whom, and what that would cost, without asking anybody.

The chain itself is walked, picture by picture, as far as the records carry it. A call whose prompt is known but whose
answer is not on record is counted with its own text and pictures; a call that depends on such an answer is counted with
what calls like it took on record, or else with an estimate.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from askance.chains.factories import concatenate
from askance.chains.planned import LinkPlan, Plan, together
from askance.chat import canonical_json
from askance.errors import BadImage, UsageError
from askance.images import Image
from askance.models import Capabilities, Engine
from askance.models.capabilities import endpoint_key
from askance.models.scope import Pending, on_miss
from askance.models.spending.measured import Kind, Mean, Measured, measure
from askance.models.spending.spread import NOTHING, Spread
from askance.models.spending.tokens import UNSEEN_ANSWER, answer_limit, size_of, text_tokens
from askance.nodes import Node, Result
from askance.nodes.telling import digest
from askance.tools import ImageTool
from askance.tools.rapid_ocr import RapidOcr

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from askance.chains.chain import Chain, NodeLike, Step
    from askance.chains.reading import Given, Link, Reading
    from askance.chat import ChatRequest
    from askance.errors import CallError
    from askance.models import Model, ModelSettings

_UNSEEN_TEXT: Mapping[Link, int] = {"description": 1500, "statement": 8000, "answers": 1200}
"""Bytes that a link's prompt gets from the links before it, where nothing was measured: four verbalizations; a
description and 80 statements; a description and a statement."""

_link: ContextVar[Link] = ContextVar("link")
"""The link that the current task fills in."""


async def plan(chain: Chain, sources: Iterable[Given]) -> Plan:
    """What `chain` would ask for `sources`; nothing is asked, and no picture is decoded.

    Args:
        chain: with the models, the records and the mode of the run that is planned.
        sources: what the chain would be given.

    Raises:
        UsageError: the mode is `replay`, which asks nothing.
    """
    return await plan_all([(chain, sources)])


async def plan_all(runs: Iterable[tuple[Chain, Iterable[Given]]]) -> Plan:
    """What several runs would ask, one after the other; a call that several make counts once.

    Args:
        runs: a chain each, and what it would be given.

    Raises:
        UsageError: the mode of a chain is `replay`, which asks nothing.
    """
    shared = Shared()
    plans: list[Plan] = []
    for chain, sources in runs:
        if chain.mode == "replay":
            raise UsageError("`replay` asks nothing, so there is nothing to plan.", hint="Use the mode `auto`.")
        plans.append(await _walked(chain, sources, shared))
    return together(plans)


async def _walked(chain: Chain, sources: Iterable[Given], shared: Shared) -> Plan:
    counting = Counting(chain, shared)
    walked = chain.with_nodes(**{step.link: counting.stand_in(step) for step in chain.steps})
    assumed = await _assume(chain)
    try:
        with on_miss(counting):
            for source in sources:
                counting.add(await walked.read(source))
    finally:
        for engine, key in assumed:
            engine.endpoints.pop(key, None)
    fresh = {key for _, key in assumed} - shared.probed
    shared.probed |= fresh
    return counting.plan(probes=len(fresh))


async def _assume(chain: Chain) -> list[tuple[Engine, str]]:
    """Lets endpoints that nobody has asked yet count as ones that hold answers to a schema; gives which those are."""
    assumed: list[tuple[Engine, str]] = []
    for model in _models(chain):
        key = endpoint_key(model.id)
        if model.protocol is None and model.known is None:
            model.engine.endpoints[key] = Capabilities(schema="enforced")
            assumed.append((model.engine, key))
    return assumed


def _models(chain: Chain) -> list[Model]:
    return list(dict.fromkeys(node.model for node in chain.nodes))


@dataclass
class _Seen:
    """What a walk saw of one link."""

    hits: int = 0
    input: Mean = field(default_factory=Mean)
    output: Mean = field(default_factory=Mean)
    """Tokens of the answers on record."""
    known: int = 0
    known_input: Spread = NOTHING
    """Calls to be made whose request is known, and their estimate."""
    below: int = 0
    below_text: int = 0
    """Calls to be made that depend on those, and the bytes of them that are known."""
    limit: int = 0
    """Most tokens of an answer."""


@dataclass
class Shared:
    """What several walks have seen, so that what one of them counted no other counts again."""

    missing: set[str] = field(default_factory=set[str])
    """Keys of calls to be made whose request is known."""
    below: set[int] = field(default_factory=set[int])
    """Calls to be made that depend on those: which node, of which picture, and what it is given."""
    hits: set[str] = field(default_factory=set[str])
    probed: set[str] = field(default_factory=set[str])
    """Keys of endpoints that will be asked first what they can do."""
    looks: dict[tuple[int, str], Result[Any]] = field(default_factory=dict[tuple[int, str], "Result[Any]"])
    """By node and picture: what became of the first look, so that no other chain has to look again."""


class Counting:
    """A walk that counts what is missing, by link."""

    told = False

    def __init__(self, chain: Chain, shared: Shared) -> None:
        self._chain = chain
        self._shared = shared
        self._signatures = signatures(chain)
        self._above = above(chain)
        self._seen: dict[Link, _Seen] = {step.link: _Seen() for step in chain.steps}
        self._elsewhere: Counter[Link] = Counter()
        self._readings = self._unusable = 0

    def stand_in(self, step: Step) -> NodeLike:
        """What fills in `step.link` on the walk."""
        if step.node is concatenate:
            return step.node
        return cast("NodeLike", _Rehearsed(step.link, step.node, self))

    @property
    def looks(self) -> dict[tuple[int, str], Result[Any]]:
        """By node and picture: what became of the first look."""
        return self._shared.looks

    def signature(self, link: Link) -> int:
        """Equal for links that ask the same of the same picture, in whatever chain."""
        return self._signatures[link]

    async def missing(self, request: ChatRequest, settings: ModelSettings) -> CallError:  # noqa: ARG002
        """Counts the call; equal ones count once, as the run makes them once."""
        if request.key not in self._shared.missing:
            size = size_of(request)
            self._shared.missing.add(request.key)
            seen = self._seen[_link.get()]
            seen.known += 1
            seen.known_input += size.input
            seen.limit = max(seen.limit, answer_limit(request))
        return Pending("to be asked")

    def elsewhere(self, link: Link) -> Result[Any]:
        """Counts work that asks no model; the result that stands for it."""
        self._elsewhere[link] += 1
        return Result(outcome="skipped", error=Pending.__name__)

    def add(self, reading: Reading) -> None:
        """Counts what was found on record, and what depends on what was not."""
        self._readings += 1
        self._unusable += any(result.error == BadImage.__name__ for result in reading.links.values())
        waiting: set[Link] = set()
        for step in self._chain.steps:
            result = cast("Result[Any]", getattr(reading, step.link))
            self._add_hits(step.link, result)
            if result.error == Pending.__name__:
                waiting.add(step.link)
            elif (
                result.outcome == "skipped"
                and waiting.intersection(step.needs)
                and not _stopped(step, reading, waiting)
            ):
                waiting.add(step.link)
                if isinstance(step.node, Node):
                    self._add_below(step.link, reading)

    def _add_hits(self, link: Link, result: Result[Any]) -> None:
        seen = self._seen[link]
        for call in result.calls:
            if call.kind == "chat" and call.key not in self._shared.hits:
                self._shared.hits.add(call.key)
                seen.hits += 1
                if call.usage.input is not None and call.usage.output is not None:
                    seen.input.add(call.usage.input)
                    seen.output.add(call.usage.output)

    def _add_below(self, link: Link, reading: Reading) -> None:
        above, links = self._above[link], reading.links
        given = {each: str(links[each].value) for each in above if each in links and links[each].given}
        options = reading.options if link == "answers" else None
        call = hash((self._signatures[link], reading.digest or reading.name, options, tuple(given.items())))
        if call not in self._shared.below:
            self._shared.below.add(call)
            seen = self._seen[link]
            seen.below += 1
            if link == "answers":
                seen.below_text += sum(len(option.encode()) for option in reading.options or ())

    def plan(self, *, probes: int) -> Plan:
        """The plan, after every reading was added."""
        steps = [step for step in self._chain.steps if isinstance(step.node, Node)]
        models = _models(self._chain)
        recorded: Mapping[Kind, Measured] = {}
        if self._shared.missing and models:
            recorded = measure(models[0].engine.shelf.records, {model.id for model in models})
        return Plan(
            images=self._readings,
            unusable=self._unusable,
            links=tuple(self._planned(step, recorded) for step in steps),
            probes=probes,
            elsewhere=dict(self._elsewhere),
        )

    def _planned(self, step: Step, recorded: Mapping[Kind, Measured]) -> LinkPlan:
        node, seen = cast("Node[Any, Any]", step.node), self._seen[step.link]
        like = recorded.get((node.model.id, node.prompt)) or Measured()
        output = seen.output.spread or like.output.spread
        known = seen.known_input
        if like.factor is not None:
            known = Spread(0.9, 1.0, 1.1) * (known.expected * like.factor)
        each_below = seen.input.spread or like.input.spread or self._unseen(step.link, node, seen)
        calls, limit = seen.known + seen.below, float(seen.limit or _limit(node))
        answer = output or UNSEEN_ANSWER
        return LinkPlan(
            link=step.link,
            model=node.model.id,
            price=node.model.price,
            hits=seen.hits,
            known=seen.known,
            below=seen.below,
            input=known + each_below * seen.below,
            output=Spread(min(answer.low, limit), min(answer.expected, limit), min(answer.high, limit)) * calls,
            measured=output is not None,
        )

    def _unseen(self, link: Link, node: Node[Any, Any], seen: _Seen) -> Spread:
        """Tokens of one call whose prompt cannot be known and that has no like on record."""
        form = "text" if node.model.protocol == "paper" else "json"
        prompt = node.prompts.find(node.prompt_name, form=form, family=node.model.family)
        known = prompt.path.stat().st_size + seen.below_text / max(seen.below, 1)
        return Spread.around(text_tokens(round(known + _UNSEEN_TEXT.get(link, 0))).expected)


def _limit(node: Node[Any, Any]) -> int:
    return node.model.settings.sampling.max_tokens or node.model.room(node.max_tokens)


def _stopped(step: Step, reading: Reading, waiting: set[Link]) -> bool:
    """Whether a link that `step` needs has ended without an answer for good."""
    needs = [cast("Result[Any] | None", getattr(reading, need)) for need in step.needs if need not in waiting]
    return any(result is not None and not result.answered and not result.absent for result in needs)


def signatures(chain: Chain) -> dict[Link, int]:
    """By link, what its node asks: of which model, with which prompts, and what of that of the links it needs."""
    found: dict[Link, int] = {}
    for step in chain.steps:
        needs = tuple((need, found[need]) for need in step.needs if need in found)
        found[step.link] = hash((step.link, needs, _asks(step.node)))
    return found


def above(chain: Chain) -> dict[Link, tuple[Link, ...]]:
    """By link, all links that it depends on, near or far; given ones too."""
    found: dict[Link, tuple[Link, ...]] = {}
    for step in chain.steps:
        far: list[Link] = [each for need in step.needs for each in found.get(need, ())]
        found[step.link] = tuple(dict.fromkeys((*step.needs, *far)))
    return found


def _asks(node: NodeLike) -> str:
    if not isinstance(node, Node):
        return repr(node)
    asking = cast("Node[Any, Any]", node)
    prompts = [prompt.digest for prompt in asking.prompts_in_use]
    own = {name: value for name, value in vars(asking).items() if isinstance(value, (str, int))}
    return canonical_json({"model": asking.model.form(), "prompts": prompts, "kind": type(asking).__name__, "own": own})


class _Rehearsed:
    """A node on a walk: it tells which link it fills in, and asks nobody outside of it."""

    def __init__(self, link: Link, node: NodeLike, counting: Counting) -> None:
        self._link: Link = link
        # What a node learns on a walk, such as the assumed form of asking, must not stay with the node itself.
        self._node: NodeLike = copy.copy(cast("NodeLike", node)) if isinstance(node, Node) else node
        self._counting = counting

    async def ask(self, given: Any, config: RunnableConfig | None = None) -> Result[Any]:
        looks = self._counting.looks
        if not isinstance(given, Image) or not isinstance(self._node, ImageTool):
            return await self._asked(given, config)
        look = (self._counting.signature(self._link), digest(given) or given.name)
        if look not in looks:
            looks[look] = await self._asked(given, config)
        return looks[look]

    async def _asked(self, given: Any, config: RunnableConfig | None) -> Result[Any]:
        _link.set(self._link)  # of this link's own task
        node: Any = self._node
        if isinstance(node, Node):
            return await cast("Node[Any, Any]", node).ask(given, config)
        recorded = node.on_record(given) if isinstance(node, RapidOcr) else None
        return recorded or self._counting.elsewhere(self._link)
