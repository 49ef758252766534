"""Maintenance of records: select, count, verify, compare two stores, merge, prune, and what replays save."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import groupby, islice
from typing import Literal

from askance.chat import Usage
from askance.errors import DamagedRecord, StoreError, UsageError
from askance.replay.record import (
    BLOCK,
    Record,
    RecordKind,
    Records,
    check_record,
    in_blocks,
    record_time,
    refuse_damaged,
)


def select(
    records: Iterable[Record],
    *,
    kind: RecordKind | None = None,
    model: str | None = None,
    keys: Collection[str] | None = None,
    since: str | None = None,
) -> Iterator[Record]:
    """The records that match every condition given, in the order of `records` (with `keys`: sorted by key).

    `model` is a part of the model's name, or a pattern with `*` and `?`; `since` is a date or a time in ISO form, UTC
    where it has no zone; a record without a date is older than any.

    Raises:
        UsageError: `since` is no date.
    """
    start = "" if since is None else parse_time(since)
    pattern = None if model is None else name_pattern(model)
    return (
        record
        for record in _candidates(records, keys)
        if (kind is None or record.kind == kind)
        and record.at >= start
        and (pattern is None or fnmatchcase(record.model.casefold(), pattern))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Counts of records."""

    records: int
    size: int
    """Of their JSON text, in bytes."""
    kinds: Mapping[str, int] = field(default_factory=dict[str, int])
    models: Mapping[str, int] = field(default_factory=dict[str, int])
    outcomes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of chat records: how the call ended, before anyone read the text."""
    days: Mapping[str, int] = field(default_factory=dict[str, int])
    """By day, UTC, `2026-01-31`; empty where the record has no date."""


def stats(records: Iterable[Record]) -> Stats:
    """Counts by kind, model, outcome and day, each from the most to the fewest; days in their order."""
    count = size = 0
    kinds, models, outcomes, days = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for record in records:
        count += 1
        size += len(record.to_json().encode())
        kinds[record.kind] += 1
        models[record.model] += 1
        days[record.at[:10]] += 1
        if record.kind == "chat":
            outcomes[record.outcome] += 1
    return Stats(
        records=count,
        size=size,
        kinds=dict(kinds.most_common()),
        models=dict(models.most_common()),
        outcomes=dict(outcomes.most_common()),
        days=dict(sorted(days.items())),
    )


def _candidates(records: Iterable[Record], keys: Collection[str] | None) -> Iterator[Record]:
    if keys is None:
        return iter(records)
    if isinstance(records, Records):
        return (record for block in in_blocks(sorted(set(keys))) for record in records.get_all(block).values())
    wanted = frozenset(keys)
    return (record for record in records if record.key in wanted)


def name_pattern(model: str) -> str:
    """A pattern for `fnmatchcase` with the wildcards `*` and `?` alone; plain text matches any part of a name."""
    folded = model.casefold().replace("[", "[[]")
    return folded if "*" in folded or "?" in folded else f"*{folded}*"


def parse_time(text: str) -> str:
    """A date or a time in ISO form as records write it; UTC where it has no zone.

    Raises:
        UsageError: it is not a date.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"{text!r} is no date."
        raise UsageError(msg, hint="Write it as 2026-01-31 or 2026-01-31T12:00.") from error
    return record_time(time if time.tzinfo else time.replace(tzinfo=UTC))


