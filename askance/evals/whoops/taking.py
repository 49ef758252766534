"""Which images a task is about, and what every sample of one says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.errors import BadData, UsageError
from askance.evals.suite.folds import FOLDS, fold_of
from askance.evals.whoops.contexts import GOLD
from askance.evals.whoops.dataset import Whoops

if TYPE_CHECKING:
    from askance.evals.whoops.contexts import View
    from askance.evals.whoops.dataset import Need
    from askance.evals.whoops.entries import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where images come from, and which of them are taken."""

    data: Path
    ids: Path | Sequence[str] | None = None
    limit: int | None = None
    fold: int | None = None
    """Only the test images of this fold, from 0 (see `askance.evals.suite.folds`)."""
    seed: int = 0

    def form(self) -> dict[str, Any]:
        """What of it tells one run from another; the files do so by what is in them, which the samples show."""
        return {"seed": self.seed, **({} if self.fold is None else {"fold": self.fold})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The images of a task."""

    data: Whoops
    entries: tuple[Entry, ...]
    folds: Mapping[str, int]
    """By id, the fold in whose test an image is; empty where there are too few images for folds."""
    notes: tuple[str, ...]

    @property
    def categories(self) -> tuple[str, ...]:
        """The commonsense categories that there are."""
        return tuple(sorted({entry.category for entry in self.entries} - {""}))

    def tags(self, entry: Entry) -> dict[str, Any]:
        """Facts of an image to break figures down by: its commonsense category and its fold."""
        category = {"category": entry.category} if entry.category else {}
        return {**category, **({"fold": self.folds[entry.id]} if entry.id in self.folds else {})}


def taken(source: Source, view: View, *needs: Need) -> Taken:
    """The images that a task can be run on in a context; what is left out is told in the notes.

    Args:
        source: where they come from.
        view: what the answering model gets.
        needs: what every image must have.

    Raises:
        BadData: none is left, or what `Whoops` says.
        UsageError: the limit is below 1, or there is no such fold.
    """
    if source.limit is not None and source.limit < 1:
        raise UsageError(f"A limit of {source.limit} leaves no image.", hint="Give 1 or more.")
    data = Whoops.open(source.data, ids=source.ids)
    wanted: tuple[Need, ...] = (*needs, *(("image",) if view.looks else ()))
    left = data.with_all(*wanted)
    notes = [data.origin]
    if len(left) < len(data.entries):
        said = "; ".join(wanted)
        notes.append(f"{len(data.entries) - len(left):,} of {len(data.entries):,} images are left out: no {said}")
    if view.name == GOLD:
        left = tuple(entry for entry in left if gold_caption(entry))
        if not left:
            raise BadData(f"The images of {str(source.data)!r} have no captions.", hint="They are in `crowd_captions`.")
    places = _folds(data, seed=source.seed)
    if source.fold is not None:
        left = tuple(entry for entry in left if places.get(entry.id) == source.fold)
        notes.append(f"the {len(left):,} test images of fold {source.fold} of {FOLDS}, seed {source.seed}")
        if not left:
            raise UsageError(f"There is no image in fold {source.fold}.", hint=f"Folds are 0 to {FOLDS - 1}.")
    if source.limit is not None and source.limit < len(left):
        notes.append(f"the first {source.limit:,} of {len(left):,} images")
        left = left[: source.limit]
    return Taken(data=data, entries=left, folds=places, notes=tuple(notes))


def _folds(data: Whoops, *, seed: int) -> Mapping[str, int]:
    names = [entry.id for entry in data.entries]
    return fold_of(names, seed=seed) if len(names) >= FOLDS and not data.listed else {}


def gold_caption(entry: Entry) -> str:
    """The caption that people chose of an image, or else the first one; empty without any."""
    return entry.selected_caption or next(iter(entry.captions), "")
