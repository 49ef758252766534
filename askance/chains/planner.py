"""The plan of a run: what it would ask of whom, and what that would cost, without asking anybody.

Chains and nodes are walked as far as the records carry them. A call whose request is known but whose answer is not on
record is counted with its own text and pictures, by the role of the node that asks: a link of a chain, or a judge. A
call that depends on such an answer is counted with what calls like it took on record, or else with an estimate.
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from askance.chains.context import concatenate
from askance.chains.state import BY_NAME, UNSEEN_TEXT
from askance.chat import canonical_json
from askance.errors import BadImage, UsageError
from askance.images import Image
from askance.models import Capabilities, Price, use_draw
from askance.models.call_scope import Pending, on_miss
from askance.models.capabilities import endpoint_key
from askance.models.encoders import embedder, scorer
from askance.models.token_estimate import (
    NOTHING,
    UNSEEN_ANSWER,
    CallKind,
    Range,
    RunningMean,
    TokenStatistics,
    answer_limit,
    size_of,
    text_tokens,
    token_statistics,
)
from askance.nodes import Node, Result
from askance.nodes.tracing import image_digest
from askance.tools import ImageTool
from askance.tools.ocr import RapidOcr

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from askance.chains.chain import Chain, NodeLike, Step
    from askance.chains.state import Given, Link, Reading
    from askance.chat import ChatRequest, ModelId
    from askance.errors import CallError
    from askance.models import Model, ModelSettings

SECONDS_A_CALL = 3.0
"""What a call is taken to last where nothing is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPlan:
    """The calls for one link of a chain."""

    link: str
    """Of a chain, or the role of whoever asks."""
    model: ModelId
    price: Price | None
    """None is not known, never free."""
    hits: int
    """Calls that are on record."""
    known: int
    """Calls to be made whose request is known."""
    below: int
    """Calls to be made that depend on answers which are not there yet."""
    input: Range
    """Tokens of all calls to be made."""
    output: Range
    measured: bool
    """Whether the length of answers is that of answers on record, not an estimate."""
    computed: bool = False
    """Whether what is made is no call: scores and vectors, worked out on this machine by the thousand."""

    @property
    def calls(self) -> int:
        """Calls to be made."""
        return self.known + self.below

    @property
    def dollars(self) -> Range | None:
        """US dollars online; None where no price is known."""
        if self.price is None:
            return None
        return self.input * (self.price.input / 1e6) + self.output * (self.price.output / 1e6)


MOST_TROUBLES = 3
"""Pictures that cannot be used of which a plan says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run would do. Calls that are asked again after faults are not in it."""

    images: int
    unusable: int
    """Pictures that cannot be used."""
    links: tuple[LinkPlan, ...]
    probes: int
    """Endpoints that are asked first what they can do, with a few small calls each."""
    elsewhere: Mapping[str, int] = field(default_factory=dict[str, int])
    """Work that asks no model here, such as OCR or a node of the caller's own."""
    unit: str = "image"
    """What `images` counts."""
    troubles: tuple[str, ...] = ()
    """Why pictures cannot be used, of the first `MOST_TROUBLES`."""

    @property
    def hits(self) -> int:
        """Calls that are on record."""
        return sum(link.hits for link in self.links)

    @property
    def calls(self) -> int:
        """Calls to be made."""
        return sum(link.calls for link in self.links)

    @property
    def input(self) -> Range:
        """Tokens in."""
        return sum((link.input for link in self.links), NOTHING)

    @property
    def output(self) -> Range:
        """Tokens out."""
        return sum((link.output for link in self.links), NOTHING)

    @property
    def dollars(self) -> Range | None:
        """US dollars online for the calls that have a known price; see `unpriced` for the others.

        None where calls are to be made and none of them has a known price: that is not known, not nothing.
        """
        if self.calls and all(link.price is None for link in self.links if link.calls):
            return None
        return sum((link.dollars for link in self.links if link.dollars is not None), NOTHING)

    @property
    def batch_dollars(self) -> Range | None:
        """As `dollars`, by the batch interface of those that have one; None where none has."""
        if not any(link.calls and link.price is not None and link.price.batch for link in self.links):
            return None
        parts = [
            link.dollars * (link.price.batch or 1.0)
            for link in self.links
            if link.price is not None and link.dollars is not None
        ]
        return sum(parts, NOTHING)

    @property
    def unpriced(self) -> Mapping[str, int]:
        """Calls to be made of models whose price is not known, by model."""
        counts: Counter[str] = Counter()
        for link in self.links:
            if link.price is None and link.calls:
                counts[str(link.model)] += link.calls
        return dict(counts)

    @property
    def price_dates(self) -> tuple[str, ...]:
        """Dates or versions of the price lists that `dollars` rests on; none where all prices are configured."""
        return tuple(
            sorted({link.price.as_of for link in self.links if link.price and link.price.as_of and link.calls})
        )

    def seconds(
        self,
        *,
        concurrency: int,
        rpm: float | None = None,
        tpm: float | None = None,
        seconds_a_call: float = SECONDS_A_CALL,
    ) -> float:
        """About how long the calls take at a pace: what is slowest of calls at once, calls and tokens per minute."""
        calls = sum(link.calls for link in self.links if not link.computed)
        return max(
            calls * seconds_a_call / concurrency,
            60 * calls / rpm if rpm else 0.0,
            60 * (self.input.expected + self.output.expected) / tpm if tpm else 0.0,
        )


