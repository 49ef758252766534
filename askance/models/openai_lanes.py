"""The transport below the client: lanes of one connection each.

The transport that comes with the client looks at every open connection, with two calls of the system each, whenever a
request begins or ends: with a hundred calls at once that costs more than all else. A lane has one connection to look
at, and a request takes the lane that was used last.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport, AsyncByteStream


def lanes() -> AsyncBaseTransport | None:
    """A transport of lanes; None where the environment names a proxy, which the client's own transport is to find."""
    if getproxies().keys() & {"http", "https", "all"}:
        return None
    import httpx2

    context = httpx2.create_ssl_context()
    one = httpx2.Limits(max_connections=1, max_keepalive_connections=1)
    return _lanes()(lambda: httpx2.AsyncHTTPTransport(verify=context, limits=one))


@cache
def _lanes() -> Callable[[Callable[[], AsyncBaseTransport]], AsyncBaseTransport]:
    """The class of the transport, made when the client's package is loaded anyway."""
    import httpx2

    class Lanes(httpx2.AsyncBaseTransport):
        def __init__(self, make: Callable[[], AsyncBaseTransport]) -> None:
            self._make = make
            self._all: list[AsyncBaseTransport] = []
            self._idle: list[AsyncBaseTransport] = []

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            lane = self._idle.pop() if self._idle else self._new()
            try:
                response = await lane.handle_async_request(request)
            except BaseException:
                self._idle.append(lane)
                raise
            stream: Any = response.stream
            response.stream = _body()(stream, lambda: self._idle.append(lane))
            return response

        async def aclose(self) -> None:
            while self._all:
                await self._all.pop().aclose()
            self._idle.clear()

        def _new(self) -> AsyncBaseTransport:
            lane = self._make()
            self._all.append(lane)
            return lane

    return Lanes


@cache
def _body() -> Callable[[AsyncByteStream, Callable[[], None]], AsyncByteStream]:
    """The class of a reply's body whose lane is free again when it is closed."""
    import httpx2

    class Body(httpx2.AsyncByteStream):
        def __init__(self, source: AsyncByteStream, free: Callable[[], None]) -> None:
            self._source = source
            self._free: Callable[[], None] | None = free

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._source:
                yield chunk

        async def aclose(self) -> None:
            free, self._free = self._free, None
            try:
                await self._source.aclose()
            finally:
                if free is not None:
                    free()

    return Body
