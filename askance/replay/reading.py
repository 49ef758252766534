"""Reading cassettes: line by line, in bounded memory, as data that nobody vouches for."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from askance.chat import canonical_json
from askance.errors import CassetteError, StoreError
from askance.replay.lines import Picture, check_form, parse_line, picture_of
from askance.replay.records import Record, RecordKind, check_key

if TYPE_CHECKING:
    from askance.chat import JsonObject

MAX_LINE = 64 * 2**20
"""Longest line that is read, in bytes."""


def read_cassette(path: Path | str, *, check: bool = True) -> Iterator[Record]:
    """The records of a cassette, in the file's order, each key once.

    `check=False` believes the file: for one that ships with the package.

    Raises:
        CassetteError: a line is no record, or contradicts an earlier one; the message names the line.
        StoreError: the file cannot be read.
    """
    return (entry for _, entry in _entries(Path(path), check=check) if isinstance(entry, Record))


class Cassette:
    """The records of a cassette, to be read only; each is read when it is looked at.

    The file is gone through once, when the first record is asked for; what is held of it is where its lines begin.

    Args:
        path: of the file.
        check: False believes the file: for one that this machine wrote.
    """

    writable = False

    def __init__(self, path: Path | str, *, check: bool = True) -> None:
        self._path = Path(path)
        self._check = check

    def __repr__(self) -> str:
        return f"Cassette({self.name!r})"

    @property
    def name(self) -> str:
        """The file."""
        return str(self._path)

    def get(self, key: str, /) -> Record | None:
        """The record with this key, or None.

        Raises:
            CassetteError: a line of the file is no record; the message names the line.
            StoreError: the file cannot be read, or was changed since it was gone through.
        """
        place = self._places.get(key)
        if place is None:
            return None
        with _readable(self._path) as file:
            file.seek(place)
            line = file.readline(MAX_LINE)
        form = None
        with suppress(StoreError):
            form = _form(line, first=place == 0, check=False)
        if form is None or form.get("key") != key:
            raise StoreError(
                f"The cassette {self.name!r} was changed while it was read.", hint="The same command reads it anew."
            )
        return Record.from_canonical(form)

    @property
    def folder(self) -> None:
        """None: nothing is kept beside a cassette."""

    def leases(self) -> None:
        """None: nothing is asked for that a cassette lacks."""

    def answer(self, key: str, _asked: str, /) -> JsonObject | None:
        """The response to the request with this key, or None.

        Raises:
            CassetteError: a line of the file is no record; the message names the line.
            StoreError: the file cannot be read, or was changed since it was gone through.
        """
        record = self.get(key)
        return None if record is None else record.response

    def put_all(self, records: Iterable[Record], /) -> None:
        """Refuses the records.

        Raises:
            StoreError: always.
        """
        for record in records:
            self.put(record)

    def put(self, record: Record, /) -> None:  # noqa: ARG002  # what every holder of records takes
        """Refuses the record.

        Raises:
            StoreError: always.
        """
        raise StoreError(
            f"The records of {self.name!r} are open for reading only.",
            hint="Import the cassette into a store, or replay what it holds.",
        )

    def keys(self) -> Iterator[str]:
        """The keys, in their order."""
        return iter(sorted(self._places))

    def __iter__(self) -> Iterator[Record]:
        """The records, in the order of their keys."""
        return (record for key in self.keys() if (record := self.get(key)) is not None)

    def __len__(self) -> int:
        return len(self._places)

    def of_kind(self, kind: RecordKind, /) -> Iterator[Record]:
        """The records of one kind, in the file's order."""
        return (record for key in self._places if (record := self.get(key)) is not None and record.kind == kind)

    @cached_property
    def _places(self) -> dict[str, int]:
        """By key, the byte at which the record's line begins."""
        entries = _entries(self._path, check=self._check)
        return {entry.key: place for place, entry in entries if isinstance(entry, Record)}


def read_pictures(path: Path | str) -> Iterator[Picture]:
    """The pictures whose bytes a cassette carries; everything in the file is checked, their digests too.

    Raises:
        CassetteError: a line is no record and no picture; the message names the line.
        StoreError: the file cannot be read.
    """
    return (entry for _, entry in _entries(Path(path), check=True) if isinstance(entry, Picture))


def check_cassette(path: Path | str) -> None:
    """Read everything and keep nothing.

    Raises:
        CassetteError: a line is no record and no picture; the message names the line.
        StoreError: the file cannot be read.
    """
    for _ in _entries(Path(path), check=True):
        pass


def _entries(path: Path, *, check: bool) -> Iterator[tuple[int, Record | Picture]]:
    """What stands on each line, with the byte at which the line begins; a record that stands there twice comes once."""
    seen: dict[str, tuple[int, bytes]] = {}
    for number, (place, line) in enumerate(_lines(path), 1):
        with _at(path, number):
            form = _form(line, first=place == 0, check=check)
            entry = None if form is None else _entry(form, seen, number, check=check)
        if entry is not None:
            yield place, entry


def _entry(
    form: JsonObject, seen: dict[str, tuple[int, bytes]], number: int, *, check: bool
) -> Record | Picture | None:
    """What stands on a line; None for a record that an earlier line holds, and for a picture that nobody checks."""
    if "image" in form:
        return picture_of(form) if check else None
    record, answer = Record.from_canonical(form), b""
    if check:
        check_key(record)
        answer = sha256(canonical_json(record.response).encode("utf-8", "surrogatepass")).digest()
    first, other = seen.setdefault(record.key, (number, answer))
    if other != answer:
        msg = f"it answers the same request as line {first}, but differently"
        raise StoreError(msg, hint="Take one of the two lines out.")
    return record if first == number else None


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, each with the byte at which it begins."""
    place = 0
    with _readable(path) as file:
        while line := file.readline(MAX_LINE + 1):
            yield place, line
            place += len(line)


@contextmanager
def _readable(path: Path) -> Generator[BinaryIO]:
    """The file, open.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        msg = f"The cassette {str(path)!r} cannot be read: {error.strerror or error}."
        raise StoreError(
            msg, hint="Name a file that `askance cache export` wrote, or one in a run's folder."
        ) from error


def _form(line: bytes, *, first: bool, check: bool) -> JsonObject | None:
    if len(line) > MAX_LINE:
        msg = f"it is longer than {MAX_LINE} bytes"
        raise StoreError(msg)
    try:
        text = line.decode("utf-8-sig" if first else "utf-8").strip()
    except UnicodeDecodeError as error:
        msg = f"it is no UTF-8 text at byte {error.start + 1}"
        raise StoreError(msg) from error
    if not text:
        return None
    form = parse_line(text, check=check)
    if check:
        check_form(form)
    return form


@contextmanager
def _at(path: Path, number: int) -> Generator[None]:
    """Says the file and the line of whatever is wrong with it."""
    try:
        yield
    except StoreError as error:
        msg = f"{str(path)!r}, line {number}: {error.message.rstrip('.')}."
        raise CassetteError(msg, hint=error.hint or "Mend the line, or take it out.") from error
