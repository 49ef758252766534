"""One connection to an endpoint: HTTP/1.1 and nothing more, straight on asyncio's transports.

The general machinery below the client takes two fifths of what a call costs. An endpoint needs little of it: a request
is written, its reply read, and the connection used again where both sides are done with it. What is unclear about a
reply's length or framing is an error, and whatever did not come to its end closes the connection.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import Request

LARGEST_HEAD = 100 * 2**10
"""Bytes of a reply's head."""

LARGEST_SIZE_LINE = 4096
"""Bytes of the line that says how long a chunk is."""

QUOTED = 16
"""Bytes of what is no HTTP that a message quotes; a key is longer."""

AHEAD = 2**20
"""Bytes that are taken in before anyone reads them."""

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: ([^\r\n]*))?")
_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

Headers = list[tuple[bytes, bytes]]


class Head:
    """The head of a reply.

    Raises:
        ValueError: it is none.
    """

    def __init__(self, data: bytes) -> None:
        first, *lines = data.replace(b"\r\n", b"\n").split(b"\n")
        found = _STATUS.fullmatch(first)
        if found is None:
            msg = f"no status line: {first[:QUOTED]!r}"
            raise ValueError(msg)
        self.status = int(found[2])
        self.reason = found[3] or b""
        self.version = b"HTTP/1." + found[1]
        self.headers: Headers = []
        for line in lines:
            self._add(line)
        tokens = self._tokens(b"connection")
        self.keeps_open = b"close" not in tokens if found[1] == b"1" else b"keep-alive" in tokens

    @property
    def length(self) -> int | None:
        """Bytes of the body; -1 is a body in chunks, None one that ends with the connection.

        Raises:
            ValueError: it is not clear.
        """
        if self.status < 200 or self.status in {204, 304}:
            return 0
        codings, lengths = self._tokens(b"transfer-encoding"), set(self._tokens(b"content-length"))
        if codings:
            if codings != [b"chunked"]:
                msg = f"a transfer coding that was not asked for: {codings[0][:QUOTED]!r}"
                raise ValueError(msg)
            return -1
        if len(lengths) > 1 or not all(length.isdigit() and len(length) < 19 for length in lengths):
            msg = "no clear content-length"
            raise ValueError(msg)
        return int(lengths.pop()) if lengths else None

    def _add(self, line: bytes) -> None:
        if line[:1] in {b" ", b"\t"} and self.headers:
            name, value = self.headers[-1]
            self.headers[-1] = name, value + b" " + line.strip(b" \t")
            return
        name, colon, value = line.partition(b":")
        if not colon or _NAME.fullmatch(name) is None or b"\0" in value or b"\r" in value:
            msg = f"no header: {line[:QUOTED]!r}"
            raise ValueError(msg)
        self.headers.append((name, value.strip(b" \t")))

    def _tokens(self, wanted: bytes) -> Sequence[bytes]:
        values = [value for name, value in self.headers if name.lower() == wanted]
        return [token.strip(b" \t").lower() for value in values for token in value.split(b",")] if values else []


