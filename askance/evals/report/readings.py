"""The page of pictures that a chain has just read: the report of a run that lies in no folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.evals.report.html import write_page
from askance.evals.report.run_report import build_report, report_page
from askance.evals.report.thumbnails import Thumbnails
from askance.evals.run import Run, picture_answer
from askance.evals.solver import ChainSolver
from askance.replay import MemoryStore, select

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.replay import Record, Records


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureReading:
    """One picture that a chain has read."""

    line: Mapping[str, Any]
    """As `Reading.to_dict` gives it."""
    options: tuple[str, ...] = ()
    """The options to choose from."""
    file: Path | None = None
    """Where the picture lies, if not at the path that the line calls it by."""


def write_readings(
    out: Path,
    read: Sequence[PictureReading],
    chain: Chain,
    *,
    name: str,
    records: Sequence[Records],
    notes: Sequence[str] = (),
) -> int:
    """Writes the page of pictures that a chain has read; an existing one is replaced.

    Args:
        out: the file.
        read: the readings, at least one; their pictures are shown where they lie.
        chain: that read them.
        name: of the chain.
        records: where the answers are; the first that has one is believed.
        notes: what else a reader should know.

    Returns:
        The size of the page in bytes.

    Raises:
        UsageError: `out` is a folder.
        StoreError: it cannot be written; a page that was there stays.
    """
    solver = ChainSolver(chain)
    run = Run.unkept(
        {**solver.form(), "chain": name},
        answers=[picture_answer(each.line, each.options) for each in read],
        records=MemoryStore(_selected(read, records)),
        prompts=solver.prompts,
    )
    report = build_report([run], notes=notes)
    pictures = Thumbnails.of(report.runs, [each.file or Path(each.line["image"]) for each in read])
    return write_page(out, lambda _: report_page(report, pictures=pictures))


def _selected(read: Sequence[PictureReading], records: Sequence[Records]) -> Iterator[Record]:
    """The records that the readings rest on."""
    keys = {str(key) for each in read for link in each.line["links"].values() for key in link["calls"]}
    for several in records:
        selected = [*select(several, keys=keys)]
        keys.difference_update(record.key for record in selected)
        yield from selected
