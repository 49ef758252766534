"""Servers of vLLM, both with OpenAI's protocol: one that this process starts, or one at an address.

A server that this process starts listens on the loopback and stops with the process. It wants a random key, so that it
answers no other user of the machine. Each process has its own servers; to share one between processes, name its
address.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from askance.chat import ModelId
from askance.errors import ConfigError, ModelError, ServerFault, Unreachable
from askance.models.backend import ask
from askance.models.local.folder import is_identity
from askance.models.openai.openai_model import OpenAIModel, at_loopback, from_settings
from askance.models.secrets import is_secret_name
from askance.models.vllm import server_process
from askance.models.vllm.engine_args import OFFLINE, folder_of, identity_of
from askance.models.vllm.engine_log import (
    LOGGING_VARIABLE,
    check_system,
    last_words,
    not_installed,
    port_taken,
    start_error,
)
from askance.models.vllm.metrics import CacheHits, cache_hits, metric_samples
from askance.models.vllm.payload import with_extensions

if TYPE_CHECKING:
    from collections.abc import Callable

    from askance.chat import ChatRequest, ChatResponse, JsonObject
    from askance.errors import AskanceError
    from askance.models.settings import ModelSettings, Vllm

HOST = "127.0.0.1"
PYTHON_VARIABLE = "ASKANCE_VLLM_PYTHON"
"""Variable that names the interpreter of vLLM's environment."""

STOPS_WITHIN = server_process.GRACE + 4.0
"""Seconds."""
PORTS_TRIED = 3
"""Free ports that are tried, for another may take one before the server does."""
LARGEST_LOG = 1 << 20
"""Bytes from the end of a log that are looked at."""
LARGEST_PAGE = 1 << 22
"""Bytes of a page that are read."""

_POLL = 0.25
_REPORTS_EVERY = 15.0
"""Seconds between two lines of the log on how far the start is."""
_ANSWERS_WITHIN = 5.0
_ENDS_WITHIN = 3.0

_log = logging.getLogger("askance")


