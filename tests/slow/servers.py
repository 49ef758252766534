"""Start a real server on a free loopback port, wait until it answers, and stop it surely."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from askance.models.vllm import server_process

from .environments import unavailable

STARTS_WITHIN = 360.0
STOPS_WITHIN = 30.0
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""With more threads than free cores, each of torch's steps waits for the slowest of them: many times slower."""


@dataclass(kw_only=True)
class Server:
    """A running server: `url` ends in `/v1` where it is one of models."""

    url: str
    model: str
    """The model's name as the server knows it; empty where it has none."""
    log: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def requests_served(self) -> int:
        """How many requests vLLM says that it has finished."""
        with urllib.request.urlopen(self.url.replace("/v1", "/metrics"), timeout=30) as reply:
            lines = reply.read().decode().splitlines()
        counts = [line.rpartition(" ")[2] for line in lines if line.startswith("vllm:request_success_total")]
        return sum(int(float(count)) for count in counts)

    def stop(self) -> None:
        """Stop the server with all its processes; again is harmless."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(STOPS_WITHIN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def vllm_server(
    python: Path,
    model: Path,
    *,
    log: Path,
    port: int | None = None,
    context: int = 4096,
    key: str | None = None,
    tools: bool = True,
) -> Generator[Server]:
    """vLLM on the CPU with the model in the folder `model`.

    Args:
        python: of an environment with vLLM.
        model: folder of the model.
        log: what the server prints.
        port: by default a free one.
        context: tokens that the model reads.
        key: what a client has to know; by default nothing.
        tools: whether it takes tools, whose calls it reads out of replies.
    """
    port = port or free_port()
    options = {
        "--host": "127.0.0.1",
        "--port": str(port),
        "--model": str(model),
        "--served-model-name": model.name,
        "--dtype": "float32",  # bfloat16 takes minutes for a prompt where a CPU has no AVX-512
        "--max-model-len": str(context),
        # Without this, a model that has nothing to say writes blanks between two JSON tokens until the limit.
        "--structured-outputs-config": '{"disable_any_whitespace":true,"backend":"xgrammar"}',
    }
    # The installed command `vllm` looks for a distribution of that name and dies; the module does not.
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager"]
    command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"] if tools else []
    command += [word for pair in options.items() for word in pair]
    settings = {"VLLM_CPU_KVCACHE_SPACE": "1", **ONE_THREAD, **({"VLLM_API_KEY": key} if key else {})}
    with _running(command, settings=settings, port=port, model=model.name, log=log) as server:
        yield server


@contextmanager
def transformers_server(python: Path, model: Path, *, log: Path) -> Generator[Server]:
    """`transformers serve` beside the folder `model`, by whose name a client asks; the first such call loads it."""
    port = free_port()
    hub = log.parent / "hub"
    hub.mkdir(exist_ok=True)
    command = [str(python), "-m", "transformers.cli.transformers", "serve", "--host", "127.0.0.1", "--port", str(port)]
    settings = {"HF_HUB_CACHE": str(hub), **ONE_THREAD}
    with _running(command, settings=settings, port=port, model=model.name, log=log, folder=model.parent) as server:
        yield server


@contextmanager
def chroma_server(python: Path, folder: Path, *, log: Path, port: int | None = None) -> Generator[Server]:
    """Chroma, a store of vectors, which keeps them in `folder`."""
    port = port or free_port()
    command = [str(python.with_name("chroma")), "run", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--path", str(folder)]
    settings = {"ANONYMIZED_TELEMETRY": "False"}
    with _running(command, settings=settings, port=port, path="", health="/api/v2/heartbeat", log=log) as server:
        yield server


@contextmanager
def s3_server(python: Path, *, log: Path) -> Generator[Server]:
    """Moto, which speaks the protocol of S3, keeps everything in memory, and asks for no key."""
    port = free_port()
    command = [str(python.with_name("moto_server")), "-H", "127.0.0.1", "-p", str(port)]
    with _running(command, settings={}, port=port, path="", health="/moto-api/", log=log) as server:
        yield server


def free_port() -> int:
    """A loopback port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _running(
    command: Sequence[str],
    *,
    settings: Mapping[str, str],
    port: int,
    log: Path,
    model: str = "",
    folder: Path | None = None,
    path: str = "/v1",
    health: str = "/health",
) -> Generator[Server]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ASKANCE_", "PYTEST_"))}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, server_process.__file__, "run", *command],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**environment, **OFFLINE, **settings},
            cwd=folder or log.parent,
            start_new_session=True,
        )
    server = Server(url=f"http://127.0.0.1:{port}{path}", model=model, log=log, process=process)
    try:
        _wait(server, f"http://127.0.0.1:{port}{health}")
        yield server
    finally:
        server.stop()


def _wait(server: Server, health: str) -> None:
    """Return when `health` answers; skip, or fail under `CI=true`, when the server ends or takes too long."""
    deadline = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < deadline:
        if not server.running:
            unavailable(f"The server ended with exit code {server.process.returncode}:\n{last_lines(server.log)}")
        if answers(health):
            return
        time.sleep(0.5)
    unavailable(f"The server did not answer within {STARTS_WITHIN:.0f} s:\n{last_lines(server.log)}")


def answers(url: str) -> bool:
    """Whether somebody answers at `url`."""
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


def last_lines(log: Path, *, count: int = 25) -> str:
    """The end of a log, for a message."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])
