"""GIF files: their blocks, and the file without its metadata."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from askance.images.info import Unusable, cut, little

MAGICS = (b"GIF87a", b"GIF89a")

_EXTENSION, _IMAGE, _END = 0x21, 0x2C, 0x3B
_COMMENT, _APPLICATION = 0xFE, 0xFF


@dataclass(frozen=True, slots=True)
class Block:
    """One frame or extension, as it stands in the file."""

    kind: Literal["frame", "metadata", "control"]
    raw: bytes


def blocks(data: bytes) -> Iterator[Block]:
    """The blocks behind the global colour table; a file that is cut off behind its first frame ends there.

    Raises:
        Unusable: the file is cut off or broken before its first frame is whole.
    """
    at, frames = len(_screen(data)), 0
    try:
        while little(data, at, 1) != _END:
            block = _block(data, at)
            yield block
            frames += block.kind == "frame"
            at += len(block.raw)
    except Unusable:
        if not frames:
            raise
    if not frames:
        raise Unusable("holds no frame")


def without_metadata(data: bytes) -> bytes:
    """The same coded pixels without comments, application blocks (XMP, profiles, loops) and what follows the end."""
    kept = b"".join(block.raw for block in blocks(data) if block.kind != "metadata")
    return _screen(data) + kept + bytes([_END])


def _screen(data: bytes) -> bytes:
    """Magic, screen and global colour table."""
    return cut(data, 0, 13 + _table(little(data, 10, 1)))


def _table(flags: int) -> int:
    """Bytes of the colour table that the flags announce."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _block(data: bytes, at: int) -> Block:
    kind = little(data, at, 1)
    if kind == _IMAGE:
        end = _behind(data, at + 11 + _table(little(data, at + 9, 1)))
        return Block("frame", data[at:end])
    if kind != _EXTENSION:
        raise Unusable("has a broken GIF block")
    label = little(data, at + 1, 1)
    return Block("metadata" if label in {_COMMENT, _APPLICATION} else "control", data[at : _behind(data, at + 2)])


def _behind(data: bytes, at: int) -> int:
    """The place behind the chain of sub-blocks that begins at `at`."""
    while size := little(data, at, 1):
        at += 1 + len(cut(data, at + 1, size))
    return at + 1
