"""How far a corpus is that workers read: by receipts, and by the lines of shards under way. Nothing is written."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from askance.evals.analysis.asked_cost import sum_of
from askance.replay.sqlite_ledger import balance_in

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.replay import Cost
    from askance.scale.shards import Receipt, ShardedCorpus


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusStatus:
    """How far a corpus is, by its receipts and the lines of the shards under way."""

    pictures: int
    read: int
    """Pictures with an outcome, those of shards under way included."""
    shards: int
    done: int
    """Shards with a receipt."""
    outcomes: Mapping[str, int]
    """Of the shards that are done, as all that follows."""
    repeats: int
    """Pictures that are copies of others of their shard."""
    calls: int
    replayed: int
    dollars: float | None
    """None where the price of a call is not known."""
    per_second: float | None
    """Pictures, since the last quarter of the shards began; None before there are some."""
    calls_per_second: float | None
    """Calls that were made, likewise."""
    bytes_per_picture: float | None
    """Of records."""
    lost: Cost | None
    """Worst cases of calls whose worker died: so many may be paid twice. None without a ledger in the corpus."""
    median: float | None
    """Seconds that a shard takes."""
    straggler_ratio: float | None
    """Seconds of the 99th percentile of shards, to those of the median; None before there are two."""
    idle: float | None
    """Share of the time that workers read no shard, each from its first shard to the end of its last."""
    under_way: tuple[ShardUnderWay, ...]

    @property
    def form(self) -> JsonObject:
        """The status as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardUnderWay:
    """A shard that was begun and has no receipt."""

    shard: int
    read: int
    """Pictures."""
    of: int
    quiet: float
    """Seconds since its last line."""


def status_of(corpus: ShardedCorpus) -> CorpusStatus:
    """How far a corpus is; it only reads, so that it can be called while workers write."""
    receipts = {receipt.shard: receipt for receipt in corpus.receipts()}
    under_way = tuple(
        ShardUnderWay(shard=number, read=read, of=corpus.sizes[number], quiet=quiet)
        for number, read, quiet in corpus.under_way()
        if number not in receipts
    )
    outcomes = Counter[str]()
    for receipt in receipts.values():
        outcomes.update(receipt.outcomes)
    seconds = [receipt.seconds for receipt in receipts.values()]
    median = statistics.median(seconds) if seconds else None
    return CorpusStatus(
        pictures=sum(receipts[n].pictures if n in receipts else corpus.sizes[n] for n in corpus.numbers),
        read=outcomes.total() + sum(each.read for each in under_way),
        shards=len(corpus.numbers),
        done=len(receipts),
        outcomes=dict(sorted(outcomes.items())),
        repeats=sum(receipt.repeats for receipt in receipts.values()),
        calls=sum(receipt.calls for receipt in receipts.values()),
        replayed=sum(receipt.replayed for receipt in receipts.values()),
        dollars=sum_of(receipt.dollars for receipt in receipts.values()),
        per_second=_rate([*receipts.values()], lambda receipt: receipt.pictures),
        calls_per_second=_rate([*receipts.values()], lambda receipt: receipt.calls),
        bytes_per_picture=sum(each.size for each in receipts.values()) / outcomes.total() if outcomes else None,
        lost=balance_in(corpus.ledger).lost if corpus.ledger is not None and corpus.ledger.exists() else None,
        median=median,
        straggler_ratio=_percentile_99(seconds) / median if median and len(seconds) > 1 else None,
        idle=_idle([*receipts.values()]),
        under_way=under_way,
    )


def _percentile_99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[-1]


def _rate(receipts: Sequence[Receipt], count: Callable[[Receipt], int]) -> float | None:
    """What `count` says of receipts, a second, since the last quarter of them began.

    A shard counts by the part of its time that lies in there.
    """
    last = sorted(receipts, key=lambda each: each.ended)[-max(2, len(receipts) // 4) :]
    if len(last) < 2:
        return None
    begun = min(receipt.begun for receipt in last)
    span = last[-1].ended - begun
    return sum(count(each) * _part_since(begun, each) for each in receipts) / span if span > 0 else None


def _idle(receipts: Sequence[Receipt]) -> float | None:
    of_worker = defaultdict[str, list[tuple[float, float]]](list)
    for receipt in receipts:
        of_worker[receipt.worker].append((receipt.begun, receipt.ended))
    span = sum(max(ended for _, ended in times) - min(times)[0] for times in of_worker.values())
    return max(0.0, 1 - sum(receipt.seconds for receipt in receipts) / span) if span > 0 else None


def _part_since(begun: float, receipt: Receipt) -> float:
    """The part of a shard's time that lies after `begun`."""
    if not receipt.seconds:
        return float(receipt.ended >= begun)
    return min(1.0, max(0.0, receipt.ended - begun) / receipt.seconds)
