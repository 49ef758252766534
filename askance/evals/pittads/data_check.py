"""The report of `askance data check pittads`: what a folder holds, what is missing, and what is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from askance.amounts import many
from askance.errors import BadData
from askance.evals.pittads.annotations import Annotations, read_annotations, read_id_list, read_symbols, read_votes
from askance.evals.pittads.dataset import Contents, Selection, Which, listed_ids, placed, select
from askance.evals.pittads.descriptions import read_descriptions
from askance.evals.pittads.layout import ANNOTATIONS, STATEMENTS, Layout, Part
from askance.evals.suite.files import FolderReport, Problems, note, noting
from askance.evals.suite.selection import FULL_SET
from askance.evals.suite.statements import TEST_OPTIONS, QaFile, read_qa

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.pittads.annotations import Annotation


@dataclass(frozen=True, slots=True)
class FileFound:
    """A file that was found."""

    part: Part
    path: str
    """Path from the folder."""
    holds: str
    """Its content, in a few words."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Rows or images that were dropped for one reason."""

    reason: str
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFound:
    """How many images of a list can be used."""

    listed: int
    kept: int
    unknown: tuple[str, ...]
    """Listed images that the folder does not have."""
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReport(FolderReport):
    """What a folder of the data set holds."""

    release: str | None
    """Release of the statements, in words."""
    statements: str | None
    """File of the statements."""
    files: tuple[FileFound, ...]
    missing: Mapping[str, str]
    """Missing files, and what they are for."""
    images: Mapping[str, int]
    """How many images are on disk, by their folder: `train`, `test`, `elsewhere`."""
    images_missing: tuple[str, ...]
    """Images that could be evaluated on, but have no picture."""
    annotated: int
    """Images with atypicality annotations, of 3,928."""
    rows: int
    """How many annotations there are, one from each annotator of an image."""
    sets: Mapping[str, int]
    """Images `usable` by the rule of the published code, `labelled` by that of the paper, and `typical`."""
    options: Mapping[int, int]
    """How many images have how many options."""
    true: Mapping[int, int]
    """How many images have how many true statements."""
    rows_dropped: tuple[Dropped, ...]
    images_dropped: tuple[Dropped, ...]
    listed: ListedFound | None

    def with_problems(self, problems: Iterable[str]) -> DataReport:
        """The report with its problems: those that were found, missing files and images, and unknown ids."""
        unique = [*dict.fromkeys(problems)]
        unique += [f"{name!r} is missing: {use}." for name, use in self.missing.items()]
        if self.images_missing and self.images:
            shown = ", ".join(map(repr, self.images_missing[:3]))
            unique.append(
                f"{many(len(self.images_missing), 'image is', 'images are')} missing, "
                f"{shown}{' …' * (len(self.images_missing) > 3)}."
            )
        if self.listed is not None and self.listed.unknown:
            unique.append(
                f"{many(len(self.listed.unknown), 'listed image matches', 'listed images match')} "
                f"nothing, {self.listed.unknown[0]!r} first."
            )
        return replace(self, problems=tuple(unique))

    @override
    def canonical(self) -> JsonObject:
        return {**FolderReport.canonical(self), "paper": {"full_set": FULL_SET}}


EXAMPLES = 3
"""How many examples are named for each reason."""


