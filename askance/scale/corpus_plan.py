"""What it takes to read a corpus of pictures, projected from a run over some of them: the pilot.

What the pilot can tell is measured: calls, tokens, dollars, seconds, bytes on record, failures. Each other number is a
field of `Assumptions`.
"""

from __future__ import annotations

import math
import statistics
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from askance.amounts import many
from askance.chat import Usage
from askance.errors import UsageError
from askance.evals.analysis.asked_cost import asked_costs

if TYPE_CHECKING:
    from askance.evals import Run
    from askance.replay import Record

DAY = 86_400.0
"""Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What no pilot tells.

    Raises:
        UsageError: one of them is not above 0, or a share is not below 1.
    """

    pictures: int = 100_000_000
    """Of the corpus."""
    repeats: float = 0.0
    """Share of the pictures that are copies of others, which are read once. Pictures of the web repeat: 0.1 to 0.3."""
    days: float = 14.0
    """In which all of it is to be read."""
    batch_price: float = 0.5
    """Part of the list price that a provider's batches cost."""
    tokens_per_second: float = 12_000.0
    """Of one GPU of one's own, input and output together."""
    gpus: int = 64
    """Of one's own."""
    kilobytes: float = 100.0
    """Of a picture as it is sent."""
    cpu_ms: float = 2.0
    """Milliseconds of a client's processor that a call takes; `benchmarks/cold.py` measures it."""
    rows_per_second: float = 13_000.0
    """Records that one PostgreSQL server takes, written in blocks."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            share = each.name == "repeats"
            if not math.isfinite(value) or value < 0 or (value == 0 and not share) or (share and value >= 1):
                raise UsageError(
                    f"{each.name.replace('_', '-')} cannot be {value:g}.",
                    hint="Give a share from 0 to below 1." if share else "Give a number above 0.",
                )


@dataclass(frozen=True, slots=True)
class Projection:
    """A total over the corpus, with the interval that holds it in 95 of 100 pilots."""

    value: float
    low: float
    high: float

    def __mul__(self, factor: float) -> Projection:
        return Projection(self.value * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One line of a plan."""

    what: str
    """With its unit."""
    per_picture: float | None
    """Measured by the pilot; None where the row follows from others."""
    total: Projection
    assumes: str = ""
    """The assumptions that it rests on, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusPlan:
    """What reading a corpus takes."""

    run: str
    """Name of the pilot."""
    pilot: int
    """Pictures of the pilot."""
    assumptions: Assumptions
    rows: Sequence[PlanRow]
    notes: Sequence[str]

    @property
    def form(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "run": self.run,
            "pilot": self.pilot,
            "assumptions": asdict(self.assumptions),
            "rows": [asdict(row) for row in self.rows],
            "notes": [*self.notes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Costs:
    """What one picture of the pilot took."""

    calls: int
    shown: int
    """Calls that were shown a picture."""
    input: int
    output: int
    dollars: float | None
    size: int
    """Bytes on record."""
    seconds: float | None
    """Of its calls, one after the other; None where some were on record."""
    failed: bool


def plan_corpus(run: Run, assumptions: Assumptions) -> CorpusPlan:
    """Projects the costs of a run over a corpus that its pictures were drawn from.

    A call that several pictures rest on counts for each of them.

    Args:
        run: the pilot, with its records: some hundred pictures, drawn at random.
        assumptions: what the pilot cannot tell.

    Raises:
        UsageError: it is a run of a task, it has fewer than two pictures, or none of its calls are on record.
    """
    if not run.of_pictures:
        raise UsageError(
            f"{run.name!r} cannot be a pilot: it is a run of the task {run.task!r}, whose samples may share pictures.",
            hint="Run the chain over some hundred pictures of the corpus: `askance run CHAIN FOLDER --out RUN`.",
        )
    measured, ratio = _measured(run)
    if len(measured) < 2 or not any(each.calls for each in measured):
        raise UsageError(
            f"{run.name!r} cannot be a pilot: it has {many(len(measured), 'picture')} and "
            f"{many(sum(each.calls for each in measured), 'call')} on record.",
            hint="Run the chain over some hundred pictures of the corpus, with `--out`.",
        )
    rows = [*_rows(measured, ratio, assumptions)]
    lacking = sum(each.dollars is None for each in measured)
    notes = [f"{lacking:,} of {len(measured):,} pictures have calls without a list price."] if lacking else []
    if sum(each.seconds is not None for each in measured) < 2:
        notes.append("The calls of the pilot were on record, so it does not say how long they take.")
    return CorpusPlan(run=run.name, pilot=len(measured), assumptions=assumptions, rows=rows, notes=notes)


def projected(values: Sequence[float], count: int) -> Projection:
    """The sum over `count` units of which `values` are a sample, by Student's t.

    The interval is one of prediction: it is to hold the sum over the units themselves, and is wider where they are few.
    """
    from scipy import stats

    number, mean, spread = len(values), statistics.fmean(values), statistics.stdev(values)
    half = float(stats.t.ppf(0.975, number - 1)) * spread * math.sqrt(1 / number + 1 / count)
    return Projection(mean, max(mean - half, 0.0), mean + half) * count


def _measured(run: Run) -> tuple[list[_Costs], float]:
    """What each picture took, and how much smaller its records are when they are compressed."""
    measured, packer = list[_Costs](), zlib.compressobj()
    packed = 0
    for answer, cost in zip(run.answers, asked_costs(run, run.answers), strict=True):
        keys = dict.fromkeys(str(key) for link in answer.prediction.links.values() for key in link["calls"])
        records = [*run.records.get_all(keys).values()]
        usages = [Usage(**record.response.get("usage", {})) for record in records if record.kind == "chat"]
        texts = [record.to_json().encode() for record in records]
        packed += sum(len(packer.compress(text)) for text in texts)
        measured.append(
            _Costs(
                calls=len(records),
                shown=sum(_shows(record) for record in records),
                input=sum(usage.input or 0 for usage in usages),
                output=sum(usage.output or 0 for usage in usages),
                dollars=cost.dollars,
                size=sum(map(len, texts)),
                seconds=_seconds(answer.prediction.meta),
                failed=answer.prediction.outcome != "answered",
            )
        )
    packed += len(packer.flush())
    size = sum(each.size for each in measured)
    return measured, size / packed if size else 1.0


def _seconds(meta: Mapping[str, Any]) -> float | None:
    return None if meta.get("replayed") or meta.get("shared") else meta.get("seconds")


def _shows(record: Record) -> bool:
    messages = record.request.get("messages", ())
    return any(part.get("type") == "image" for message in messages for part in message.get("parts", ()))


def _rows(measured: Sequence[_Costs], ratio: float, assumed: Assumptions) -> Iterator[PlanRow]:
    count = max(1, round(assumed.pictures * (1 - assumed.repeats)))
    read = f"{count:,} pictures are read" if assumed.repeats else ""

    def row(what: str, values: Sequence[float], assumes: str = "") -> PlanRow:
        return PlanRow(what, statistics.fmean(values), projected(values, count), assumes)

    calls = row("calls", [each.calls for each in measured], read)
    yield calls
    inputs, outputs = [each.input for each in measured], [each.output for each in measured]
    yield row("input tokens", inputs)
    yield row("output tokens", outputs)
    dollars = [each.dollars for each in measured if each.dollars is not None]
    if len(dollars) > 1:
        listed = row("dollars, list price", dollars)
        yield listed
        batches = f"batches at {assumed.batch_price:g} of the price"
        yield PlanRow("dollars, in batches", None, listed.total * assumed.batch_price, batches)
    both = projected([sum(pair) for pair in zip(inputs, outputs, strict=True)], count)
    hours = both * (1 / assumed.tokens_per_second / 3600)
    yield PlanRow("GPU hours", None, hours, f"{assumed.tokens_per_second:,.0f} tokens/s a GPU")
    yield PlanRow("days of one's own GPUs", None, hours * (1 / 24 / assumed.gpus), f"{assumed.gpus:,} GPUs")
    within = f"within {assumed.days:g} days"
    rate = calls.total * (1 / assumed.days / DAY)
    yield PlanRow("calls a second", None, rate, within)
    yield PlanRow("clients, cores", None, rate * (assumed.cpu_ms / 1000), f"{assumed.cpu_ms:g} ms a call, {within}")
    seconds = [each.seconds for each in measured if each.seconds is not None]
    if len(seconds) > 1:
        waiting = projected(seconds, count)
        mean = sum(seconds) / max(1, sum(each.calls for each in measured if each.seconds is not None))
        yield PlanRow("calls at once", None, waiting * (1 / assumed.days / DAY), f"{mean:.3g} s a call, {within}")
    sent = projected([each.shown for each in measured], count) * (assumed.kilobytes / 1000 / assumed.days / DAY)
    yield PlanRow("network, MB a second", None, sent, f"{assumed.kilobytes:g} kB a picture, {within}")
    sizes = [each.size / 1e9 for each in measured]
    stored = projected(sizes, count)
    yield PlanRow("on record, GB", None, stored, f"{1e6 * statistics.fmean(sizes):.1f} kB a picture, as measured")
    yield PlanRow("in cassettes, GB", None, stored * (1 / ratio), f"compressed {ratio:.1f} times, as measured")
    server = f"one server takes {assumed.rows_per_second:,.0f} rows/s"
    yield PlanRow("of a database's writes, %", None, rate * (100 / assumed.rows_per_second), f"{server}, {within}")
    yield row("pictures that end without an answer", [float(each.failed) for each in measured])
