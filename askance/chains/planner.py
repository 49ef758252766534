"""The plan of a run: what it would ask of whom, and what that would cost, without asking anybody.

A `Planner` runs chains and nodes as far as the records carry them, and counts calls by role: the link of a chain for
which a node asks, or a judge. Every plan of the package is made by it: of chains, tasks, grids, judges, blame,
negatives and searches. There are three kinds of calls:

- one that is on record costs nothing;
- one whose request is known, but not its answer, is counted with its own text and pictures;
- one that depends on such an answer is counted with what calls like it took on record, or else with an estimate. Where
  each answer decides what is asked next, as in an investigation, they are the most that there can be.
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from askance.chains.link import LINKS_BY_NAME, TYPICAL_BYTES
from askance.chains.prompt_change import MOST_TRIED, PromptChange, prompt_change
from askance.chat import canonical_json, key_of
from askance.errors import BadImage, UsageError
from askance.images import Image
from askance.images.image import image_digest
from askance.models import Capabilities, Price, use_draw
from askance.models.call_scope import Pending, on_miss
from askance.models.capabilities import endpoint_key
from askance.models.encoders.embedder import EMBEDDERS
from askance.models.encoders.picture_scorer import SCORERS
from askance.models.token_estimate import (
    NOTHING,
    UNSEEN_ANSWER,
    CallKind,
    Range,
    TokenStatistics,
    answer_limit,
    mean_range,
    size_of,
    text_tokens,
    token_statistics,
)
from askance.nodes import Node, Result
from askance.tools import ImageTool
from askance.tools.ocr import RapidOcr

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from askance.chains.chain import Chain, NodeLike, Step
    from askance.chains.link import Link
    from askance.chains.reading import Given, Reading
    from askance.chat import ChatRequest, ModelId
    from askance.errors import CallError
    from askance.models import Model, ModelSettings

JUDGE: Final = "judge"
"""The role of a judge of scores."""

EXTRACTION = "extraction"
"""The role of a model that reads replies which cannot be read otherwise; a plan counts those on record."""

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
    dependent: int
    """Calls to be made that depend on answers which are not there yet."""
    input: Range
    """Tokens of all calls to be made."""
    output: Range
    measured: bool
    """Whether the length of the answers was measured on records; else it is an estimate."""
    computed: bool = False
    """Whether these are no calls but scores or vectors, computed by the thousand."""
    at_most: bool = False
    """Whether `dependent` is the most that there can be, since each answer decides what is asked next. All are counted
    as calls of `model`, the dearest of those that may be asked; one without a known price counts as the dearest."""

    @property
    def calls(self) -> int:
        """Calls to be made."""
        return self.known + self.dependent

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
    """Endpoints that are first asked what they can do, with a few small calls each."""
    without_model: Mapping[str, int] = field(default_factory=dict[str, int])
    """By link, work that asks no model, such as OCR or a node of the caller's own."""
    unit: str = "image"
    """What `images` counts."""
    troubles: tuple[str, ...] = ()
    """Why pictures cannot be used, of the first `MOST_TROUBLES`."""
    changed_prompts: tuple[PromptChange, ...] = ()
    """Prompt files whose edit is why calls are made anew."""

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


async def plan(chain: Chain, sources: Iterable[Given]) -> Plan:
    """What `chain` would ask for `sources`; nothing is asked, and no picture is decoded.

    Args:
        chain: with the models, the records and the mode of the run that is planned.
        sources: what the chain would be given.

    Raises:
        UsageError: the mode is `replay`, which asks nothing.
    """
    planner = Planner()
    walk = planner.walk(chain)
    with planner.counting():
        for source in sources:
            await walk.read(source)
    return planner.plan()


Role: TypeAlias = "tuple[str, Node[Any, Any]]"
"""A node under the name of its line in a plan."""


