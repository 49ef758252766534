"""What comes back from an endpoint, held within bounds before the client reads it.

The client reads an error's body whole and unpacks whatever it is sent. So the bodies pass through here first: counted,
unpacked no further than the limit, and cleared of the key, which a server may repeat.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from askance.errors import MalformedReply

if TYPE_CHECKING:
    from httpx2 import AsyncByteStream, Response

    from askance.models.secrets import Secrets

LARGEST_REPLY = 50 * 2**20
"""Bytes of a reply, unpacked."""

LARGEST_COMPLAINT = 64 * 2**10
"""Bytes of an error's body; the rest is not read."""

PACKINGS = "gzip, deflate"
"""What a reply may be packed by: both can be unpacked in steps."""

TOO_LARGE = f"it is larger than {LARGEST_REPLY >> 20} MB"

_GZIP_OR_ZLIB = 47
"""Tells the two apart by their first bytes."""


def bounding(secrets: Secrets) -> Callable[[Response], Awaitable[None]]:
    """A hook for responses that has their bodies read within bounds, and secrets taken out of their heads."""

    async def bound(response: Response) -> None:
        clear_head(response, secrets)
        packing = response.headers.pop("content-encoding", "").strip().lower()
        stream: Any = response.stream
        answered = response.status_code < 300
        chunks = _answer(stream, packing) if answered else _complaint(stream, packing, secrets)
        response.stream = body_of(chunks, stream.aclose)

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
    """A body as the client reads it, made of `chunks`; `close` lets go of where they come from."""
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


async def _answer(stream: AsyncByteStream, packing: str) -> AsyncIterator[bytes]:
    """The body of an answer.

    Raises:
        MalformedReply: it is larger than `LARGEST_REPLY`, or cannot be unpacked.
    """
    size = 0
    async for chunk in _unpacked(stream, packing, LARGEST_REPLY):
        size += len(chunk)
        if size > LARGEST_REPLY:
            raise MalformedReply(TOO_LARGE)
        yield chunk


async def _complaint(stream: AsyncByteStream, packing: str, secrets: Secrets) -> AsyncIterator[bytes]:
    """The beginning of an error's body, without secrets; the status says enough where even that cannot be read."""
    data = b""
    with suppress(Exception):
        async for chunk in _unpacked(stream, packing, LARGEST_COMPLAINT):
            data += chunk
            if len(data) > LARGEST_COMPLAINT:
                break
    yield secrets.blanked(data)[:LARGEST_COMPLAINT]


async def _unpacked(stream: AsyncByteStream, packing: str, most: int) -> AsyncIterator[bytes]:
    if packing in {"", "identity"}:
        async for chunk in stream:
            yield chunk
        return
    if packing not in {"gzip", "x-gzip", "deflate"}:
        raise MalformedReply(f"it is packed by {packing[:40]!r}, which was not asked for")
    unpacker = zlib.decompressobj(wbits=_GZIP_OR_ZLIB)
    try:
        async for chunk in stream:
            yield unpacker.decompress(chunk, most + 1)
            if unpacker.unconsumed_tail:
                raise MalformedReply(TOO_LARGE)
        yield unpacker.flush()
    except zlib.error as error:
        raise MalformedReply(f"it cannot be unpacked ({error})") from error