def is_address(host: str) -> bool:
    """Whether `host` is one address, for which no connections race: asyncio may leave a cancelled one open."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class Wire(asyncio.Protocol):
    """A connection, for one exchange at a time; on the loop that it was opened on."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.used = time.monotonic()
        """When its last exchange ended."""
        self.idle = False
        self._transport: Any = None
        self._unsent = b""
        """The head of the request; it may hold a key, and so stands in no variable of a frame that may fail."""
        self._data = bytearray()
        self._ended = False
        self._lost: Exception | None = None
        self._held_back = False
        self._paused = False
        self._waiting: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, request: Request, context: SSLContext) -> Wire:
        """A connection to where `request` goes.

        Raises:
            httpx2.ConnectError: there is none.
            httpx2.ConnectTimeout: not in time.
        """
        import httpx2

        url, limits = request.url, _limits(request)
        secure = url.scheme == "https"
        host = url.raw_host.decode("ascii")
        try:
            async with asyncio.timeout(limits.get("connect")):
                _, wire = await asyncio.get_running_loop().create_connection(
                    cls,
                    host,
                    url.port or (443 if secure else 80),
                    ssl=context if secure else None,
                    server_hostname=request.extensions.get("sni_hostname", host) if secure else None,
                    happy_eyeballs_delay=None if is_address(host) else 0.25,
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(str(error) or "no connection in time", request=request) from error
        except OSError as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        return wire

    @property
    def usable(self) -> bool:
        """Whether another exchange can begin."""
        return not (self._ended or self._data or self._transport is None or self._transport.is_closing())

    def abort(self) -> None:
        """Ends the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def send(self, request: Request) -> None:
        """Writes the request; where the other side does not take it to its end, its reply may still be there.

        Raises:
            httpx2.LocalProtocolError: the request cannot be written as it is.
            httpx2.WriteError: the connection broke.
            httpx2.WriteTimeout: the other side takes nothing.
        """
        import httpx2

        self.idle, self._unsent = False, _head_of(request)
        if not self._unsent:
            raise httpx2.LocalProtocolError("a header holds the end of a line", request=request)
        chunked = "transfer-encoding" in request.headers
        stream: Any = request.stream
        async for chunk in stream:
            await self._write(_framed(chunk) if chunked else chunk, request)
            if self._ended:
                break
        await self._write(b"0\r\n\r\n" if chunked else b"", request)
        if self._lost is not None and not self._data:
            raise httpx2.WriteError(str(self._lost), request=request) from self._lost

    async def head(self, request: Request) -> Head:
        """The head of the reply; what only comes before it is left out.

        Raises:
            httpx2.RemoteProtocolError: there is none, or what came is none.
            httpx2.ReadError: the connection broke.
            httpx2.ReadTimeout: nothing came.
        """
        import httpx2

        while True:
            end, length = self._end_of_head()
            while end < 0:
                if len(self._data) > LARGEST_HEAD:
                    raise httpx2.RemoteProtocolError("the head of the reply is too long", request=request)
                if not await self._more(request):
                    raise httpx2.RemoteProtocolError("Server disconnected without sending a response.", request=request)
                end, length = self._end_of_head()
            data = bytes(self._data[:end])
            del self._data[: end + length]
            try:
                found = Head(data)
            except ValueError as error:
                raise httpx2.RemoteProtocolError(str(error), request=request) from error
            if found.status >= 200 or found.status == 101:
                return found

    async def body(self, request: Request, length: int | None) -> AsyncGenerator[bytes]:
        """The body, as it comes; see `Head.length`.

        Raises:
            httpx2.RemoteProtocolError: it breaks off, or is not what its head says.
            httpx2.ReadError: the connection broke.
            httpx2.ReadTimeout: nothing came.
        """
        if length is None:
            while self._data or await self._more(request):
                yield self._taken(len(self._data))
        elif length >= 0:
            async for chunk in self._counted(request, length):
                yield chunk
        else:
            while size := await self._size(request):
                async for chunk in self._counted(request, size):
                    yield chunk
                await self._line(request)
            while await self._line(request):
                pass

    # asyncio's calls ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        if self.idle:  # nobody has asked anything
            self.abort()
        elif len(self._data) > AHEAD and not self._held_back:
            self._held_back = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended, self._lost, self._paused = True, exc, False
        self._wake()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._wake()

    # inside -------------------------------------------------------------------------------------------------------

    async def _write(self, data: bytes, request: Request) -> None:
        import httpx2

        if not self._ended and (data or self._unsent):
            self._transport.write(self._unsent + data)
            self._unsent = b""
        try:
            while self._paused:
                await self._wait(_limits(request).get("write"))
        except TimeoutError as error:
            raise httpx2.WriteTimeout("the endpoint takes nothing", request=request) from error

    async def _more(self, request: Request) -> bool:
        """Waits for more data; False where none will come."""
        import httpx2

        if self._held_back:
            self._held_back = False
            self._transport.resume_reading()
        before = len(self._data)
        try:
            while len(self._data) == before and not self._ended:
                await self._wait(_limits(request).get("read"))
        except TimeoutError as error:
            raise httpx2.ReadTimeout("nothing came in time", request=request) from error
        if len(self._data) == before and self._lost is not None:
            raise httpx2.ReadError(str(self._lost), request=request) from self._lost
        return len(self._data) > before

    async def _wait(self, seconds: float | None) -> None:
        self._waiting = self.loop.create_future()
        try:
            if seconds is None:
                await self._waiting
            else:
                async with asyncio.timeout(seconds):
                    await self._waiting
        finally:
            self._waiting = None

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _end_of_head(self) -> tuple[int, int]:
        """Where the empty line after the head begins, -1 where it has not come, and how long it is."""
        end = self._data.find(b"\r\n\r\n")
        return (end, 4) if end >= 0 else (self._data.find(b"\n\n"), 2)

    async def _counted(self, request: Request, length: int) -> AsyncIterator[bytes]:
        import httpx2

        left = length
        while left:
            if not self._data and not await self._more(request):
                got = f"received {length - left} bytes, expected {length}"
                raise httpx2.RemoteProtocolError(
                    f"peer closed connection without sending complete message body ({got})", request=request
                )
            chunk = self._taken(left)
            left -= len(chunk)
            yield chunk

    async def _size(self, request: Request) -> int:
        import httpx2

        line = await self._line(request)
        found = _SIZE.fullmatch(line)
        if found is None:
            raise httpx2.RemoteProtocolError(f"no length of a chunk: {line[:QUOTED]!r}", request=request)
        return int(found[1], 16)

    async def _line(self, request: Request) -> bytes:
        import httpx2

        while (end := self._data.find(b"\n")) < 0:
            if len(self._data) > LARGEST_SIZE_LINE:
                raise httpx2.RemoteProtocolError("a line between chunks is too long", request=request)
            if not await self._more(request):
                raise httpx2.RemoteProtocolError(
                    "peer closed connection without sending complete message body (incomplete chunked read)",
                    request=request,
                )
        return self._taken(end + 1).rstrip(b"\r\n")

    def _taken(self, most: int) -> bytes:
        if most >= len(self._data):
            data = bytes(self._data)
            self._data.clear()
        else:
            data = bytes(self._data[:most])
            del self._data[:most]
        return data


def _head_of(request: Request) -> bytes:
    """The head of the request; nothing where a line of it would be several."""
    lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%b: %b" % header for header in request.headers.raw]
    head = b"\r\n".join(lines) + b"\r\n\r\n"
    ends = len(lines) + 1
    return b"" if head.count(b"\n") != ends or head.count(b"\r") != ends or b"\0" in head else head


def _framed(chunk: bytes) -> bytes:
    """`chunk` as one of a body in chunks; an empty one would end it."""
    return b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunk else b""


def _limits(request: Request) -> Mapping[str, float | None]:
    return request.extensions.get("timeout") or {}