class Planner:
    """Counts calls by role, and makes none. An equal call counts once, whoever asks it, since it is made once.

    A chain is read through its `walk`. A node that is in no chain asks through its `counter`. Both count within
    `counting`, and `plan` says what was counted.
    """

    reports_hits = False

    def __init__(self) -> None:
        self._counters: dict[tuple[str, ModelId, str], CallCounter] = {}
        self._models: dict[Model, None] = {}
        self._computed: dict[tuple[str, ModelId], LinkPlan] = {}
        self._judges: dict[str, None] = {}
        """Names of the counters of judges, in their order."""
        self._counted: set[str] = set()
        """Keys of the calls, scores and vectors that were counted."""
        self._probed: set[str] = set()
        """Keys of the endpoints that will first be asked what they can do."""
        self.walks: list[ChainWalk] = []
        self.tool_results: dict[tuple[int, str, int], Result[Any]] = {}
        """What tools answered, by what they ask, picture and draw: several chains may ask the same of one picture."""
        self.dependent_calls: set[int] = set()
        """Hashes of the calls of chains that depend on others and were counted."""

    def counter(
        self, name: str, node: Node[Any, Any], *, batched: bool = False, typical_bytes: int = TYPICAL_BYTES
    ) -> CallCounter:
        """The counter of a role; nodes that ask one model by one prompt under one name share one.

        Args:
            name: of the role; the plan has one line for each role and model.
            node: that asks.
            batched: whether its calls may go by the batch interface.
            typical_bytes: as `Link` has it.
        """
        self._models.update(dict.fromkeys(node.models))
        new = CallCounter(name=name, node=node, batched=batched, counted=self._counted, typical_bytes=typical_bytes)
        return self._counters.setdefault((name, node.model.id, node.prompt_name), new)

    def judge_counter(self, judge: Node[Any, Any]) -> CallCounter:
        """The counter of a judge; each has a line at the end of the plan, where several are numbered.

        Args:
            judge: that asks; those that ask the same of one model share a counter.
        """
        prompt = judge.prompts_in_use[0]  # the one that it was made with; others depend on the question
        form = {"kind": type(judge).__qualname__, "model": judge.model.form(), "prompt": prompt.digest}
        name = key_of(JUDGE, form)
        self._judges.setdefault(name)
        return self.counter(name, judge)

    def walk(self, chain: Chain) -> ChainWalk:
        """A walk through `chain`, in which each link is a role.

        Raises:
            UsageError: the mode is `replay`, which asks nothing.
        """
        check_mode(chain.mode)
        self.walks.append(ChainWalk(self, chain))
        return self.walks[-1]

    @contextmanager
    def counting(self, roles: Iterable[Role] = ()) -> Generator[None]:
        """A context in which calls that are not on record are counted instead of made.

        An endpoint of which nothing is known counts as one that enforces a schema.

        Args:
            roles: nodes whose own calls are counted, whoever asks them.

        Raises:
            UsageError: the mode is `replay`, which asks nothing.
        """
        counters = [(self.counter(name, node), node) for name, node in roles]
        assumed: dict[str, Model] = {}
        for model in self._models:
            check_mode(model.mode)
            key = endpoint_key(model.id)
            if model.protocol is None and model.known is None:
                model.engine.endpoints[key] = Capabilities(schema="enforced")
                assumed[key] = model
        self._probed |= assumed.keys()
        try:
            with ExitStack() as within:
                for counter, node in counters:
                    within.enter_context(counter.counting(node))
                within.enter_context(on_miss(self))
                yield
        finally:
            for key, model in assumed.items():
                model.engine.endpoints.pop(key, None)

    async def missing(self, request: ChatRequest, settings: ModelSettings) -> CallError:  # noqa: ARG002  # a policy's
        """Counts a call that is not on record, and ends it without an answer."""
        counter = _current_counter.get()
        if counter is not None:
            counter.add_call(request)
        return Pending("to be asked")

    def add_computed(
        self, name: str, model: ModelId, *, keys: Iterable[str], lacking: Collection[str], dependent: int = 0
    ) -> None:
        """Counts scores or vectors, which are no calls.

        Args:
            name: of their role.
            model: that computes them.
            keys: of all of them; those that were counted before are left out.
            lacking: those of `keys` that are not on record.
            dependent: how many more there are, of texts that are not known yet.
        """
        fresh = {key for key in keys if _is_new(key, self._counted)}
        line = LinkPlan(
            link=name,
            model=model,
            price=Price(input=0.0, output=0.0) if model.provider in _LOCAL_PROVIDERS else None,
            hits=len(fresh - {*lacking}),
            known=len(fresh & {*lacking}),
            dependent=dependent,
            input=NOTHING,
            output=NOTHING,
            measured=True,
            computed=True,
        )
        before = self._computed.get((name, model))
        self._computed[name, model] = line if before is None else _sum(before, line)

    def plan(self, units: int | None = None, *, unit: str = "image") -> Plan:
        """The plan: a line for each role and model.

        Args:
            units: how many of `unit` there are; by default the pictures of the longest walk.
            unit: what `Plan.images` counts, such as `pair`.
        """
        statistics = self._statistics()
        lines: dict[tuple[str, ModelId], LinkPlan] = {}
        for counter in self._counters.values():
            model = counter.node.model
            like = statistics[id(model.engine)].get((model.id, counter.node.prompt)) or TokenStatistics()
            line = counter.link_plan(like)
            before = lines.get((counter.name, model.id))
            lines[counter.name, model.id] = line if before is None else _sum(before, line)
        links = [*lines.values(), *self._computed.values()]
        if len(self.walks) > 1:
            places = {link: place for place, link in enumerate(LINKS_BY_NAME)}
            links.sort(key=lambda line: (str(line.model), places.get(line.link, len(places))))
        links = [*(line for line in links if line.link not in self._judges), *self._judging(links)]
        without_model: Counter[str] = Counter()
        for walk in self.walks:
            without_model.update(walk.without_model)
        return Plan(
            images=max((walk.readings for walk in self.walks), default=0) if units is None else units,
            unusable=max((walk.unusable for walk in self.walks), default=0),
            links=tuple(links),
            probes=len(self._probed),
            without_model=dict(without_model),
            unit=unit,
            troubles=max((tuple(walk.troubles) for walk in self.walks), key=len, default=()),
            changed_prompts=tuple(self._changed_prompts()),
        )

    def _judging(self, lines: Iterable[LinkPlan]) -> Iterator[LinkPlan]:
        """The lines of judges, in their order."""
        by_name = {line.link: line for line in lines}
        for place, name in enumerate(self._judges, start=1):
            yield replace(by_name[name], link=f"{JUDGE} {place}" if len(self._judges) > 1 else JUDGE)

    def _changed_prompts(self) -> Iterator[PromptChange]:
        """The prompt files that were edited, each once."""
        changes: dict[Path, PromptChange] = {}
        for counter in self._counters.values():
            records = counter.node.model.engine.recorder.records
            role = JUDGE if counter.name in self._judges else counter.name
            change = prompt_change(role, counter.node, counter.missed, records=records)
            if change is not None:
                before = changes.get(change.file)
                links = dict.fromkeys((*(before.links if before else ()), *change.links))
                changes[change.file] = replace(before or change, links=tuple(links))
        yield from changes.values()

    def _statistics(self) -> Mapping[int, Mapping[CallKind, TokenStatistics]]:
        """By engine, since each has records of its own: what calls like those to be made took on record."""
        statistics: defaultdict[int, Mapping[CallKind, TokenStatistics]] = defaultdict(dict)
        models = [counter.node.model for counter in self._counters.values()]
        for engine in {counter.node.model.engine for counter in self._counters.values() if counter.known}:
            own = {model.id for model in models if model.engine is engine}
            statistics[id(engine)] = token_statistics(engine.recorder.records, own)
        return statistics


