"""The transport below the client: a connection for each call that is under way.

The transport that comes with the client looks at every open connection, with two calls of the system each, whenever a
request begins or ends: with a hundred calls at once that costs more than all else. Here a request takes the connection
that was used last, or opens one, and nobody looks at the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

from askance.models.openai.wire import Wire

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncBaseTransport, AsyncByteStream, Request, Response

IDLE = 5.0
"""Seconds after which a connection is not used again: many servers close theirs then, with a request on its way."""

Place = tuple[str, bytes, int | None]


def lanes(*, direct: bool = False) -> AsyncBaseTransport | None:
    """A transport of lanes; None where the environment names a proxy, which the client's own transport is to find.

    A `direct` one passes proxies by.
    """
    if not direct and getproxies().keys() & {"http", "https", "all"}:
        return None
    import httpx2

    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    transport: Any = Lanes(context)  # one by what it does
    return transport


class Lanes:
    """The transport."""

    def __init__(self, context: SSLContext) -> None:
        self._context = context
        self._open: set[Wire] = set()
        self._idle: dict[Place, list[Wire]] = {}

    async def handle_async_request(self, request: Request) -> Response:
        """The reply, as far as its head; the connection is free again when its body is closed.

        Raises:
            httpx2.TransportError: there is none.
        """
        import httpx2

        if request.url.scheme not in {"http", "https"}:
            raise httpx2.UnsupportedProtocol(f"{request.url.scheme!r} is no protocol of HTTP", request=request)
        wire = self._taken(request) or await self._opened(request)
        try:
            await wire.send(request)
            head = await wire.head(request)
            length = 0 if request.method == "HEAD" else head.length
        except ValueError as error:
            self._ended(wire)
            raise httpx2.RemoteProtocolError(str(error), request=request) from error
        except BaseException:
            self._ended(wire)
            raise
        keep = head.keeps_open and length is not None and head.status != 101

        def done(*, whole: bool) -> None:
            if whole and keep:
                self._kept(wire, request)
            else:
                self._ended(wire)

        extensions = {"http_version": head.version, "reason_phrase": head.reason}
        stream = _body()(wire.body(request, length), done)
        return httpx2.Response(head.status, headers=head.headers, stream=stream, extensions=extensions)

    async def aclose(self) -> None:
        """Ends every connection."""
        for wire in [*self._open]:
            self._ended(wire)
        self._idle.clear()
        await asyncio.sleep(0)  # until the transports have let go of their sockets

    async def __aenter__(self) -> Lanes:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _opened(self, request: Request) -> Wire:
        wire = await Wire.open(request, self._context)
        self._open.add(wire)
        return wire

    def _taken(self, request: Request) -> Wire | None:
        """The connection that was used last, if it can be used again."""
        idle, latest = self._idle.get(_place(request), []), time.monotonic() - IDLE
        while idle:
            wire = idle.pop()
            if wire.usable and wire.used > latest and wire.loop is asyncio.get_running_loop():
                return wire
            self._ended(wire)
        return None

    def _kept(self, wire: Wire, request: Request) -> None:
        if not wire.usable or wire not in self._open:
            self._ended(wire)
            return
        wire.idle, wire.used = True, time.monotonic()
        idle = self._idle.setdefault(_place(request), [])
        idle.append(wire)
        if idle[0].used < wire.used - IDLE:
            self._ended(idle.pop(0))

    def _ended(self, wire: Wire) -> None:
        self._open.discard(wire)
        wire.abort()


def _place(request: Request) -> Place:
    url = request.url
    return url.scheme, url.raw_host, url.port


@cache
def _body() -> Callable[[AsyncGenerator[bytes], Callable[..., None]], AsyncByteStream]:
    """The class of a reply's body, which gives the connection back when it is closed."""
    import httpx2

    class Body(httpx2.AsyncByteStream):
        def __init__(self, chunks: AsyncGenerator[bytes], done: Callable[..., None]) -> None:
            self._chunks = chunks
            self._done: Callable[..., None] | None = done
            self._whole = False

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._chunks:
                yield chunk
            self._whole = True

        async def aclose(self) -> None:
            done, self._done = self._done, None
            if done is not None:
                done(whole=self._whole)
            if not self._whole:
                await self._chunks.aclose()

    return Body
