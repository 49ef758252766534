"""The transport of the official client: sends requests over aiohttp, and reads replies within bounds.

**Requests.** The client's own transport looks at every open connection whenever a request begins or ends: with many
calls at once that takes more time than all else. The SDK's adapter for aiohttp cannot be used. Where a server reads a
request and closes the connection, it reports that the server was never reached, so that the call would count as free;
and its errors quote the bytes of a reply that is not HTTP. So the errors of aiohttp are translated here into the
client's own. The frames of aiohttp hold the headers of the request, and with them the key: so no error keeps them, and
none has an error of aiohttp as its cause.

**Replies.** The client reads the body of an error whole, and unpacks whatever it is sent. So bodies pass through here
first: they are measured, unpacked up to the limit, and cleared of the key, which a server may repeat. A connection on
which bytes came that nobody asked for is closed: aiohttp would take them as the reply to the next request.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from askance.errors import MalformedReply

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, TCPConnector
    from aiohttp.connector import Connection
    from httpx2 import AsyncBaseTransport, AsyncByteStream, AsyncClient, Proxy, Request, Response, TransportError

    from askance.models.secrets import Secrets

LARGEST_REPLY = 16 * 2**20
"""Most bytes of a reply, unpacked: more than the most values that are read take, log-probabilities among them."""

LARGE_REPLY = 2**20
"""Bytes, unpacked, from which on a reply is large."""

LARGE_AT_ONCE = 4
"""Large replies of one client that are read at once; the others wait, within the time that their calls have."""

STEP = 2**18
"""Most bytes that are unpacked in one step."""

LARGEST_COMPLAINT = 64 * 2**10
"""Most bytes of an error's body; the rest is not read."""

PACKINGS = "gzip, deflate"
"""Compressions that a reply may have: both can be unpacked in steps."""

TOO_LARGE = f"it is larger than {LARGEST_REPLY >> 20} MB"

_GZIP_OR_ZLIB = 47
"""The `wbits` of zlib that takes both, by their first bytes."""


def bounding(secrets: Secrets) -> Callable[[Response], Awaitable[None]]:
    """A hook for responses that bounds their bodies, and blanks secrets out of their headers."""
    large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def bound(response: Response) -> None:
        clear_head(response, secrets)
        coding = response.headers.get("transfer-encoding", "")
        packing = response.headers.pop("content-encoding", "").strip().lower()
        stream: Any = response.stream
        answered = response.status_code < 300
        body = _unpacked(stream, packing, coding)
        chunks = _answer(body, large) if answered else _complaint(body, secrets)

        async def close() -> None:
            await chunks.aclose()
            await stream.aclose()

        response.stream = body_of(chunks, close)

    return bound


def clear_head(response: Response, secrets: Secrets) -> None:
    """Blanks secrets out of the headers of `response`, their names too, and out of its status line."""
    lines = [line for header in response.headers.raw for line in header]
    reason = response.extensions.get("reason_phrase", b"")
    head = b"\n".join((*lines, reason))
    if secrets.blanked(head) != head:
        cleared = [secrets.blanked(line) for line in lines]
        response.headers = type(response.headers)([*zip(cleared[::2], cleared[1::2], strict=True)])
        response.extensions["reason_phrase"] = secrets.blanked(reason)


def body_of(chunks: AsyncIterator[bytes], close: Callable[[], Awaitable[None]]) -> AsyncByteStream:
    """A body as the client reads it, made of `chunks`; `close` ends their source."""
    return _body()(chunks, close)


@cache
def _body() -> Callable[[AsyncIterator[bytes], Callable[[], Awaitable[None]]], AsyncByteStream]:
    """The class of bodies, made when the client is loaded anyway."""
    import httpx2

    class Body(httpx2.AsyncByteStream):
        def __init__(self, chunks: AsyncIterator[bytes], close: Callable[[], Awaitable[None]]) -> None:
            self._chunks = chunks
            self._close = close

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self._chunks

        async def aclose(self) -> None:
            await self._close()

    return Body


async def _answer(body: AsyncIterator[bytes], large: asyncio.Semaphore) -> AsyncGenerator[bytes]:
    """The body of an answer; what is large waits for a place.

    Raises:
        MalformedReply: it is larger than `LARGEST_REPLY`, or cannot be unpacked.
    """
    size = 0
    async with AsyncExitStack() as place:
        async for chunk in body:
            if size <= LARGE_REPLY < size + len(chunk):
                await place.enter_async_context(large)
            size += len(chunk)
            if size > LARGEST_REPLY:
                raise MalformedReply(TOO_LARGE)
            yield chunk


async def _complaint(body: AsyncIterator[bytes], secrets: Secrets) -> AsyncGenerator[bytes]:
    """The beginning of an error's body, without secrets; empty where it cannot be read, since there is a status."""
    data = b""
    with suppress(Exception):
        async for chunk in body:
            data += chunk
            if len(data) > LARGEST_COMPLAINT:
                break
    yield secrets.blanked(data)[:LARGEST_COMPLAINT]


