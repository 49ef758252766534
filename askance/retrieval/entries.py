"""Entries of an index: one for each distinct text, with the images that it is true of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One distinct text of an index."""

    id: str
    """The first 16 hex digits of the text's sha256: equal in every index that has the text."""
    text: str
    """Exactly as written."""
    images: tuple[str, ...] = ()
    """Ids of the images that it is true of; none for a text that is only to be told from true ones."""
    split: str = ""
    """Of the data set: `train`, `test`, or empty where it has none."""
    marks: tuple[str, ...] = ()
    """What is noticed about the text: `junk`, `no because`."""


def entry_id(text: str) -> str:
    """The id of a text in any index."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def digest_of(ids: Iterable[str]) -> str:
    """The digest of entries by their ids, in order."""
    return sha256("\n".join(ids).encode()).hexdigest()