def check(
    folder: str | Path, *, ids: str | Path | Iterable[str] | None = None, qa: str | Path | None = None
) -> DataReport:
    """Reads all files of a folder and reports what is there; errors of single records are collected, not raised.

    Args:
        folder: of the data set, in any of the layouts.
        ids: a file that lists images, or the images; the report says how many of them can be used.
        qa: a file of statements in place of the folder's.

    Raises:
        BadData: there is no such folder, it holds nothing of the data set, or the list of images cannot be read.
    """
    layout = Layout.find(Path(folder))
    listed = listed_ids(ids)
    problems: Problems = []
    contents = Contents(layout, qa=None if qa is None else placed(Path(qa), layout.folder), problems=problems)
    if not layout.files and not len(contents.pictures) and qa is None:
        raise BadData(
            f"The folder {str(folder)!r} holds nothing of the data set.",
            hint=f"Looked for `{ANNOTATIONS}`, `{STATEMENTS}`, images and the other files by their names.",
        )
    selection = _tried(lambda: select(contents, "usable"), problems)
    report = DataReport(
        folder=str(folder),
        release=None if contents.qa is None else contents.qa.release,
        statements=None if contents.qa is None else str(contents.qa.path),
        files=tuple(_files(contents, problems)),
        missing=dict(_missing(contents)),
        images={str(split or "elsewhere"): count for split, count in contents.pictures.splits().items()},
        images_missing=_images_missing(selection, contents, problems),
        annotated=0 if contents.annotations is None else len(contents.annotations.images),
        rows=0 if contents.annotations is None else len(contents.annotations.rows),
        sets=_sets(contents, selection),
        options={} if contents.qa is None else contents.qa.option_counts,
        true={} if contents.qa is None else contents.qa.true_counts,
        rows_dropped=() if contents.annotations is None else _rows_dropped(contents.annotations),
        images_dropped=()
        if selection is None
        else _grouped((reason, key) for key, reason in selection.dropped.items()),
        listed=None if listed is None else _listed(contents, listed, problems),
        notes=tuple(_notes(contents, problems)),
    )
    return report.with_problems(error.message for error in problems)


def _tried(read: Callable[[], Selection], problems: Problems) -> Selection | None:
    try:
        return read()
    except BadData as error:
        note(error, problems)
        return None


def _missing(contents: Contents) -> Iterator[tuple[str, str]]:
    """Missing files that tasks need, and what for."""
    if contents.annotations is None:
        yield ANNOTATIONS, "labels and objects: all three atypicality tasks, and which images are meant"
    if contents.qa is None or contents.qa.shape == "true":
        yield STATEMENTS, "options to choose from: action-reason retrieval"
    elif contents.qa.shape == "test":
        yield STATEMENTS, "true statements: those of the test set are hidden"
    if not len(contents.pictures):
        yield "train_images/", "images: whatever is asked of a model that sees"


def _images_missing(selection: Selection | None, contents: Contents, problems: Problems) -> tuple[str, ...]:
    missing: list[str] = []
    for key in () if selection is None else selection.keys:
        with noting(problems):
            if contents.pictures.find(key) is None:
                missing.append(key)
    return tuple(missing)


def _sets(contents: Contents, usable: Selection | None) -> Mapping[str, int]:
    """How many images each choice of `which` gives."""
    if usable is None or contents.annotations is None:
        return {}
    others: tuple[Which, ...] = ("labelled", "typical")
    return {"usable": len(usable.keys), **{which: len(select(contents, which).keys) for which in others}}


def _listed(contents: Contents, listed: tuple[str, ...], problems: Problems) -> ListedFound | None:
    selection = _tried(lambda: select(contents, "usable", listed), problems)
    if selection is None:
        return None
    return ListedFound(
        listed=len(listed),
        kept=len(selection.keys),
        unknown=selection.unknown,
        dropped=_grouped((reason, key) for key, reason in selection.dropped.items()),
    )


def _rows_dropped(annotations: Annotations) -> tuple[Dropped, ...]:
    return _grouped((row.drop, _shown(row)) for row in annotations.rows if row.drop is not None)


def _shown(row: Annotation) -> str:
    values = {
        "another category": row.category,
        "unusable primary object": row.primary,
        "unusable secondary object": row.secondary,
    }.get(row.drop or "", "")
    return f"{row.image}: {values[:40]!r}" if values else row.image


def _grouped(reasons: Iterable[tuple[str, str]]) -> tuple[Dropped, ...]:
    groups: dict[str, list[str]] = {}
    for reason, example in reasons:
        groups.setdefault(reason, []).append(example)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return tuple(Dropped(reason, len(all_), tuple(dict.fromkeys(all_))[:EXAMPLES]) for reason, all_ in ordered)


