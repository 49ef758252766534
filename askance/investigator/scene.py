"""The scene of an investigation: one picture, its regions, how boxes are read, and what was asked about it so far."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from askance.errors import UsageError
from askance.images import CLEAN_POLICY, RegionView, Shown
from askance.images.regions import iou
from askance.investigator.named_regions import GRID, region_named

if TYPE_CHECKING:
    from askance.images import Image, ImagePolicy
    from askance.images.regions import Box
    from askance.models.box_unit import BoxUnit

EQUAL = 0.9
"""Intersection over union from which two boxes are the same look."""
SEEN = 0.5
"""Share of a region that was looked at, from which it is no longer offered."""
_FARTHEST = 1e12
"""No edge is so far away; a whole number may be larger than every float."""
OUTSIDE = 0.1
"""How far, in parts of a side, a box may reach out of the picture and be clipped; further out it is refused."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a tool asks about a picture."""

    tool: str
    question: str = ""
    views: tuple[RegionView, ...] = ()
    """Of a single box in thousandths each; none for the whole picture."""

    def is_like(self, other: Asked) -> bool:
        """Whether `other` is an equal look: the same question but for case and white space, and nearly equal boxes."""
        return (
            self.tool == other.tool
            and _folded(self.question) == _folded(other.question)
            and len(self.views) == len(other.views)
            and all(iou(one.boxes[0], two.boxes[0]) >= EQUAL for one, two in zip(self.views, other.views, strict=True))
        )


class Scene:
    """One picture that is looked at.

    Args:
        image: the picture.
        unit: of the boxes that the investigating model gives.
        policy: how the picture is prepared for that model, whose pixels boxes may count.
        options: the texts that may be chosen from; a search does not show them.
    """

    def __init__(
        self,
        image: Image,
        *,
        unit: BoxUnit = "thousandths",
        policy: ImagePolicy = CLEAN_POLICY,
        options: Collection[str] = (),
    ) -> None:
        self.image = image
        self.unit: BoxUnit = unit
        self.options = frozenset(options)
        self.regions: dict[str, Box] = dict(GRID)
        """By name, in thousandths: the grid, and lines of text once they were read."""
        self._policy = policy
        self._asked: list[tuple[Asked, asyncio.Future[Any]]] = []

    @property
    def unit_words(self) -> str:
        """How a model is told to give a box.

        Raises:
            BadImage: boxes are in pixels, and the picture cannot be read.
        """
        edges = "[left, top, right, bottom]"
        if self.unit == "pixels":
            width, height = self._sides
            return f"{edges} in pixels of the image, which is {width} wide and {height} high."
        if self.unit == "fractions":
            return f"{edges} as fractions of the image's width and height, from 0 to 1."
        return f"{edges} in thousandths of the image's width and height, from 0 to 1000."

    def box(self, edges: object) -> RegionView:
        """The crop of a box in the unit of the scene: clipped to the picture, in whole thousandths.

        Raises:
            UsageError: it is no box, has no area, lies outside the picture, or is in another unit.
            BadImage: boxes are in pixels, and the picture cannot be read.
        """
        if self.unit == "none":
            raise UsageError("Boxes are not taken here.", hint="Give the name of a region.")
        if not isinstance(edges, (list, tuple)) or len(cast("Sequence[Any]", edges)) != 4:
            raise UsageError("This is no box.", hint=f"Give four numbers: {self.unit_words}")
        numbers = cast("Sequence[Any]", edges)
        if not all(type(edge) in {int, float} and abs(edge) < _FARTHEST for edge in numbers):
            raise UsageError("The edges of a box are numbers.", hint=f"Give {self.unit_words}")
        return self._crop(cast("Sequence[float]", numbers))

    def _crop(self, edges: Sequence[float]) -> RegionView:
        parts = [edge / side for edge, side in zip(edges, self._sides * 2, strict=True)]
        left, top, right, bottom = parts
        shown = f"[{', '.join(f'{edge:g}' for edge in edges)}]"
        if right <= left or bottom <= top:
            raise UsageError(f"The box {shown} has no area.", hint=f"Give {self.unit_words}")
        tiny = self.unit != "fractions" and max(edges) <= 1
        if tiny or min(parts) < -OUTSIDE or max(parts) > 1 + OUTSIDE:
            where = "is in another unit" if tiny else "lies outside the image, or is in another unit"
            raise UsageError(f"The box {shown} {where}.", hint=f"Give {self.unit_words}")
        clipped = [round(1000 * min(1.0, max(0.0, part))) for part in parts]
        if clipped[2] <= clipped[0] or clipped[3] <= clipped[1]:
            raise UsageError(f"Nothing of the image is in the box {shown}.", hint="Give a larger one.")
        return crop_of(cast("Box", tuple(clipped)))

    @property
    def _sides(self) -> tuple[float, float]:
        """Width and height of the picture in the unit of the boxes."""
        if self.unit == "pixels":
            return Shown(self.image, self._policy).size
        return (1, 1) if self.unit == "fractions" else (1000, 1000)

    def region(self, name: object) -> RegionView:
        """The crop of a region by its name.

        Raises:
            UsageError: there is no region of the name.
        """
        if not isinstance(name, str):
            raise UsageError("A region is given by its name.", hint=f"There are {', '.join(self.regions)}.")
        return crop_of(region_named(name, self.regions))

    def knows(self, asked: Asked) -> bool:
        """Whether an equal look was taken, or is under way."""
        return self._future(asked) is not None

    async def once(
        self, asked: Asked, take: Callable[[], Awaitable[T]], *, stays: Callable[[T], bool]
    ) -> tuple[T, bool]:
        """What `take` gives, or gave when an equal look was taken; and whether that was before.

        Args:
            asked: what is asked.
            take: takes the look.
            stays: whether what it gave answers equal looks from then on; a call that failed may be tried again.
        """
        if (future := self._future(asked)) is not None:
            return await asyncio.shield(future), True
        entry = asked, cast("asyncio.Future[T]", asyncio.get_running_loop().create_future())
        self._asked.append(entry)
        try:
            given = await take()
        except BaseException:
            self._asked.remove(entry)
            entry[1].cancel()
            raise
        entry[1].set_result(given)
        if not stays(given):
            self._asked.remove(entry)
        return given, False

    def _future(self, asked: Asked) -> asyncio.Future[Any] | None:
        return next((future for before, future in self._asked if before.is_like(asked)), None)

    @property
    def unseen(self) -> Sequence[str]:
        """Names of the regions that nobody has looked at closely."""
        boxes = [view.boxes[0] for asked, _ in self._asked for view in asked.views]
        return [
            name
            for name, region in self.regions.items()
            if not any(_shared(region, box) >= SEEN * _area(region) for box in boxes)
        ]


def crop_of(box: Box) -> RegionView:
    """The view that is cut out at a box in thousandths."""
    return RegionView("crop", (box,), unit="thousandths")


def _shared(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0, width) * max(0, height)


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _folded(question: str) -> str:
    return " ".join(question.casefold().split())
