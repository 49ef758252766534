"""Reading cassettes: line by line, in bounded memory, as data that nobody vouches for."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from askance.chat import canonical_json
from askance.errors import CassetteError, StoreError
from askance.replay.lines import Picture, check_form, parse_line, picture_of
from askance.replay.records import Record, check_key

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
    return (entry for entry in _entries(Path(path), check=check) if isinstance(entry, Record))


def read_pictures(path: Path | str) -> Iterator[Picture]:
    """The pictures whose bytes a cassette carries; everything in the file is checked, their digests too.

    Raises:
        CassetteError: a line is no record and no picture; the message names the line.
        StoreError: the file cannot be read.
    """
    return (entry for entry in _entries(Path(path), check=True) if isinstance(entry, Picture))


def check_cassette(path: Path | str) -> None:
    """Read everything and keep nothing.

    Raises:
        CassetteError: a line is no record and no picture; the message names the line.
        StoreError: the file cannot be read.
    """
    for _ in _entries(Path(path), check=True):
        pass


def _entries(path: Path, *, check: bool) -> Iterator[Record | Picture]:
    seen: dict[str, tuple[int, bytes]] = {}
    for number, form in _forms(path, check=check):
        with _at(path, number):
            entry = _entry(form, seen, number, check=check)
        if entry is not None:
            yield entry


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


def _forms(path: Path, *, check: bool) -> Iterator[tuple[int, JsonObject]]:
    """The lines that are not empty, by number from 1, each a JSON object of the right form."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(_bounded(file), 1):
                with _at(path, number):
                    form = _form(line, first=number == 1, check=check)
                if form is not None:
                    yield number, form
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


def _bounded(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(MAX_LINE + 1):
        yield line


@contextmanager
def _at(path: Path, number: int) -> Generator[None]:
    """Says the file and the line of whatever is wrong with it."""
    try:
        yield
    except StoreError as error:
        msg = f"{str(path)!r}, line {number}: {error.message.rstrip('.')}."
        raise CassetteError(msg, hint=error.hint or "Mend the line, or take it out.") from error