async def _unpacked(stream: AsyncByteStream, packing: str, coding: str) -> AsyncIterator[bytes]:
    """The body as it was before it was packed for the way.

    Raises:
        MalformedReply: it is packed or sent in a way that was not asked for, or cannot be unpacked.
    """
    if coding.strip().lower() not in {"", "chunked", "identity"}:
        raise MalformedReply(f"it is sent in the coding {coding[:40]!a}, which was not asked for")
    if packing in {"", "identity"}:
        async for chunk in stream:
            yield chunk
        return
    if packing not in {"gzip", "x-gzip", "deflate"}:
        raise MalformedReply(f"it is packed by {packing[:40]!a}, which was not asked for")
    unpacker = zlib.decompressobj(wbits=_GZIP_OR_ZLIB)
    try:
        async for chunk in stream:
            yield unpacker.decompress(chunk, STEP)
            while unpacker.unconsumed_tail:
                yield unpacker.decompress(unpacker.unconsumed_tail, STEP)
        yield unpacker.flush()
    except zlib.error as error:
        raise MalformedReply(f"it cannot be unpacked ({error})") from error


T = TypeVar("T")

IDLE = 5.0
"""Seconds after which a connection is not used again: many servers close theirs then, with a request on its way."""

LONGEST_LINE = 32 * 2**10
"""Bytes of the status line and of each header of a reply, of which there are 128 at most."""

TOO_LARGE_HEAD = f"its head is too large, with a header of more than {LONGEST_LINE >> 10} kB or more than 128 of them"


@cache
def client_class() -> type[AsyncClient]:
    """The SDK's HTTP client, over aiohttp; it uses the proxies that the environment names."""
    from openai import DefaultAsyncHttpxClient

    class Client(DefaultAsyncHttpxClient):
        def _init_transport(self, *_: Any, **fields: Any) -> AsyncBaseTransport:
            own: AsyncBaseTransport | None = fields.get("transport")
            return transport() if own is None else own

        def _init_proxy_transport(self, proxy: Proxy, *args: Any, **fields: Any) -> AsyncBaseTransport:
            # aiohttp knows no SOCKS.
            socks = proxy.url.scheme.startswith("socks")
            return super()._init_proxy_transport(proxy, *args, **fields) if socks else transport(proxy)

    return Client


def transport(proxy: Proxy | None = None) -> AsyncBaseTransport:
    """A transport over aiohttp; opens no connection.

    Args:
        proxy: what requests go through; None sends them straight to their endpoint.
    """
    made: Any = Transport(proxy)  # no subclass of the client's transport, which would load the client with this module
    return made


class Transport:
    """A transport over aiohttp; it belongs to the event loop on which it is used first."""

    def __init__(self, proxy: Proxy | None) -> None:
        import httpx2

        self._session: ClientSession | None = None
        self._tls = httpx2.create_ssl_context()
        self._tls.set_alpn_protocols(["http/1.1"])
        user, password = (proxy and proxy.auth) or ("", "")
        self._proxy = proxy and str(proxy.url.copy_with(username=user, password=password))

    async def handle_async_request(self, request: Request) -> Response:
        """The reply, its body still to be read; closing the body frees the connection.

        Raises:
            httpx2.TransportError: there is no reply.
        """
        import httpx2

        reply = await _translated(self._sent(request), request)
        body = _Body(reply, request)
        phrase = (reply.reason or "").encode("utf-8", "surrogateescape")
        return httpx2.Response(
            reply.status,
            headers=list(reply.raw_headers),
            stream=body_of(body, body.aclose),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": phrase},
        )

    async def aclose(self) -> None:
        """Ends every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            await asyncio.sleep(0)  # until the connections have let go of their sockets

    def __del__(self) -> None:
        if self._session is not None:
            self._session.detach()  # without aiohttp's warning that it was not closed

    async def _sent(self, request: Request) -> ClientResponse:
        from aiohttp import ClientTimeout
        from yarl import URL

        url = request.url
        seconds: Mapping[str, float | None] = request.extensions.get("timeout") or {}
        async with asyncio.timeout(None) as limit:
            return await self._opened().request(
                request.method,
                # Without user and password: the client has made a header of them.
                URL(f"{url.scheme}://{url.netloc.decode('ascii')}{url.raw_path.decode('ascii')}", encoded=True),
                headers=[(name.decode(), value.decode()) for name, value in _headers(request)],
                data=_written(request, limit, seconds.get("write")),
                allow_redirects=False,
                timeout=ClientTimeout(connect=seconds.get("connect"), sock_read=seconds.get("read")),
                server_hostname=request.extensions.get("sni_hostname"),
                proxy=self._proxy,
            )

    def _opened(self) -> ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_connector_class()(ssl=self._tls, limit=0, keepalive_timeout=IDLE),
                cookie_jar=aiohttp.DummyCookieJar(),  # the client has its own
                auto_decompress=False,
                max_line_size=LONGEST_LINE,
                max_field_size=LONGEST_LINE,
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            )
        return self._session


@cache
def _connector_class() -> type[TCPConnector]:
    """Connections as aiohttp makes them, with two changes.

    aiohttp takes bytes that came before a request as the reply to it; here such a connection is closed. And aiohttp
    closes connections that were left open; in a forked process they are the parent's, so here they stay open.
    """
    import aiohttp

    class Connector(aiohttp.TCPConnector):
        async def connect(self, *args: Any, **fields: Any) -> Connection:
            connection = await super().connect(*args, **fields)
            while connection.protocol is not None and connection.protocol.should_close:
                connection.close()
                connection = await super().connect(*args, **fields)
            return connection

        def __del__(self, *_: object) -> None:
            pass

    return Connector


def _headers(request: Request) -> list[tuple[bytes, bytes]]:
    """The headers of `request`, without those that aiohttp writes itself."""
    return [header for header in request.headers.raw if header[0].lower() != b"transfer-encoding"]


def _written(request: Request, limit: asyncio.Timeout, seconds: float | None) -> AsyncIterator[bytes] | None:
    """The body of `request`; each part sets `limit` to `seconds` from now, for a server that takes no bytes."""
    if not request.headers.keys() & {"content-length", "transfer-encoding"}:
        return None

    def within(seconds: float | None) -> None:
        with suppress(RuntimeError):  # the reply came before the body was out: nobody waits for it any more
            limit.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)

    async def parts() -> AsyncIterator[bytes]:
        stream: Any = request.stream
        async for part in stream:
            within(seconds)
            yield part
        within(None)

    return parts()


class _Body:
    """The body of a reply as it comes; no variable of a frame holds it."""

    def __init__(self, reply: ClientResponse, request: Request) -> None:
        self._reply = reply
        self._request = request

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = await _translated(self._reply.content.readany(), self._request)
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Closes the connection; one whose body came whole is used again."""
        self._reply.close()


