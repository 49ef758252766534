"""A picture as a list names it: a file, an address, or the bytes in a table; and what it means to be listed twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import Field, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from askance.errors import BadOptions


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


class ListRow(Protocol):
    """A row of a list: a dataclass with these fields."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def name(self) -> str: ...
    @property
    def options(self) -> Sequence[str] | None: ...
    @property
    def question(self) -> str: ...


Row = TypeVar("Row", bound=ListRow)


def each_once(rows: Iterable[Row]) -> Iterator[Row]:
    """Each picture once, however often it is listed, and each question about it, from the second on as `NAME#2`.

    Raises:
        BadOptions: a picture is listed with different options.
    """
    options: dict[str, Sequence[str] | None] = {}
    questions = Counter[str]()
    for row in rows:
        if row.question:
            questions[row.name] += 1
            times = questions[row.name]
            yield replace(row, name=f"{row.name}#{times}") if times > 1 else row
        elif row.name not in options:
            options[row.name] = row.options
            yield row
        elif options[row.name] != row.options:
            raise BadOptions(
                f"The picture {row.name!r} is listed twice, with different options.", hint="Give each picture one row."
            )
