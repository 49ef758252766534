"""What `askance run --html` writes: the pictures that were read, as one page."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.amounts import many
from askance.cli.display import Show
from askance.cli.exits import complain
from askance.errors import AskanceError, UsageError
from askance.evals.report import Thumbnails
from askance.evals.report.document import write_page
from askance.evals.report.readings import PictureReading, part_of_readings, readings_page
from askance.evals.solver import ChainSolver
from askance.evals.storage import records_of
from askance.replay import MemoryStore, select
from askance.terminal import printable

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.cli.tally import Tally
    from askance.models import Engine
    from askance.replay import Record, Records


class KeepingShow(Show):
    """Prints each reading, and keeps it for the page."""

    def __init__(self, total: int, *, as_json: bool, tally: Tally, engine: Engine) -> None:
        super().__init__(total, as_json=as_json, tally=tally, engine=engine)
        self.total = total
        self.read: list[PictureReading] = []

    def reading(
        self, line: Mapping[str, Any], options: Sequence[str] | None, truth: Mapping[str, Any] | None = None
    ) -> None:
        """Prints one reading and keeps it."""
        super().reading(line, options, truth)
        self.read.append(PictureReading(line=line, options=tuple(options or ())))


def check_page(out: Path, *, mode: str, plan: bool) -> None:
    """Refuses a page that could not be written, before anything is asked.

    Raises:
        UsageError: it could not.
    """
    if plan:
        raise UsageError("`--plan` reads no image, so there is nothing for `--html` to show.", hint="Leave one out.")
    if mode == "live":
        raise UsageError(
            "`--mode live` leaves answers on record as they are, so `--html` could not show what was answered.",
            hint="Use `--mode refresh`, which records the new answers.",
        )
    if out.is_dir():
        raise UsageError(f"{str(out)!r} is a folder, and the page is one file.", hint="Name a file: --html page.html")


def write_readings(
    out: Path,
    show: KeepingShow,
    *,
    name: str,
    chain: Chain,
    records: Records,
    folder: Path | None,
    interrupted: bool = False,
) -> None:
    """Writes the page of what was read, in place of one that is there, and says where it is on stderr.

    Where nothing was read there is no page, which is said too.

    Args:
        out: the file.
        show: what has kept the pictures.
        name: of the chain, as the command line has it.
        chain: that read them.
        records: where the answers are.
        folder: the run's folder, which may have answers of its own; None where it has none.
        interrupted: whether that, and not the budget, is why pictures were not read.

    Raises:
        StoreError: it cannot be written.
    """
    read = show.read
    if not read:
        print(printable(f"No picture was read, so no page is written to {out}."), file=sys.stderr)
        return
    solver = ChainSolver(chain)
    configuration = {"task": f"askance run {name}", "chain": name, "solver": solver.form()}
    kept = MemoryStore(_records(_keys(read), records, folder))
    part = part_of_readings(read, configuration, records=kept)
    pictures = Thumbnails.of([part], [Path(each.line["image"]) for each in read])
    title = f"{name} · {many(len(read), 'picture')}"
    left = show.total - len(read)
    notes = [_left(left, interrupted=interrupted)] if left else []
    size = write_page(
        out,
        lambda _: readings_page(part, title=title, prompts=solver.prompts, pictures=pictures, notes=notes),
    )
    some = f" of {len(read):,} of {show.total:,} pictures" if left else ""
    print(printable(f"The page{some} is in {out} ({size / 1e6:.1f} MB)."), file=sys.stderr)


def write_interrupted(
    out: Path, show: KeepingShow, *, name: str, chain: Chain, records: Records, folder: Path | None
) -> None:
    """Writes the page of a run that was interrupted, as `write_readings` does; what is in the way is only said."""
    try:
        write_readings(out, show, name=name, chain=chain, records=records, folder=folder, interrupted=True)
    except AskanceError as error:
        complain(error)
    except Exception as error:  # noqa: BLE001  # the command ends as interrupted, whatever becomes of its page
        complain(
            AskanceError(
                f"The page {str(out)!r} cannot be made: {type(error).__name__}: {error}.",
                hint="The same command with --replay makes it of what is on record.",
            )
        )


def _left(count: int, *, interrupted: bool) -> str:
    pictures, were = ("picture", "was") if count == 1 else ("pictures", "were")
    if interrupted:
        return f"{count:,} more {pictures} {were} not read when the run was interrupted."
    return f"{count:,} more {pictures} had no budget left."


def _keys(read: Iterable[PictureReading]) -> set[str]:
    return {str(key) for each in read for link in each.line["links"].values() for key in link["calls"]}


def _records(keys: set[str], records: Records, folder: Path | None) -> Iterator[Record]:
    """The records of `keys`; those that the run's folder has stand before others."""
    own = MemoryStore() if folder is None else records_of(folder)
    there = keys.intersection(own.keys())
    yield from select(own, keys=there)
    yield from select(records, keys=keys - there)
