"""Vectors as records hold them, and how alike two are."""

from __future__ import annotations

import binascii
import math
import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from operator import mul
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.errors import BadRecord, ModelError, UsageError
from askance.replay import DAMAGED_HINT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.chat import JsonObject

Vector: TypeAlias = tuple[float, ...]
"""Numbers of 32 bits each: what a record holds, so that a replay gives the very same."""

_FIELD = "float32"
"""Field of a response: the numbers in base64, four bytes each, the lowest first."""


def packed(vector: Sequence[float], *, by: str) -> JsonObject:
    """The response that holds `vector`; `by` is who made it.

    Raises:
        ModelError: it is empty, or one of its numbers is none or too large for 32 bits.
    """
    try:
        data = struct.pack(f"<{len(vector)}f", *vector)
        sound = all(map(math.isfinite, vector))
    except (OverflowError, TypeError, struct.error):
        data, sound = b"", False
    if not data or not sound:
        raise ModelError(f"{by!r} gave a vector that is empty or holds something that is no number of 32 bits.")
    return {_FIELD: b64encode(data).decode("ascii"), "size": len(vector)}


def unpacked(response: Mapping[str, Any], *, key: str) -> Vector:
    """The vector in a response; `key` is that of its record.

    Raises:
        BadRecord: it holds none.
    """
    try:
        data = b64decode(response[_FIELD], validate=True)
        vector = struct.unpack(f"<{len(data) // 4}f", data)
        if vector and len(vector) == response["size"] and all(map(math.isfinite, vector)):
            return vector
    except (KeyError, TypeError, ValueError, binascii.Error, struct.error):
        pass
    raise BadRecord(f"The record {key[:12]!r} holds no vector.", hint=DAMAGED_HINT)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """How alike two vectors are, from −1 to 1: the cosine of the angle between them, 0 where one has no length.

    Raises:
        UsageError: they are not of one size.
    """
    if len(one) != len(other):
        raise UsageError(
            f"Vectors of {len(one)} and of {len(other)} numbers cannot be compared.", hint="Make them by one encoder."
        )
    lengths = math.hypot(*one) * math.hypot(*other)
    return max(-1.0, min(1.0, sum(map(mul, one, other)) / lengths)) if lengths else 0.0
