"""A picture as a list of pictures names it: a file, an address, or the bytes in a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ListedPicture:
    """One picture of a list; nothing of it is read or fetched yet."""

    name: str
    source: Path | str | bytes
    """A file, an address, or the bytes themselves."""
    options: tuple[str, ...] | None = None
    """What the chain chooses from."""
    question: str = ""
    """What is asked about it alone."""