class ServerProcess:
    """A server of our own, as a process.

    Args:
        spec: of the model, for messages.
        words: of vLLM's command line, without port and key.
        vllm: how it is set up.
    """

    def __init__(self, spec: str, words: Sequence[str], vllm: Vllm) -> None:
        self.spec = spec
        self.key = secrets.token_urlsafe(32)
        self.url = ""
        """Address that ends in `/v1`."""
        self._words = words
        self._vllm = vllm
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"ServerProcess({self.spec!r}, at {self.url!r})"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def has_ended(self) -> bool:
        """Whether it ended by itself; after a broken connection it is given a moment to end."""
        until = time.monotonic() + _ENDS_WITHIN
        while self.running and time.monotonic() < until:
            if await asyncio.to_thread(_answers, self.url):
                return False
            await asyncio.sleep(_POLL / 5)
        return not self.running

    async def start(self) -> None:
        """Returns when the server answers.

        Raises:
            ConfigError: it does not start; the message says why as far as its log does.
            MissingExtra: vLLM is not installed.
        """
        check_system(self.spec)
        atexit.register(self.stop)
        for tried in range(1, PORTS_TRIED + 1):
            error = await self._start_once()
            if error is None:
                return
            taken = self._vllm.port is None and port_taken(self.log())
            await asyncio.to_thread(self.stop)
            if not taken or tried == PORTS_TRIED:
                raise error

    def stop(self) -> None:
        """Stops the server with all its processes; again is harmless."""
        atexit.unregister(self.stop)
        server, self._process = self._process, None
        if server is not None:
            if server.stdin is not None:
                with suppress(OSError):
                    server.stdin.close()
            try:
                server.wait(STOPS_WITHIN)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def log(self) -> str:
        """The end of the server's log."""
        if self._folder is None:
            return ""
        with suppress(OSError), (self._folder / "log.txt").open("rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - LARGEST_LOG))
            return opened.read().decode("utf-8", "replace")
        return ""

    def last_words(self) -> str:
        """The end of the log on one line, with the exit code where it ended."""
        code = None if self._process is None else self._process.poll()
        return ("" if code is None else f"exit code {code}: ") + last_words(self.log())

    async def _start_once(self) -> AskanceError | None:
        """Why it did not start; None where it answers."""
        port = self._port()
        self.url = f"http://{HOST}:{port}/v1"
        await asyncio.to_thread(self._spawn, port)
        start = reported = time.monotonic()
        while True:
            code = -1 if self._process is None else self._process.poll()
            if code is not None:
                if code == server_process.NOT_INSTALLED:
                    return not_installed(self.spec, python_of(self._vllm))
                return start_error(self.log(), spec=self.spec, vllm=self._vllm, code=code)
            if await asyncio.to_thread(_answers, self.url):
                _log.info("vLLM answers with %s after %.0f s.", self.spec, time.monotonic() - start)
                return None
            now = time.monotonic()
            if now - start > self._vllm.start_within:
                return ConfigError(
                    f"vLLM did not answer with {self.spec!r} within {self._vllm.start_within:g} s. The end of its log: "
                    f"{last_words(self.log())}",
                    hint="Give it longer: `vllm = { start_within = 3600 }`.",
                )
            if now - reported > _REPORTS_EVERY:
                reported = now
                _log.info("vLLM loads %s: %.0f s so far. %s", self.spec, now - start, _latest(self.log()))
            await asyncio.sleep(_POLL)

    def _port(self) -> int:
        """The port that is asked for, or one that is free.

        Raises:
            ConfigError: someone listens on the one that is asked for.
        """
        wanted = self._vllm.port or 0
        try:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((HOST, wanted))
                return int(probe.getsockname()[1])
        except OSError as error:
            raise ConfigError(
                f"The port {wanted} for {self.spec!r} is taken.",
                hint="Leave `port` out of its `vllm` settings; or name the server that runs there: "
                f"vllm:NAME@http://{HOST}:{wanted}/v1.",
            ) from error

    def _spawn(self, port: int) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="askance-vllm-"))
        python = python_of(self._vllm)
        own = ["--host", HOST, "--port", str(port), "--enable-prompt-tokens-details"]
        command = [python, server_process.__file__, "serve", *self._words, *own]
        _log.info("Starting vLLM with %s on port %d.", self.spec, port)
        with (self._folder / "log.txt").open("wb") as out:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, server_process.__file__, "run", *command],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env=_environment(python, key=self.key),
                    cwd=self._folder,
                    start_new_session=True,
                )
            except OSError as error:
                raise ConfigError(
                    f"The server of {self.spec!r} cannot be started: {error}.",
                    hint="Check the interpreter that runs vLLM.",
                ) from error


def python_of(vllm: Vllm) -> str:
    """The interpreter that vLLM is run by.

    Raises:
        ConfigError: there is none where one was named.
    """
    named = vllm.python or os.environ.get(PYTHON_VARIABLE)
    if named is None:
        return sys.executable
    path = Path(named).expanduser()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise ConfigError(
            f"There is no interpreter {named!r}, which is to run vLLM.",
            hint=f"Mend `python` in the model's `vllm` settings, or {PYTHON_VARIABLE}.",
        )
    # Not resolved: a virtual environment is known by the link.
    return str(path.absolute())


def page_of(url: str, page: str) -> str:
    """The page of a server at `page`, beside its address, which ends in `/v1`; no proxy is used.

    Raises:
        OSError: it does not answer.
    """
    request = Request(url.removesuffix("/v1") + page)
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=_ANSWERS_WITHIN) as reply:
            return reply.read(LARGEST_PAGE).decode("utf-8", "replace")
    except HTTPError as error:
        error.close()
        raise


