"""The report of `askance data check whoops`: what a folder holds, and how that compares with the published data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from askance.amounts import first_few, many
from askance.errors import BadData
from askance.evals.suite.files import Counted, FolderReport, Problems, note
from askance.evals.whoops.dataset import IMAGES, QUESTIONS, TEXTS, Whoops, counted
from askance.evals.whoops.identify import PAIRS, PAPER_PAIRS, read_pairs
from askance.evals.whoops.images import LISTS
from askance.evals.whoops.images import QUESTIONS as QUESTIONS_COLUMN
from askance.evals.whoops.images import TEXTS as TEXT_COLUMNS

if TYPE_CHECKING:
    from askance.evals.whoops.layout import Layout

EACH = 5
"""How many captions, explanations and underspecified captions an image has."""

CATEGORIES = 26
"""Commonsense categories of the data (section 2.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoopsReport(FolderReport):
    """What a folder of the data set holds."""

    layout: Layout
    files: tuple[str, ...]
    counts: Mapping[str, Counted]
    """Counts of `images`, `pictures`, the three kinds of texts, `questions` and `pairs`."""
    categories: Mapping[str, int]
    """Images by commonsense category, the most frequent first."""
    pictures_missing: tuple[str, ...]
    """Images without a picture."""
    uneven: Mapping[str, int]
    """By column, how many images have another number of texts than five."""
    listed: int | None
    """How many images a list has, if one is given."""


def check(
    folder: str | Path, *, ids: str | Path | Iterable[str] | None = None, pairs: str | Path | None = None
) -> WhoopsReport:
    """Reads all files of a folder and reports what is there; errors of single rows are collected, not raised.

    Args:
        folder: of the data set, in any of the layouts.
        ids: a file that lists images, or the images.
        pairs: folder of weird and normal images; by default `pairs` of the folder, if it is there.

    Raises:
        BadData: the folder is missing, it holds nothing of the data set, or the list cannot be used.
        MissingExtra: there is an Arrow file, and pyarrow is not installed.
    """
    problems: Problems = []
    data = Whoops.open(folder, ids=ids, problems=problems)
    entries = data.entries
    missing = tuple(entry.id for entry in entries if not data.has(entry, "image"))
    counts = {
        "images": Counted(found=len(entries), published=IMAGES),
        "pictures": Counted(found=len(entries) - len(missing), published=IMAGES),
        "captions": Counted(found=counted(entries, lambda entry: entry.captions), published=TEXTS),
        "explanations": Counted(found=counted(entries, lambda entry: entry.explanations), published=TEXTS),
        "underspecified": Counted(found=counted(entries, lambda entry: entry.underspecified), published=TEXTS),
        "questions": Counted(found=counted(entries, lambda entry: entry.questions), published=QUESTIONS),
        **_pairs(data, pairs, problems),
    }
    report = WhoopsReport(
        folder=str(folder),
        layout=data.layout,
        files=tuple(str(path.relative_to(data.folder)) for path in data.source.files),
        counts=counts,
        categories=dict(Counter(entry.category for entry in entries if entry.category).most_common()),
        pictures_missing=missing,
        uneven={
            column: uneven
            for name, column in LISTS.items()
            if column in data.source.columns and (uneven := sum(len(getattr(entry, name)) != EACH for entry in entries))
        },
        listed=len(entries) if data.listed else None,
    )
    return replace(report, notes=tuple(_notes(data, report)), problems=tuple(_problems(data, report, problems)))


def _pairs(data: Whoops, pairs: str | Path | None, problems: Problems) -> Mapping[str, Counted]:
    place = data.folder / PAIRS if pairs is None else Path(pairs)
    if pairs is None and not place.is_dir():
        return {}
    try:
        pairs_read = read_pairs(place, {entry.id: entry for entry in data.entries})
    except BadData as error:
        note(error, problems)
        return {}
    return {"pairs": Counted(found=len(pairs_read), published=PAPER_PAIRS)}


def _notes(data: Whoops, report: WhoopsReport) -> Iterator[str]:
    if "pairs" not in report.counts:
        yield f"There are no pairs of weird and normal images, which `whoops/identify` needs: put them into {PAIRS!r}."
    if data.source.by_place:
        yield "Pictures are named by the position of their row, 0 to 499, as in the re-cast of the benchmark of ads."
    for name, count in report.counts.items():
        if report.listed is None and count.found != count.published and name not in {"pictures", "pairs"}:
            yield f"{count.found:,} {name}, and {count.published:,} are published."

    yield from _about_categories(report)


def _about_categories(report: WhoopsReport) -> Iterator[str]:
    """Notes on the commonsense categories. The paper does not list their names, so any name is accepted."""
    if len(report.categories) > CATEGORIES:
        yield f"{len(report.categories):,} commonsense categories, and the paper has {CATEGORIES}."
    without = report.counts["images"].found - sum(report.categories.values())
    if report.categories and without:
        yield f"Images without a commonsense category, which stand in the figures of none: {without:,}."
    written: dict[str, str] = {}
    for name in report.categories:
        other = written.setdefault(" ".join(name.casefold().split()), name)
        if other != name:
            yield f"The categories {other!r} and {name!r} differ in how they are written alone, and count as two."


def _problems(data: Whoops, report: WhoopsReport, problems: Problems) -> Iterator[str]:
    yield from dict.fromkeys(error.message for error in problems)
    columns = [*TEXT_COLUMNS.values(), *LISTS.values(), QUESTIONS_COLUMN]
    absent = [name for name in columns if name not in data.source.columns]
    if absent:
        yield f"Columns that are not there: {', '.join(absent)}."
    if report.pictures_missing:
        shown = first_few([*map(repr, report.pictures_missing)])
        yield f"{many(len(report.pictures_missing), 'picture is', 'pictures are')} missing, {shown}."
    for column, count in report.uneven.items():
        yield f"{many(count, 'image has', 'images have')} another number of {column} than {EACH}."
