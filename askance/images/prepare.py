"""From source bytes to the bytes that are sent."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PreparedImage:
    """A picture as it is sent."""

    data: bytes = field(repr=False)
    media_type: str
    width: int
    height: int
    sha256: str
    """Of `data`, 64 hex digits."""