def _answers(url: str) -> bool:
    try:
        page_of(url, "/health")
    except (URLError, OSError, ValueError):
        return False
    return True


def _latest(log: str) -> str:
    return next((line.strip()[:160] for line in reversed(log.splitlines()) if line.strip()), "")


def _environment(python: str, *, key: str) -> Mapping[str, str]:
    """Variables of the server: without keys of others, offline, and without our paths where it is not our Python."""
    inherited = {name: value for name, value in os.environ.items() if not is_secret_name(name)}
    if python != sys.executable:
        inherited.pop("PYTHONPATH", None)
        inherited.pop("PYTHONHOME", None)
    inherited.pop(LOGGING_VARIABLE, None)  # what it says goes into the log here
    return {**inherited, **OFFLINE, "VLLM_API_KEY": key, "PYTHONUNBUFFERED": "1"}


# --- answers by a server ---

RESTARTS = 1
"""How often a server that ended by itself is started again."""

_LOCAL = frozenset({"localhost", HOST, "::1"})


class OwnServer:
    """A server that is started for the model, and again where it ended by itself.

    Args:
        make: makes the server, not started.
        model: the name that it serves the model by.
    """

    def __init__(self, make: Callable[[], ServerProcess], *, model: str) -> None:
        self._make = make
        self._model = model
        self._server = make()
        self._client: OpenAIModel | None = None
        self._restarts = 0
        self._restarting = asyncio.Lock()

    @classmethod
    async def started(cls, make: Callable[[], ServerProcess], *, model: str) -> OwnServer:
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
            return await ask(client, request)
        except (Unreachable, ServerFault) as error:
            if not await server.has_ended():
                raise
            raise await self._ended(server) from error

    async def cache_hits(self) -> CacheHits | None:
        return await _cache_hits(self._server.url)

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
        self._client.shape = with_extensions

    async def _ended(self, server: ServerProcess) -> ModelError:
        """The error of a call whose server has ended; the first such call starts it again."""
        async with self._restarting:
            words = server.last_words() if server is self._server else ""
            again = Unreachable(f"The vLLM server of {server.spec!r} ended and was started again.")
            if server is not self._server:
                return again
            if self._restarts >= RESTARTS or self._client is None:
                return ModelError(
                    f"The vLLM server of {server.spec!r} ended. {words}",
                    hint="Its last words say why; where memory ran out, read less at once (`context`, `batch`).",
                )
            self._restarts += 1
            _log.warning("The vLLM server of %s ended and is started again. %s", server.spec, words)
            await asyncio.gather(self._client.aclose(), asyncio.to_thread(server.stop))
            self._server = self._make()
            await self._start()
            return again


class RemoteServer:
    """A server at an address, which this process has not started."""

    def __init__(self, client: OpenAIModel, address: str) -> None:
        self._client = client
        self._address = address

    @classmethod
    async def reached(cls, settings: ModelSettings, vllm: Vllm) -> RemoteServer:
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
        client.shape = with_extensions
        return cls(client, address)

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer; see `OpenAIModel.generate`."""
        return await ask(self._client, request)

    async def cache_hits(self) -> CacheHits | None:
        return await _cache_hits(self._address)

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
    by_weights = is_identity(model) or Path(model).expanduser().is_dir()
    if not by_weights or not by_name:
        return model
    known = settings.id.name or ""
    local = urlsplit(settings.id.endpoint or "").hostname in _LOCAL
    identities = {name: _identity_at(entry, vllm) if local else None for name, entry in by_name.items()}
    same = [name for name, identity in identities.items() if identity is not None and identity == known]
    if same or len(by_name) > 1:
        return next(iter(same), Path(model).name)
    name, identity = next(iter(identities.items()))
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


async def _cache_hits(url: str) -> CacheHits | None:
    try:
        return cache_hits(metric_samples(await asyncio.to_thread(page_of, url, "/metrics")))
    except (OSError, ValueError):
        return None
