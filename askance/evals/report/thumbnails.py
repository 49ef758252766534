"""Thumbnails for a page: pictures found by their digest, made small enough for all of them to fit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from askance.errors import BadImage
from askance.evals.report.html import jpeg_uri
from askance.evals.report.shown_views import views_of
from askance.images import SUFFIXES, Image, Shown

if TYPE_CHECKING:
    from askance.evals.report.run_part import RunPart

MEGABYTES = 24
"""Most megabytes of thumbnails in a page, by default."""
SIDES = (512, 384, 288, 224, 160, 112)
"""Pixels of the longer side; the largest that fits is used."""

_TRIED = 12
"""How many pictures the size of all is estimated from."""


@dataclass(frozen=True, kw_only=True)
class Thumbnails:
    """The thumbnails of a report."""

    jpegs: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """By `Shown.key`: digest of the picture, or what a view of it is known by."""
    missing: int = 0
    """Pictures that were not found, or cannot be read."""
    left_out: int = 0
    """Pictures for which there was no room."""
    side: int = 0
    """Pixels of the longer side."""

    @classmethod
    def of(cls, parts: Sequence[RunPart], places: Sequence[Path], *, megabytes: float = MEGABYTES) -> Thumbnails:
        """The thumbnails of the pictures that runs speak of and of what was shown of them, as large as fit into a page.

        Args:
            parts: the runs; the first of their samples have room before the others.
            places: files and folders to look in; none are the places in which the runs found the pictures.
            megabytes: of all thumbnails as they stand in a page, which is a third more than their files.
        """
        images = (answer.sample.image for part in parts for answer in part.answers)
        wanted = {image.sha256: image.name for image in images if image is not None}
        originals = find(wanted, places) if places else _found_by(parts)
        shown = {digest: Shown(originals[digest]) for digest in wanted if digest in originals}
        views = views_of(parts) if shown else {}
        shown |= {key: Shown(originals[of], view=view) for key, (of, view) in views.items() if of in originals}
        room = int(megabytes * 1e6 * 3 / 4)
        side = _side([*shown.values()], room)
        jpegs: dict[str, bytes] = {}
        unread = left_out = 0
        for key, data in zip(shown, _made(shown.values(), side), strict=True):
            if data is None:
                unread += key in wanted
            elif len(data) > room:
                left_out += 1
            else:
                room -= len(data)
                jpegs[key] = data
        missing = len(wanted.keys() - originals.keys()) + unread
        return cls(jpegs=jpegs, missing=missing, left_out=left_out, side=side)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers: pictures that are missing."""
        notes: list[str] = []
        if self.missing:
            notes.append(f"pictures not found, or not readable: {self.missing:,}")
        if self.left_out:
            notes.append(f"pictures for which there was no room: {self.left_out:,} (`--images-mb` makes more)")
        return tuple(notes)

    def uri(self, key: str) -> str:
        """The thumbnail as a data URI."""
        return jpeg_uri(self.jpegs[key])


def _found_by(parts: Sequence[RunPart]) -> Mapping[str, Image]:
    """The pictures where the runs found them, if they are still the same."""
    images: dict[str, Image] = {}
    for part in parts:
        places = part.run.picture_places
        for answer in part.answers:
            image, place = answer.sample.image, places.get(answer.sample.id)
            if image is None or place is None or image.sha256 in images:
                continue
            file = Image.from_path(place)
            with suppress(BadImage):
                if file.sha256 == image.sha256:
                    images[image.sha256] = file
    return images


def find(wanted: Mapping[str, str], places: Sequence[Path]) -> Mapping[str, Image]:
    """The wanted pictures in files and folders, and in folders below; those with a wanted name are looked at first."""
    files = [file for place in places for file in find_files(place)]
    names = set(wanted.values())
    files.sort(key=lambda file: file.name not in names)
    images: dict[str, Image] = {}
    for file in files:
        if len(images) == len(wanted):
            break
        image = Image.from_path(file)
        try:
            if image.sha256 in wanted:
                images.setdefault(image.sha256, image)
        except BadImage:
            continue
    return images


def find_files(place: Path) -> Iterator[Path]:
    """The pictures that a place holds: itself, or all in a folder and below."""
    if place.is_file():
        yield place
    elif place.is_dir():
        yield from (file for file in sorted(place.rglob("*")) if file.suffix.lower() in SUFFIXES and file.is_file())


def _side(images: Sequence[Shown], room: int) -> int:
    """The largest side at which all are likely to fit, estimated from an even sample of them."""
    step = max(len(images) // _TRIED, 1)
    some = images[::step][:_TRIED]
    for side in SIDES:
        sizes = [len(data) for data in _made(some, side) if data is not None]
        if not sizes or sum(sizes) / len(sizes) * len(images) * 1.05 <= room:
            return side
    return SIDES[-1]


def _made(shown: Iterable[Shown], side: int) -> Iterator[bytes | None]:
    """Their thumbnails, made on all cores: Pillow holds up no other thread."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(partial(thumbnail, side=side), shown)


def thumbnail(shown: Image | Shown, side: int) -> bytes | None:
    """A JPEG file of at most `side` pixels on its longer side; None where the picture cannot be read."""
    try:
        return shown.thumbnail(side)
    except BadImage:
        return None