def _files(contents: Contents, problems: Problems) -> Iterator[FileFound]:
    layout = contents.layout
    read = {file.path: file for file in (contents.qa, contents.annotations) if file is not None}
    for part in layout.files:
        for path in layout.of(part):
            try:
                holds = _held(read[path]) if path in read else _READERS.get(part, _statements)(path, problems)
            except BadData as error:
                note(error, problems)
                holds = "cannot be used"
            yield FileFound(part, str(path.relative_to(layout.folder)), holds)


def _held(file: QaFile | Annotations) -> str:
    return (
        _qa_told(file)
        if isinstance(file, QaFile)
        else f"{many(len(file.images), 'image')}, {many(len(file.rows), 'row')}"
    )


def _annotations(path: Path, problems: Problems) -> str:
    return _held(read_annotations(path, problems))


def _statements(path: Path, problems: Problems) -> str:
    return _qa_told(read_qa(path, problems))


def _qa_told(file: QaFile) -> str:
    options = ", ".join(map(str, file.option_counts))
    kind = f"hard negatives ({file.hard}), " if file.hard else ""
    return f"{kind}{many(len(file.records), 'image')}" + (f", {options} options" if options else "")


def _votes(path: Path, problems: Problems) -> str:
    return many(len(read_votes(path, problems)), "image")


def _symbols(path: Path, problems: Problems) -> str:
    images = read_symbols(path, problems)
    return f"{many(len(images), 'image')}, {many(sum(map(len, images.values())), 'box', 'boxes')}"


def _ids(path: Path, _: Problems) -> str:
    return many(len(read_id_list(path)), "entry", "entries")


def _descriptions(path: Path, _: Problems) -> str:
    file = read_descriptions(path)
    return f"{file.source} of {many(len(file.texts), 'image')} by {file.vlm}"


_READERS: Mapping[Part, Callable[[Path, Problems], str]] = {
    **dict.fromkeys(("topics", "sentiments", "strategies", "slogans"), _votes),
    **dict.fromkeys(("topics list", "sentiments list", "strategies list"), _ids),
    "atypicality": _annotations,
    "symbols": _symbols,
    "descriptions": _descriptions,
}


def _notes(contents: Contents, problems: Problems) -> Iterator[str]:
    """Notes that are no problems."""
    if contents.qa is not None:
        yield from _qa_notes(contents.qa)
    if contents.annotations is not None:
        yield from _annotation_notes(contents.annotations, problems)
    if shared := contents.pictures.shared_names:
        yield f"{len(shared):,} base names stand for several images each, {shared[0]!r} first; whole keys find them."
    for path in contents.layout.shadowed:
        yield f"{str(path)!r} is passed over: a file of the same name lies nearer."


def _qa_notes(file: QaFile) -> Iterator[str]:
    records = file.records.values()
    if doubled := [record.key for record in records if len(set(record.options)) < len(record.options)]:
        yield (
            f"{many(len(doubled), 'image has', 'images have')} an option twice, {doubled[0]!r} first; "
            "it is offered once."
        )
    if blank := [record.key for record in records if not all(text.strip() for text in record.options)]:
        yield f"{many(len(blank), 'image has', 'images have')} a blank option, {blank[0]!r} first."
    if file.shape == "train" and file.hard is None and set(file.option_counts) != {TEST_OPTIONS}:
        yield f"Release B has {TEST_OPTIONS} options an image; this file has {', '.join(map(str, file.option_counts))}."
    if (few := sum(count for number, count in file.true_counts.items() if number < 3)) and file.shape != "test":
        yield f"{many(few, 'image has', 'images have')} fewer than three true statements, which bounds precision@3."


def _annotation_notes(annotations: Annotations, problems: Problems) -> Iterator[str]:
    images = annotations.images.values()
    if ties := sum(1 for image in images if image.labels and image.plurality is None):
        yield f"{many(ties, 'image has', 'images have')} no plurality label: a tie."
    hyphens = 0
    for row in annotations.rows:
        with noting(problems):
            hyphens += any("-" in box.label for box in row.boxes)
    if hyphens:
        yield f"{many(hyphens, 'row has', 'rows have')} a box whose label holds a hyphen; it is kept."
