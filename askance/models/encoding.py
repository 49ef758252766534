"""Prepared pictures in base64, each made once for all the calls that carry it."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from askance.chat import ImagePart
from askance.images import ImagePolicy

KEPT_BYTES = 64 * 2**20
"""Base64 text that is kept for the next call with the same picture."""

_Key: TypeAlias = tuple[str, ImagePolicy]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A picture as JSON carries it."""

    base64: str = field(repr=False)
    media_type: str

    @property
    def data_url(self) -> str:
        """The picture as a `data:` address."""
        return f"data:{self.media_type};base64,{self.base64}"


Encoder: TypeAlias = Callable[[ImagePart], Encoded]


def encode(part: ImagePart) -> Encoded:
    """The picture, prepared by its policy.

    Raises:
        BadImage: the picture cannot be used.
    """
    prepared = part.image.prepare(part.policy)
    return Encoded(b64encode(prepared.data).decode("ascii"), prepared.media_type)


class EncodedImages:
    """Encodes pictures in threads, at most once at a time each, and keeps the latest up to `kept_bytes` of text.

    It belongs to one event loop, like the client beside it.
    """

    def __init__(self, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._size = 0
        self._kept: OrderedDict[_Key, Encoded] = OrderedDict()
        self._pending: dict[_Key, asyncio.Task[Encoded]] = {}

    async def encoder(self, parts: Iterable[ImagePart]) -> Encoder:
        """A function that gives the encoded form of each of `parts` at once.

        Raises:
            BadImage: a picture cannot be used.
        """
        ready = {_key(part): await self._get(part) for part in parts}
        return lambda part: ready[_key(part)]

    async def _get(self, part: ImagePart) -> Encoded:
        key = _key(part)
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept
        if (task := self._pending.get(key)) is None:
            task = self._pending[key] = asyncio.create_task(self._make(key, part))
            # Looked at here, so that nothing is logged where every caller has gone.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        # A caller that is cancelled leaves the work to the others who wait for it.
        return await asyncio.shield(task)

    async def _make(self, key: _Key, part: ImagePart) -> Encoded:
        try:
            encoded = await asyncio.to_thread(encode, part)
        finally:
            del self._pending[key]
        self._keep(key, encoded)
        return encoded

    def _keep(self, key: _Key, encoded: Encoded) -> None:
        self._kept[key] = encoded
        self._size += len(encoded.base64)
        while self._size > self._kept_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest.base64)


def _key(part: ImagePart) -> _Key:
    return part.image.sha256, part.policy