_HERE = frozenset({"scripted", *embedder.PROVIDERS, *scorer.PROVIDERS})
"""Providers whose scores and vectors are worked out on this machine, at no price."""

_asking: ContextVar[Role | None] = ContextVar("asking", default=None)
"""The role of the node that the current task asks."""

AnyNode = TypeVar("AnyNode", bound="Node[Any, Any]")


async def plan(chain: Chain, sources: Iterable[Given]) -> Plan:
    """What `chain` would ask for `sources`; nothing is asked, and no picture is decoded.

    Args:
        chain: with the models, the records and the mode of the run that is planned.
        sources: what the chain would be given.

    Raises:
        UsageError: the mode is `replay`, which asks nothing.
    """
    planner = Planner()
    walk = planner.chain(chain)
    with planner.walking():
        for source in sources:
            await walk.read(source)
    return planner.plan()


@dataclass(eq=False, kw_only=True)
class Role:
    """A node of a plan, or several that ask one model by one prompt in one role, and what was seen of them."""

    name: str
    node: Node[Any, Any]
    batched: bool
    """Whether its calls may go by the batch interface."""
    counted: set[str]
    """Keys of what the planner has counted, for whatever role."""
    unseen: int = UNSEEN_TEXT
    """Bytes of the texts of a call that cannot be known yet, where nothing like it is on record."""
    hits: int = 0
    input: RunningMean = field(default_factory=RunningMean)
    output: RunningMean = field(default_factory=RunningMean)
    """Tokens of the answers on record."""
    known: int = 0
    known_input: Range = NOTHING
    """Calls to be made whose request is known, and their estimate."""
    below: int = 0
    below_text: int = 0
    """Calls to be made that depend on those, and the bytes of them that are known."""
    limit: int = 0
    """Most tokens of an answer."""

    def stand_in(self, node: AnyNode) -> AnyNode:
        """A node that asks what `node` asks, in this role; `node` itself learns nothing of it."""
        twin, kind = copy.copy(node), cast("type[Node[Any, Any]]", type(node))

        async def ask(given: Any, config: RunnableConfig | None = None) -> Result[Any]:
            token = _asking.set(self)
            try:
                result = await kind.ask(twin, given, config)
            finally:
                _asking.reset(token)
            self._add_hits(result)
            return result

        cast("Any", twin).ask = ask
        return twin

    @contextmanager
    def hearing(self, node: Node[Any, Any]) -> Generator[None]:
        """Within it, what `node` itself is asked counts for this role, whoever holds it."""
        cast("Any", node).ask = self.stand_in(node).ask
        try:
            yield
        finally:
            vars(node).pop("ask", None)

    def behind(self, count: int, *, text: int = 0) -> None:
        """Counts calls that depend on answers which are not there yet.

        Args:
            count: of the calls.
            text: bytes of them that are known.
        """
        self.below += count
        self.below_text += text

    def missing(self, request: ChatRequest) -> None:
        """Counts a call that is not on record.

        Raises:
            BadImage: a picture of it cannot be used.
        """
        if request.key not in self.counted:
            self.known_input += size_of(request).input
            self.counted.add(request.key)
            self.known += 1
            self.limit = max(self.limit, answer_limit(request))

    def _add_hits(self, result: Result[Any]) -> None:
        for call in result.calls:
            if _is_new(call.key, self.counted):
                self.hits += 1
                if call.usage.input is not None and call.usage.output is not None:
                    self.input.add(call.usage.input)
                    self.output.add(call.usage.output)

    def line(self, like: TokenStatistics) -> LinkPlan:
        """Its line in a plan.

        Args:
            like: what calls like its own took on record.
        """
        node, price, calls = self.node, self.node.model.price, self.known + self.below
        output = self.output.range or like.output.range
        known = self.known_input
        if like.factor is not None:
            known = Range(0.9, 1.0, 1.1) * (known.expected * like.factor)
        answer, limit = output or UNSEEN_ANSWER, float(self.limit or _limit(node))
        return LinkPlan(
            link=self.name,
            model=node.model.id,
            price=price if price is None or self.batched else replace(price, batch=None),
            hits=self.hits,
            known=self.known,
            below=self.below,
            input=known + (self.input.range or like.input.range or self._unseen()) * self.below,
            output=Range(*(min(each, limit) for each in (answer.low, answer.expected, answer.high))) * calls,
            measured=output is not None,
        )

    def _unseen(self) -> Range:
        """Tokens of one call whose texts cannot be known and that has no like on record."""
        node = self.node
        form = "text" if node.model.protocol == "paper" else "json"
        prompt = node.prompts.find(node.prompt_name, form=form, family=node.model.family)
        known = prompt.path.stat().st_size + self.below_text / max(self.below, 1)
        return Range.around(text_tokens(round(known + self.unseen)).expected)


