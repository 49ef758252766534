"""How many bytes a file in the formats of Arrow unpacks to: read from its messages, before anything is unpacked.

A record batch may be compressed, buffer by buffer. Each such buffer begins with the length that the reader allocates
for it. Where the buffers lie is in the metadata of the message, a FlatBuffer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

_DICTIONARY, _BATCH = 2, 3
"""Kinds of messages that have buffers; a dictionary holds a batch of its values."""


def unpacked_sizes(messages: Iterable[Any]) -> Iterator[int]:
    """By message the bytes that it takes in memory.

    Args:
        messages: of `pyarrow.ipc.MessageReader`.

    Raises:
        ValueError: a message is damaged.
    """
    for message in messages:
        try:
            yield _unpacked(bytes(message.metadata), message.body)
        except (struct.error, IndexError) as error:
            msg = "a message is damaged"
            raise ValueError(msg) from error


def _unpacked(metadata: bytes, body: Any) -> int:
    root = _number("<I", metadata, 0)
    kind_at, batch = _field(metadata, root, 1), _table(metadata, root, 2)
    kind = metadata[kind_at] if kind_at else 0
    if kind == _DICTIONARY and batch:
        batch = _table(metadata, batch, 1)
    if kind not in {_DICTIONARY, _BATCH} or not batch or not _field(metadata, batch, 3):
        return 0 if body is None else body.size  # nothing is compressed
    packed, buffers = memoryview(body), _table(metadata, batch, 2)
    count = _number("<I", metadata, buffers) if buffers else 0
    places = (struct.unpack_from("<qq", metadata, buffers + 4 + 16 * number) for number in range(count))
    return sum(max(_number("<q", packed, offset), length) for offset, length in places if length)


def _number(form: str, data: Any, at: int) -> int:
    if at < 0:
        raise IndexError(at)
    return struct.unpack_from(form, data, at)[0]


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a FlatBuffer's table lies; 0 where the table lacks it."""
    fields = table - _number("<i", data, table)
    if 4 + 2 * number >= _number("<H", data, fields):
        return 0
    offset = _number("<H", data, fields + 4 + 2 * number)
    return table + offset if offset else 0


def _table(data: bytes, table: int, number: int) -> int:
    """Where the table or the vector of a field begins; 0 where there is none."""
    at = _field(data, table, number)
    return at + _number("<I", data, at) if at else 0
