"""The page of `askance run --html`: the pictures that were read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from askance.cli.exits import complain
from askance.errors import AskanceError, UsageError
from askance.evals.report.readings import PictureReading, write_readings
from askance.evals.storage import records_of
from askance.terminal import printable

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.cli.display import ReadingDisplay
    from askance.replay import Records


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


def write_page(
    out: Path,
    show: ReadingDisplay,
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
        show: what has kept the readings.
        name: of the chain, as the command line has it.
        chain: that read the pictures.
        records: where the answers are.
        folder: the run's folder, which may have answers of its own; None where it has none.
        interrupted: whether that, and not the budget, is why pictures were not read.

    Raises:
        StoreError: it cannot be written.
    """
    read = [PictureReading(line=line, options=tuple(options)) for line, options in show.kept or ()]
    if not read:
        print(printable(f"No picture was read, so no page is written to {out}."), file=sys.stderr)
        return
    left = show.total - len(read)
    size = write_readings(
        out,
        read,
        chain,
        name=name,
        records=[*(() if folder is None else (records_of(folder),)), records],
        notes=[_left(left, interrupted=interrupted)] if left else (),
    )
    some = f" of {len(read):,} of {show.total:,} pictures" if left else ""
    print(printable(f"The page{some} is in {out} ({size / 1e6:.1f} MB)."), file=sys.stderr)


def write_interrupted(
    out: Path, show: ReadingDisplay, *, name: str, chain: Chain, records: Records, folder: Path | None
) -> None:
    """Writes the page of a run that was interrupted, as `write_page` does; what is in the way is only said."""
    try:
        write_page(out, show, name=name, chain=chain, records=records, folder=folder, interrupted=True)
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