def _limit(node: Node[Any, Any]) -> int:
    return node.model.settings.sampling.max_tokens or node.model.answer_limit(node.max_tokens)


class Planner:
    """A walk that counts calls by role, and makes none. What is counted once is not counted again, whoever asks it.

    A chain is read by its `chain` walk; what is no chain is asked through the stand-ins of its roles. Both count while
    the planner is `walking`, and `plan` says what was counted.

    Args:
        unit: what is gone through, such as `pair`.
    """

    reports_hits = False

    def __init__(self, *, unit: str = "image") -> None:
        self._unit = unit
        self._roles: dict[tuple[str, ModelId, str], Role] = {}
        self._models: dict[Model, None] = {}
        self._computed: dict[tuple[str, ModelId], LinkPlan] = {}
        self._counted: set[str] = set()
        """Keys of calls, scores and vectors."""
        self._probed: set[str] = set()
        """Keys of endpoints that will be asked first what they can do."""
        self.walks: list[ChainWalk] = []
        self.looks: dict[tuple[int, str, int], Result[Any]] = {}
        """By what is asked, picture and draw: what became of a look, so that no other chain has to look again."""
        self.waiting: set[int] = set()
        """Calls of chains that depend on others: which node, of which picture and draw, and what it is given."""

    def role(self, name: str, node: Node[Any, Any], *, batched: bool = False, unseen: int = UNSEEN_TEXT) -> Role:
        """The role of a node; the same for nodes that ask one model by one prompt under one name.

        Args:
            name: of the line in the plan, together with other nodes of that name that ask the same model.
            node: that asks.
            batched: whether its calls may go by the batch interface.
            unseen: bytes of the texts of a call that cannot be known yet, where nothing like it is on record.
        """
        self._models[node.model] = None
        role = Role(name=name, node=node, batched=batched, counted=self._counted, unseen=unseen)
        return self._roles.setdefault((name, node.model.id, node.prompt_name), role)

    def chain(self, chain: Chain) -> ChainWalk:
        """A walk through `chain`, each of whose links is a role.

        Raises:
            UsageError: the mode is `replay`, which asks nothing.
        """
        _check(chain.mode)
        self.walks.append(ChainWalk(self, chain))
        return self.walks[-1]

    @contextmanager
    def walking(self) -> Generator[None]:
        """Within it nothing is asked; endpoints of roles that nobody knows count as ones that hold answers to a schema.

        Raises:
            UsageError: the mode is `replay`, which asks nothing.
        """
        assumed: dict[str, Model] = {}
        for model in self._models:
            _check(model.mode)
            key = endpoint_key(model.id)
            if model.protocol is None and model.known is None:
                model.engine.endpoints[key] = Capabilities(schema="enforced")
                assumed[key] = model
        self._probed |= assumed.keys()
        try:
            with on_miss(self):
                yield
        finally:
            for key, model in assumed.items():
                model.engine.endpoints.pop(key, None)

    async def missing(self, request: ChatRequest, settings: ModelSettings) -> CallError:  # noqa: ARG002  # a policy's
        """Counts the call; equal ones count once, as they are made once."""
        role = _asking.get()
        if role is not None:
            role.missing(request)
        return Pending("to be asked")

    def compute(
        self, name: str, model: ModelId, *, keys: Iterable[str], lacking: Collection[str], below: int = 0
    ) -> None:
        """Counts scores or vectors, which are no calls.

        Args:
            name: of their line.
            model: that works them out.
            keys: of all of them; those that were counted before are left out.
            lacking: of those that are not on record.
            below: how many more there are, of texts that are not known yet.
        """
        fresh = {key for key in keys if _is_new(key, self._counted)}
        line = LinkPlan(
            link=name,
            model=model,
            price=Price(input=0.0, output=0.0) if model.provider in _HERE else None,
            hits=len(fresh - {*lacking}),
            known=len(fresh & {*lacking}),
            below=below,
            input=NOTHING,
            output=NOTHING,
            measured=True,
            computed=True,
        )
        before = self._computed.get((name, model))
        self._computed[name, model] = line if before is None else _sum(before, line)

    def plan(self, units: int | None = None) -> Plan:
        """The plan: a line for each role and model.

        Args:
            units: how many of what is gone through there are; by default the pictures of the longest walk.
        """
        found = self._measured()
        lines: dict[tuple[str, ModelId], LinkPlan] = {}
        for role in self._roles.values():
            model = role.node.model
            line = role.line(found[id(model.engine)].get((model.id, role.node.prompt)) or TokenStatistics())
            before = lines.get((role.name, model.id))
            lines[role.name, model.id] = line if before is None else _sum(before, line)
        links = [*lines.values(), *self._computed.values()]
        if len(self.walks) > 1:
            links.sort(key=lambda line: (str(line.model), _PLACES.get(line.link, len(_PLACES))))
        elsewhere: Counter[str] = Counter()
        for walk in self.walks:
            elsewhere.update(walk.elsewhere)
        return Plan(
            images=max((walk.readings for walk in self.walks), default=0) if units is None else units,
            unusable=max((walk.unusable for walk in self.walks), default=0),
            links=tuple(links),
            probes=len(self._probed),
            elsewhere=dict(elsewhere),
            unit=self._unit,
            troubles=max((tuple(walk.troubles) for walk in self.walks), key=len, default=()),
        )

    def _measured(self) -> Mapping[int, Mapping[CallKind, TokenStatistics]]:
        """By engine, which has records of its own: what calls like those of its nodes took."""
        found: defaultdict[int, Mapping[CallKind, TokenStatistics]] = defaultdict(dict)
        engines = {id(role.node.model.engine): role.node.model.engine for role in self._roles.values() if role.known}
        for name, engine in engines.items():
            models = {role.node.model.id for role in self._roles.values() if role.node.model.engine is engine}
            found[name] = token_statistics(engine.recorder.records, models)
        return found


