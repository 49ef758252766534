"""Prepared pictures in base64; each is encoded once for all calls that carry it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeAlias
from weakref import WeakValueDictionary

from askance.chat import ImagePart
from askance.images import ImagePolicy, PreparedImage, RegionView

_Key: TypeAlias = tuple[str, ImagePolicy, RegionView]
"""What is shown, without the `Image`, which is not to be kept alive."""
EncodeImage: TypeAlias = Callable[[ImagePart], PreparedImage]


def encode(part: ImagePart) -> PreparedImage:
    """The picture, prepared by its policy and in base64.

    Raises:
        BadImage: the picture cannot be used.
    """
    prepared = part.shown.prepare()
    _ = prepared.base64
    return prepared


class ImageEncoder:
    """Encodes pictures in threads; each is encoded once for all calls that are under way with it.

    It belongs to one event loop, as a client does. It keeps no picture alive: each `Image` caches what it prepared.
    """

    def __init__(self) -> None:
        self._ready: WeakValueDictionary[_Key, PreparedImage] = WeakValueDictionary()
        self._pending: dict[_Key, asyncio.Task[PreparedImage]] = {}

    async def encoder(self, parts: Iterable[ImagePart]) -> EncodeImage:
        """A function that gives the encoded form of each of `parts` at once.

        Raises:
            BadImage: a picture cannot be used.
        """
        ready = {_key(part): await self._get(part) for part in parts}
        return lambda part: ready[_key(part)]

    async def _get(self, part: ImagePart) -> PreparedImage:
        key = _key(part)
        if (ready := self._ready.get(key)) is not None:
            return ready
        if (task := self._pending.get(key)) is None:
            task = self._pending[key] = asyncio.create_task(self._make(key, part))
            # The error is read here, so that asyncio logs none where every caller has gone.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        # When one caller is cancelled, the others still wait for the task.
        return await asyncio.shield(task)

    async def _make(self, key: _Key, part: ImagePart) -> PreparedImage:
        try:
            encoded = self._ready[key] = await asyncio.to_thread(encode, part)
        finally:
            del self._pending[key]
        return encoded


def _key(part: ImagePart) -> _Key:
    return part.shown.image.sha256, part.shown.policy, part.shown.view
