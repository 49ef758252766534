"""The chain: nodes that fill in the links of a reading, each as soon as the links that it needs are there.

A chain is a LangChain `Runnable`: `|`, `batch`, callbacks, `astream_events` and `get_graph` work as everywhere. Where
no callback handler listens, it calls its nodes directly, which is much faster; both ways give equal readings.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from contextvars import copy_context
from dataclasses import dataclass, fields, replace
from functools import partial
from inspect import isawaitable
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from typing_extensions import override

from askance.agents import extract_answer
from askance.chains.link import LINKS, LINKS_BY_NAME, Link, check_pickle
from askance.chains.notebook import html_table
from askance.chains.output_line import SCHEMA
from askance.chains.reading import Given, Reading, reading_of
from askance.concurrency import map_in_order
from askance.errors import AskanceError, BadImage, Skipped, StoreError, UsageError, UserCodeError, boundary
from askance.models import run_sync
from askance.models.call_scope import span
from askance.nodes import Node, Result, no_answer, skipped
from askance.nodes.runnable import Runnable
from askance.nodes.tracing import traced_config, traced_run

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManager
    from langchain_core.runnables import RunnableConfig
    from langchain_core.runnables.graph import Graph
    from typing_extensions import TypeIs

    from askance.chat import JsonObject
    from askance.models import Model, ModelLike
    from askance.prompts import PromptLibrary

CONCURRENCY = 16
"""Pictures under way at once where the caller does not say."""

INPUT_SCHEMA = "input.schema.json"
"""Beside this module: the JSON Schema of what every chain takes; its links come on top."""

YIELD_AFTER = 0.005
"""Seconds of a replay after which other tasks of the event loop may run; to let them costs time as well."""

OnLink: TypeAlias = Callable[["Reading"], None]
"""Called with what is known of a picture so far."""

NodeLike = Runnable[Any, Any] | Callable[..., Any]


class Ask(Protocol):
    """The method of a node that gives a `Result`: those of `askance.tools` and `askance.agents` have it."""

    def __call__(self, given: Any, config: RunnableConfig | None = None) -> Awaitable[Result[Any]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One link of a chain and the node that fills it in."""

    link: Link[Any]
    node: NodeLike
    needs: tuple[Link[Any], ...] = ()
    """Links that must have an answer first, as far as the chain has them."""
    subject: Callable[[Reading], Any]
    """The node's input; raises `Skipped` where something that it cannot do without is not there."""
    asks_nobody: bool = False
    """Whether the node only rearranges what is known, so that a plan runs it as well."""

    @property
    def name(self) -> str:
        """How the step shows up in traces and graphs."""
        return self.node.get_name() if is_runnable(self.node) else getattr(self.node, "__name__", self.link.name)

    def __reduce__(self) -> tuple[Any, ...]:
        """See `Chain.__reduce__`.

        Raises:
            UsageError: the node or the subject cannot be pickled.
        """
        check_pickle(self.subject, f"The subject of the step {self.link.name!r}")
        check_pickle(self.node, f"The node of the step {self.link.name!r}")
        form = {each.name: getattr(self, each.name) for each in fields(self)}
        return partial(Step, **form), ()

    async def run(self, reading: Reading, config: RunnableConfig | None) -> Result[Any]:
        """The link's result, given what `reading` holds so far."""
        with span("link", self.link.name) as ended:
            result = await self._run(reading, config)
            ended(outcome=result.outcome, error=result.error)
            return result

    async def _run(self, reading: Reading, config: RunnableConfig | None) -> Result[Any]:
        for need in self.needs:
            result = reading.get(need)
            if result is not None and not result.answered and not result.absent:
                why = f"skipped: {result.reason}" if result.outcome == "skipped" else result.outcome
                return skipped(f"{need} has no answer ({why})")
        try:
            subject = self.subject(reading)
        except Skipped as error:
            return skipped(str(error), absent=True)
        except BadImage as error:
            return no_answer(error)
        ask: Ask | None = getattr(self.node, "ask", None)
        return self._typed(await (self._ask_function(subject, config) if ask is None else ask(subject, config)))

    async def _ask_function(self, subject: Any, config: RunnableConfig | None) -> Result[Any]:
        """The result of a caller's own function or runnable; what it raises becomes the outcome of this link alone.

        Raises:
            StoreError: the records cannot be read or written.
        """
        try:
            with boundary(lambda words: UserCodeError(f"{self.name} raised {words}")):
                return Result(outcome="answered", value=await _call(self.node, subject, config))
        except StoreError:
            raise
        except AskanceError as error:
            return no_answer(error)

    def _typed(self, result: Result[Any]) -> Result[Any]:
        """`result` with its value as the link's type."""
        if not result.answered or isinstance(result.value, self.link.kind):
            return result
        try:
            return replace(result, value=self.link.value(result.value))
        except UsageError as error:
            reason = f"{self.name} raised {type(error).__name__}: {error}"
            return Result(outcome="failed", reason=reason, error=type(error).__name__, calls=result.calls)


