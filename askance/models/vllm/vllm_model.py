"""`vllm:`, a model that vLLM runs, as a chat model. Models of one process that want the same share one engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from askance.chat import ModelId, canonical_json
from askance.errors import ConfigError, UsageError
from askance.models.capabilities import Capabilities
from askance.models.local.folder import is_identity
from askance.models.local.prompt_writer import without_special_tokens
from askance.models.settings import ModelSettings, Vllm
from askance.models.vllm.engine_args import (
    chat_template_for,
    command_line,
    engine_args,
    folder_of,
    identity_of,
    special_tokens_of,
    takes_pictures,
)
from askance.models.vllm.in_process import InProcessEngine
from askance.models.vllm.metrics import CacheMonitor
from askance.models.vllm.server import OwnServer, RemoteServer, ServerProcess

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse
    from askance.models.counters import Counters
    from askance.models.local.folder import ModelFolder
    from askance.models.vllm.metrics import CacheHits

_log = logging.getLogger("askance")


_NEARLY_STARTED = 0.2
"""Seconds that a start may still take before it is cancelled."""


class VLLMEngine(Protocol):
    """What answers below a model: a server, or the engine in process."""

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer, or how likely the text is that is given."""
        ...

    async def cache_hits(self) -> CacheHits | None:
        """What its caches did since it started; None where that is not known."""
        ...

    async def aclose(self) -> None: ...


@dataclass(eq=False)
class _SharedEngine:
    """An engine, started or being started, and the number of models that use it."""

    starting: asyncio.Task[VLLMEngine]
    users: int = 0
    counted: CacheHits | None = None
    """Its cache hits that models have counted by now."""


class EnginePool:
    """The engines of this process: each is started by the first model that needs it, and closed by the last.

    Each belongs to the event loop that it was made on.
    """

    def __init__(self) -> None:
        self._held: dict[Hashable, _SharedEngine] = {}

    async def acquire(self, key: Hashable, make: Callable[[], Awaitable[VLLMEngine]]) -> VLLMEngine:
        """The engine of `key`; who acquires it releases it."""
        key = self._here(key)
        held = self._held.get(key)
        if held is None:

            async def start() -> VLLMEngine:
                return await make()

            held = self._held[key] = _SharedEngine(asyncio.ensure_future(start()))
        held.users += 1
        # A caller that is cancelled leaves the start to the others.
        return await asyncio.shield(held.starting)

    async def release(self, key: Hashable) -> None:
        """Closes the engine of `key` unless another model uses it."""
        key = self._here(key)
        held = self._held.get(key)
        if held is None:
            return
        held.users -= 1
        if held.users > 0:
            return
        del self._held[key]
        # A start that is nearly done is awaited: cancelled while it connects, it would leave a socket open.
        await asyncio.wait({held.starting}, timeout=_NEARLY_STARTED)
        held.starting.cancel()
        engine = (await asyncio.gather(held.starting, return_exceptions=True))[0]
        if not isinstance(engine, BaseException):
            await engine.aclose()

    async def fresh_hits(self, key: Hashable) -> CacheHits | None:
        """The cache hits of `key` since the last call: each is counted by one of the models that use the engine."""
        held = self._held.get(self._here(key))
        if (
            held is None
            or not held.starting.done()
            or held.starting.cancelled()
            or held.starting.exception() is not None
        ):
            return None
        now = await held.starting.result().cache_hits()
        if now is None:
            return None
        before, held.counted = held.counted, now
        return now if before is None else now - before

    @staticmethod
    def _here(key: Hashable) -> Hashable:
        return id(asyncio.get_running_loop()), key


ENGINES = EnginePool()
"""Those of this process."""