class ChainWalk:
    """Reads pictures by a chain whose calls a planner counts; each link is a role.

    Args:
        planner: that counts.
        chain: with the models and the records of the run that is planned.
    """

    def __init__(self, planner: Planner, chain: Chain) -> None:
        self._planner = planner
        self._chain = chain
        self._questions = _questions(chain)
        self._upstream = chain.upstream
        self._counters: dict[str, CallCounter] = {}
        self._draw = 0
        self.readings = 0
        self.unusable = 0
        """Readings whose picture cannot be used."""
        self.troubles: list[str] = []
        """Why those cannot be used, of the first."""
        self.without_model: Counter[str] = Counter()
        """By link, work that asks no model."""
        self._counting = chain.with_nodes(**{step.link.name: self._counting_node(step) for step in chain.steps})

    async def read(self, source: Given, *, draw: int = 0) -> Reading:
        """Counts what the chain asks for `source`; gives the reading as far as the records carry it.

        Args:
            source: what the chain is given.
            draw: that is asked for.
        """
        self._draw = draw
        with use_draw(draw):
            reading = await self._counting.read(source)
        self.readings += 1
        reasons = [result.reason for result in reading.links.values() if result.error == BadImage.__name__]
        self.unusable += bool(reasons)
        if reasons and len(self.troubles) < MOST_TROUBLES:
            self.troubles.append(reasons[0] or reading.name)
        pending: set[str] = set()
        for step in self._chain.steps:
            result, name = reading[step.link], step.link.name
            if result.error == Pending.__name__:
                pending.add(name)
                self._add_dependent(step.link, reading, draw, begun=len(result.calls) + 1)
            elif result.outcome == "skipped" and _depends(step, reading, pending):
                pending.add(name)
                self._add_dependent(step.link, reading, draw)
        return reading

    def _add_dependent(self, link: Link[Any], reading: Reading, draw: int, *, begun: int = 0) -> None:
        """Counts the calls for `link`, unless equal ones are counted: same question, picture, given links and draw.

        What is asked of each picture anew, a question and its examples, is asked for the target alone.

        Args:
            link: is to be filled in.
            reading: as far as it is known.
            draw: that is asked for.
            begun: calls that are on record or counted; the others are the most that the node can make.
        """
        counter = self._counters.get(link.name)
        calls = 0 if counter is None else counter.node.most_calls - begun
        if counter is None or calls <= 0:
            return
        links, options = reading.links, reading.options if link.chooses else None
        texts: tuple[str, ...] = options or ()
        if link.name == reading.target.name:
            texts += (reading.question,) if reading.question else ()
            texts += tuple(canonical_json(each.form()) for each in reading.examples)
        inputs = tuple(
            (each, str(links[each].value)) for each in self._upstream[link.name] if each in links and links[each].given
        )
        call = hash((self._questions[link.name], reading.digest or reading.name, texts, inputs, draw))
        if call not in self._planner.dependent_calls:
            self._planner.dependent_calls.add(call)
            text_bytes = sum(len(text.encode()) for text in texts)
            counter.add_dependent(calls, text_bytes=calls * text_bytes)

    def _counting_node(self, step: Step) -> NodeLike:
        """A node that is counted, in the place of the step's own."""
        own: NodeLike = step.node
        if step.asks_nobody:
            return own
        if not isinstance(own, Node):
            return cast("NodeLike", _WithoutModel(step, self.without_model))
        node = cast("Node[Any, Any]", own)
        link = step.link
        if node.extractor is not None:  # its replies are known where those of the node are on record
            reading = self._planner.counter(EXTRACTION, node.extractor, batched=True)
            node = node.with_extractor(reading.counting_copy(node.extractor))
        batched = node.most_calls == 1
        counter = self._planner.counter(link.name, node, batched=batched, typical_bytes=link.typical_bytes)
        self._counters[link.name] = counter
        counting = counter.counting_copy(node)
        return self._asked_once(link.name, counting) if isinstance(node, ImageTool) else counting

    def _asked_once(self, link: str, tool: Node[Any, Any]) -> NodeLike:
        """`tool`, asked once about each picture, however many chains of the planner ask it."""
        results, question, ask = self._planner.tool_results, self._questions[link], tool.ask

        async def ask_once(subject: Any, config: RunnableConfig | None = None) -> Result[Any]:
            if not isinstance(subject, Image):
                return await ask(subject, config)
            call = (question, image_digest(subject) or subject.name, self._draw)
            if call not in results:
                results[call] = await ask(subject, config)
            return results[call]

        cast("Any", tool).ask = ask_once
        return tool