def _is_new(key: str, counted: set[str]) -> bool:
    """Whether `key` is counted for the first time."""
    new = key not in counted
    counted.add(key)
    return new


_PLACES: Mapping[str, int] = {link: place for place, link in enumerate(BY_NAME)}


def _sum(one: LinkPlan, other: LinkPlan) -> LinkPlan:
    return replace(
        one,
        hits=one.hits + other.hits,
        known=one.known + other.known,
        below=one.below + other.below,
        input=one.input + other.input,
        output=one.output + other.output,
        measured=(one.measured or not one.calls) and (other.measured or not other.calls),
    )


def _check(mode: str) -> None:
    """Refuses to plan what asks nothing.

    Raises:
        UsageError: the mode is `replay`.
    """
    if mode == "replay":
        raise UsageError("`replay` asks nothing, so there is nothing to plan.", hint="Use the mode `auto`.")


class ChainWalk:
    """A chain whose calls a planner counts, each link in a role of its own.

    Args:
        planner: that counts.
        chain: with the models and the records of the run that is planned.
    """

    def __init__(self, planner: Planner, chain: Chain) -> None:
        self._planner = planner
        self._chain = chain
        self._signatures = _signatures(chain)
        self._above = chain.above
        self._roles: dict[str, Role] = {}
        self._draw = 0
        self.readings = self.unusable = 0
        """Pictures, and those of them that cannot be used."""
        self.troubles: list[str] = []
        """Why those cannot be used, of the first."""
        self.elsewhere: Counter[str] = Counter()
        """Work that asks no model."""
        self._walked = chain.with_nodes(**{step.link.name: self._stand_in(step) for step in chain.steps})

    async def read(self, source: Given, *, draw: int = 0) -> Reading:
        """Counts what the chain asks for `source`; the reading as far as the records carry it.

        Args:
            source: what the chain is given.
            draw: that is asked for.
        """
        self._draw = draw
        with use_draw(draw):
            reading = await self._walked.read(source)
        self.readings += 1
        reasons = [result.reason for result in reading.links.values() if result.error == BadImage.__name__]
        self.unusable += bool(reasons)
        if reasons and len(self.troubles) < MOST_TROUBLES:
            self.troubles.append(reasons[0] or reading.name)
        waiting: set[str] = set()
        for step in self._chain.steps:
            result = reading[step.link.name]
            if result.error == Pending.__name__:
                waiting.add(step.link.name)
            elif (
                result.outcome == "skipped"
                and any(need.name in waiting for need in step.needs)
                and not _stopped(step, reading, waiting)
            ):
                waiting.add(step.link.name)
                if isinstance(step.node, Node):
                    self._add_below(step.link, reading, draw)
        return reading

    def _add_below(self, link: Link[Any], reading: Reading, draw: int) -> None:
        links, options = reading.links, reading.options if link.chooses else None
        given = tuple(
            (each, str(links[each].value)) for each in self._above[link.name] if each in links and links[each].given
        )
        call = hash((self._signatures[link.name], reading.digest or reading.name, options, given, draw))
        if call not in self._planner.waiting:
            self._planner.waiting.add(call)
            self._roles[link.name].behind(1, text=sum(len(option.encode()) for option in options or ()))

    def _stand_in(self, step: Step) -> NodeLike:
        """What fills in the link on the walk."""
        own: NodeLike = step.node
        if own is concatenate:
            return own
        if not isinstance(own, Node):
            return cast("NodeLike", _Elsewhere(step, self.elsewhere))
        node = cast("Node[Any, Any]", own)
        link = step.link.name
        role = self._roles[link] = self._planner.role(link, node, batched=True, unseen=step.link.unseen)
        twin = role.stand_in(node)
        return self._looking(link, twin) if isinstance(node, ImageTool) else twin

    def _looking(self, link: str, twin: Node[Any, Any]) -> NodeLike:
        """A tool that looks once at each picture, whatever chains look at it."""
        looks, signature, ask = self._planner.looks, self._signatures[link], twin.ask

        async def look(given: Any, config: RunnableConfig | None = None) -> Result[Any]:
            if not isinstance(given, Image):
                return await ask(given, config)
            one = (signature, image_digest(given) or given.name, self._draw)
            if one not in looks:
                looks[one] = await ask(given, config)
            return looks[one]

        cast("Any", twin).ask = look
        return twin


