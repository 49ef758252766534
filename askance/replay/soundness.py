"""The part of a store that can be used, where a part is worth having."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from askance.errors import DamagedRecord, StoreError
from askance.replay.store import sound
from askance.replay.verifying import check_record

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.replay.records import Record, RecordKind, Records


class Sound:
    """The records of a holder without those that are damaged, which are counted; for reading only.

    Args:
        records: the holder.
        check: leave out all that `verify` finds, as what is passed on should; otherwise only what cannot be read.
    """

    def __init__(self, records: Records, *, check: bool = False) -> None:
        self._records = records
        self._check = check
        self._damaged = set[str]()

    @property
    def left_out(self) -> int:
        """How many damaged records were met so far."""
        return len(self._damaged)

    @property
    def name(self) -> str:
        """What to call the holder in a message."""
        return self._records.name

    @property
    def writable(self) -> bool:
        """Never: whoever writes asks the holder."""
        return False

    def get(self, key: str, /) -> Record | None:
        """The record with this key; None where there is none, or a damaged one."""
        try:
            record = self._records.get(key)
        except DamagedRecord:
            self._damaged.add(key)
            return None
        return None if record is None else next(self._kept((record,)), None)

    @property
    def folder(self) -> None:
        """None: nothing is kept here."""

    def leases(self) -> None:
        """None: nothing is asked for here."""

    def answer(self, key: str, _asked: str, /) -> JsonObject | None:
        """The response to the request with this key; None where it is not on record, or damaged."""
        record = self.get(key)
        return None if record is None else record.response

    def put(self, record: Record, /) -> None:
        """Refused.

        Raises:
            StoreError: always.
        """
        msg = f"The record {record.key[:12]!r} cannot be put where only sound records are read."
        raise StoreError(msg, hint="Put it into the store itself.")

    def put_all(self, records: Iterable[Record], /) -> None:
        """Refused.

        Raises:
            StoreError: always.
        """
        for record in records:
            self.put(record)

    def keys(self) -> Iterator[str]:
        """The keys of sound records, in their order; each record is read for it."""
        return (record.key for record in self)

    def __iter__(self) -> Iterator[Record]:
        """The sound records, in the order of their keys."""
        return self._kept(sound(self._records, damaged=self._damaged))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def of_kind(self, kind: RecordKind, /) -> Iterator[Record]:
        """The sound records of one kind, the first kept first."""
        return self._kept(sound(self._records, kind, damaged=self._damaged))

    def _kept(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            try:
                if self._check:
                    check_record(record)
            except StoreError:
                self._damaged.add(record.key)
            else:
                yield record
