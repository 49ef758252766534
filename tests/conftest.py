"""What holds for every test: nothing leaves the machine or litters the sources, and nothing slow runs unasked."""

from __future__ import annotations

import ipaddress
import itertools
import os
import random
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, cast

import hypothesis
import pytest
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.draws import few_draws

ROOT = Path(__file__).resolve().parent.parent

MARKS = {
    "slow": "takes more than a few seconds: real servers, fresh virtual environments, a browser",
    "soak": "repeats for many minutes what the quick tests do a few times",
    "live": "asks a real endpoint: needs the network and a key, and costs money",
    "gpu": "needs an accelerator",
    "model": "needs model weights on the disk",
}
"""One list for the flag `--run-MARK`, the registered mark, and the skip."""

SECRETS = ("_API_KEY", "_API_TOKEN", "_ACCESS_KEY", "_SECRET")
"""Endings of variables that open an account."""

KEPT = ("ASKANCE_TEST_",)
"""Beginnings of variables that are meant for the tests themselves."""

VENDORS = ("ANTHROPIC_", "ASKANCE_", "AZURE_OPENAI_", "HF_", "HUGGING", "LANGCHAIN_", "LANGSMITH_", "OPENAI_", "OTEL_")
"""Beginnings of variables that change what a client does or where it sends."""

PROXIES = ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")

EXAMPLES = {"quick": 25, "many": 100, "soak": 2000}
"""Hypothesis profiles: how many examples a property is tried on. `many` is for a slow group, `soak` for `make soak`."""

for profile, examples in EXAMPLES.items():
    hypothesis.settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize="CI" in os.environ,
        database=None if "CI" in os.environ else DirectoryBasedExampleDatabase(ROOT / ".hypothesis"),
    )
hypothesis.settings.load_profile("quick")

SERIAL = pytest.mark.xdist_group("serial")
"""For tests of clocks, memory and processes: no two of them run at the same time."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("askance")
    for mark, meaning in MARKS.items():
        group.addoption(f"--run-{mark}", action="store_true", help=f"also run what {meaning}")


def pytest_configure(config: pytest.Config) -> None:
    for mark, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}; runs with --run-{mark}")


@pytest.hookimpl(optionalhook=True)  # of xdist, for `-n auto`
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One worker more than cores, since quick tests wait a fifth of their time; slow ones leave no core idle."""
    return None if config.getoption("--run-slow") else (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    off = [mark for mark in MARKS if not config.getoption(f"--run-{mark}")]
    for item in items:
        for mark in off:
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=f"{MARKS[mark]}; run it with --run-{mark}"))
        if item.get_closest_marker("xdist_group") is None:
            # A file's tests share its servers and its evaluated runs, so they stay on one core.
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.fixture
def item(request: pytest.FixtureRequest) -> pytest.Function:
    """The test that asks."""
    return cast("pytest.Function", request.node)  # pyright: ignore[reportUnknownMemberType]  # pytest 9.2 gives its type


@pytest.fixture(autouse=True)
def clean_environment(item: pytest.Function, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no tracing, no proxy, no hub. Live tests keep keys, slow ones what installing may need.

    The others trust one certificate, which is of this machine: to read all that the world trusts takes a client longer
    than most tests.
    """
    keep_keys = item.get_closest_marker("live") is not None
    keep_proxies = keep_keys or item.get_closest_marker("slow") is not None
    for name in list(os.environ):
        if _opens_a_door(name.upper(), keep_keys=keep_keys, keep_proxies=keep_proxies):
            monkeypatch.delenv(name)
    if not keep_proxies:  # a client reads all of the machine's certificates, which takes longer than most tests
        monkeypatch.setenv("SSL_CERT_FILE", str(ROOT / "tests" / "images" / "loopback.pem"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "1")


def _opens_a_door(name: str, *, keep_keys: bool, keep_proxies: bool) -> bool:
    if name in PROXIES:
        return not keep_proxies
    if name.startswith(KEPT):
        return False
    return not keep_keys and (name.endswith(SECRETS) or name.startswith(VENDORS))


@pytest.fixture(autouse=True)
def no_network(item: pytest.Function, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking up or connecting to any host but this one fails the test, whatever the library catches.

    `pytest.fail` raises what no `except Exception` swallows. Child processes are out of its reach: they get a clean
    environment.
    """
    if item.get_closest_marker("live") is not None:
        return
    for owner, name, position in (
        (socket, "getaddrinfo", 0),
        (socket.socket, "connect", 1),
        (socket.socket, "connect_ex", 1),
        (socket.socket, "sendto", -1),
    ):
        monkeypatch.setattr(owner, name, _guarded(getattr(owner, name), position))


def _guarded(function: Any, position: int) -> Any:
    """`function`, which takes a host or an address at `position`, for this machine alone."""

    def call(*args: Any, **kwargs: Any) -> Any:
        address: Any = args[position] if args[position:] else kwargs.get("host")
        if isinstance(args[0], socket.socket) and args[0].family not in (socket.AF_INET, socket.AF_INET6):
            return function(*args, **kwargs)
        host = cast("tuple[str, int]", address)[0] if isinstance(address, tuple) else address
        if not is_this_machine(host):
            _refuse(host)
        return function(*args, **kwargs)

    return call


def is_this_machine(host: str | bytes | None) -> bool:
    """Whether `host` is a name or an address of the loopback interface."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _refuse(host: object) -> NoReturn:
    pytest.fail(f"A test tried to reach {host!r}. Script the model, or serve on 127.0.0.1.", pytrace=True)


PLACES = itertools.count()


@pytest.fixture
def tmp_path(item: pytest.Function, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own, which looks through the folders of all tests before it: that takes longer than most tests."""
    path = tmp_path_factory.getbasetemp() / f"{re.sub(r'[^0-9A-Za-z]', '_', item.name)[:30]}{next(PLACES)}"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, a store and a configuration of its own for each test."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("ASKANCE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return work


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Global generators start alike in every test and are left as they were."""
    state = random.getstate()
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    yield
    random.setstate(state)


@pytest.fixture(scope="module", name="few_draws")
def draws_of_a_module() -> Iterator[None]:
    """Few draws for the tests of a module; see `few_draws`."""
    with few_draws():
        yield