class _Elsewhere:
    """Stands for a node that asks no model: what it has on record is taken, and the rest counted."""

    def __init__(self, step: Step, counts: Counter[str]) -> None:
        self._step = step
        self._counts = counts

    async def ask(self, given: Any, config: RunnableConfig | None = None) -> Result[Any]:  # noqa: ARG002  # a node's
        node: Any = self._step.node
        recorded = node.on_record(given) if isinstance(node, RapidOcr) else None
        if recorded is None:
            self._counts[self._step.link.name] += 1
            return Result(outcome="skipped", error=Pending.__name__)
        return recorded


def _stopped(step: Step, reading: Reading, waiting: set[str]) -> bool:
    """Whether a link that `step` needs has ended without an answer for good."""
    needs = [reading.get(need) for need in step.needs if need.name not in waiting]
    return any(result is not None and not result.answered and not result.absent for result in needs)


def _signatures(chain: Chain) -> dict[str, int]:
    """By link, what its node asks: of which model, with which prompts, and what of that of the links it needs."""
    found: dict[str, int] = {}
    for step in chain.steps:
        needs = tuple((need.name, found[need.name]) for need in step.needs if need.name in found)
        found[step.link.name] = hash((step.link.name, needs, _asks(step.node)))
    return found


def _asks(node: NodeLike) -> str:
    if not isinstance(node, Node):
        return repr(node)
    asking = cast("Node[Any, Any]", node)
    prompts = [prompt.digest for prompt in asking.prompts_in_use]
    own = {name: value for name, value in vars(asking).items() if isinstance(value, (str, int))}
    return canonical_json({"model": asking.model.form(), "prompts": prompts, "kind": type(asking).__name__, "own": own})