async def _translated(made: Awaitable[T], request: Request) -> T:
    """The result of `made`.

    Raises:
        httpx2.TransportError: in place of what aiohttp raised.
    """
    try:
        return await made
    except BaseException as error:  # noqa: BLE001  # raised below, out of reach of what it came from
        failure = _failure(error, request).with_traceback(None)
    failure.__context__ = None
    raise failure


def _failure(error: BaseException, request: Request) -> BaseException:
    """The client's error for `error`; `error` itself where it is none of aiohttp's."""
    for theirs, ours, words in _errors():
        if isinstance(error, theirs):
            failure = ours(TOO_LARGE_HEAD if _is_about_size(error) else words.format(error), request=request)
            system = getattr(error, "os_error", None) or error.__cause__
            # A timeout says no more, and comes from an error with aiohttp's frames.
            if isinstance(system, OSError) and not isinstance(system, TimeoutError):
                system.__cause__ = system.__context__ = None
                failure.__cause__ = system.with_traceback(None)
            return failure
    return error


def _is_about_size(error: BaseException) -> bool:
    """Whether the head of a reply is beyond the limits; aiohttp says so in words alone."""
    return str(getattr(error, "message", "")).startswith(("Got more than", "Too many headers"))


@cache
def _errors() -> Sequence[tuple[type[BaseException], type[TransportError], str]]:
    """Errors of aiohttp, the client's error for each, and its message; the first that fits is used."""
    import aiohttp
    import httpx2
    from aiohttp.http_exceptions import HttpProcessingError

    class UnreadableReply(httpx2.RemoteProtocolError):
        """A server answered, and what it sent is not HTTP as it is read here."""

    return (
        (aiohttp.ConnectionTimeoutError, httpx2.ConnectTimeout, "no connection in time"),
        (aiohttp.ServerTimeoutError, httpx2.ReadTimeout, "nothing came in time"),
        (aiohttp.ClientConnectorError, httpx2.ConnectError, "{0.os_error}"),
        (aiohttp.ClientHttpProxyError, httpx2.ProxyError, "the proxy answers with status {0.status}"),
        (aiohttp.ClientConnectionResetError, httpx2.WriteError, "the connection is closed"),
        # Connected: the endpoint may have read the request.
        (
            aiohttp.ServerDisconnectedError,
            httpx2.RemoteProtocolError,
            "Server disconnected without sending a response.",
        ),
        (aiohttp.ClientPayloadError, httpx2.RemoteProtocolError, "the connection ended before the body was whole"),
        (aiohttp.ClientResponseError, UnreadableReply, "it is not HTTP"),
        (HttpProcessingError, UnreadableReply, "it is not HTTP"),
        (aiohttp.InvalidURL, httpx2.UnsupportedProtocol, "the address is none of HTTP"),
        (aiohttp.NonHttpUrlClientError, httpx2.UnsupportedProtocol, "the address is none of HTTP"),
        (aiohttp.ClientError, httpx2.ReadError, "the connection broke"),
        (TimeoutError, httpx2.WriteTimeout, "the endpoint takes nothing"),
        (ValueError, httpx2.LocalProtocolError, "the request cannot be written as it is"),
    )