class ValidRecords(Records):
    """A view of records without the damaged ones, which are counted; open for reading only.

    Args:
        records: what is viewed.
        check: leave out all that `verify` finds, as for an export; otherwise only what cannot be read.
    """

    def __init__(self, records: Records, *, check: bool = False) -> None:
        self._records = records
        self._check = check
        self._damaged = set[str]()

    @property
    def left_out(self) -> int:
        """How many damaged records were left out so far."""
        return len(self._damaged)

    @property
    def name(self) -> str:
        """What to call the holder in a message."""
        return self._records.name

    def get(self, key: str, /) -> Record | None:
        """The record with this key; None where there is none, or a damaged one."""
        try:
            record = self._records.get(key)
        except DamagedRecord:
            self._damaged.add(key)
            return None
        return None if record is None else next(self._valid((record,)), None)

    def keys(self) -> Iterator[str]:
        """The keys of valid records, in their order; each record is read for it."""
        return (record.key for record in self)

    def __iter__(self) -> Iterator[Record]:
        """The valid records, sorted by key."""
        return self._valid(self._records.readable(damaged=self._damaged))

    def of_kind(self, kind: RecordKind, /) -> Iterator[Record]:
        """The valid records of one kind, in the order in which they were added."""
        return self._valid(self._records.readable(kind, damaged=self._damaged))

    def _valid(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            try:
                if self._check:
                    check_record(record)
            except StoreError:
                self._damaged.add(record.key)
            else:
                yield record


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """One thing that is wrong with a store."""

    key: str
    """Of the record; empty where it is the file itself."""
    message: str
    usable: bool = False
    """Whether the record answers all the same; such a one is not damaged."""


def verify(records: Records) -> Iterator[RecordProblem]:
    """What is wrong with records: unreadable rows, keys that are not their request's, violations of the schema.

    Counts of tokens that no call can take are named as well, though their records are usable.

    Raises:
        StoreError: the store cannot be read at all.
    """
    yield from (RecordProblem("", message) for message in records.damages())
    for key in records.keys():  # noqa: SIM118 - a record that cannot be read has a key all the same
        try:
            record = records.get(key)
            if record is not None:
                check_record(record)
        except StoreError as error:
            yield RecordProblem(key, error.message)
        else:
            if record is not None and (impossible := _usage(record).impossible):
                words = f"It counts tokens that no call can take ({impossible}); they are read as unknown."
                yield RecordProblem(key, words, usable=True)


def _usage(record: Record) -> Usage:
    return Usage(**record.response.get("usage", {})) if record.kind == "chat" else Usage()


@dataclass(frozen=True, slots=True)
class RecordDifference:
    """One request that two stores do not answer alike."""

    key: str
    first: Record | None
    second: Record | None

    @property
    def where(self) -> Literal["first", "second", "both"]:
        """Which store has an answer; `both` where they differ."""
        if self.second is None:
            return "first"
        return "second" if self.first is None else "both"


def diff(first: Records, second: Records) -> Iterator[RecordDifference]:
    """The requests that only one of the two has on record, or that they answer differently, sorted by key.

    Raises:
        StoreError: one of them cannot be read.
    """
    for key, _ in groupby(heapq.merge(first.keys(), second.keys())):
        difference = RecordDifference(key, first.get(key), second.get(key))
        if difference.where != "both" or _answers_differ(difference):
            yield difference


def _answers_differ(difference: RecordDifference) -> bool:
    return (
        difference.first is not None
        and difference.second is not None
        and difference.first.response != difference.second.response
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCounts:
    """How many records an import added, replaced and left out."""

    new: int = 0
    same: int = 0
    """Records whose answer the store had already."""
    conflicting: tuple[str, ...] = ()
    """Keys for which the store had another answer."""
    replaced: bool = False
    """Whether the new answers replaced the store's where they conflict."""
    mended: int = 0
    """Damaged records of the store that were replaced."""
    damaged: int = 0
    """Records that were left out because they are damaged; an import leaves none out."""


def add_records(records: Iterable[Record], store: Records, *, overwrite: bool) -> ImportCounts:
    """Adds checked `records` to `store`, in blocks; where answers differ, the store's answer stays unless `overwrite`.

    A damaged record of `store` is replaced by one with the same key.
    """
    new, same, mended, conflicting = 0, 0, 0, list[str]()
    rest = iter(records)
    while block := {record.key: record for record in islice(rest, BLOCK)}:
        there, damaged = _readable(store, block)
        others = {key for key, old in there.items() if old.response != block[key].response}
        writing = [record for key, record in block.items() if key not in there or (overwrite and key in others)]
        if writing:
            store.put_all(writing)
        new += len(block) - len(there) - len(damaged)
        same += len(there) - len(others)
        mended += len(damaged)
        conflicting += [key for key in block if key in others]
    return ImportCounts(new=new, same=same, mended=mended, conflicting=tuple(conflicting), replaced=overwrite)


def _readable(store: Records, keys: Iterable[str]) -> tuple[dict[str, Record], set[str]]:
    """Those of the records that can be read, and the keys of those that are damaged."""
    wanted = [*keys]
    with suppress(DamagedRecord):
        return store.get_all(wanted), set()
    there, damaged = dict[str, Record](), set[str]()
    for key in wanted:
        try:
            there |= store.get_all([key])
        except DamagedRecord:
            damaged.add(key)
    return there, damaged


_SKIP_HINT = (
    "`askance cache merge --skip-damaged` takes the others in and leaves such records where they are; `askance cache "
    "verify` names all of them."
)


def merge(other: Records, into: Records, *, overwrite: bool = False, skip_damaged: bool = False) -> ImportCounts:
    """Adds the records of `other` to a store; where answers differ, the store's own stay unless `overwrite`.

    Every record is checked before the first is written: a damaged one changes nothing, unless `skip_damaged` says to
    add the others all the same.

    Raises:
        DamagedRecord: a record of `other` cannot be read, or is not what it claims to be.
        StoreError: one of the two cannot be read or written.
    """
    if skip_damaged:
        theirs = ValidRecords(other, check=True)
        return replace(add_records(theirs, into, overwrite=overwrite), damaged=theirs.left_out)
    try:
        for record in other:
            refuse_damaged(record, hint=_SKIP_HINT)
    except DamagedRecord as error:
        raise DamagedRecord(error.message, hint=_SKIP_HINT) from error
    return add_records(other, into, overwrite=overwrite)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCounts:
    """What a copy of all records came to, once it was read back."""

    counts: ImportCounts
    digest: str
    """sha256 of the records of the source as they stand in the target, as lines of a cassette, sorted by key."""
    source_digest: str
    """The same of the source; another one where the target had other answers, which stay."""

    @property
    def whole(self) -> bool:
        """Whether the target gives what the source has."""
        return self.digest == self.source_digest


def copy(source: Records, target: Records) -> CopyCounts:
    """Adds all records of one store to another, and reads them back; answers that the target has stay.

    Every record is checked before the first is written.

    Raises:
        DamagedRecord: a record of the source is not what it claims to be; nothing was copied.
        StoreError: one of the two cannot be read or written.
    """
    counts = merge(source, target)
    theirs, ours = sha256(), sha256()
    rest = iter(source)
    while block := {record.key: record for record in islice(rest, BLOCK)}:
        written = target.get_all(block)
        for key, record in block.items():
            theirs.update(f"{record.to_json()}\n".encode())
            if key in written:
                ours.update(f"{written[key].to_json()}\n".encode())
    return CopyCounts(counts=counts, digest=ours.hexdigest(), source_digest=theirs.hexdigest())


@dataclass(frozen=True, slots=True)
class PruneCounts:
    """How many records were removed, or would be."""

    records: int
    size: int
    """Of their JSON text, in bytes; damaged ones are not counted."""


def prune(
    store: Records,
    *,
    older_than: str | None = None,
    model: str | None = None,
    used: Collection[str] | None = None,
    damaged: bool = False,
    try_only: bool = False,
) -> PruneCounts:
    """Removes the records that match every condition given; at least one is required.

    Damaged records match `damaged` alone, which cannot be combined with another condition.

    Args:
        store: where to remove them.
        older_than: a date, or an age such as `30d`, `12h`, `2w`; a record without a date is older than any.
        model: a part of the model's name, or a pattern with `*` and `?`.
        used: keys of records that stay, such as those of a run. Records of what endpoints can do stay as well, since
            a replay needs them.
        damaged: remove what `verify` finds.
        try_only: count, and remove nothing.

    Raises:
        UsageError: no condition, or one that cannot be read; or `damaged` and another one.
        StoreError: the store cannot be read or written.
    """
    if damaged:
        if (older_than, model, used) != (None, None, None):
            msg = "A damaged record has no date, model or run to go by."
            raise UsageError(msg, hint="Take the damaged ones out by themselves.")
        return _remove(store, _damaged(store), 0, try_only=try_only)
    if older_than is None and model is None and used is None:
        msg = "Nothing says which records to take out."
        raise UsageError(msg, hint="Give an age, a model, or a run whose records are to stay.")
    wanted = _prune_filter(older_than, model, used)
    keys, size = list[str](), 0
    for record in store.readable():
        if wanted(record):
            keys.append(record.key)
            size += len(record.to_json().encode())
    return _remove(store, keys, size, try_only=try_only)


def _damaged(store: Records) -> list[str]:
    return [problem.key for problem in verify(store) if problem.key and not problem.usable]


def _remove(store: Records, keys: list[str], size: int, *, try_only: bool) -> PruneCounts:
    if not try_only:
        store.remove(keys)
    return PruneCounts(len(keys), size)


def _prune_filter(older_than: str | None, model: str | None, used: Collection[str] | None) -> Callable[[Record], bool]:
    end = None if older_than is None else end_of_age(older_than)
    pattern = None if model is None else name_pattern(model)
    used_keys = None if used is None else frozenset(used)
    return lambda record: (
        (end is None or record.at < end)
        and (pattern is None or fnmatchcase(record.model.casefold(), pattern))
        and (used_keys is None or (record.key not in used_keys and record.kind != "endpoint"))
    )


_UNITS: Mapping[str, timedelta] = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def end_of_age(text: str) -> str:
    """The time of a date or an age, as records write it."""
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.isascii() and number.isdigit() and len(number) < 7:
        try:
            return record_time(datetime.now(UTC) - int(number) * _UNITS[unit])
        except OverflowError:
            return ""
    return parse_time(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """What the recorded answers have cost, which is what replaying them saves."""

    dollars: float = 0.0
    models: Mapping[str, float] = field(default_factory=dict[str, float])
    """US dollars by model, the most first; models without a known price are not among them."""
    unpriced: Mapping[str, int] = field(default_factory=dict[str, int])
    """Records of which the cost is not known, by model: they are not free."""


def savings(records: Records, cost: Callable[[Record], float | None]) -> Savings:
    """The sum of what the chat records cost; `cost` gives US dollars for a record, None where that is not known.

    Raises:
        StoreError: the records cannot be read.
    """
    dollars, unpriced = dict[str, float](), dict[str, int]()
    for record in records.of_kind("chat"):
        paid = cost(record)
        if paid is None:
            unpriced[record.model] = unpriced.get(record.model, 0) + 1
        else:
            dollars[record.model] = dollars.get(record.model, 0.0) + paid
    ordered = dict(sorted(dollars.items(), key=lambda item: -item[1]))
    return Savings(dollars=sum(ordered.values()), models=ordered, unpriced=unpriced)
