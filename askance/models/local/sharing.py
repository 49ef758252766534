"""Which rows begin alike: what is computed once for all of them. Lists of tokens alone, no tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.models.local.rows import Row

LEAST = 16
"""Tokens that rows without a picture have in common, from which on it pays to compute them apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Rows about the same pictures that begin with the same tokens."""

    rows: tuple[Row, ...]
    length: int
    """Tokens of the common beginning: every picture is in it, and at least one token of each row is not."""


def groups(rows: Sequence[Row]) -> list[Group]:
    """`rows` by what they have in common, in the order of their first members; rows that share nothing stand alone."""
    found: list[Group] = []
    for alike in _by_pictures(rows):
        length = common(row.ids for row in alike)
        if length >= max(row.picture_end for row in alike):
            found.append(Group(alike, length if alike[0].pictures or length >= LEAST else 0))
        else:
            found += [Group((row,), row.picture_end) for row in alike]
    return [_without_surplus(group) for group in found]


def _without_surplus(group: Group) -> Group:
    """A row alone has only its pictures computed apart, for the questions that may follow."""
    return Group(group.rows, group.rows[0].picture_end) if len(group.rows) == 1 else group


def _by_pictures(rows: Sequence[Row]) -> list[tuple[Row, ...]]:
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(row.pictures, []).append(row)
    return [tuple(alike) for alike in found.values()]


def common(texts: Iterable[Sequence[int]]) -> int:
    """Tokens that all `texts` begin with, such that each has one more at least."""
    every = list(texts)
    most = min(map(len, every)) - 1
    first = every[0]
    return next((place for place in range(most) if any(text[place] != first[place] for text in every)), most)
