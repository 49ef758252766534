"""Cassettes: records as JSON lines, the same on every machine.

A line is a record, or the bytes of a picture that records refer to. Lines are sorted by their keys, so that equal
records make equal files. A record holds no path and no secret, because a request holds none.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, TextIO, cast

from askance.chat import JsonObject, canonical_json
from askance.documents import UnreadableDocument, parse_json
from askance.errors import CassetteError, StoreError
from askance.images import Image
from askance.replay.maintenance import ImportCounts, add_records, select
from askance.replay.record import MAX_DIGITS, Record, RecordKind, Records, check_key, check_schema, plain_object
from askance.terminal import printable_json

MAX_LINE = 64 * 2**20
"""Longest line that is read, in bytes."""

MAX_VALUES = 1_000_000
"""Most values on a line: a few bytes of text can take a hundred bytes of memory."""


@dataclass(frozen=True, slots=True)
class RecordedPicture:
    """The source bytes of a picture, to which records refer by their digest."""

    sha256: str
    media_type: str
    data: bytes = field(repr=False)


class Cassette(Records):
    """The records of a cassette, open for reading only; each record is read when it is needed.

    The file is read through once, at the first access. Only the offsets of its lines are kept in memory.

    Args:
        path: of the file.
        check: whether each line is checked; False is for a file that this machine wrote. A record that is read must
            have the form of one, and the key that was looked for, in either case.
    """

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
            StoreError: the file cannot be read, or was changed since the first access.
        """
        place = self._offsets.get(key)
        if place is None:
            return None
        with _open_for_reading(self._path) as file:
            file.seek(place)
            line = file.readline(MAX_LINE)
        form = None
        with suppress(StoreError):
            form = _parse(line, first=place == 0, check=False)
        if form is None or form.get("key") != key:
            raise StoreError(
                f"The cassette {self.name!r} was changed while it was read.", hint="The same command reads it anew."
            )
        return Record.from_canonical(form)

    def keys(self) -> Iterator[str]:
        """The keys, sorted."""
        return iter(sorted(self._offsets))

    def __len__(self) -> int:
        return len(self._offsets)

    def of_kind(self, kind: RecordKind, /) -> Iterator[Record]:
        """The records of one kind, in the file's order."""
        return (record for key in self._offsets if (record := self.get(key)) is not None and record.kind == kind)

    @cached_property
    def _offsets(self) -> dict[str, int]:
        """By key, the byte at which the record's line begins."""
        entries = _entries(self._path, check=self._check)
        return {entry.key: place for place, entry in entries if isinstance(entry, Record)}


def read_cassette(path: Path | str, *, check: bool = True) -> Iterator[Record]:
    """The records of a cassette, in the file's order, each key once.

    `check=False` skips the checks: for a file that ships with the package.

    Raises:
        CassetteError: a line is no record, or contradicts an earlier one; the message names the line.
        StoreError: the file cannot be read.
    """
    return (entry for _, entry in _entries(Path(path), check=check) if isinstance(entry, Record))


def read_pictures(path: Path | str) -> Iterator[RecordedPicture]:
    """The pictures whose bytes a cassette holds; everything in the file is checked, their digests too.

    Raises:
        CassetteError: a line is no record and no picture; the message names the line.
        StoreError: the file cannot be read.
    """
    return (entry for _, entry in _entries(Path(path), check=True) if isinstance(entry, RecordedPicture))


def check_cassette(path: Path | str) -> None:
    """Reads and checks a whole cassette, and keeps nothing of it.

    Raises:
        CassetteError: a line is no record and no picture; the message names the line.
        StoreError: the file cannot be read.
    """
    for _ in _entries(Path(path), check=True):
        pass


def export_cassette(
    records: Iterable[Record],
    target: Path | str | TextIO,
    *,
    images: Mapping[str, bytes] | None = None,
    kind: RecordKind | None = None,
    model: str | None = None,
    keys: Collection[str] | None = None,
    since: str | None = None,
    ordered: bool = False,
) -> int:
    """Write records, or those that `askance.replay.select` picks, as a cassette; returns how many.

    A file appears whole or not at all. A stream may be a terminal: characters that would move its cursor or hide text
    are written as JSON escapes. Records that are `ordered` by their keys, and those of a store, are written one by one
    and not collected first. `images` adds the source bytes, by sha256, of pictures that records refer to.

    Raises:
        StoreError: the file cannot be written, or two records answer one request differently.
        UsageError: `since` is no date.
        BadImage: bytes in `images` are no picture.
    """
    chosen = select(records, kind=kind, model=model, keys=keys, since=since)
    if not ordered and not isinstance(records, Records):
        chosen = iter(sorted(chosen, key=lambda record: record.key))
    shown = str if isinstance(target, (str, Path)) else printable_json
    with _open_for_writing(target) as file:
        return _write(chosen, file, images or {}, shown=shown)


def import_cassette(path: Path | str, store: Records, *, overwrite: bool = False) -> ImportCounts:
    """Adds a cassette's records to `store`; where answers differ, the store's answer stays unless `overwrite`.

    Every line is checked before the first is written: a broken cassette changes nothing.

    Raises:
        CassetteError: a line is no record; the message names the line.
        StoreError: the file cannot be read, or the store not written.
    """
    check_cassette(path)
    return add_records(read_cassette(path, check=False), store, overwrite=overwrite)


