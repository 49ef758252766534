"""`Whoops`: the weird images of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, TypeAlias

from askance.errors import BadData
from askance.evals.suite.files import Problems, noting
from askance.evals.suite.selection import read_names
from askance.evals.whoops.images import WeirdImage, entry_of
from askance.evals.whoops.layout import Layout, WhoopsRows, read_rows

IMAGES, TEXTS, QUESTIONS = 500, 2_500, 3_362
"""How many the published data have: images; captions, explanations and underspecified captions each; questions.

The paper says 3,374 questions; the data have 3,362.
"""

Need: TypeAlias = Literal["captions", "explanations", "underspecified", "questions", "image"]
"""Data that a task needs."""

_NEEDED: Mapping[Need, str] = {
    "captions": "captions (crowd_captions)",
    "explanations": "explanations (crowd_explanations)",
    "underspecified": "underspecified captions (crowd_underspecified_captions)",
    "questions": "questions (question_answering_pairs)",
    "image": "pictures",
}


@dataclass(frozen=True, kw_only=True)
class Whoops:
    """The weird images of a folder; `open` makes one."""

    folder: Path
    source: WhoopsRows
    entries: tuple[WeirdImage, ...]
    """In the order of the list of ids if there is one, else of the file."""
    known: tuple[str, ...]
    """Ids of all images of the folder, listed or not."""
    listed: bool = False
    """Whether the images were chosen by a list of ids."""

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        ids: str | Path | Iterable[str] | None = None,
        problems: Problems | None = None,
    ) -> Whoops:
        """The data in a folder, in any of the layouts (see `askance.evals.whoops.layout`).

        Args:
            folder: with the data set.
            ids: a file that lists images by id, or the ids; their order is kept.
            problems: takes the errors of single rows, which are then left out; without it the first error is raised.

        Raises:
            BadData: the folder is missing, a file or a row cannot be read, or an id is there twice or unknown.
            MissingExtra: there is an Arrow file, and pyarrow is not installed.
        """
        source = read_rows(Path(folder))
        by_id: dict[str, WeirdImage] = {}
        for place, (where, row) in enumerate(source.rows):
            with noting(problems):
                entry = entry_of(row, place, where=where, load=partial(source.load, place))
                if entry.id in by_id:
                    raise BadData(f"{where}: the image {entry.id!r} stands there twice.", hint="Keep one of the two.")
                by_id[entry.id] = entry
        if not by_id:
            raise BadData(f"{str(source.files[0])!r} has no row that can be used.", hint="Fetch it again.")
        chosen = by_id if ids is None else _listed(ids, by_id)
        return cls(
            folder=Path(folder),
            source=source,
            entries=tuple(chosen.values()),
            known=tuple(by_id),
            listed=ids is not None,
        )

    @property
    def layout(self) -> Layout:
        """The layout of the folder."""
        return self.source.layout

    @property
    def origin(self) -> str:
        """Which images these are, in words."""
        return f"{len(self.entries):,} {'listed ' if self.listed else ''}images of {len(self.source.rows):,}"

    @cached_property
    def _by_id(self) -> Mapping[str, WeirdImage]:
        return {entry.id: entry for entry in self.entries}

    @cached_property
    def _by_place(self) -> Mapping[int, WeirdImage]:
        return {entry.place: entry for entry in self.entries}

    def of_key(self, key: str) -> WeirdImage | None:
        """The image that a key in a file of others names: by its id, or by the position of its row, from 0.

        The benchmark of atypical ads re-cast WHOOPS! with the keys `'0'` to `'499'`, or `'0.png'` to `'499.png'`. They
        are positions of rows, as its code shows; no documentation says so.
        """
        name = key.rpartition("/")[2]
        stem = name.rpartition(".")[0] if "." in name else name
        for each in (key, name, stem):
            if each in self._by_id:
                return self._by_id[each]
        return self._by_place.get(int(stem)) if stem.isascii() and stem.isdecimal() and len(stem) < 7 else None

    def has(self, entry: WeirdImage, need: Need) -> bool:
        """Whether an image has what a task needs."""
        return self.source.has_picture(entry.place) if need == "image" else bool(getattr(entry, need))

    def with_all(self, *needs: Need) -> tuple[WeirdImage, ...]:
        """The images that have all of `needs`.

        Raises:
            BadData: no image has them.
        """
        left = self.entries
        for need in needs:
            complete = tuple(entry for entry in left if self.has(entry, need))
            if not complete:
                columns = ", ".join(self.source.columns)
                raise BadData(
                    f"The images of {str(self.folder)!r} have no {_NEEDED[need]}.",
                    hint=f"`askance data check whoops DIR` says what is there; columns: {columns}.",
                )
            left = complete
        return left


def _listed(ids: str | Path | Iterable[str], by_id: Mapping[str, WeirdImage]) -> Mapping[str, WeirdImage]:
    wanted = tuple(dict.fromkeys(read_names(Path(ids)) if isinstance(ids, (str, Path)) else ids))
    unknown = [name for name in wanted if name not in by_id]
    if unknown or not wanted:
        message = f"{len(unknown):,} of {len(wanted):,} listed images are not there, such as {unknown[0]!r}"
        raise BadData(f"{message if unknown else 'The list names no image'}.", hint="Images go by their `image_id`.")
    return {name: by_id[name] for name in wanted}


def counted(entries: Iterable[WeirdImage], of: Callable[[WeirdImage], tuple[object, ...]]) -> int:
    """The sum over the images of how many of something each has."""
    return sum(len(of(entry)) for entry in entries)