class _WithoutModel:
    """Stands for a node that asks no model: what it has on record is taken, and the rest counted."""

    def __init__(self, step: Step, counts: Counter[str]) -> None:
        self._step = step
        self._counts = counts

    async def ask(self, subject: Any, config: RunnableConfig | None = None) -> Result[Any]:  # noqa: ARG002  # a node's
        node: Any = self._step.node
        recorded = node.on_record(subject) if isinstance(node, RapidOcr) else None
        if recorded is None:
            self._counts[self._step.link.name] += 1
            return Result(outcome="skipped", error=Pending.__name__)
        return recorded


def _depends(step: Step, reading: Reading, pending: Collection[str]) -> bool:
    """Whether a step waits for links that are `pending`, and nothing else that it needs has failed."""
    others = [reading.get(need) for need in step.needs if need.name not in pending]
    failed = any(result is not None and not result.answered and not result.absent for result in others)
    return len(others) < len(step.needs) and not failed


def _questions(chain: Chain) -> dict[str, int]:
    """By link, a hash of what its node asks: model and prompts, and the same of the links that it needs."""
    hashes: dict[str, int] = {}
    for step in chain.steps:
        needs = tuple((need.name, hashes[need.name]) for need in step.needs if need.name in hashes)
        hashes[step.link.name] = hash((step.link.name, needs, _node_form(step.node)))
    return hashes


