"""Looking after stores: what differs between two, taking one into another, and taking out what nobody needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

from askance.errors import DamagedRecord, StoreError, UsageError
from askance.replay.cassette import ImportCounts, take_in
from askance.replay.selection import moment, name_pattern
from askance.replay.soundness import Sound
from askance.replay.store import Store, sound
from askance.replay.verifying import check_record, verify

if TYPE_CHECKING:
    from askance.replay.records import Record, Records


@dataclass(frozen=True, slots=True)
class Change:
    """One request that two holders of records do not answer alike."""

    where: Literal["first", "second", "both"]
    """Who has an answer; `both` have one and they differ."""
    key: str
    first: Record | None
    second: Record | None


def diff(first: Records, second: Records) -> Iterator[Change]:
    """The requests that only one of the two has on record, or that they answer differently, in the order of the keys.

    Raises:
        StoreError: one of them cannot be read.
    """
    ours, theirs = iter(first.keys()), iter(second.keys())
    one, other = next(ours, None), next(theirs, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one < other):
            yield Change("first", one or "", first.get(one or ""), None)
            one = next(ours, None)
        elif one is None or other < one:
            yield Change("second", other, None, second.get(other))
            other = next(theirs, None)
        else:
            mine, yours = first.get(one), second.get(one)
            if mine is not None and yours is not None and mine.response != yours.response:
                yield Change("both", one, mine, yours)
            one, other = next(ours, None), next(theirs, None)


_SKIP_HINT = (
    "`askance cache merge --skip-damaged` takes the others in and leaves such records where they are; `askance cache "
    "verify` names all of them."
)


def merge(other: Records, into: Records, *, overwrite: bool = False, skip_damaged: bool = False) -> ImportCounts:
    """Take the records of `other` into a store; where the two answer differently, its own stay unless `overwrite`.

    Every record is checked before the first is written: a broken store changes nothing, unless `skip_damaged` says
    that what is sound of it is wanted all the same.

    Raises:
        DamagedRecord: a record of `other` cannot be read, or is not what it claims to be.
        StoreError: one of the two cannot be read or written.
    """
    if skip_damaged:
        theirs = Sound(other, check=True)
        return replace(take_in(theirs, into, overwrite=overwrite), damaged=theirs.left_out)
    try:
        for record in other:
            _refuse_damaged(record)
    except DamagedRecord as error:
        raise DamagedRecord(error.message, hint=_SKIP_HINT) from error
    return take_in(other, into, overwrite=overwrite)


def _refuse_damaged(record: Record) -> None:
    try:
        check_record(record)
    except StoreError as error:
        msg = f"The record {record.key[:12]!r} is damaged: {error.message.rstrip('.')}."
        raise DamagedRecord(msg, hint=_SKIP_HINT) from error


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was, or would be, taken out."""

    records: int
    size: int
    """Of their JSON text, in bytes; damaged ones are not counted."""


def prune(
    store: Store,
    *,
    older_than: str | None = None,
    model: str | None = None,
    used: Collection[str] | None = None,
    damaged: bool = False,
    try_only: bool = False,
) -> Pruned:
    """Take out the records that answer every description given; at least one has to be.

    Damaged ones answer none but `damaged`, which stands alone.

    Args:
        store: what to take them out of.
        older_than: a date, or an age such as `30d`, `12h`, `2w`; a record without a date is older than any.
        model: a part of the model's name, or a pattern with `*` and `?`.
        used: keys of records that stay, such as those of a run. What endpoints can do stays as well: a replay needs it.
        damaged: take out what `verify` finds to be no record, or not the one that it claims to be.
        try_only: count, and take nothing out.

    Raises:
        UsageError: no description, or one that cannot be read; or `damaged` and another one.
        StoreError: the store cannot be read or written.
    """
    if damaged:
        if (older_than, model, used) != (None, None, None):
            msg = "A damaged record has no date, model or run to go by."
            raise UsageError(msg, hint="Take the damaged ones out by themselves.")
        return _taken_out(store, [problem.key for problem in verify(store) if problem.key], 0, try_only=try_only)
    if older_than is None and model is None and used is None:
        msg = "Nothing says which records to take out."
        raise UsageError(msg, hint="Give an age, a model, or a run whose records are to stay.")
    wanted = _wanted(older_than, model, used)
    keys, size = list[str](), 0
    for record in sound(store):
        if wanted(record):
            keys.append(record.key)
            size += len(record.to_json().encode())
    return _taken_out(store, keys, size, try_only=try_only)


def _taken_out(store: Store, keys: list[str], size: int, *, try_only: bool) -> Pruned:
    if not try_only:
        store.remove(keys)
    return Pruned(len(keys), size)


def _wanted(older_than: str | None, model: str | None, used: Collection[str] | None) -> Callable[[Record], bool]:
    end = None if older_than is None else _before(older_than)
    pattern = None if model is None else name_pattern(model)
    kept = None if used is None else frozenset(used)
    return lambda record: (
        (end is None or record.at < end)
        and (pattern is None or fnmatchcase(record.model.casefold(), pattern))
        and (kept is None or (record.key not in kept and record.kind != "endpoint"))
    )


_UNITS: Mapping[str, timedelta] = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def _before(text: str) -> str:
    """The moment that a date or an age stands for."""
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.isascii() and number.isdigit() and len(number) < 7:
        try:
            return (datetime.now(UTC) - int(number) * _UNITS[unit]).strftime("%Y-%m-%dT%H:%M:%SZ")
        except OverflowError:
            return ""
    return moment(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What the answers on record have cost, and are worth to whoever would have to ask for them again."""

    dollars: float = 0.0
    models: Mapping[str, float] = field(default_factory=dict[str, float])
    """US dollars by model, the most first; models without a known price are not among them."""
    unpriced: Mapping[str, int] = field(default_factory=dict[str, int])
    """Records of which the cost is not known, by model: they are not free."""


def worth(records: Records, cost: Callable[[Record], float | None]) -> Worth:
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
    return Worth(dollars=sum(ordered.values()), models=ordered, unpriced=unpriced)
