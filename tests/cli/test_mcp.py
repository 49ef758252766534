"""`askance mcp` as a process, driven by the official client over stdin and over HTTP; and what it refuses."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from askance.errors import UsageError
from askance.investigator import looking_node
from askance.replay import open_records
from tests.cli.command import DEMO, ROOT, Command, start

PICTURES = str(DEMO / "pictures")
CUP, CAT, HORSE = "pictures/brick-cup.jpg", "pictures/cat-cup.jpg", "pictures/coin-horse.jpg"
ANN, BOB = "a" * 32, "b" * 32
PROBE: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"accept": "application/json, text/event-stream"}


def stdio(*options: str) -> Any:
    words = ["-m", "askance", "mcp", PICTURES, "--vlm", "demo", "--store", "records", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return stdio_client(StdioServerParameters(command=sys.executable, args=words, env=environment, cwd=Path.cwd()))


@contextmanager
def over_http(*options: str) -> Generator[tuple[str, str, subprocess.Popen[str]]]:
    """A server over HTTP: its address, what it says at its start, and its process, which then ends by Ctrl-C."""
    server = start("mcp", PICTURES, "--vlm", "demo", "--store", "records", "--http", "0", *options)
    try:
        assert server.stderr is not None
        said = server.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/mcp", said)
        assert address is not None, said
        yield address[0], said, server
    finally:
        server.send_signal(signal.SIGINT)
        _, rest = server.communicate(timeout=30)
        assert (server.returncode, rest.splitlines()[-1]) == (0, "Stopped.")


@pytest.mark.soak
async def test_ten_thousand_calls_are_answered_one_by_one_and_none_is_over_the_budget(own_place: Path) -> None:
    tools = ("unusual", "objects", "narration")
    async with Client(stdio("--budget", "6calls")) as client:
        listed = (await client.call_tool("pictures")).structured_content
        assert listed is not None
        names = listed["pictures"]
        results = await asyncio.gather(
            *(client.call_tool(tools[number % 3], {"picture": names[number % len(names)]}) for number in range(10_000))
        )

    answered = [result.structured_content for result in results if not result.is_error]
    assert len(results) == 10_000
    assert len({key for found in answered if found for key in found["calls"]}) == 6
    with open_records("records", read_only=True) as records:
        assert len([*records.keys()]) == 6


@pytest.fixture
def tokens(own_place: Path) -> str:
    """A file of the tokens of two clients."""
    file = own_place / "tokens"
    file.write_text(f"ann {ANN}\nbob {BOB}\n", encoding="utf-8")
    file.chmod(0o600)
    return str(file)


async def test_over_http_each_client_has_its_own_budget_and_nobody_else_is_served(tokens: str) -> None:
    with over_http("--budget", "1calls", "--tokens", tokens) as (url, said, _):
        outcomes = {}
        for name, token, mode in (("ann", ANN, "auto"), ("bob", BOB, "legacy"), ("ann again", ANN, "legacy")):
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as connection,
                Client(streamable_http_client(url, http_client=connection), mode=mode) as client,
            ):
                asked = (HORSE,) if name == "bob" else (CUP, CAT)
                outcomes[name] = [(await client.call_tool("objects", {"picture": each})).is_error for each in asked]
        async with httpx2.AsyncClient() as stranger:
            strange = [
                (await stranger.post(url, json=PROBE, headers={**ACCEPT, **more})).status_code
                for more in (
                    {},
                    {"Authorization": "Bearer"},
                    {"Authorization": f"Bearer {ANN[:-1]}"},
                    {"Authorization": f"Basic {ANN}"},
                    {"Authorization": f"Bearer {ANN}", "Host": "evil.example"},
                    {"Authorization": f"Bearer {ANN}", "Origin": "https://evil.example"},
                )
            ]
            large = await stranger.post(
                url, content=b"x" * 5_000_000, headers={**ACCEPT, "Authorization": f"Bearer {ANN}"}
            )

    assert said == f"Serving at {url}, for 2 clients. Ctrl-C stops it.\n"
    assert outcomes == {"ann": [False, True], "bob": [False], "ann again": [False, True]}
    assert strange == [401, 401, 401, 401, 421, 403]
    assert large.status_code == 413


async def test_a_client_starts_it_within_a_budget_and_the_next_start_replays_over_http(own_place: Path) -> None:
    async with Client(stdio("--budget", "2calls")) as client:
        names = (await client.call_tool("pictures")).structured_content
        results = [await client.call_tool("unusual", {"picture": name}) for name in (CUP, CAT, HORSE)]

    with over_http("--replay", "--tools", "unusual") as (url, _, server):
        assert server.stderr is not None
        header, _, value = server.stderr.readline().strip().partition(": ")  # a token was made, and is said
        async with (
            httpx2.AsyncClient(headers={header: value}) as connection,
            Client(streamable_http_client(url, http_client=connection)) as client,
        ):
            tools = [tool.name for tool in (await client.list_tools()).tools]
            again = [await client.call_tool("unusual", {"picture": name}) for name in (CUP, CAT, HORSE)]

    assert names is not None
    assert len(names["pictures"]) == 8
    assert [result.is_error for result in (*results, *again)] == [False, False, True] * 2
    assert (header, tools) == ("Authorization", ["pictures", "unusual", "investigate"])
    for one, other in zip(results[:2], again, strict=False):
        assert (one.structured_content or {})["answer"] == (other.structured_content or {})["answer"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [PICTURES, "--vlm", "demo"],
            (
                "askance: Clients spend money, and no budget is given.\n"
                "  → Say what each may spend: --budget 100calls, 20000tokens, or 5.00 for US dollars.\n"
            ),
        ),
        ([PICTURES, "--vlm", "demo", "--budget", "1calls", "--plan"], "Nobody knows beforehand what clients will ask."),
        ([PICTURES, "--vlm", "demo", "--replay", "--tokens", "t"], "`--tokens` is for a server over HTTP."),
        ([PICTURES, "--replay"], "No model is named for --vlm."),
        (["missing", "--vlm", "demo", "--replay"], "There is no folder 'missing'."),
        ([PICTURES, "--vlm", "demo", "--replay", "--tools", "taste"], "There is no tool 'taste'."),
        ([PICTURES, "--vlm", "demo", "--budget", "a lot"], "a lot"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anybody_connects(
    words: list[str], message: str, askance: Command, own_place: Path
) -> None:
    done = askance("mcp", *words)

    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_port_that_is_taken_is_said(askance: Command, own_place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = askance("mcp", PICTURES, "--vlm", "demo", "--replay", "--http", port)

    assert (done.code, f"The port {port} cannot be used" in done.err) == (2, True)


def test_without_the_packages_of_an_agent_investigations_are_left_out(
    askance: Command, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(name: str) -> object:
        return None if name == "langgraph" else find_spec(name)

    monkeypatch.setattr(looking_node, "find_spec", lacking)
    with socket.create_server(("127.0.0.1", 0)) as taken:  # so that it ends
        port = str(taken.getsockname()[1])
        done = askance("mcp", PICTURES, "--vlm", "demo", "--replay", "--http", port)

    assert done.err.count("The tool `investigate` is left out. An investigator needs langgraph.") == 1
    assert f"The port {port} cannot be used" in done.err


def test_a_client_whose_records_cannot_be_opened_leaves_those_of_no_other_open(
    askance: Command, tokens: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []

    def opened(*_: object, name: str) -> Any:
        if name == "mcp-bob":
            raise UsageError("Not this one.")
        return SimpleNamespace(close=lambda: closed.append(name))

    monkeypatch.setattr("askance.cli.workspace.open_workspace", opened)

    done = askance("mcp", PICTURES, "--vlm", "demo", "--replay", "--http", "0", "--tokens", tokens)

    assert (done.code, closed) == (2, ["mcp-ann"])
    assert "Not this one." in done.err


def test_without_the_extra_the_way_to_it_is_said(
    askance: Command, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)

    done = askance("mcp", PICTURES, "--vlm", "demo", "--replay")

    assert (done.code, "pip install 'askance[mcp]'" in done.err) == (2, True)
