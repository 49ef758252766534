"""Two runs sample by sample, as a value: what the pairs say of them, and which samples changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from askance.evals.comparing import Pairing, differences, paired
from askance.evals.report import reading
from askance.evals.report.build import part_of

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.comparing import MetricComparison, Pair
    from askance.evals.report.values import Row, RunPart
    from askance.evals.run import Run

Change = Literal["better", "worse", "other", "same"]
"""Of the first run against the second on one sample; `other`: another answer that is worth as much."""

CHANGES: dict[Change, str] = {"better": "A better", "worse": "B better", "other": "Other answer", "same": "Same answer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One sample in both runs."""

    a: Row
    b: Row
    change: Change
    unlike: bool
    """Whether the two were not asked the same."""

    def form(self) -> JsonObject:
        """The pair as JSON."""
        return {"id": self.a.id, "epoch": self.a.epoch, "change": self.change, "a": self.a.form(), "b": self.b.form()}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What two runs on the same samples say of each other."""

    a: RunPart
    b: RunPart
    pairs: tuple[Pair, ...]
    rows: tuple[ChangeRow, ...]
    pairing: Pairing
    metrics: tuple[MetricComparison, ...]
    configuration: tuple[tuple[str, Any, Any], ...]
    """Place, and what stands there in either run."""

    @property
    def names(self) -> tuple[str, str]:
        """What the two runs are called."""
        return self.a.name, self.b.name


def build_difference(run_a: Run, run_b: Run, metrics: Sequence[MetricComparison]) -> Difference:
    """What two runs of one task say of each other.

    Args:
        run_a: a run.
        run_b: another run of the same task.
        metrics: what `askance.evals.compare` found.

    Raises:
        UsageError: a folder holds lines that are none.
    """
    pairing = paired(run_a, run_b)
    one, other = (run_a.name, run_b.name) if run_a.name != run_b.name else (run_a.path.name, run_b.path.name)
    a, b = part_of(run_a, name=one), part_of(run_b, name=other)
    return Difference(
        a=a,
        b=b,
        pairs=pairing.pairs,
        rows=tuple(_rows(pairing.pairs, a, b)),
        pairing=pairing,
        metrics=tuple(metrics),
        configuration=tuple(differences(run_a, run_b)),
    )


def _rows(pairs: Sequence[Pair], a: RunPart, b: RunPart) -> Iterator[ChangeRow]:
    rows_a, rows_b = ({(row.id, row.epoch): row for row in part.rows} for part in (a, b))
    for one, other in pairs:
        key = (one.sample.id, one.epoch)
        yield ChangeRow(
            a=rows_a[key],
            b=rows_b[key],
            change=_change((one, other), rows_a[key], rows_b[key]),
            unlike=one.sample.form() != other.sample.form(),
        )


def _change(pair: Pair, row_a: Row, row_b: Row) -> Change:
    worth_a, worth_b = (_worth(row) for row in (row_a, row_b))
    if worth_a != worth_b:
        return "better" if worth_a > worth_b else "worse"
    one, other = ((each.prediction.outcome, each.prediction.value) for each in pair)
    return "same" if one == other else "other"


def _worth(row: Row) -> float:
    """For ranks alone: a sample without a score stands below all others only where there is no answer."""
    return 0.0 if row.worth is None else row.worth


def snippet(row: ChangeRow) -> str:
    """What both said, in a line."""
    if row.a.said == row.b.said:
        return row.a.said
    half = reading.SNIPPET // 2
    return " ⇄ ".join(text if len(text) <= half else f"{text[: half - 1]}…" for text in (row.a.said, row.b.said))
