"""`askance report`: runs as one page that opens anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import many
from askance.cli.columns import Report
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from askance.evals.report import Thumbnails
    from askance.evals.report.run_part import RunPart

MANY = 5000
"""Samples beyond which a page is slow to make and large."""

ImagesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--images",
        help="Where the pictures are: a file or folder; may be repeated. By default where the run found them.",
    ),
]
NoImagesOption = Annotated[bool, typer.Option("--no-images", help="Leave the pictures out of the page.")]
MegabytesOption = Annotated[
    float, typer.Option("--images-mb", min=0, help="Most megabytes of pictures in the page; they are made as small.")
]
BesideOption = Annotated[
    bool, typer.Option("--beside", help="Put the pictures into a folder beside the page, not into it.")
]


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or a folder of such.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("report.html"),
    images: ImagesOption = None,
    no_images: NoImagesOption = False,
    images_mb: MegabytesOption = 24.0,
    beside: BesideOption = False,
    blames: Annotated[
        list[Path] | None,
        typer.Option("--blame", help="Folder that `askance blame RUN --out` made; a run's own folder is looked into."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Of the page; by default its tasks.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what the page says as one JSON object, and write no page.")
    ] = False,
) -> None:
    """Make one HTML page of runs: figures, plots, blame, and every sample with all that was asked and said."""
    from askance.evals.report import build_report, report_page
    from askance.evals.report.html import write_page
    from askance.evals.run import Run

    page = build_report(Run.open_all(folders), title=title, blames=blames or ())
    if as_json:
        Report(page.form, lambda: ()).print(as_json=True)
        return
    warn_of_many(page.runs)
    pictures = pictures_of(page.runs, None if no_images else images or [], megabytes=images_mb)
    size = write_page(
        out,
        lambda files: report_page(page, pictures=pictures, files=files),
        beside=pictures.jpegs if beside and pictures is not None else None,
    )
    print_page(out, size, pictures)


def pictures_of(parts: Sequence[RunPart], places: list[Path] | None, *, megabytes: float) -> Thumbnails | None:
    """Thumbnails of the runs' pictures; None if none are wanted, or no run can say where one is.

    Args:
        parts: the runs.
        places: files and folders to look in; an empty list is where the runs found them, and None leaves them out.
        megabytes: of all thumbnails.

    Raises:
        UsageError: a place is not there.
    """
    from askance.evals.report import Thumbnails

    if places is None:
        return None
    for place in places:
        if not place.exists():
            raise UsageError(f"There is nothing at {str(place)!r}.", hint="Give `--images` a file or a folder.")
    pictures = Thumbnails.of(parts, places, megabytes=megabytes)
    return pictures if places or pictures.jpegs else None


def print_page(out: Path, size: int, pictures: Thumbnails | None) -> None:
    """Prints where the page is, and how its pictures were scaled or left out."""
    echo(f"The page is in {out} ({size / 1e6:.1f} MB).")
    if pictures is not None:
        side = f" of at most {pictures.side} pixels" if pictures.jpegs else ""
        echo(f"{many(len(pictures.jpegs), 'picture')}{side}{''.join(f'; {note}' for note in pictures.notes)}.")


def warn_of_many(parts: Sequence[RunPart]) -> None:
    """Warns on stderr if the samples make a large page."""
    count = sum(len(part.rows) for part in parts)
    if count > MANY:
        less = "; one run at a time makes smaller ones" if len(parts) > 1 else ""
        echo(
            f"{many(count, 'sample makes', 'samples make')} a large page, which takes a while to "
            f"make and to open{less}.",
            err=True,
        )