def is_runnable(node: NodeLike) -> TypeIs[Runnable[Any, Any]]:
    """Whether `node` is a runnable of LangChain."""
    return isinstance(node, Runnable)


async def _call(node: NodeLike, subject: Any, config: RunnableConfig | None) -> Any:
    if is_runnable(node):
        return await node.ainvoke(subject, config)
    answer = node(subject)
    return await answer if isawaitable(answer) else answer


class Chain(Runnable["Given", Reading]):
    """Nodes wired by the links that they fill in and need.

    It takes a picture, a mapping with `image`, `options` and given links, or a `Reading`, and gives a `Reading`. A link
    that is given is not asked. A call that fails never raises: its link has an outcome without a value, and links that
    need it are `skipped`.

    Args:
        name: how the chain shows up in traces.
        target: the link that it is after.
        steps: one for each link that it fills in. Each is asked after those that it needs; beyond that the links of
            the papers keep their own order, and others come in the order given.
        mode: the replay mode of its models, which decides what tracers may do.

    Raises:
        UsageError: links that need each other, two links of one name, or a name that cannot be one.
    """

    def __init__(self, name: str, *, target: Link[Any], steps: Iterable[Step], mode: str = "auto") -> None:
        self.name = name
        self.target = target
        self.mode = mode
        by_link = {step.link.name: step for step in steps}
        self.links = _ordered_links(target, by_link)
        """By name, every link that the chain can fill in or be given; each stands after those that it needs."""
        self.steps = tuple(by_link[link] for link in self.links if link in by_link)

    @override
    def __repr__(self) -> str:
        return f"Chain({self.get_name()!r}, {' → '.join(step.link.name for step in self.steps)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """A chain is pickled as its parts, without a client or a key, and made again of them where it is opened.

        Raises:
            UsageError: a part cannot be pickled; the message names it.
        """
        return partial(Chain, self.get_name(), target=self.target, steps=self.steps, mode=self.mode), ()

    @property
    @override
    def InputType(self) -> Any:  # LangChain's name
        return Any

    @property
    @override
    def OutputType(self) -> Any:
        return Any

    @property
    def nodes(self) -> tuple[Node[Any, Any], ...]:
        """The nodes that ask a model, in the order of the links."""
        return (*self._asking.values(),)

    @property
    def _asking(self) -> Mapping[str, Node[Any, Any]]:
        """The nodes that ask a model, by link."""
        nodes: list[tuple[str, NodeLike]] = [(step.link.name, step.node) for step in self.steps]
        return {link: cast("Node[Any, Any]", node) for link, node in nodes if isinstance(node, Node)}

    @property
    def shows_examples(self) -> bool:
        """Whether the node of the target shows examples; of a caller's own function it is taken to be so."""
        nodes = [step.node for step in self.steps if step.link.name == self.target.name]
        prompted = [cast("Node[Any, Any]", node) for node in nodes if isinstance(node, Node)]
        return all("examples" in getattr(node.takes, "model_fields", ()) for node in prompted)

    @property
    def upstream(self) -> Mapping[str, tuple[str, ...]]:
        """By link, all links that it needs, and all that these need in turn; given ones too."""
        upstream: dict[str, tuple[str, ...]] = {}
        for step in self.steps:
            near = [need.name for need in step.needs]
            far = [each for need in near for each in upstream.get(need, ())]
            upstream[step.link.name] = tuple(dict.fromkeys((*near, *far)))
        return upstream

    def __getitem__(self, link: str) -> NodeLike:
        """The node that fills in `link`."""
        return self._step(link).node

    def with_nodes(self, **nodes: NodeLike | None) -> Chain:
        """This chain with other nodes for the links named; None drops the link.

        A node is anything callable or runnable that takes what the present one takes (`chain["scene_text"]` takes an
        `Image`) and gives the link's value, or plain text or lists that stand for it.

        Raises:
            UsageError: a name that is no link of this chain.
        """
        steps = {step.link.name: step for step in self.steps}
        for link, node in nodes.items():
            step = self._step(link)
            if node is None:
                del steps[link]
            else:
                steps[link] = replace(step, node=node, asks_nobody=False)
        return Chain(self.get_name(), target=self.target, steps=steps.values(), mode=self.mode)

    def with_extractor(self, model: ModelLike, *, prompts: PromptLibrary | None = None) -> Chain:
        """This chain with a model that reads replies which its choosing nodes cannot read.

        Args:
            model: is asked once about each such reply; it may say that the reply chooses nothing.
            prompts: where its prompt is looked up; by default the overlay folder in use and the package's own.

        Raises:
            UsageError: no node of the chain chooses from a closed set of answers.
        """
        extractor = extract_answer(model, prompts=prompts)
        choosing = {link: node.with_extractor(extractor) for link, node in self._asking.items() if node.chooses}
        if not choosing:
            raise UsageError(
                f"No link of the chain {self.name!r} chooses from a closed set of answers.",
                hint="Leave the extractor out: free answers are taken as they are.",
            )
        return self.with_nodes(**choosing)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that the chain's nodes ask, each once; those of extractors and of tools behind the others."""
        others = [model for node in self.nodes for model in node.models]
        return tuple(dict.fromkeys([*(node.model for node in self.nodes), *others]))

    def _step(self, link: str) -> Step:
        for step in self.steps:
            if step.link.name == link:
                return step
        known = ", ".join(step.link.name for step in self.steps)
        raise UsageError(f"The chain {self.name!r} has no link {link!r}.", hint=f"It has {known}.")

    async def read(
        self, source: Given, config: RunnableConfig | None = None, *, on_link: OnLink | None = None
    ) -> Reading:
        """The reading of one input; with `config` None on the straight path, which calls no handler.

        Args:
            source: the input.
            config: a LangChain configuration whose handlers listen.
            on_link: called with the reading so far after each link.
        """
        reading = reading_of(source, self.target, self.links)
        if self.target.chooses and reading.options is None and self.target.name not in reading.links:
            raise UsageError(
                "There are no options to choose from.", hint="Give `options`, a list of texts, with the image."
            )
        if reading.examples and not self.shows_examples:
            raise UsageError(
                f"The chain {self.name!r} shows its model no examples.",
                hint="Leave `examples` out, or take a chain whose node is asked about a picture with options or words.",
            )
        with span("chain", self.get_name(), image=reading.name) as ended:
            if config is None:
                read = await self._run(reading, None, on_link)
            else:
                read = await self._traced_read(reading, config, on_link)
            ended(outcome=read.outcome)
            return read

    async def ainvoke(self, input: Given, config: RunnableConfig | None = None, **_: Any) -> Reading:  # noqa: A002
        """The reading of one input."""
        return await self.read(input, traced_config(config, self.mode))

    def invoke(self, input: Given, config: RunnableConfig | None = None, **_: Any) -> Reading:  # noqa: A002
        """As `ainvoke`, from anywhere: scripts, threads, notebooks."""
        return run_sync(self.ainvoke(input, config))

    def __call__(self, source: Given) -> Reading:
        """As `invoke`."""
        return self.invoke(source)

    async def astream(self, input: Given, config: RunnableConfig | None = None, **_: Any) -> AsyncIterator[Reading]:  # noqa: A002
        """The reading as it grows: after each link all that is known; the last one is what `ainvoke` gives."""
        parts: asyncio.Queue[Reading | None] = asyncio.Queue()
        work = asyncio.ensure_future(self.read(input, traced_config(config, self.mode), on_link=parts.put_nowait))
        work.add_done_callback(lambda _: parts.put_nowait(None))
        part: Reading | None = None
        try:
            while (grown := await parts.get()) is not None:
                part = grown
                yield part
            if (whole := await work) != part:
                yield whole
        finally:
            work.cancel()

    def stream(self, input: Given, config: RunnableConfig | None = None, **_: Any) -> Iterator[Reading]:  # noqa: A002
        """As `astream`, from anywhere."""
        parts: SimpleQueue[Reading | None] = SimpleQueue()

        async def work() -> None:
            async for part in self.astream(input, config):
                parts.put(part)

        with ThreadPoolExecutor(1, "askance-stream") as pool:
            ended = pool.submit(copy_context().run, run_sync, work())
            ended.add_done_callback(lambda _: parts.put(None))
            while (part := parts.get()) is not None:
                yield part
            ended.result()

    async def abatch(
        self,
        inputs: list[Given],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **_: Any,
    ) -> list[Reading]:
        """The readings of all inputs, in their order.

        As many are under way as keep the models' endpoints busy, or `max_concurrency` of the configuration.
        """
        from langchain_core.runnables.config import get_config_list

        configs = get_config_list(config, len(inputs))
        room = self._room((configs[0].get("max_concurrency") if configs else None) or None)

        async def one(call: tuple[Given, RunnableConfig]) -> Reading:
            try:
                return await self.ainvoke(*call)
            except Exception as error:
                if return_exceptions:
                    return cast("Reading", error)
                raise

        async with aclosing(map_in_order(one, zip(inputs, configs, strict=True), room=room)) as readings:
            return [reading async for reading in readings]

    def batch(
        self,
        inputs: list[Given],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **_: Any,
    ) -> list[Reading]:
        """As `abatch`, from anywhere."""
        return run_sync(self.abatch(inputs, config, return_exceptions=return_exceptions))

    async def read_all(
        self, sources: Iterable[Given], *, concurrency: int | None = None
    ) -> AsyncGenerator[Reading, None]:
        """The readings of a stream of inputs, in its order, each as soon as it and those before it are there.

        As many pictures are under way as keep the models' endpoints busy, or `concurrency`. Where one takes long, a few
        times as many readings are held until it has ended. What is left is cancelled when the caller stops reading.
        """
        config = traced_config(None, self.mode)
        if not self._waits and config is None and len(self.nodes) == len(self.steps):
            # A replay waits for nothing, so pictures go one by one; Ctrl-C and other tasks get their turn in between.
            turn = monotonic()
            for source in sources:
                yield await self.read(source)
                if monotonic() - turn > YIELD_AFTER:
                    await asyncio.sleep(0)
                    turn = monotonic()
            return
        room = self._room(concurrency)
        async with aclosing(map_in_order(lambda source: self.read(source, config), sources, room=room)) as readings:
            async for reading in readings:
                yield reading

    def _room(self, concurrency: int | None) -> Callable[[], int]:
        """Gives how many pictures are to be under way: `concurrency`, or what keeps the models' endpoints busy."""
        engines = {id(model.engine): model.engine for model in self.models}.values()
        return lambda: concurrency or max([engine.places for engine in engines], default=CONCURRENCY)

    async def _run(self, reading: Reading, config: RunnableConfig | None, on_link: OnLink | None = None) -> Reading:
        """Fills in every link that is not given: side by side, or one by one where none waits for anything."""
        return await (self._side_by_side if self._waits else self._one_by_one)(reading, config, on_link)

    @property
    def _waits(self) -> bool:
        """Whether links wait: for an endpoint, or, in a replay, for records behind a network."""
        return self.mode != "replay" or any(model.engine.recorder.records.remote for model in self.models)

    async def _one_by_one(self, reading: Reading, config: RunnableConfig | None, on_link: OnLink | None) -> Reading:
        known = dict(reading.links)
        for step in self.steps:
            if (link := step.link.name) not in known:
                known[link] = await step.run(reading.with_links(known) if step.needs else reading, config)
                if on_link is not None:
                    on_link(reading.with_links(known))
        return reading.with_links(known)

    async def _side_by_side(self, reading: Reading, config: RunnableConfig | None, on_link: OnLink | None) -> Reading:
        """Each link as soon as its needs are there."""
        known, grown = dict(reading.links), dict(reading.links)
        tasks: dict[str, asyncio.Task[Result[Any]]] = {}

        async def fill(step: Step) -> Result[Any]:
            for need in step.needs:
                if need.name in tasks:
                    known[need.name] = await tasks[need.name]
            result = await step.run(reading.with_links(known), config)
            if on_link is not None:
                grown[step.link.name] = result
                on_link(reading.with_links(grown))
            return result

        for step in self.steps:
            if (link := step.link.name) not in known:
                tasks[link] = asyncio.ensure_future(fill(step))
        try:
            for link, task in tasks.items():
                known[link] = await task
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        return reading.with_links(known)

    async def _traced_read(self, reading: Reading, config: RunnableConfig, on_link: OnLink | None) -> Reading:
        from langchain_core.runnables.config import patch_config

        async def work(manager: AsyncCallbackManager) -> Reading:
            child = patch_config(config, callbacks=manager)
            for own in ("run_id", "run_name"):
                child.pop(own, None)
            return await self._run(reading, child, on_link)

        inputs = {"image": reading.name, "sha256": reading.digest, "options": reading.options}
        return await traced_run(self.get_name(), config, inputs=inputs, work=work)

    def get_input_jsonschema(self, config: RunnableConfig | None = None, **_: Any) -> JsonObject:  # noqa: ARG002  # LangChain's signature
        """JSON Schema of the mapping that the chain takes."""
        form = _schema(INPUT_SCHEMA)
        links = {
            name: {**link.input_schema(), "title": link.title, "description": "Where it is given, nobody is asked."}
            for name, link in self.links.items()
        }
        return {
            **form,
            "title": f"What the chain {self.get_name()} takes",
            "properties": {**form["properties"], **links},
            "required": ["options"] if self.target.chooses else [],
        }

    def get_output_jsonschema(self, config: RunnableConfig | None = None, **_: Any) -> JsonObject:  # noqa: ARG002
        """JSON Schema of what the chain gives, as `Reading.to_dict` has it."""
        return _schema(SCHEMA)

    def _repr_html_(self) -> str:
        """A row for each step: the link, the node that fills it in, the model it asks, the links that it needs."""
        rows = [
            (step.link.title, step.name, _model_name(step.node), ", ".join(need.name for need in step.needs))
            for step in self.steps
        ]
        return html_table(f"{self.get_name()} → {self.target}", ("link", "node", "model", "needs"), rows)

    def get_graph(self, config: RunnableConfig | None = None) -> Graph:  # noqa: ARG002  # LangChain's signature
        """The wiring: a node a step, an edge from each link to what needs it."""
        from langchain_core.runnables import RunnableLambda
        from langchain_core.runnables.graph import Graph

        graph = Graph()
        start, end = graph.add_node(RunnableLambda(_start), id="image"), None
        places: dict[str, Any] = {}
        for step in self.steps:
            data: Any = step.node if is_runnable(step.node) else RunnableLambda(step.node)
            place = places[step.link.name] = graph.add_node(data, id=step.name)
            sources = [places[need.name] for need in step.needs if need.name in places]
            for source in sources or [start]:
                graph.add_edge(source, place)
            end = place if step.link.name == self.target.name else end
        return graph


