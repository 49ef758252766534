"""What comes over a connection, byte for byte, and what is made of it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from askance.models.openai import transport as openai_transport
from askance.models.openai.transport import client_class, transport

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


@asynccontextmanager
async def client(**fields: Any) -> AsyncGenerator[httpx2.AsyncClient]:
    asked = client_class()(timeout=None, **fields)
    try:
        yield asked
    finally:
        await asked.aclose()


WHOLE = {
    "a length": (OK + b"Content-Length: 5\r\n\r\nhello", False),
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


NO_HTTP, HEAD = "it is not HTTP", "its head is too large, with a header of more than 32 kB or more than 128 of them"
CUT = "the connection ended before the body was whole"
BROKEN: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "Server disconnected without sending a response."),
    "half a head": (OK + b"x-token: never-said", "Server disconnected without sending a response."),
    "no HTTP": (b"SSH-2.0-never-said\r\n\r\n", NO_HTTP),
    "HTTP/2": (b"HTTP/2 200 never-said\r\n\r\n", NO_HTTP),
    "a header without a name": (OK + b": never-said\r\n\r\n", NO_HTTP),
    "a header without a colon": (OK + b"never-said\r\n\r\n", NO_HTTP),
    "a long header": (OK + b"x: " + b"never-said" * 5_000 + b"\r\n\r\n", HEAD),
    "a head without end": (OK + b"x: y\r\n" * 30_000, HEAD),
    "two lengths": (OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!", NO_HTTP),
    "a length that is none": (OK + b"content-length: -5\r\n\r\nhello", NO_HTTP),
    "a huge length": (OK + b"content-length: " + b"9" * 30 + b"\r\n\r\nhello", NO_HTTP),
    "a cut body": (OK + b"content-length: 6\r\n\r\nhello", CUT),
    "a cut chunk": (CHUNKED + b"6\r\nhello", CUT),
    "chunks without end": (CHUNKED + b"5\r\nhello\r\n", CUT),
    "a chunk of no length": (CHUNKED + b"never-said\r\nhello\r\n0\r\n\r\n", NO_HTTP),
}


@pytest.mark.parametrize(("reply", "message"), BROKEN.values(), ids=BROKEN)
async def test_what_is_unclear_is_an_error_that_quotes_nothing(reply: bytes, message: str) -> None:
    with pytest.raises(httpx2.RemoteProtocolError) as caught:
        await exchanged(Peer(reply, then_close=True))
    assert str(caught.value) == message
    assert "never-said" not in "".join(traceback.format_exception(caught.value))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


HELLO = OK + b"content-length: 5\r\n\r\nhello"
KEPT = {
    "as it is": (HELLO, 1),
    "chunks": (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", 1),
    "no body": (b"HTTP/1.1 204 No Content\r\n\r\n", 1),
    "closed by its word": (OK + b"Connection: x, Close\r\ncontent-length: 5\r\n\r\nhello", 2),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", 2),
    "more than it said": (HELLO + b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong", 2),
}


@pytest.mark.parametrize(("reply", "connections"), KEPT.values(), ids=KEPT)
async def test_a_connection_is_used_again_where_both_are_done_with_it(reply: bytes, connections: int) -> None:
    peer = Peer(reply, HELLO)
    assert (await exchanged(peer, times=2)).content == b"hello"
    assert peer.connections == connections


async def test_one_that_was_closed_is_not_used_again() -> None:
    peer = Peer(HELLO, HELLO, then_close=True)
    async with served(peer.serve) as url, client() as asked:
        await asked.post(url, content=b"{}")
        await asyncio.sleep(0.05)
        assert (await asked.post(url, content=b"{}")).content == b"hello"
    assert peer.connections == 2


async def test_an_old_one_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_transport, "IDLE", 0.0)
    peer = Peer(HELLO, HELLO)
    assert (await exchanged(peer, times=2)).content == b"hello"
    assert peer.connections == 2


async def test_what_nobody_asked_for_is_not_the_next_reply() -> None:
    async def talks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n{}"):
                writer.write(HELLO)
                await asyncio.sleep(0.02)
                writer.write(HELLO.replace(b"hello", b"wrong"))

    async with served(talks) as url, client() as asked:
        for _ in range(3):
            assert (await asked.post(url, content=b"{}")).content == b"hello"
            await asyncio.sleep(0.05)


async def test_calls_at_once_get_a_connection_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_transport, "IDLE", 600.0)  # a busy machine lets them lie longer than is common
    peer = Peer(*[HELLO] * 240)
    async with served(peer.serve) as url, client() as asked:
        for _ in range(2):
            await asyncio.gather(*(asked.post(url, content=b"{}") for _ in range(120)))
    assert 100 < peer.connections <= 120


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
        with pytest.raises(httpx2.LocalProtocolError, match="the request cannot be written as it is"):
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
    size, given = 64 * 2**20, 0

    async def generous(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal given
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(OK + b"content-length: %d\r\n\r\n" % size)
        while given < size:
            writer.write(b"x" * 2**18)
            given += 2**18
            await writer.drain()

    async with served(generous) as url, client() as asked, asked.stream("POST", url, content=b"{}") as response:
        await asyncio.sleep(0.3)
        assert given < 16 * 2**20
        assert sum([len(chunk) async for chunk in response.aiter_raw()]) == size


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


async def test_one_that_breaks_or_is_given_up_is_not_used_again() -> None:
    async def moody(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal times
        times += 1
        await reader.readuntil(b"\r\n\r\n{}")
        if times == 1:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        elif times == 2:
            await asyncio.sleep(60)
        writer.write(HELLO)

    times = 0
    async with served(moody) as url, client() as asked:
        with pytest.raises(httpx2.ReadError) as broken:
            await asked.post(url, content=b"{}")
        assert isinstance(broken.value.__cause__, ConnectionResetError)
        with pytest.raises(TimeoutError) as caught:
            await asyncio.wait_for(asked.post(url, content=b"{}", headers={"x-key": "never-said"}), 0.1)
        assert (await asked.post(url, content=b"{}")).content == b"hello"
    # Python keeps the variables of the frames: none of them is aiohttp's.
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert ("transport.py" in shown, "aiohttp" in shown) == (True, False)


async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)
    writer.close()


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        ({"read": 0.1}, httpx2.ReadTimeout),
        ({"write": 0.1}, httpx2.WriteTimeout),
        ({"connect": 0.1}, httpx2.ConnectTimeout),
    ],
    ids=["read", "write", "connect"],
)
async def test_time_limits_are_kept(limit: dict[str, float], error: type[Exception]) -> None:
    async with served(silent) as url, client() as asked:
        # It answers no greeting of TLS either.
        address = url.replace("http", "https") if "connect" in limit else url
        body = b"x" * (2**25 if "write" in limit else 2)
        with pytest.raises(error) as caught:
            await asked.post(address, content=body, timeout=httpx2.Timeout(None, **limit))
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "aiohttp/" not in shown, "its frames hold the request's headers"


async def test_the_time_limit_of_writing_is_one_for_each_part() -> None:
    """A body that takes longer than the limit goes out, where each part of it is taken in time."""
    peer = Peer(HELLO)

    async def body() -> AsyncIterator[bytes]:
        for _ in range(5):
            await asyncio.sleep(0.05)
            yield b"{}"

    async with served(peer.serve) as url, client() as asked:
        headers, timeout = {"content-length": "10"}, httpx2.Timeout(None, write=0.2)
        assert (await asked.post(url, content=body(), headers=headers, timeout=timeout)).content == b"hello"
    assert peer.requests[0].endswith(b"\r\n\r\n" + b"{}" * 5)


def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    return context


async def test_it_speaks_tls_and_checks_who_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Peer(HELLO, HELLO)
    async with served(peer.serve, tls()) as url:
        async with client() as asked:
            with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
                await asked.post(url, content=b"{}")
        monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
        async with client() as asked:
            named = {"sni_hostname": "ads.test"}
            replies = [(await asked.post(url, content=b"{}", extensions=named)).content for _ in range(2)]
    assert (replies, peer.connections) == ([b"hello"] * 2, 1)


# Proxies ----------------------------------------------------------------------------------------------------------


class Through(Peer):
    """A proxy: answers what it is asked for by itself, and connects to `port` of this machine, whoever is named."""

    def __init__(self, *replies: bytes, port: int = 0) -> None:
        super().__init__(*replies)
        self.port = port

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.port:
            await super().serve(reader, writer)
            return
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        there_in, there_out = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(OK + b"\r\n")
        await asyncio.gather(_copied(reader, there_out), _copied(there_in, writer))


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(2**16):
        writer.write(data)
    writer.close()


def port_of(url: str) -> int:
    return httpx2.URL(url).port or 0


def by(proxy: str) -> str:
    """The address of the proxy at `proxy`, for someone who has a password there."""
    return f"http://me:never-said@127.0.0.1:{port_of(proxy)}"


PASSWORD = b"Proxy-Authorization: Basic bWU6bmV2ZXItc2FpZA=="


async def test_a_proxy_is_asked_for_the_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Through(HELLO)
    async with served(proxy.serve) as url:
        monkeypatch.setenv("HTTP_PROXY", by(url))
        async with client() as asked:
            response = await asked.post("http://ads.test/v1?a=b", content=b"{}", headers={"authorization": "Bearer k"})
    assert response.content == b"hello"
    assert proxy.requests[0].startswith(b"POST http://ads.test/v1?a=b HTTP/1.1\r\n")
    assert {PASSWORD, b"authorization: Bearer k", b"Host: ads.test"} <= set(proxy.requests[0].split(b"\r\n"))


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
async def test_tls_goes_through_a_proxy_that_does_not_see_it(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
    peer = Peer(HELLO, HELLO)
    async with served(peer.serve, tls()) as url:
        proxy = Through(port=port_of(url))
        async with served(proxy.serve) as address:
            monkeypatch.setenv(variable, by(address))
            async with client() as asked:
                sent = {"authorization": "Bearer k"}
                for _ in range(2):
                    assert (await asked.post("https://ads.test/v1", content=b"{}", headers=sent)).content == b"hello"
    (request,) = proxy.requests
    assert request.startswith(b"CONNECT ads.test:443 HTTP/1.1\r\n")
    assert (PASSWORD in request, b"Bearer" in request) == (True, False)
    assert [b"authorization: Bearer k" in each for each in peer.requests] == [True] * 2
    assert not any(b"Proxy" in each for each in peer.requests)


@pytest.mark.parametrize("no_proxy", ["127.0.0.1", "127.0.0.0/8", "*"])
async def test_some_addresses_are_asked_without(monkeypatch: pytest.MonkeyPatch, no_proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert (await exchanged(Peer(HELLO))).content == b"hello"


async def test_a_server_of_this_process_is_asked_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with served(Peer(HELLO).serve) as url, client(transport=transport()) as asked:
        assert (await asked.post(url, content=b"{}")).content == b"hello"


async def test_a_proxy_that_is_not_there_is_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(Peer().serve) as url:
        pass
    monkeypatch.setenv("ALL_PROXY", by(url))
    async with client() as asked:
        for scheme in ("http", "https"):
            with pytest.raises(httpx2.ConnectError) as caught:
                await asked.post(f"{scheme}://ads.test/v1", content=b"{}")
            assert "never-said" not in "".join(traceback.format_exception(caught.value))


async def test_a_proxy_that_refuses_says_no_more_than_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Through(b"HTTP/1.1 407 never-said\r\ncontent-length: 0\r\n\r\n")
    async with served(proxy.serve) as url:
        monkeypatch.setenv("HTTPS_PROXY", by(url))
        async with client() as asked:
            with pytest.raises(httpx2.ProxyError, match=r"^the proxy answers with status 407$") as caught:
                await asked.post("https://ads.test/v1", content=b"{}")
    assert "never-said" not in "".join(traceback.format_exception(caught.value))


async def test_socks_is_left_to_the_clients_own_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(ImportError, match="socks"):
        client_class()()
