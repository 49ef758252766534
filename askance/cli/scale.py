"""`askance scale`: what it takes to read a corpus that is too large for one machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.cli.columns import Columns, Part, Report
from askance.cli.group import command_group
from askance.cli.options import AsJson

if TYPE_CHECKING:
    from askance.scale import CorpusPlan, PlanRow, Projection

app = command_group("A corpus too large for one machine: what it takes.")


@app.command("plan")
def plan(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of the pilot: a run over a few hundred pictures.")
    ],
    pictures: Annotated[int, typer.Option(help="Pictures of the corpus.")] = 100_000_000,
    repeats: Annotated[float, typer.Option(help="Share of them that are copies of others: 0.2.")] = 0.0,
    days: Annotated[float, typer.Option(help="Days in which all of it is to be read.")] = 14.0,
    batch_price: Annotated[float, typer.Option(help="Part of the list price that batches cost.")] = 0.5,
    tokens_per_second: Annotated[float, typer.Option(help="Tokens that a GPU reads and writes.")] = 12_000.0,
    gpus: Annotated[int, typer.Option(help="GPUs of one's own.")] = 64,
    kilobytes: Annotated[float, typer.Option(help="Of a picture as it is sent.")] = 100.0,
    cpu_ms: Annotated[float, typer.Option(help="Milliseconds of a client's processor for a call.")] = 2.0,
    rows_per_second: Annotated[float, typer.Option(help="Records that one PostgreSQL server takes.")] = 13_000.0,
    as_json: AsJson = False,
) -> None:
    """Project what a corpus would take from a run over some of its pictures, with 95 % intervals.

    Calls, tokens, dollars, bytes and failures are the pilot's; every other number is an option. Nothing is asked.
    """
    from askance.evals.run import Run
    from askance.scale import Assumptions, plan_corpus

    assumptions = Assumptions(
        pictures=pictures,
        repeats=repeats,
        days=days,
        batch_price=batch_price,
        tokens_per_second=tokens_per_second,
        gpus=gpus,
        kilobytes=kilobytes,
        cpu_ms=cpu_ms,
        rows_per_second=rows_per_second,
    )
    corpus = plan_corpus(Run.open(folder), assumptions)
    Report(lambda: corpus.form, lambda: _parts(corpus), corpus.notes).print(as_json=as_json)


def _parts(corpus: CorpusPlan) -> Iterator[Part]:
    yield f"{corpus.assumptions.pictures:,} pictures, by a pilot of {corpus.pilot:,}."
    yield ""
    head = ("", "a picture", "in all", "95 % interval", "assumes")
    yield Columns([head, *map(_cells, corpus.rows)], left=(0, 4))


def _cells(row: PlanRow) -> tuple[str, ...]:
    each = "" if row.per_picture is None else _number(row.per_picture)
    return row.what, each, _number(row.total.value), _interval(row.total), row.assumes


def _interval(total: Projection) -> str:
    return f"{_number(total.low)} – {_number(total.high)}"


def _number(value: float) -> str:
    """Three digits that count; whole numbers from a thousand on."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