def _node_form(node: NodeLike) -> str:
    if not isinstance(node, Node):
        return repr(node)
    asking = cast("Node[Any, Any]", node)
    prompts = [prompt.digest for prompt in asking.prompts_in_use]
    own = {name: value for name, value in vars(asking).items() if isinstance(value, (str, int))} | asking.settings
    return canonical_json({"model": asking.model.form(), "prompts": prompts, "kind": type(asking).__name__, "own": own})


_current_counter: ContextVar[CallCounter | None] = ContextVar("current_counter", default=None)
"""The counter of the node that the current task asks."""

AnyNode = TypeVar("AnyNode", bound="Node[Any, Any]")


@dataclass(eq=False, kw_only=True)
class CallCounter:
    """Counts the calls of one role: those of a node, or of several that ask one model by one prompt."""

    name: str
    node: Node[Any, Any]
    batched: bool
    """Whether its calls may go by the batch interface."""
    counted: set[str]
    """Keys of what the planner has counted, for whatever role."""
    typical_bytes: int = TYPICAL_BYTES
    """As `Link` has it."""
    hits: int = 0
    """Calls that are on record."""
    input: list[int] = field(default_factory=list[int])
    output: list[int] = field(default_factory=list[int])
    """Tokens of the calls on record."""
    known: int = 0
    known_input: Range = NOTHING
    """Calls to be made whose request is known, and the tokens of all of them."""
    dependent: int = 0
    dependent_bytes: int = 0
    """Calls to be made that depend on those, and the bytes of their texts that are known."""
    limit: int = 0
    """Most tokens of an answer."""
    missed: list[ChatRequest] = field(default_factory=list["ChatRequest"])
    """The first calls that are not on record."""

    def counting_copy(self, node: AnyNode) -> AnyNode:
        """A copy of `node` whose calls are counted here; those of `node` itself are not."""
        counting, kind = copy.copy(node), cast("type[Node[Any, Any]]", type(node))

        async def ask(subject: Any, config: RunnableConfig | None = None) -> Result[Any]:
            token = _current_counter.set(self)
            try:
                result = await kind.ask(counting, subject, config)
            finally:
                _current_counter.reset(token)
            self._add_hits(result)
            return result

        cast("Any", counting).ask = ask
        return counting

    @contextmanager
    def counting(self, node: Node[Any, Any]) -> Generator[None]:
        """A context in which the calls of `node` itself are counted here, whoever holds it."""
        cast("Any", node).ask = self.counting_copy(node).ask
        try:
            yield
        finally:
            vars(node).pop("ask", None)

    def add_dependent(self, count: int, *, text_bytes: int = 0) -> None:
        """Counts calls that depend on answers which are not there yet.

        Args:
            count: of the calls.
            text_bytes: bytes of their texts that are known.
        """
        self.dependent += count
        self.dependent_bytes += text_bytes

    def add_call(self, request: ChatRequest) -> None:
        """Counts a call that is not on record.

        Raises:
            BadImage: a picture of it cannot be used.
        """
        if request.key not in self.counted:
            self.known_input += size_of(request).input
            self.counted.add(request.key)
            self.known += 1
            self.limit = max(self.limit, answer_limit(request))
            if len(self.missed) < MOST_TRIED:
                self.missed.append(request)

    def _add_hits(self, result: Result[Any]) -> None:
        for call in result.calls:
            if _is_new(call.key, self.counted):
                self.hits += 1
                if call.usage.input is not None and call.usage.output is not None:
                    self.input.append(call.usage.input)
                    self.output.append(call.usage.output)

    def link_plan(self, like: TokenStatistics) -> LinkPlan:
        """The role's line in a plan.

        Args:
            like: what calls like its own took on record.
        """
        node, at_most = self.node, self.node.most_calls > 1 and self.dependent > 0
        model = _dearest(node.models) if at_most else node.model
        price = model.price
        known_input = self.known_input
        if like.factor is not None:
            known_input = Range(0.9, 1.0, 1.1) * (known_input.expected * like.factor)
        one_dependent = mean_range(self.input) or mean_range(like.input) or self._typical_input()
        measured = mean_range(self.output) or mean_range(like.output)
        answer, limit = measured or UNSEEN_ANSWER, float(self.limit or _limit(node))
        answer = Range(*(min(each, limit) for each in (answer.low, answer.expected, answer.high)))
        return LinkPlan(
            link=self.name,
            model=model.id,
            price=price if price is None or self.batched else replace(price, batch=None),
            hits=self.hits,
            known=self.known,
            dependent=self.dependent,
            input=known_input + one_dependent * self.dependent,
            output=answer * (self.known + self.dependent),
            measured=measured is not None,
            at_most=at_most,
        )

    def _typical_input(self) -> Range:
        """Tokens of one dependent call that has no like on record."""
        prompt = self.node.prompts_in_use[0]  # the one that it was made with
        known = prompt.path.stat().st_size + self.dependent_bytes / max(self.dependent, 1)
        return Range.around(text_tokens(round(known + self.typical_bytes)).expected)


