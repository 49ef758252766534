"""Holding every record of a store against what it claims to be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from askance.errors import StoreError
from askance.replay.lines import check_form
from askance.replay.records import Record, Records, check_key, plain_object
from askance.replay.store import Store


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a store."""

    key: str
    """Of the record; empty where it is the file itself."""
    message: str


def verify(records: Records) -> Iterator[Problem]:
    """What is wrong: rows that cannot be read, keys that are not their request's, forms that do not fit the schema.

    Raises:
        StoreError: the store cannot be read at all.
    """
    if isinstance(records, Store):
        yield from (Problem("", message) for message in records.damages())
    for key in records.keys():  # noqa: SIM118 - a record that cannot be read has a key all the same
        try:
            record = records.get(key)
            if record is not None:
                check_record(record)
        except StoreError as error:
            yield Problem(key, error.message)


def check_record(record: Record) -> None:
    """Refuse a record that could be read and is not what it claims to be.

    Raises:
        StoreError: the key is not its request's, or its form does not fit the schema.
    """
    check_key(record)
    check_form(plain_object(record.canonical()))
