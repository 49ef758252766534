"""`infer`: from a region of a picture to what can be inferred from it; and `REGION`, the link that says which region.

A chain that needs `REGION` is given it with each picture: a `RegionView`, a mapping of its fields, or boxes, which are
then highlighted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

from pydantic import Field

from askance.agents import RegionSubject, infer_from_picture
from askance.chains.chain import Chain, Step
from askance.chains.link import REPLY, Link
from askance.chains.reading import picture
from askance.errors import UsageError
from askance.images import RegionView

if TYPE_CHECKING:
    from askance.chains.reading import Reading
    from askance.chat import JsonObject
    from askance.models import ModelLike
    from askance.prompts import PromptLibrary

Box: TypeAlias = tuple[float, float, float, float]


def read_region(source: Any) -> RegionView:
    """The view that a mapping of its fields gives, or boxes, which are highlighted in it.

    Raises:
        UsageError: it is no view.
        TypeError: it is neither a mapping nor boxes, or has other fields.
    """
    given = cast("Mapping[str, Any]", source if isinstance(source, Mapping) else {"boxes": source})
    fields: dict[str, Any] = {"show": "highlight", "boxes": (), **given}
    fields["boxes"] = tuple(tuple(box) for box in fields["boxes"])
    return RegionView(**fields)


def _form_of(view: RegionView) -> JsonObject:
    return {"show": view.show, "boxes": [list(box) for box in view.boxes], "unit": view.unit, "style": view.style}


REGION: Link[RegionView] = Link("region", RegionView, read=read_region, write=_form_of)

_NUMBER = re.compile(r"\s*-?\d+(?:\.\d+)?\s*")


def read_box(text: str) -> Box:
    """The box in `LEFT,TOP,RIGHT,BOTTOM`.

    Raises:
        UsageError: it is no box.
    """
    edges = text.split(",")
    if len(edges) != 4 or not all(map(_NUMBER.fullmatch, edges)):
        raise UsageError(
            f"This is no box: {text!r}.", hint="Give four numbers, LEFT,TOP,RIGHT,BOTTOM: --box 329,119,418,287"
        )
    left, top, right, bottom = (float(edge) if "." in edge else int(edge) for edge in edges)
    return left, top, right, bottom


Boxes = Annotated[
    Sequence[str | Box],
    Field(
        alias="box",
        description="A box of the region, LEFT,TOP,RIGHT,BOTTOM, of which the last two are outside; a region may have "
        "several.",
    ),
]
RegionUnit = Annotated[
    Literal["pixels", "thousandths"],
    Field(description="Whether boxes are in pixels of the upright image, or in thousandths of its sides."),
]
RegionShow = Annotated[
    Literal["highlight", "crop", "both"],
    Field(description="How the region is shown: highlighted in the image, cut out of it, or both, as two images."),
]


def infer(
    vlm: ModelLike,
    llm: ModelLike | None = None,  # noqa: ARG001  # every chain takes one
    *,
    boxes: Boxes = (),
    unit: RegionUnit = "pixels",
    show: RegionShow = "highlight",
    prompts: PromptLibrary | None = None,
) -> Chain:
    """A region of a picture to what can be inferred from it (*The Abduction of Sherlock Holmes*, section 3).

    Args:
        vlm: sees the picture.
        llm: is not asked.
        boxes: of the region, each as four numbers, or as a text with commas between them. A picture with which another
            `region` is given has that one.
        unit: of the boxes.
        show: how the region is shown.
        prompts: where prompts are looked up.

    Raises:
        UsageError: there is no box, or one that cannot be a box.
    """
    if not boxes:
        raise UsageError(
            "`infer` needs a region of the image, and no box is given.",
            hint="Give its edges in pixels: --box LEFT,TOP,RIGHT,BOTTOM, such as --box 329,119,418,287.",
        )
    read = tuple(read_box(box) if isinstance(box, str) else box for box in boxes)
    view = RegionView(show=show, boxes=read, unit=unit)
    node = infer_from_picture(vlm, prompts=prompts)
    step = Step(link=REPLY, node=node, needs=(REGION,), subject=partial(region_of, otherwise=view))
    return Chain("infer", target=REPLY, steps=[step], mode=node.model.mode)


def region_of(reading: Reading, *, otherwise: RegionView | None = None) -> RegionSubject:
    """The region of a picture that is asked about.

    Args:
        reading: with the picture.
        otherwise: the region where none is given with the picture; None where one has to be.

    Raises:
        BadImage: the picture cannot be used.
        Skipped: no region is given.
    """
    view = reading.value(REGION) or otherwise or reading.require(REGION)
    return RegionSubject(image=picture(reading), view=view, examples=reading.examples)
