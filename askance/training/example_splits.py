"""Splits of examples by group; and pictures that are kept out of training, by digest and by near-twins of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from askance.errors import BadImage, UsageError
from askance.evals.report.thumbnails import find_files
from askance.evals.run_format import DESCRIPTION
from askance.evals.suite.shots import TWINS
from askance.evals.suite.shuffle import stable_hash
from askance.images import Image
from askance.images.image import image_digest
from askance.training.training_set import Split, TrainingExample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.evals import Run
    from askance.models.encoders.embedder import RecordedEmbedder

    Numbers = NDArray[np.float64]

Kept = TypeVar("Kept", bound=TrainingExample)
PicturesOfGroups: TypeAlias = Mapping[str, Mapping[str, Image | None]]
"""By group and digest, the pictures that its examples are about; None where one is not at hand."""
_BLOCK = 1_000
"""Vectors that are compared with the others at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPictures:
    """Pictures that something is evaluated on."""

    digests: frozenset[str] = frozenset()
    images: tuple[Image, ...] = ()
    """Those that are at hand, so that near-twins of them can be found."""

    @classmethod
    def of(cls, places: Iterable[Path], *, open_run: Callable[[Path], Run]) -> EvaluationPictures:
        """The pictures in files and folders, and those of the samples of runs.

        Args:
            places: a run is its folder; of any other folder all pictures in it and below are taken.
            open_run: opens one.

        Raises:
            UsageError: there is no such place, or no picture in it.
        """
        images = dict[str, Image]()
        digests = set[str]()
        for place in places:
            found = _of_run(open_run(place)) if (place / DESCRIPTION).is_file() else _in_place(place)
            if not found:
                raise UsageError(
                    f"There is no picture in {str(place)!r} to keep out.",
                    hint="Name a folder of pictures, a picture, or the folder of a run.",
                )
            digests |= found.keys()
            images.update({digest: image for digest, image in found.items() if image is not None})
        return cls(digests=frozenset(digests), images=tuple(images.values()))


def _of_run(run: Run) -> dict[str, Image | None]:
    found = dict[str, Image | None]()
    for answer in run.answers:
        if answer.sample.image is not None and (digest := image_digest(answer.sample.image)) is not None:
            place = run.picture_places.get(answer.sample.id)
            file = None if place is None else Image.from_path(place)
            found[digest] = file if file is not None and image_digest(file) == digest else None
    return found


def _in_place(place: Path) -> dict[str, Image | None]:
    found = dict[str, Image | None]()
    for image in map(Image.from_path, find_files(place)):
        with suppress(BadImage):  # what is no picture is none to keep out
            _ = image.info
            found[image.sha256] = image
    return found


def split_by_group(
    examples: Sequence[Kept],
    *,
    validation: float = 0.1,
    seed: int = 0,
    held_out: Collection[str] = (),
) -> dict[Split, list[Kept]]:
    """The examples in splits; all of one group are in the same.

    Args:
        examples: each with its group.
        validation: share of the groups that are not held out, by which a training is stopped; one at least where it is
            not 0 and there are two.
        seed: of the drawing; a group more or less changes at most one other.
        held_out: groups of the split `test`.

    Raises:
        UsageError: the share is no part of 1.
    """
    if not 0 <= validation < 1:
        raise UsageError(f"A share of {validation:g} cannot be for validation.", hint="Give a part of 1, such as 0.1.")
    groups = sorted(
        {example.group for example in examples} - {*held_out},
        key=lambda group: stable_hash(seed, group, "validation"),
    )
    count = min(max(round(validation * len(groups)), 1 if validation else 0), len(groups) - 1)
    validated = {*groups[: max(count, 0)]}
    splits: dict[Split, list[Kept]] = {"train": [], "validation": [], "test": []}
    for example in examples:
        test = example.group in held_out
        splits["test" if test else "validation" if example.group in validated else "train"].append(example)
    return splits


UNPLACED = "nothing says which picture it is about"
SHOWN = "about a picture to evaluate on"
TWIN = "about a near-twin of a picture to evaluate on"
UNCOMPARED = "about a picture that is not at hand to be compared"


async def without_leaks(
    splits: Mapping[Split, Sequence[Kept]],
    pictures: PicturesOfGroups,
    kept_out: EvaluationPictures,
    *,
    embedder: RecordedEmbedder | None = None,
) -> tuple[dict[Split, list[Kept]], Counter[str]]:
    """The splits without examples about a picture to evaluate on, or a near-twin; and how many those were, by reason.

    Whether an example shows its picture makes no difference: a description of it would give it away, too.

    Args:
        splits: by group.
        pictures: by group, what its examples are about.
        kept_out: no split may have them. Of what `test` and `validation` have, `train` may have no near-twin.
        embedder: compares pictures: a cosine above `TWINS` makes two of them near-twins. None compares digests alone.

    Raises:
        BadImage: a picture cannot be used.
        UsageError: the embedder takes no pictures.
        CallError: the embedder failed.
    """
    why = dict[str, str]()
    checked = bool(kept_out.digests or splits.get("test"))
    protected = {image.sha256: image for image in kept_out.images}
    for split in ("test", "validation", "train"):
        groups = dict.fromkeys(example.group for example in splits.get(split, ()))
        for group in groups:
            if group not in pictures:
                why |= {group: UNPLACED} if checked else {}
            elif not kept_out.digests.isdisjoint(pictures[group]):
                why[group] = SHOWN
            elif embedder is not None and None in pictures[group].values():
                why[group] = UNCOMPARED
        if embedder is not None:
            images = {
                digest: image
                for group in groups
                if group not in why
                for digest, image in pictures.get(group, {}).items()
                if image is not None
            }
            twins = await _near_twins(embedder, [*images.values()], [*protected.values()])
            why |= {group: TWIN for group in groups if not twins.isdisjoint(pictures.get(group, {}))}
            protected |= {digest: image for digest, image in images.items() if digest not in twins}
    made: dict[Split, list[Kept]] = {
        split: [each for each in examples if each.group not in why] for split, examples in splits.items()
    }
    left_out = Counter(why[each.group] for examples in splits.values() for each in examples if each.group in why)
    return made, left_out


async def _near_twins(embedder: RecordedEmbedder, images: Sequence[Image], others: Sequence[Image]) -> set[str]:
    """Digests of those `images` that are near-twins of one of the `others`."""
    if not images or not others:
        return set()
    own, other = await _vectors(embedder, images), await _vectors(embedder, others)
    twins = set[str]()
    for start in range(0, len(images), _BLOCK):
        likest = (own[start : start + _BLOCK] @ other.T).max(axis=1)
        block = images[start : start + _BLOCK]
        twins |= {image.sha256 for image, cosine in zip(block, likest, strict=True) if cosine > TWINS}
    return twins


async def _vectors(embedder: RecordedEmbedder, images: Sequence[Image]) -> Numbers:
    """Vectors of length 1, a row each."""
    import numpy as np  # loading it takes long

    rows: Numbers = np.asarray(await asyncio.gather(*map(embedder.embed_image, images)), dtype=np.float64)
    lengths: Numbers = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return rows / np.where(lengths > 0, lengths, 1.0)
