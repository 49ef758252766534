"""The guard of `conftest.py` holds: each door is tried from inside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path

import pytest

FAR = "192.0.2.1"  # reserved for documentation: nobody answers there


def look_up() -> None:
    socket.getaddrinfo("example.invalid", 443)


def connect_to_address() -> None:
    with socket.socket() as client:
        client.settimeout(0.01)
        client.connect((FAR, 443))


def send_datagram() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.sendto(b"x", (FAR, 53))


def connect_in_loop() -> None:
    asyncio.run(asyncio.wait_for(asyncio.open_connection("example.invalid", 443), 1))


@pytest.mark.parametrize(
    "attempt", [look_up, connect_to_address, send_datagram, connect_in_loop], ids=lambda f: f.__name__
)
def test_no_other_host_is_reached_even_if_the_library_swallows_errors(attempt: object) -> None:
    assert callable(attempt)
    with pytest.raises(pytest.fail.Exception, match="A test tried to reach"), contextlib.suppress(Exception):
        attempt()


async def test_this_machine_is_reached() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection("localhost", server.sockets[0].getsockname()[1])
        assert await reader.read() == b"here"
        writer.close()
        await writer.wait_closed()


def test_a_child_process_finds_no_key_and_no_hub() -> None:
    doors = {name for name in os.environ if name.endswith("_API_KEY") or name.startswith(("LANGSMITH_", "OPENAI_"))}

    assert doors == set()
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_each_test_works_in_a_place_of_its_own(tmp_path: Path) -> None:
    assert tmp_path in Path.cwd().parents
    assert Path(os.environ["ASKANCE_STORE"]) == tmp_path / "store"
