"""Which images are evaluated on, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.errors import BadData
from askance.evals.suite.keys import key_order

if TYPE_CHECKING:
    from askance.evals.pittads.annotations import AnnotatedImage
    from askance.evals.pittads.contents import Contents

Which: TypeAlias = Literal["usable", "labelled", "typical"]
"""Which images: with a row that has one of the four categories and usable names of both objects, as the published code
keeps them; with a row of one of the four categories, as section 4 of the paper says; or those that all annotators find
typical (section 7.2, Table 13)."""

WHICH: Mapping[Which, str] = {
    "usable": "with usable objects",
    "labelled": "with one of the four categories",
    "typical": "that are typical",
}
"""The same in a few words."""

ImageDrop: TypeAlias = Literal[
    "not annotated",
    "typical",
    "not typical",
    "none of the four categories",
    "no usable objects",
    "not in the file of statements",
    "in the test set",
]
"""Why an image is not evaluated on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The images that are kept, and the reasons of the others."""

    keys: tuple[str, ...]
    dropped: Mapping[str, ImageDrop]
    """By image, among those annotated or listed."""
    unknown: tuple[str, ...] = ()
    """Listed images that nothing in the folder knows of."""


def select(contents: Contents, which: Which, listed: Sequence[str] | None = None) -> Selection:
    """The images to evaluate on.

    A file of statements with options says which images the set has: in release B it is the training set. Where there is
    none, images that lie in a folder of test images are left out. Without annotations, every image with statements is
    taken.

    Args:
        contents: what the folder holds.
        which: by what the annotators say of them.
        listed: the images that are asked for, in their order; by default all, in the order of shard and number.

    Raises:
        BadData: there are neither annotations nor statements, or typical images are wanted and there are no
            annotations.
    """
    wanted = _all(contents, which) if listed is None else [key for key in listed if key in contents]
    reasons: dict[str, ImageDrop | None] = {key: _drop(key, contents, which) for key in wanted}
    return Selection(
        keys=tuple(key for key, reason in reasons.items() if reason is None),
        dropped={key: reason for key, reason in reasons.items() if reason is not None},
        unknown=tuple(key for key in listed or () if key not in reasons),
    )


def _all(contents: Contents, which: Which) -> Iterable[str]:
    if contents.annotations is not None:
        return sorted(contents.annotations.images, key=key_order)
    if contents.qa is None or which == "typical":
        raise BadData(
            f"The folder {str(contents.layout.folder)!r} has no `final_csv.csv` with atypicality annotations.",
            hint="Put the file there; the paper's authors share it together with their code.",
        )
    return sorted(contents.qa.records, key=key_order)


def _drop(key: str, contents: Contents, which: Which) -> ImageDrop | None:
    if contents.qa is not None and (contents.qa_is_named or contents.qa.shape != "true"):
        if key not in contents.qa.records:
            return "not in the file of statements"
    elif contents.pictures.split(key) == "test":
        return "in the test set"
    if contents.annotations is None:
        return None
    image = contents.annotations.images.get(key)
    return "not annotated" if image is None else judged(image, which)


def judged(image: AnnotatedImage, which: Which) -> ImageDrop | None:
    """Why the annotators' rows leave an image out; None where they do not."""
    if which == "typical":
        return None if image.typical else "not typical"
    if image.typical:
        return "typical"
    if not image.labels:
        return "none of the four categories"
    return "no usable objects" if which == "usable" and not image.statements else None