class VLLMModel:
    """A model that vLLM runs: in a server that is started for it, in process, or in a server at an address.

    Models of one process that want the same share one server or engine. It is started at the first request and stopped
    by the last `aclose`, and at the latest when the process ends, even if it is killed.

    Args:
        source: a folder, or a name on the hub that was downloaded before; at an address, the server's name for it too.
        vllm: how it is run.
        family: by which prompts are worded; None goes by the name.
        reached: settings with an endpoint, for a server that runs already; None starts one, or the engine in process.

    Raises:
        ConfigError: it is not on this machine, or not whole; or it is in process and at an address at once.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        vllm: Vllm | None = None,
        family: str | None = None,
        reached: ModelSettings | None = None,
    ) -> None:
        self.source = str(source)
        self.vllm = vllm or Vllm()
        self._family = family
        self._reached = reached
        self._folder: ModelFolder | None = None
        if reached is not None and self.vllm.in_process:
            raise ConfigError(
                f"The model 'vllm:{self.source}' is to run in process and at {reached.id.endpoint}.",
                hint="Leave out the address or `in_process`.",
            )
        if not is_identity(self.source) and (reached is None or Path(self.source).expanduser().is_dir()):
            self._folder = folder_of(self.source, self.vllm)
        self._special_tokens = frozenset[str]() if self._folder is None else special_tokens_of(self._folder)
        self._engine: VLLMEngine | None = None
        self._starting: asyncio.Task[VLLMEngine] | None = None
        self._holds = False
        self._monitor = CacheMonitor(str(self.id), own=reached is None, share=self.vllm.share)

    @property
    def id(self) -> ModelId:
        """By the digest of the weights and how they are held, never by folder or port."""
        if self._folder is not None:
            return ModelId("vllm", self.source, name=identity_of(self._folder, self.vllm))
        if is_identity(self.source):
            return ModelId("vllm", self.source, name=f"vllm:{self.source}")
        endpoint = None if self._reached is None else self._reached.id.endpoint
        return ModelId("vllm", self.source, endpoint)

    @property
    def capabilities(self) -> Capabilities:
        """Answers are held to any schema; whether it takes pictures is what its configuration says.

        In process it calls no tools; a server calls them if it was started with a parser of the model's calls.
        """
        images = None if self._folder is None else takes_pictures(self._folder) or None
        tools = False if self.vllm.in_process else None
        return Capabilities(schema="enforced", json_object=True, images=images, seed=True, logprobs=True, tools=tools)

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer to `request`.

        Raises:
            CallError: the call ended without an answer.
            BadImage: a picture cannot be used.
            ConfigError: vLLM does not start, or the server at the address serves another model.
            MissingExtra: vLLM is not installed.
            UsageError: only the digest of the weights is known.
        """
        engine = self._engine or await self._started()
        response = await engine.generate(without_special_tokens(request, self._special_tokens))
        self._monitor.count(request, response)
        return response

    async def likelihood(self, request: ChatRequest) -> ChatResponse:
        """How likely the text `request.given` is; see `askance.models.likelihood`. It raises what `generate` raises."""
        engine = self._engine or await self._started()
        return await engine.generate(without_special_tokens(request, self._special_tokens))

    @property
    def doing(self) -> str:
        """Starting vLLM; a server that runs says no more."""
        return f"vLLM starts with {self.source}" if self._starting is not None and self._engine is None else ""

    async def counted(self) -> Counters:
        """What was asked and found so far; warns once where caches never hit although they could have."""
        await self._measure()
        return self._monitor.counters

    async def aclose(self) -> None:
        """Releases the engine; the next question starts it again."""
        if self._engine is not None:
            await self._measure()
            _log.info("%s: %s.", self.source, self._monitor.counters)
        starting, self._starting, self._engine = self._starting, None, None
        if starting is not None:
            starting.cancel()
        if self._holds:
            self._holds = False
            await ENGINES.release(self._key)

    def __repr__(self) -> str:
        return f"VLLMModel({self.source!r})"

    async def _started(self) -> VLLMEngine:
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._acquired())
            self._starting.add_done_callback(lambda done: done.cancelled() or done.exception())
        engine = await asyncio.shield(self._starting)
        self._engine = engine
        return engine

    async def _acquired(self) -> VLLMEngine:
        self._holds = True
        return await ENGINES.acquire(self._key, self._start)

    async def _measure(self) -> None:
        fresh = None if self._engine is None else await ENGINES.fresh_hits(self._key)
        if fresh is not None:
            self._monitor.add(fresh)
        self._monitor.warn()

    @property
    def _key(self) -> object:
        place = None if self._folder is None else str(self._folder.path.resolve())
        how = canonical_json({"vllm": astuple(self.vllm), "family": self._family})
        reached = None if self._reached is None else repr(self._reached)
        return place or self.source, how, reached

    async def _start(self) -> VLLMEngine:
        if self._reached is not None:
            return await RemoteServer.reached(self._reached, self.vllm)
        if self._folder is None:
            raise UsageError(
                f"The model 'vllm:{self.source}' is known by the digest of its weights alone.",
                hint="Name its folder, `vllm:FOLDER`, or a server that has it, `vllm:…@http://…`.",
            )
        spec, model = f"vllm:{self.source}", str(self.id)
        arguments = engine_args(self._folder, self.vllm)
        template = chat_template_for(self._folder, self._family)
        if self.vllm.in_process:
            return await InProcessEngine.started(spec, model, arguments, vllm=self.vllm, template=template)
        more = {} if template is None else {"chat_template": template, "chat_template_content_format": "string"}
        line = command_line({**arguments, "served_model_name": model, **more})
        return await OwnServer.started(lambda: ServerProcess(spec, line, self.vllm), model=model)


def from_settings(settings: ModelSettings) -> VLLMModel:
    """The model that `settings` describes."""
    reached = settings if settings.id.endpoint is not None else None
    return VLLMModel(settings.id.model, vllm=settings.vllm, family=settings.family, reached=reached)
