"""A server of vLLM's that belongs to this process: started on the loopback, awaited, stopped; it outlives nobody.

It asks for a key that is made here, so that no other user of the machine is answered. Each process has its own servers;
processes that are to share one name its address.
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
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from askance.errors import ConfigError
from askance.models.vllm import launch, leash
from askance.models.vllm.options import OFFLINE
from askance.models.vllm.troubles import address_taken, last_words, missing, not_started

if TYPE_CHECKING:
    from askance.errors import AskanceError
    from askance.models.settings import Vllm

HOST = "127.0.0.1"
PYTHON_VARIABLE = "ASKANCE_VLLM_PYTHON"
"""Variable that names the interpreter of vLLM's environment."""

STOPS_WITHIN = leash.GRACE + 4.0
"""Seconds."""
PORTS_TRIED = 3
"""Free ports that are tried, for another may take one before the server does."""
LARGEST_LOG = 1 << 20
"""Bytes from the end of a log that are looked at."""
LARGEST_PAGE = 1 << 22
"""Bytes of a page that are read."""

_POLL = 0.25
_PATIENCE = 15.0
"""Seconds between two words on how far the start is."""
_ANSWERS_WITHIN = 5.0
_ENDS_WITHIN = 3.0

_log = logging.getLogger("askance")


class Server:
    """A server and its process.

    Args:
        spec: of the model, for messages.
        words: for vLLM's command line, without port and key.
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
        return f"Server({self.spec!r}, at {self.url!r})"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def gone(self) -> bool:
        """Whether it ended by itself; what broke a connection a moment ago may be just about to."""
        until = time.monotonic() + _ENDS_WITHIN
        while self.running and time.monotonic() < until:
            if await asyncio.to_thread(_answers, self.url.removesuffix("/v1") + "/health"):
                return False
            await asyncio.sleep(_POLL / 5)
        return not self.running

    async def start(self) -> None:
        """Returns when the server answers.

        Raises:
            ConfigError: it does not start; the message says why as far as its log does.
            MissingExtra: vLLM is not installed.
        """
        atexit.register(self.stop)
        for tried in range(1, PORTS_TRIED + 1):
            error = await self._tried()
            if error is None:
                return
            taken = self._vllm.port is None and address_taken(self.log())
            await asyncio.to_thread(self.stop)
            if not taken or tried == PORTS_TRIED:
                raise error

    def stop(self) -> None:
        """Stops the server with all its processes; again is harmless."""
        atexit.unregister(self.stop)
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                with suppress(OSError):
                    process.stdin.close()
            try:
                process.wait(STOPS_WITHIN)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def log(self) -> str:
        """The end of what the server said."""
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

    def metrics(self) -> str:
        """The page of its metrics.

        Raises:
            OSError: it does not answer.
        """
        return page_of(self.url)

    async def _tried(self) -> AskanceError | None:
        """Why it did not start; None where it answers."""
        port = self._port()
        self.url = f"http://{HOST}:{port}/v1"
        await asyncio.to_thread(self._spawn, port)
        start = told = time.monotonic()
        while True:
            process = self._process
            code = -1 if process is None else process.poll()
            if code is not None:
                if code == launch.ABSENT:
                    return missing(self.spec, python_of(self._vllm))
                return not_started(self.log(), spec=self.spec, vllm=self._vllm, code=code)
            if await asyncio.to_thread(_answers, self.url.removesuffix("/v1") + "/health"):
                _log.info("vLLM answers with %s after %.0f s.", self.spec, time.monotonic() - start)
                return None
            now = time.monotonic()
            if now - start > self._vllm.start_within:
                return ConfigError(
                    f"vLLM did not answer with {self.spec!r} within {self._vllm.start_within:g} s. The end of its log: "
                    f"{last_words(self.log())}",
                    hint="Give it longer: `vllm = { start_within = 3600 }`.",
                )
            if now - told > _PATIENCE:
                told = now
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
        command = [python, launch.__file__, *self._words, *own]
        _log.info("Starting vLLM with %s on port %d.", self.spec, port)
        with (self._folder / "log.txt").open("wb") as out:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, leash.__file__, *command],
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


def page_of(url: str, *, page: str = "/metrics", key: str | None = None) -> str:
    """A page of a server whose address ends in `/v1`, which it stands beside; proxies are passed by.

    Raises:
        OSError: it does not answer.
    """
    request = Request(url.removesuffix("/v1") + page, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=_ANSWERS_WITHIN) as reply:
            return reply.read(LARGEST_PAGE).decode("utf-8", "replace")
    except HTTPError as error:
        error.close()
        raise


def _answers(url: str) -> bool:
    try:
        page_of(url, page="")
    except (URLError, OSError, ValueError):
        return False
    return True


def _latest(log: str) -> str:
    return next((line.strip()[:160] for line in reversed(log.splitlines()) if line.strip()), "")


def _environment(python: str, *, key: str) -> Mapping[str, str]:
    """Variables of the server: without keys of others, offline, and without our paths where it is not our Python."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_TOKEN", "_SECRET"))}
    if python != sys.executable:
        kept.pop("PYTHONPATH", None)
        kept.pop("PYTHONHOME", None)
    kept.pop("VLLM_LOGGING_CONFIG_PATH", None)  # what it says goes into the log here
    return {**kept, **OFFLINE, "VLLM_API_KEY": key, "PYTHONUNBUFFERED": "1"}
