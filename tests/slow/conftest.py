"""Servers, models and photographs for the slow tests; see README.md beside this file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.slow import environments, photographs, servers
from tests.slow.servers import Server

KEY = "the-right-key"
"""What the guarded server wants to hear."""


class Switch:
    """A server that can be switched off and on again."""

    def __init__(self, start: Callable[[], AbstractContextManager[Server]]) -> None:
        self._start = start
        self._stack = ExitStack()
        self._server: Server | None = None

    def on(self) -> Server:
        """The running server, started if need be."""
        if self._server is None or not self._server.running:
            self._server = self._stack.enter_context(self._start())
        return self._server

    def off(self) -> None:
        """Stop the server; again is harmless."""
        self._server = None
        self._stack.close()


@pytest.fixture(scope="session")
def local_python() -> Path:
    """The Python with torch and transformers."""
    return environments.environment("local", environments.LOCAL)


@pytest.fixture(scope="session")
def models(local_python: Path) -> Path:
    """A folder with the model folders `smollm2-135m` and `blind-vlm`."""
    script = environments.HERE / "make_models.py"

    def make(folder: Path) -> None:
        environments.checked([str(local_python), str(script), str(folder)])

    return environments.make_once("models", environments.digest(script), make)


@pytest.fixture(scope="session")
def photos() -> Path:
    """A folder with four photographs."""
    return photographs.photographs()


@pytest.fixture(scope="session")
def hf_python() -> Path:
    """A Python with askance, its extras `local` and `bits`, and what its tests need; torch is the CPU build."""
    tests = ("pytest>=9", "pytest-asyncio>=1.3", "hypothesis>=6.150")
    packages = (environments.TORCH, "transformers==5.23.0", *tests)
    return environments.environment("hf", environments.Recipe(packages=packages, extras="bits,local"))


@pytest.fixture(scope="session")
def tiny(hf_python: Path) -> Path:
    """A folder with the folders of `make_tiny.py`, untrained models of every family."""
    script = environments.HERE / "make_tiny.py"

    def make(folder: Path) -> None:
        environments.checked([str(hf_python), str(script), str(folder)])

    return environments.make_once("tiny", environments.digest(script), make)


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The Python with vLLM."""
    return environments.environment("vllm", environments.VLLM)


@pytest.fixture(scope="session")
def vllm_switch(vllm_python: Path, models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switch]:
    """vLLM with `blind-vlm`, off at first; it comes back at the same address."""
    log, port = tmp_path_factory.mktemp("vllm") / "log.txt", servers.free_port()
    switch = Switch(lambda: servers.vllm_server(vllm_python, models / "blind-vlm", log=log, port=port))
    yield switch
    switch.off()


@pytest.fixture
def vllm(vllm_switch: Switch) -> Server:
    """vLLM with `blind-vlm`: takes pictures and plain text, holds answers to a JSON schema."""
    return vllm_switch.on()


@pytest.fixture(scope="module")
def guarded(vllm_python: Path, models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """VLLM with a model of text alone that reads 512 tokens, for those who know the key."""
    log = tmp_path_factory.mktemp("guarded") / "log.txt"
    start = servers.vllm_server(vllm_python, models / "smollm2-135m", log=log, context=512, key=KEY)
    with start as server:
        yield server


@pytest.fixture(scope="module")
def transformers(local_python: Path, models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`transformers serve`: takes pictures, accepts a JSON schema and ignores it."""
    log = tmp_path_factory.mktemp("transformers") / "log.txt"
    with servers.transformers_server(local_python, models / "blind-vlm", log=log) as server:
        yield server
