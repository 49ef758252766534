"""Sending again what the client has sent, with another body.

The client builds every request anew: it merges headers three times over and reads its own address five times, which
costs more than to send the request. Where it was made here, from settings alone, nothing in a request changes but its
body. So the client builds the first one, and the others are copies of it: with its headers and its key, through the
same hooks and the same transport, and with the client's own errors. A client that someone else has made, or that
fetches its keys as it goes, builds each request itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Request, Response

_OF_THE_BODY = frozenset({b"content-length", b"transfer-encoding"})
"""Headers that say something about the body."""


class Again:
    """Requests like those that the client has built, by their path.

    Args:
        http: what the client sends them with.
    """

    def __init__(self, http: AsyncClient) -> None:
        self._http = http
        self._built: dict[str, Request] = {}

    def knows(self, path: str) -> bool:
        """Whether the client has built a request to `path`."""
        return path in self._built

    def learn(self, path: str, request: Request) -> None:
        """Takes a request that was answered as the model of those to come."""
        self._built[path] = _like(request, b"")

    async def send(self, path: str, body: bytes) -> Response:
        """The reply, its body unread.

        Raises:
            openai.APIStatusError: it is none of success.
            openai.APIConnectionError: there is none; `openai.APITimeoutError` where that took too long.
        """
        from httpx2 import RequestError, TimeoutException
        from openai import APIConnectionError, APITimeoutError

        request = _like(self._built[path], body)
        try:
            response = await self._http.send(request, stream=True, follow_redirects=False)
        except TimeoutException as error:
            raise APITimeoutError(request=request) from error
        except RequestError as error:
            raise APIConnectionError(request=request) from error
        if not response.is_success:
            raise await _refusal(response)
        return response


def _like(built: Request, body: bytes) -> Request:
    """`built` with another body."""
    from httpx2 import ByteStream, Request

    # A key stands among the headers: no variable of a frame that may fail holds them.
    headers = [(name, value) for name, value in built.headers.raw if name.lower() not in _OF_THE_BODY]
    headers.append((b"Content-Length", b"%d" % len(body)))
    return Request(built.method, built.url, headers=headers, stream=ByteStream(body), extensions=built.extensions)


async def _refusal(response: Response) -> Exception:
    """The client's error for a reply of another status than success."""
    from openai import APIStatusError

    try:
        await response.aread()
        text = response.text.strip()
    finally:
        await response.aclose()
    status = response.status_code
    try:
        body: object = json.loads(text)
    except (ValueError, RecursionError):
        return APIStatusError(text or f"Error code: {status}", response=response, body=text)
    return APIStatusError(f"Error code: {status} - {body}", response=response, body=body)
