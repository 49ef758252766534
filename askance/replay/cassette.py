"""Cassettes: records as JSON lines, the same on every machine.

A line is a record, or the bytes of a picture that records speak of. Lines stand in the order of their keys, so that
equal records make equal files; a record holds no path and no secret, because a request holds none.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TextIO

from askance.chat import JsonObject, canonical_json
from askance.errors import DamagedRecord, StoreError
from askance.images import Image
from askance.replay.reading import check_cassette, read_cassette
from askance.replay.records import Record, RecordKind, Records
from askance.replay.selection import select
from askance.terminal import printable_json


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCounts:
    """What an import did."""

    new: int = 0
    same: int = 0
    """Records whose answer the store had already."""
    conflicting: tuple[str, ...] = ()
    """Keys for which the store had another answer."""
    replaced: bool = False
    """Whether the cassette's answer took the place of the store's where they conflict."""
    mended: int = 0
    """Damaged records of the store whose place was taken."""
    damaged: int = 0
    """Records that were left out because they are damaged; an import leaves none out."""


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

    A file appears whole or not at all. A stream may lead to a terminal: marks that would move its cursor or hide text
    are escaped in it, as JSON allows. Records that come `ordered` by their keys are written as they come, and not held;
    so are those of a store. `images` adds the source bytes, by sha256, of pictures that records speak of.

    Raises:
        StoreError: the file cannot be written, or two records answer one request differently.
        UsageError: `since` is no date.
        BadImage: bytes in `images` are no picture.
    """
    chosen = select(records, kind=kind, model=model, keys=keys, since=since)
    if not ordered and not isinstance(records, Records):
        chosen = iter(sorted(chosen, key=lambda record: record.key))
    shown = str if isinstance(target, (str, Path)) else printable_json
    with _writing(target) as file:
        return _write(chosen, file, images or {}, shown=shown)


def import_cassette(path: Path | str, store: Records, *, overwrite: bool = False) -> ImportCounts:
    """Add a cassette's records to `store`; where the two answer differently, the store's stays unless `overwrite`.

    Every line is checked before the first is written: a broken cassette changes nothing.

    Raises:
        CassetteError: a line is no record; the message names the line.
        StoreError: the file cannot be read, or the store not written.
    """
    check_cassette(path)
    return take_in(read_cassette(path, check=False), store, overwrite=overwrite)


def take_in(records: Iterable[Record], store: Records, *, overwrite: bool) -> ImportCounts:
    """Put checked `records` into `store`; where both answer, the store's answer stays unless `overwrite`.

    What is damaged in `store` answers nothing, and a record with the same key takes its place.
    """
    new, same, mended, conflicting = 0, 0, 0, list[str]()
    for record in records:
        try:
            kept = store.get(record.key)
        except DamagedRecord:
            mended += 1
            store.put(record)
            continue
        if kept is None:
            new += 1
        elif kept.response == record.response:
            same += 1
        else:
            conflicting.append(record.key)
        if kept is None or (overwrite and kept.response != record.response):
            store.put(record)
    return ImportCounts(new=new, same=same, mended=mended, conflicting=tuple(conflicting), replaced=overwrite)


def _write(records: Iterator[Record], file: TextIO, images: Mapping[str, bytes], *, shown: Callable[[str], str]) -> int:
    count, last, wanted = 0, None, set[str]()
    for record in records:
        if last is None or record.key != last.key:
            file.write(f"{shown(record.to_json())}\n")
            wanted.update(record.images.keys() & images.keys())
            count, last = count + 1, record
        elif record.response != last.response:
            msg = f"Two records answer the request {record.key[:12]!r}, and differently."
            raise StoreError(msg, hint="Export them apart.")
    file.writelines(f"{canonical_json(_picture_form(digest, images[digest]))}\n" for digest in sorted(wanted))
    return count


def _picture_form(digest: str, data: bytes) -> JsonObject:
    media_type = Image.from_bytes(data).info.media_type
    return {"image": {"sha256": digest, "media_type": media_type, "base64": b64encode(data).decode()}}


@contextmanager
def _writing(target: Path | str | TextIO) -> Generator[TextIO]:
    """A text file that takes its name when it is complete; a stream is written as it is."""
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
