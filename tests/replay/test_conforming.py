"""Every store does what `askance.testing` says, and each check can fail."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from askance.errors import DamagedRecord, UsageError
from askance.replay import Budget, MemoryStore, Record, RecordKind, Records, SqliteLedger, open_records
from askance.replay.store import Store
from askance.testing import Check, NotConforming, RecordsFactory, check_records, record_checks


class InFolders:
    """Records in folders."""

    def __init__(self, folder: Path, opened: Callable[..., Records] = open_records) -> None:
        self.folder = folder
        self.opened = opened

    def open(self, name: str, /, *, read_only: bool = False) -> Records:
        return self.opened(self.folder / name, read_only=read_only)

    def damage(self, name: str, key: str, /) -> None:
        with closing(sqlite3.connect(self.folder / name / "cache.db", isolation_level=None)) as file:
            file.execute("UPDATE Cache SET value = '{}' WHERE key = ?", (key,))


class InMemory:
    """Records in the memory of this process."""

    def __init__(self, made: type[MemoryStore] = MemoryStore) -> None:
        self.made = made
        self.opened: dict[str, MemoryStore] = {}

    def open(self, name: str, /, *, read_only: bool = False) -> Records:
        records = self.opened.setdefault(name, self.made(name=name))
        return self.made([*records], name=name, writable=False) if read_only else records

    def damage(self, name: str, key: str, /) -> None:
        raise AssertionError(name, key)


NOT_IN_MEMORY = {"damaged", "pickle", "leases", "ledger"}


@pytest.mark.parametrize("check", record_checks(), ids=str)
async def test_the_store_on_disk_conforms(check: Check[RecordsFactory], tmp_path: Path) -> None:
    await check(InFolders(tmp_path))


@pytest.mark.parametrize("check", record_checks(cannot=NOT_IN_MEMORY), ids=str)
async def test_records_in_memory_conform(check: Check[RecordsFactory]) -> None:
    await check(InMemory())


async def test_the_whole_table(tmp_path: Path) -> None:
    await check_records(InFolders(tmp_path))


def test_an_unknown_check_is_named() -> None:
    with pytest.raises(UsageError, match=r"^No check is called 'lease'\. Known: empty, get, get all, "):
        record_checks(cannot={"lease"})


async def test_what_records_in_memory_cannot_do_is_named() -> None:
    with pytest.raises(NotConforming) as caught:
        await check_records(InMemory(), cannot={"damaged"})

    assert {line.split(":")[0] for line in str(caught.value).splitlines()} == NOT_IN_MEMORY - {"damaged"}


# ---- broken stores ---------------------------------------------------------------------------------------------------


class Nameless(MemoryStore):
    """Says not where its records are."""

    @property
    def name(self) -> str:
        return ""


class Rounding(MemoryStore):
    """Keeps all numbers as floats."""

    def get(self, key: str, /) -> Record | None:
        record = super().get(key)
        if record is None or "numbers" not in record.response:
            return record
        numbers = [float(number) for number in record.response["numbers"]]
        return Record.make(record.kind, record.request, {**record.response, "numbers": numbers}, at=record.at)


class Unordered(MemoryStore):
    """Gives many records as they were put."""

    def get_all(self, keys: Iterable[str], /) -> dict[str, Record]:
        wanted = {*keys}
        return {record.key: record for record in self if record.key in wanted}


class Suspicious(MemoryStore):
    """Answers no request that it has not compared."""

    def answer(self, key: str, asked: str, /) -> dict[str, object] | None:
        return None if asked == "{}" else super().answer(key, asked)


class Stubborn(MemoryStore):
    """Keeps the first record of a key."""

    def put_all(self, records: Iterable[Record], /) -> None:
        super().put_all([record for record in records if self.get(record.key) is None])


class Careless(MemoryStore):
    """Keeps what comes before a false record."""

    def put_all(self, records: Iterable[Record], /) -> None:
        for record in records:
            super().put_all([record])


class Shuffled(MemoryStore):
    """Gives records as they were put."""

    def keys(self) -> Iterator[str]:
        return reversed([*super().keys()])


class Mixed(MemoryStore):
    """Gives the records of a kind sorted by key."""

    def of_kind(self, kind: RecordKind, /) -> Iterator[Record]:
        return (record for record in self if record.kind == kind)


class Hoarding(MemoryStore):
    """Removes nothing."""

    def remove(self, keys: Iterable[str], /) -> None: ...


class Open(MemoryStore):
    """Is written although it is open for reading only."""

    def __init__(self, records: Iterable[Record] = (), *, name: str = "memory", writable: bool = True) -> None:
        super().__init__(records, name=name)


class Apart(MemoryStore):
    """Forgets at the end what was put."""

    def close(self) -> None:
        self._records.clear()


class Homeless(MemoryStore):
    """Has a place for files without a folder."""

    def beside(self, name: str, /) -> Path:
        return Path(name)


BROKEN: dict[type[MemoryStore], set[str]] = {
    Nameless: {"empty"},
    Rounding: {"get"},
    Unordered: {"get all"},
    Suspicious: {"answer"},
    Stubborn: {"same key", "shared"},
    Careless: {"all or none"},
    Shuffled: {"order"},
    Mixed: {"kinds"},
    Hoarding: {"remove", "read only"},
    Open: {"read only"},
    Apart: {"closed", "read only"},
    Homeless: {"folder"},
}


@pytest.mark.parametrize(("made", "failed"), BROKEN.items(), ids=[made.__name__ for made in BROKEN])
async def test_a_broken_store_fails_the_check(made: type[MemoryStore], failed: set[str]) -> None:
    with pytest.raises(NotConforming) as caught:
        await check_records(InMemory(made), cannot=NOT_IN_MEMORY)

    assert {line.split(":")[0] for line in str(caught.value).splitlines()} == failed


class Blind(Store):
    """Takes a damaged record for none."""

    def get(self, key: str, /) -> Record | None:
        try:
            return super().get(key)
        except DamagedRecord:
            return None


class Alone(Store):
    """Has no leases."""

    def leases(self) -> None:
        return None


class Lavish(Store):
    """Has a budget for each who opens it."""

    def ledger(self, name: str, budget: Budget, /) -> SqliteLedger:
        return super().ledger(f"{name}-{id(self)}", budget)


BROKEN_ON_DISK: dict[type[Store], str] = {Blind: "damaged", Alone: "leases", Lavish: "ledger"}


@pytest.mark.parametrize(("made", "failed"), BROKEN_ON_DISK.items(), ids=[made.__name__ for made in BROKEN_ON_DISK])
async def test_a_broken_store_on_disk_fails_the_check(made: type[Store], failed: str, tmp_path: Path) -> None:
    with pytest.raises(NotConforming, match=rf"^{failed}: [^\n]*$"):
        await check_records(InFolders(tmp_path, made.open))
