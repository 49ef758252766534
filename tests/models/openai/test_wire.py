"""What comes over a connection, byte for byte, and what is made of it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from askance.models.openai import lanes as openai_lanes
from askance.models.openai import wire as openai_wire
from askance.models.openai.lanes import Lanes, lanes

PEM = Path(__file__).parents[2] / "images" / "loopback.pem"
"""A certificate for `ads.test`, and its key."""
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


class Peer:
    """The other side: answers each request with the next of `replies`, as they are; keeps what it was sent."""

    def __init__(self, *replies: bytes, then_close: bool = False) -> None:
        self.replies = [*replies]
        self.then_close = then_close
        self.connections = 0
        self.requests: list[bytes] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.replies:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
                self.requests.append(head + await reader.readexactly(length))
                writer.write(self.replies.pop(0))
                await writer.drain()
                if self.then_close:
                    break
            else:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def served(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    context: ssl.SSLContext | None = None,
) -> AsyncGenerator[str]:
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: Any = asyncio.current_task()
        tasks.add(task)
        try:
            await serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        else:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    try:
        yield f"http{'s' if context else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1?a=b"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)


async def exchanged(peer: Peer, *, times: int = 1) -> httpx2.Response:
    async with served(peer.serve) as url, client() as asked:
        for _ in range(times - 1):
            await asked.post(url, content=b"{}")
        return await asked.post(url, content=b"{}")


def client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=lanes(), timeout=None)


WHOLE = {
    "a length": (OK + b"Content-Length: 5\r\n\r\nhello", False),
    "the same length twice": (OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", False),
    "chunks": (CHUNKED + b'2\r\nhe\r\n003;ext="1"\r\nllo\r\n0\r\n\r\n', False),
    "chunks and a trailer": (CHUNKED + b"5\r\nhello\r\n0\r\nx-digest: 1\r\n\r\n", False),
    "up to the end": (OK + b"\r\nhello", True),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", False),
    "no reason": (b"HTTP/1.1 200\r\ncontent-length: 5\r\n\r\nhello", False),
    "line feeds alone": (b"HTTP/1.1 200 OK\ncontent-length: 5\n\nhello", False),
    "a folded header": (OK + b"x-note: one\r\n two\r\ncontent-length: 5\r\n\r\nhello", False),
    "early hints": (b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK + b"content-length: 5\r\n\r\nhello", False),
}


@pytest.mark.parametrize(("reply", "closes"), WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize("drip", [False, True], ids=["at once", "byte by byte"])
async def test_a_reply_is_read(reply: bytes, closes: bool, drip: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if drip:
        monkeypatch.setattr(asyncio.StreamWriter, "write", _dripping)
    response = await exchanged(Peer(reply, then_close=closes))
    assert (response.status_code, response.content) == (200, b"hello")


def _dripping(self: asyncio.StreamWriter, data: bytes) -> None:
    for place in range(len(data)):
        self.transport.write(data[place : place + 1])


BROKEN: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "Server disconnected without sending a response."),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n\r\n", "no status line: b'SSH-2.0-OpenSSH'"),
    "HTTP/2": (b"HTTP/2 200 OK\r\n\r\n", "no status line"),
    "a header without a name": (OK + b": 5\r\n\r\n", "no header"),
    "a header without a colon": (OK + b"content-length 5\r\n\r\n", "no header"),
    "a blank before the colon": (OK + b"content-length : 5\r\n\r\nhello", "no header"),
    "a head without end": (OK + b"x: y\r\n" * 30_000, "the head of the reply is too long"),
    "two lengths": (OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!", "no clear content-length"),
    "a length that is none": (OK + b"content-length: -5\r\n\r\nhello", "no clear content-length"),
    "a huge length": (OK + b"content-length: " + b"9" * 30 + b"\r\n\r\nhello", "no clear content-length"),
    "another coding": (OK + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "a transfer coding that was not"),
    "a cut body": (OK + b"content-length: 6\r\n\r\nhello", r"\(received 5 bytes, expected 6\)"),
    "a cut chunk": (CHUNKED + b"6\r\nhello", r"\(received 5 bytes, expected 6\)"),
    "chunks without end": (CHUNKED + b"5\r\nhello\r\n", "incomplete chunked read"),
    "a chunk of no length": (CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n", "no length of a chunk"),
    "a line without end": (CHUNKED + b"5;" + b"x" * 9000, "a line between chunks is too long"),
}


@pytest.mark.parametrize(("reply", "message"), BROKEN.values(), ids=BROKEN)
async def test_what_is_unclear_is_an_error(reply: bytes, message: str) -> None:
    with pytest.raises(httpx2.RemoteProtocolError, match=message):
        await exchanged(Peer(reply, then_close=True))


HELLO = OK + b"content-length: 5\r\n\r\nhello"
KEPT = {
    "as it is": (HELLO, 1),
    "chunks": (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", 1),
    "no body": (b"HTTP/1.1 204 No Content\r\n\r\n", 1),
    "closed by its word": (OK + b"Connection: x, Close\r\ncontent-length: 5\r\n\r\nhello", 2),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", 2),
    "more than it said": (HELLO + b"HTTP/1.1 200 OK\r\n", 2),
}


@pytest.mark.parametrize(("reply", "connections"), KEPT.values(), ids=KEPT)
async def test_a_connection_is_used_again_where_both_are_done_with_it(reply: bytes, connections: int) -> None:
    peer = Peer(reply, HELLO)
    assert (await exchanged(peer, times=2)).content == b"hello"
    assert peer.connections == connections


async def test_one_that_was_closed_or_is_old_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Peer(HELLO, HELLO, HELLO, then_close=True)
    async with served(peer.serve) as url, client() as asked:
        await asked.post(url, content=b"{}")
        await asyncio.sleep(0.05)
        peer.then_close = False
        await asked.post(url, content=b"{}")
        monkeypatch.setattr(openai_lanes, "IDLE", 0.0)
        assert (await asked.post(url, content=b"{}")).content == b"hello"
    assert peer.connections == 3


async def test_a_request_is_written_as_it_is() -> None:
    peer = Peer(HELLO)
    async with served(peer.serve) as url, client() as asked:
        await asked.post(url, content=b"{}", headers={"x-key": "secret"})
    head, _, body = peer.requests[0].partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    assert (first, body) == (b"POST /v1?a=b HTTP/1.1", b"{}")
    assert {b"x-key: secret", b"Content-Length: 2"} <= set(headers)


@pytest.mark.parametrize("value", ["a\nb", "a\r\nHost: b", "a\0b"])
async def test_a_header_that_would_be_several_is_not_sent(value: str) -> None:
    peer = Peer(HELLO)
    async with served(peer.serve) as url, client() as asked:
        with pytest.raises(httpx2.LocalProtocolError, match="a header holds the end of a line"):
            await asked.post(url, content=b"{}", headers={"x-key": value})
    assert peer.requests == []


async def test_a_large_body_is_written_as_fast_as_it_is_taken() -> None:
    """In chunks, while the other side reads slowly; what waits here is bounded."""
    got, most = 0, 0

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal got
        await reader.readuntil(b"\r\n\r\n")
        while not (data := await reader.read(2**16)).endswith(b"0\r\n\r\n"):
            got += len(data)
            await asyncio.sleep(0.001)
        writer.write(HELLO)

    async def body() -> AsyncIterator[bytes]:
        nonlocal most
        for number in range(200):
            yield b"x" * 2**17
            most = max(most, (number + 1) * 2**17 - got)

    async with served(slow) as url, client() as asked:
        assert (await asked.post(url, content=body())).content == b"hello"
    assert got > 199 * 2**17
    assert most < 12 * 2**20


async def test_a_large_reply_is_taken_in_as_fast_as_it_is_read() -> None:
    size = 64 * 2**20
    peer = Peer(OK + b"content-length: %d\r\n\r\n" % size + b"x" * size)
    async with served(peer.serve) as url, client() as asked, asked.stream("POST", url, content=b"{}") as response:
        await asyncio.sleep(0.3)
        (wire,) = _transport(asked)._open  # pyright: ignore[reportPrivateUsage]
        waiting = len(wire._data)  # pyright: ignore[reportPrivateUsage]
        assert waiting < 2 * openai_wire.AHEAD
        assert sum([len(chunk) async for chunk in response.aiter_raw()]) == size


def _transport(asked: httpx2.AsyncClient) -> Lanes:
    found = asked._transport  # pyright: ignore[reportPrivateUsage]
    assert isinstance(found, Lanes)
    return found


async def test_a_reply_that_comes_before_the_request_is_whole_is_read() -> None:
    async def refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 3\r\n\r\nno!")
        await writer.drain()
        await asyncio.sleep(0.2)
        writer.close()

    async def body() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b"x" * 2**17

    async with served(refuses) as url, client() as asked:
        response = await asked.post(url, content=body())
    assert (response.status_code, response.content) == (413, b"no!")


async def test_nobody_there_is_no_connection() -> None:
    async with served(Peer().serve) as url:
        pass
    async with client() as asked:
        with pytest.raises(httpx2.ConnectError):
            await asked.post(url, content=b"{}")


@pytest.mark.parametrize(
    ("limit", "error"),
    [({"read": 0.1}, httpx2.ReadTimeout), ({"write": 0.1}, httpx2.WriteTimeout)],
    ids=["read", "write"],
)
async def test_time_limits_are_kept(limit: dict[str, float], error: type[Exception]) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)
        writer.close()

    async with served(silent) as url, client() as asked:
        timeout = httpx2.Timeout(None, **limit)
        with pytest.raises(error):
            await asked.post(url, content=b"x" * (2 if "read" in limit else 2**25), timeout=timeout)


async def test_it_speaks_tls_and_checks_who_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    peer = Peer(HELLO, HELLO)
    async with served(peer.serve, context) as url:
        async with client() as asked:
            with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
                await asked.post(url, content=b"{}")
        monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
        async with client() as asked:
            named = {"sni_hostname": "ads.test"}
            replies = [(await asked.post(url, content=b"{}", extensions=named)).content for _ in range(2)]
    assert (replies, peer.connections) == ([b"hello"] * 2, 1)