_LOCAL_PROVIDERS = frozenset({"index", "scripted", *EMBEDDERS.built_in, *SCORERS.built_in})
"""Providers whose scores, vectors and searches are computed on this machine, at no price."""


def _dearest(models: Sequence[Model]) -> Model:
    """The model of the highest price; the first without a known price, where there is one."""
    return max(models, key=lambda model: inf if model.price is None else model.price.input + model.price.output)


def _limit(node: Node[Any, Any]) -> int:
    return node.model.settings.sampling.max_tokens or node.model.answer_limit(node.max_tokens)


def _is_new(key: str, counted: set[str]) -> bool:
    """Whether `key` is counted for the first time."""
    new = key not in counted
    counted.add(key)
    return new


def _sum(one: LinkPlan, other: LinkPlan) -> LinkPlan:
    return replace(
        one,
        hits=one.hits + other.hits,
        known=one.known + other.known,
        dependent=one.dependent + other.dependent,
        input=one.input + other.input,
        output=one.output + other.output,
        measured=(one.measured or not one.calls) and (other.measured or not other.calls),
        at_most=one.at_most or other.at_most,
    )


def check_mode(mode: str) -> None:
    """Refuses to plan what asks nothing.

    Raises:
        UsageError: the mode is `replay`.
    """
    if mode == "replay":
        raise UsageError("`replay` asks nothing, so there is nothing to plan.", hint="Use the mode `auto`.")
