"""Answers by a server of vLLM's, through the backend for OpenAI's protocol: one of our own, or one at an address."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from askance.chat import ModelId
from askance.errors import ConfigError, ModelError, ServerFault, Unreachable
from askance.models.openai.model import OpenAIModel, at_loopback, from_settings
from askance.models.vllm.identity import folder_of, identity_of, is_identity
from askance.models.vllm.metrics import Hits, hits, samples
from askance.models.vllm.server import HOST, Server, page_of
from askance.models.vllm.wording import shaped

if TYPE_CHECKING:
    from collections.abc import Callable

    from askance.chat import ChatRequest, ChatResponse, JsonObject
    from askance.models.settings import ModelSettings, Vllm

RESTARTS = 1
"""Times that a server which ended by itself is started again."""

_LOCAL = frozenset({"localhost", HOST, "::1"})

_log = logging.getLogger("askance")


class OwnServer:
    """A server that is started for the model, and again where it ended by itself.

    Args:
        make: makes the server, not started.
        model: name that it serves the model by.
    """

    def __init__(self, make: Callable[[], Server], *, model: str) -> None:
        self._make = make
        self._model = model
        self._server = make()
        self._client: OpenAIModel | None = None
        self._restarts = 0
        self._mending = asyncio.Lock()

    @classmethod
    async def started(cls, make: Callable[[], Server], *, model: str) -> OwnServer:
        """A server that answers.

        Raises:
            ConfigError: it does not start.
            MissingExtra: vLLM is not installed.
        """
        own = cls(make, model=model)
        await own._start()
        return own

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer; see `OpenAIModel.generate`."""
        client, server = self._client, self._server
        if client is None:
            raise Unreachable(f"{server.spec!r} is closed.")
        try:
            return await client.generate(request)
        except (Unreachable, ServerFault) as error:
            if not await server.gone():
                raise
            raise await self._ended(server) from error

    async def measured(self) -> Hits | None:
        return await _measured(self._server.url)

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        await asyncio.to_thread(self._server.stop)

    async def _start(self) -> None:
        try:
            await self._server.start()
        except BaseException:
            await asyncio.to_thread(self._server.stop)
            raise
        self._client = at_loopback(self._model, self._server.url, key=self._server.key)
        self._client.shape = shaped

    async def _ended(self, server: Server) -> ModelError:
        """The error of a call whose server is gone; the first who comes has it started again."""
        async with self._mending:
            said = server.last_words() if server is self._server else ""
            again = Unreachable(f"The vLLM server of {server.spec!r} ended and was started again.")
            if server is not self._server:
                return again
            if self._restarts >= RESTARTS or self._client is None:
                return ModelError(
                    f"The vLLM server of {server.spec!r} ended. {said}",
                    hint="Its last words say why; where memory ran out, read less at once (`context`, `batch`).",
                )
            self._restarts += 1
            _log.warning("The vLLM server of %s ended and is started again. %s", server.spec, said)
            await asyncio.gather(self._client.aclose(), asyncio.to_thread(server.stop))
            self._server = self._make()
            await self._start()
            return again


class AtAddress:
    """A server that somebody else runs."""

    def __init__(self, client: OpenAIModel, address: str) -> None:
        self._client = client
        self._address = address

    @classmethod
    async def reached(cls, settings: ModelSettings, vllm: Vllm) -> AtAddress:
        """The server that `settings` name.

        Raises:
            ConfigError: it serves another model than the folder that it is named by.
        """
        address = v1(settings.id.endpoint or "")
        reached = replace(settings, id=ModelId("openai", settings.id.model, address))
        asking = from_settings(reached)
        try:
            listed = await asking.listed()
        finally:
            await asking.aclose()
        name = _served_as(settings, listed, vllm)
        client = from_settings(replace(reached, id=replace(reached.id, model=name)))
        client.shape = shaped
        return cls(client, address)

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer; see `OpenAIModel.generate`."""
        return await self._client.generate(request)

    async def measured(self) -> Hits | None:
        return await _measured(self._address)

    async def aclose(self) -> None:
        await self._client.aclose()


def v1(address: str) -> str:
    """`address` as the protocol's clients take it: where it has no path, that is `/v1`."""
    return address if urlsplit(address).path.strip("/") else f"{address.rstrip('/')}/v1"


def _served_as(settings: ModelSettings, listed: list[JsonObject], vllm: Vllm) -> str:
    """The name by which the server knows the model.

    Raises:
        ConfigError: the weights that it serves are on this machine, and others than the model is named by.
    """
    model, by_name = settings.id.model, {str(entry.get("id")): entry for entry in listed}
    weighed = is_identity(model) or Path(model).expanduser().is_dir()
    if model in by_name and not weighed:
        return model
    if not weighed or not by_name:
        return model
    known = settings.id.name or ""
    local = urlsplit(settings.id.endpoint or "").hostname in _LOCAL
    roots = {name: _identity_at(entry, vllm) if local else None for name, entry in by_name.items()}
    same = [name for name, identity in roots.items() if identity is not None and identity == known]
    if same or len(by_name) > 1:
        return next(iter(same), Path(model).name)
    name, identity = next(iter(roots.items()))
    if identity is not None and known.startswith("vllm:") and identity != known:
        raise ConfigError(
            f"The server at {settings.id.endpoint} serves other weights than {model!r}: {identity!r} instead of "
            f"{known!r}.",
            hint="Name it by the folder that it serves, or start it with this one.",
        )
    return name


def _identity_at(entry: Any, vllm: Vllm) -> str | None:
    """The identity of the weights that a server on this machine says it serves; None where they are not found."""
    root = entry.get("root")
    if not isinstance(root, str) or not Path(root).is_dir():
        return None
    try:
        return identity_of(folder_of(root, vllm), vllm)
    except (ConfigError, OSError):
        return None


async def _measured(url: str) -> Hits | None:
    try:
        return hits(samples(await asyncio.to_thread(page_of, url)))
    except (OSError, ValueError):
        return None
