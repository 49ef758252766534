"""Picking records, and counting them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from askance.errors import UsageError
from askance.replay.records import Record, RecordKind, Records


def select(
    records: Iterable[Record],
    *,
    kind: RecordKind | None = None,
    model: str | None = None,
    keys: Collection[str] | None = None,
    since: str | None = None,
) -> Iterator[Record]:
    """The records that answer every description given, in the order of `records` (keys: in their own order).

    `model` is a part of the model's name, or a pattern with `*` and `?`; `since` is a date or a time in ISO form, UTC
    where it has no zone; a record without a date is older than any.

    Raises:
        UsageError: `since` is no date.
    """
    start = "" if since is None else moment(since)
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
        found = (records.get(key) for key in sorted(set(keys)))
        return (record for record in found if record is not None)
    wanted = frozenset(keys)
    return (record for record in records if record.key in wanted)


def name_pattern(model: str) -> str:
    """A pattern that matches whole names; only `*` and `?` mean anything in it."""
    folded = model.casefold().replace("[", "[[]")
    return folded if "*" in folded or "?" in folded else f"*{folded}*"


def moment(text: str) -> str:
    """A date or a time in ISO form as records write it; UTC where it has no zone.

    Raises:
        UsageError: it is none.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"{text!r} is no date."
        raise UsageError(msg, hint="Write it as 2026-01-31 or 2026-01-31T12:00.") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