def _parse_line(text: str, *, check: bool = True) -> JsonObject:
    """The JSON object on a line.

    Raises:
        StoreError: no JSON object; or, with `check`, a name given twice, a number that is too large or not JSON (NaN),
            or too many values or levels.
    """
    if check and sum(map(text.count, ",[{")) > MAX_VALUES:
        msg = f"it holds more than {MAX_VALUES} values"
        raise StoreError(msg)
    try:
        form: object = parse_json(text, finite=check, unique=check, max_digits=MAX_DIGITS)
    except UnreadableDocument as error:
        raise StoreError(f"it {error}") from error
    if not isinstance(form, dict):
        msg = "it is no JSON object"
        raise StoreError(msg)
    return plain_object(cast("JsonObject", form)) if check else cast("JsonObject", form)


def _read_picture(form: Mapping[str, Any]) -> RecordedPicture:
    """The picture on a line that has passed the schema.

    Raises:
        StoreError: the bytes are not those of the digest.
    """
    image = form["image"]
    try:
        data = b64decode(image["base64"], validate=True)
    except (Base64Error, ValueError) as error:
        msg = f"the bytes of picture {image['sha256'][:12]!r} are no base64"
        raise StoreError(msg) from error
    if sha256(data).hexdigest() != image["sha256"]:
        msg = f"the bytes of picture {image['sha256'][:12]!r} have another digest"
        raise StoreError(msg)
    return RecordedPicture(image["sha256"], image["media_type"], data)


def _entries(path: Path, *, check: bool) -> Iterator[tuple[int, Record | RecordedPicture]]:
    """The entry of each line with the offset of the line; a record that is there twice is given once."""
    seen: dict[str, tuple[int, bytes]] = {}
    for number, (place, line) in enumerate(_read_lines(path), 1):
        with _located_errors(path, number):
            form = _parse(line, first=place == 0, check=check)
            entry = None if form is None else _entry(form, seen, number, check=check)
        if entry is not None:
            yield place, entry


def _entry(
    form: JsonObject, seen: dict[str, tuple[int, bytes]], number: int, *, check: bool
) -> Record | RecordedPicture | None:
    """The entry of a line; None for a record that an earlier line holds, and for an unchecked picture."""
    if "image" in form:
        return _read_picture(form) if check else None
    record, answer = Record.from_canonical(form), b""
    if check:
        check_key(record)
        answer = sha256(canonical_json(record.response).encode("utf-8", "surrogatepass")).digest()
    first, other = seen.setdefault(record.key, (number, answer))
    if other != answer:
        msg = f"it answers the same request as line {first}, but differently"
        raise StoreError(msg, hint="Take one of the two lines out.")
    return record if first == number else None


def _read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, each with the byte at which it begins."""
    place = 0
    with _open_for_reading(path) as file:
        while line := file.readline(MAX_LINE + 1):
            yield place, line
            place += len(line)


@contextmanager
def _open_for_reading(path: Path) -> Generator[BinaryIO]:
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


def _parse(line: bytes, *, first: bool, check: bool) -> JsonObject | None:
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
    form = _parse_line(text, check=check)
    if check:
        check_schema(form)
    return form


@contextmanager
def _located_errors(path: Path, number: int) -> Generator[None]:
    """Adds the file and the line number to an error."""
    try:
        yield
    except StoreError as error:
        msg = f"{str(path)!r}, line {number}: {error.message.rstrip('.')}."
        raise CassetteError(msg, hint=error.hint or "Mend the line, or take it out.") from error


def _write(records: Iterator[Record], file: TextIO, images: Mapping[str, bytes], *, shown: Callable[[str], str]) -> int:
    count, last, wanted = 0, None, set[str]()
    for record in records:
        if last is None or record.key != last.key:
            file.write(f"{shown(record.to_json())}\n")
            wanted.update({sent.get("source", key) for key, sent in record.images.items()} & images.keys())
            count, last = count + 1, record
        elif record.response != last.response:
            msg = f"Two records answer the request {record.key[:12]!r}, and differently."
            raise StoreError(msg, hint="Export them apart.")
    file.writelines(f"{canonical_json(_picture_line(digest, images[digest]))}\n" for digest in sorted(wanted))
    return count


def _picture_line(digest: str, data: bytes) -> JsonObject:
    media_type = Image.from_bytes(data).info.media_type
    return {"image": {"sha256": digest, "media_type": media_type, "base64": b64encode(data).decode()}}


@contextmanager
def _open_for_writing(target: Path | str | TextIO) -> Generator[TextIO]:
    """A text file that gets its name when it is complete; or the stream itself."""
    if not isinstance(target, (str, Path)):
        yield target
        return
    path = Path(target)
    partial = path.with_name(f".{path.name}.{token_hex(4)}")
    try:
        with partial.open("x", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        msg = f"The cassette {str(path)!r} cannot be written: {error.strerror or error}."
        raise StoreError(msg, hint="Name a file in a folder that is there, can be written, and has room.") from error
    finally:
        with suppress(OSError):
            partial.unlink()