def _schema(name: str) -> JsonObject:
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def _start(source: Any) -> Any:
    return source


_RESERVED = frozenset(
    {"image", "name", "options", "question", "examples", "id", "target", "group", "tags", "solver", "scores"}
)
"""Names that stand for something else: in what a chain is given, in rows of a task, in lines of a run."""


def _ordered_links(target: Link[Any], steps: Mapping[str, Step]) -> Mapping[str, Link[Any]]:
    """By name, the links of the papers, those of `steps` and those that they need, each after the ones it needs.

    Raises:
        UsageError: links that need each other, two links of one name, or a name that cannot be one.
    """
    links = dict(LINKS_BY_NAME)
    for step in steps.values():
        for link in (*step.needs, step.link):
            _check_name(link, links.setdefault(link.name, link))
    _check_name(target, links.setdefault(target.name, target))
    ordered: dict[str, Link[Any]] = {}
    while left := [link for link in links.values() if link.name not in ordered]:
        free = (link for link in left if link.name not in steps or _is_after(steps[link.name].needs, ordered))
        link = next(free, None)
        if link is None:
            names = " and ".join(repr(link.name) for link in left)
            raise UsageError(f"The links {names} need each other.", hint="Take one out of the `needs` of a step.")
        ordered[link.name] = link
    return ordered


def _is_after(needs: Iterable[Link[Any]], ordered: Mapping[str, Link[Any]]) -> bool:
    return all(need.name in ordered for need in needs)


def _check_name(link: Link[Any], known: Link[Any]) -> None:
    """Raises where a link has a name that cannot be one, or the name of another."""
    if not link.name.isidentifier() or link.name in _RESERVED:
        raise UsageError(
            f"{link.name!r} cannot be the name of a link.",
            hint=f"Use letters, digits and underscores; these names are taken: {', '.join(sorted(_RESERVED))}.",
        )
    if link is not known and link != known:
        raise UsageError(
            f"There are two links {link.name!r} that are declared otherwise.",
            hint=f"Give one another name; {', '.join(each.name for each in LINKS)} are declared already.",
        )


def _model_name(node: NodeLike) -> str:
    return str(cast("Node[Any, Any]", node).model.id) if isinstance(node, Node) else ""
