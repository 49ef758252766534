"""Cassettes: records as JSON lines, the same on every machine.

A line is a record, or the bytes of a picture that records speak of. Lines stand in the order of their keys, so that equal
records make equal files; a record holds no path and no secret, because a request holds none.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, TextIO

from askance.chat import JsonObject, canonical_json
from askance.errors import CassetteError, StoreError
from askance.images import Image
from askance.replay.lines import Picture, check_form, parse_line, picture_of, record_of
from askance.replay.records import Record, RecordKind, Records
from askance.replay.selection import select

if TYPE_CHECKING:
    from typing import BinaryIO

MAX_LINE = 64 * 2**20
"""Longest line that is read, in bytes."""


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """What an import did."""

    new: int = 0
    same: int = 0
    """Records whose answer the store had already."""
    conflicting: tuple[str, ...] = ()
    """Keys that the store has with another answer."""
    replaced: bool = False
    """Whether the cassette's answer took the place of the store's where they conflict."""


def export_cassette(
    records: Iterable[Record],
    target: Path | str | TextIO,
    *,
    images: Mapping[str, bytes] | None = None,
    kind: RecordKind | None = None,
    model: str | None = None,
    keys: Collection[str] | None = None,
    since: str | None = None,
) -> int:
    """Write records, or those that `askance.replay.select` picks, as a cassette; returns how many.

    A file appears whole or not at all. `images` adds the source bytes, by sha256, of pictures that the records speak of.

    Raises:
        StoreError: the file cannot be written, or two records answer one request differently.
        UsageError: `since` is no date.
    """
    chosen = select(records, kind=kind, model=model, keys=keys, since=since)
    if not isinstance(records, Records):
        chosen = iter(sorted(chosen, key=lambda record: record.key))
    with _writing(target) as file:
        return _write(chosen, file, images or {})


def read_cassette(path: Path | str, *, check: bool = True) -> Iterator[Record]:
    """The records of a cassette, in the file's order, each key once.

    `check=False` believes the file: for one that ships with the package.

    Raises:
        CassetteError: a line is no record; the message names the line.
        StoreError: the file cannot be read.
    """
    return (entry for entry in _entries(path, check=check) if isinstance(entry, Record))


def read_pictures(path: Path | str) -> Iterator[Picture]:
    """The pictures whose bytes a cassette carries; each digest is checked.

    Raises:
        CassetteError: a line is no record and no picture; the message names the line.
        StoreError: the file cannot be read.
    """
    return (entry for entry in _entries(path, check=True) if isinstance(entry, Picture))


def import_cassette(path: Path | str, store: Records, *, overwrite: bool = False) -> ImportCounts:
    """Add a cassette's records to `store`; where the two answer differently, the store's stays unless `overwrite`.

    Every line is checked before the first is written: a broken cassette changes nothing.

    Raises:
        CassetteError: a line is no record; the message names the line.
        StoreError: the file cannot be read, or the store not written.
    """
    for _ in _entries(path, check=True):
        pass
    new, same, conflicting = 0, 0, list[str]()
    for record in read_cassette(path):
        kept = store.get(record.key)
        if kept is None:
            new += 1
        elif kept.response == record.response:
            same += 1
            continue
        else:
            conflicting.append(record.key)
        if kept is None or overwrite:
            store.put(record)
    return ImportCounts(new, same, tuple(conflicting), replaced=overwrite)


def _write(records: Iterator[Record], file: TextIO, images: Mapping[str, bytes]) -> int:
    count, last, wanted = 0, None, set[str]()
    for record in records:
        if last is not None and record.key == last.key:
            if record.response != last.response:
                msg = f"Two records answer the request {record.key[:12]!r}, and differently."
                raise StoreError(msg, hint="Export them apart.")
            continue
        file.write(f"{record.to_json()}\n")
        wanted.update(record.images.keys() & images.keys())
        count, last = count + 1, record
    for digest in sorted(wanted):
        file.write(f"{canonical_json(_picture_form(digest, images[digest]))}\n")
    return count


def _picture_form(digest: str, data: bytes) -> JsonObject:
    media_type = Image.from_bytes(data).info.media_type
    return {"image": {"sha256": digest, "media_type": media_type, "base64": b64encode(data).decode()}}


@contextmanager
def _writing(target: Path | str | TextIO) -> Iterator[TextIO]:
    """A text file that takes its name when it is complete; a stream is written as it is."""
    if not isinstance(target, (str, Path)):
        yield target
        return
    path = Path(target)
    try:
        with NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.absolute().parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                yield file  # pyright: ignore[reportReturnType]
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except BaseException:
                with suppress(OSError):
                    Path(file.name).unlink()
                raise
    except OSError as error:
        msg = f"The cassette {str(path)!r} cannot be written: {error.strerror or error}."
        raise StoreError(msg) from error


def _entries(path: Path | str, *, check: bool) -> Iterator[Record | Picture]:
    """Records, each key once, and pictures, in the file's order."""
    seen: dict[str, tuple[int, bytes]] = {}
    for number, form in _lines(Path(path), check=check):
        with _at(path, number):
            if not check:
                entry = None if "image" in form else Record.from_canonical(form)
            elif "image" in form:
                entry = picture_of(form)
            else:
                entry = _first_of(record_of(form), seen, number)
        if entry is not None:
            yield entry


def _first_of(record: Record, seen: dict[str, tuple[int, bytes]], number: int) -> Record | None:
    """The record, unless an earlier line holds it."""
    answer = sha256(canonical_json(record.response).encode("utf-8", "surrogatepass")).digest()
    first, other = seen.setdefault(record.key, (number, answer))
    if other != answer:
        msg = f"it answers the same request as line {first}, but differently"
        raise StoreError(msg, hint="Take one of the two lines out.")
    return record if first == number else None


def _lines(path: Path, *, check: bool) -> Iterator[tuple[int, JsonObject]]:
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
        raise StoreError(msg) from error


def _form(line: bytes, *, first: bool, check: bool) -> JsonObject | None:
    if len(line) > MAX_LINE:
        msg = f"it is longer than {MAX_LINE // 2**20} MB"
        raise StoreError(msg)
    try:
        text = line.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        msg = f"it is no UTF-8 text at byte {error.start + 1}"
        raise StoreError(msg) from error
    if not text.strip():
        return None
    form = parse_line(text)
    if check:
        check_form(form)
    return form


def _bounded(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(MAX_LINE + 1):
        yield line


@contextmanager
def _at(path: Path | str, number: int) -> Iterator[None]:
    """Says the file and the line of whatever is wrong with it."""
    try:
        yield
    except StoreError as error:
        msg = f"{path}, line {number}: {error.message.rstrip('.')}."
        raise CassetteError(msg, hint=error.hint or "Nothing was imported; mend the line or take it out.") from error
