"""Regions of samples as they are shown, and pools of samples that are held against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from askance.chat import canonical_json
from askance.errors import BadImage, UsageError
from askance.evals.sample import INFERENCES, REGIONS
from askance.images import WHOLE_IMAGE, RegionView

if TYPE_CHECKING:
    from askance.evals.sample import Sample
    from askance.images import Image

SHOW: Final = "show"
"""The input of a sample that says how its regions are shown."""
PLACE: Final = "place"
"""The tag of a sample with its place in its pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region of a picture, and how it is shown."""

    name: str
    """Its image and its boxes: regions of a pool that are shown alike have one name."""
    image: Image | None
    view: RegionView

    @property
    def picture(self) -> Image:
        """The picture.

        Raises:
            UsageError: there is none.
        """
        if self.image is None:
            raise UsageError(f"The region {self.name!r} has no picture.", hint="Give `images`, the folder of pictures.")
        return self.image


def regions_of(sample: Sample) -> Sequence[Region]:
    """The regions of a sample, as they are shown."""
    boxes: Sequence[Any] = sample.inputs[REGIONS]
    show = sample.inputs[SHOW]
    return [
        Region(name=f"{sample.cluster}, {region}", image=sample.image, view=view_of(region, show=show))
        for region in boxes
    ]


def view_of(boxes: Sequence[Sequence[float]], *, show: Any) -> RegionView:
    """A region as the authors draw it; boxes are in pixels of the picture as its file has it."""
    if show == "whole":
        return WHOLE_IMAGE
    corners = tuple(cast("tuple[float, float, float, float]", tuple(box)) for box in boxes)
    return RegionView(show, corners, unit="native pixels", style="sherlock")


class SamplePool:
    """Samples that are held against each other: each is one region with its own inference.

    Args:
        samples: in the order of their places.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self.places: Mapping[str, int] = {sample.id: place for place, sample in enumerate(samples)}
        """By id of a sample its place."""

    @property
    def regions(self) -> Sequence[Region]:
        """The region of each sample."""
        return [regions_of(sample)[0] for sample in self.samples]

    @property
    def inferences(self) -> Sequence[str]:
        """The inference of each sample."""
        return [sample.inputs[INFERENCES][0] for sample in self.samples]

    @cached_property
    def columns(self) -> Mapping[str, int]:
        """As of `columns_of`, of its inferences."""
        return columns_of(self.inferences)

    @cached_property
    def digest(self) -> str:
        """Of what decides its scores: the pictures, the views and the inferences."""
        digest = sha256()
        for region, text in zip(self.regions, self.inferences, strict=True):
            digest.update(canonical_json([_digest_of(region), region.view.canonical(), text]).encode() + b"\n")
        return digest.hexdigest()


def columns_of(inferences: Sequence[str]) -> Mapping[str, int]:
    """By text its column of a matrix; of equal texts, whose scores are equal, the first."""
    return {text: place for place, text in reversed([*enumerate(inferences)])}


def _digest_of(region: Region) -> str | None:
    try:
        return region.picture.sha256
    except BadImage:  # its file cannot be read, so that it has no scores
        return None


class SamplePools:
    """The samples of a task, by what they are held against.

    Args:
        by: the tag by whose value samples are pooled; empty where each has all of its regions and inferences itself.
        samples: gives the samples, when they are first needed.
    """

    def __init__(self, by: str, samples: Callable[[], Sequence[Sample]]) -> None:
        self.by = by
        self.samples = samples

    def __bool__(self) -> bool:
        """Whether samples are pooled."""
        return bool(self.by)

    def value(self, sample: Sample) -> Any:
        """What names the pool of a sample."""
        return sample.tags[self.by]

    def of(self, sample: Sample) -> SamplePool:
        """The pool of a sample.

        Raises:
            UsageError: the sample is none of the task's.
        """
        pool = self._by_value.get(self.value(sample))
        if pool is None or sample.id not in pool.places:
            raise UsageError(
                f"The sample {sample.id!r} is not among those that it is held against.",
                hint="Make the task anew, with all of its samples.",
            )
        return pool

    @cached_property
    def sizes(self) -> Sequence[int]:
        """How many samples each pool has."""
        return [len(pool.samples) for pool in self._by_value.values()]

    @cached_property
    def _by_value(self) -> Mapping[Any, SamplePool]:
        by_value: dict[Any, list[Sample]] = {}
        for sample in sorted(self.samples(), key=lambda sample: sample.tags[PLACE]):
            by_value.setdefault(self.value(sample), []).append(sample)
        return {value: SamplePool(samples) for value, samples in by_value.items()}
