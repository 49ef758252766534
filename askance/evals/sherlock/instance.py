"""`Instance`: a region of an image with what people saw there and inferred from it, as it stands in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import md5
from sys import intern
from typing import Annotated, Any, NotRequired

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from askance.documents import validation_message
from askance.errors import BadData
from askance.evals.sherlock.layout import CHUNKS, Source, source_of
from askance.images.regions import Box, plain

MEND = "Fetch the file again; `askance data check sherlock DIR` lists every such place."

CONFIDENCES: Mapping[int, str] = {1: "possibly", 2: "likely", 3: "definitely"}
"""How sure an annotator may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A region of an image with one inference. A region may have several boxes."""

    id: str
    """The MD5 of what the file says of it, `instance_id`; of a region of the leaderboard its first `test_id`."""
    url: str
    """The address of the image, by which it is known; nothing is fetched from there."""
    width: int
    height: int
    boxes: tuple[Box, ...]
    """At least one, in pixels, as the file has them: parts of each lie in the image, and some run past its edge."""
    clue: str = ""
    """What is seen in the region; empty where the file does not say it."""
    inference: str = ""
    """What follows from it; empty where the file does not say it."""
    confidence: int | None = None
    """How sure the annotator was, 1 to 3: see `CONFIDENCES`."""
    chunk: int | None = None
    """The part of the validation corpus that it is in, 0 to 22."""

    @property
    def source(self) -> Source:
        """Where the image is from."""
        return source_of(self.url)


# --- rows of files ---

_Text = Annotated[str, Field(min_length=1, max_length=10_000)]
_Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e9, le=1e9)]
_Side = Annotated[int, Field(gt=0, le=1_000_000)]


class _BoxForm(TypedDict):
    left: _Number
    top: _Number
    width: _Number
    height: _Number


class _ImageForm(TypedDict):
    url: _Text
    width: _Side
    height: _Side


class _InputsForm(TypedDict):
    image: _ImageForm
    bboxes: list[_BoxForm]
    clue: _Text
    confidence: Annotated[float, Field(ge=1, le=3, multiple_of=1)]


class _TargetsForm(TypedDict):
    inference: _Text


class _InstanceForm(TypedDict):
    inputs: _InputsForm
    targets: _TargetsForm
    instance_id: _Text
    split_idx: NotRequired[Annotated[int, Field(ge=0, lt=CHUNKS)]]


class _PairForm(TypedDict):
    image: _ImageForm
    region: list[_BoxForm]
    inference: _Text
    test_id: _Text


@cache
def _rows(form: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def read_instance(row: object, where: str) -> Instance:
    """The instance in a row of the corpus.

    Raises:
        BadData: the row is not as it should be, a box lies outside its image, or the id is not the MD5 of `inputs`.
    """
    form: _InstanceForm = _checked(_InstanceForm, row, where)
    inputs = form["inputs"]
    raw: Any = row
    digest = md5(json.dumps(raw["inputs"], sort_keys=True).encode(), usedforsecurity=False).hexdigest()
    if form["instance_id"] != digest:
        raise BadData(
            f"{where}: its 'instance_id' is {form['instance_id'][:60]!r}, and the MD5 of its 'inputs' is {digest!r}.",
            hint=f"{MEND} In a file of your own, write that MD5 there.",
        )
    return Instance(
        id=digest,
        url=intern(inputs["image"]["url"]),
        width=inputs["image"]["width"],
        height=inputs["image"]["height"],
        boxes=_boxes(inputs["bboxes"], inputs["image"], where),
        clue=inputs["clue"],
        inference=form["targets"]["inference"],
        confidence=int(inputs["confidence"]),
        chunk=form.get("split_idx"),
    )


def read_pair(row: object, where: str) -> tuple[Instance, str]:
    """The region in a row of the leaderboard, without an inference of its own, and the inference to score it with.

    Raises:
        BadData: the row is not as it should be, or a box lies outside its image.
    """
    form: _PairForm = _checked(_PairForm, row, where)
    image = form["image"]
    region = Instance(
        id=form["test_id"],
        url=intern(image["url"]),
        width=image["width"],
        height=image["height"],
        boxes=_boxes(form["region"], image, where),
    )
    return region, form["inference"]


def read_proposals(value: object, size: tuple[int, int], where: str) -> tuple[list[Box], int]:
    """The boxes that a detector proposes for an image of that width and height.

    A detector may propose boxes of no area, or beside the image; they are left out.

    Returns:
        The boxes, and how many are left out.

    Raises:
        BadData: it is no list of boxes, or none is left.
    """
    forms: Sequence[_BoxForm] = _checked(list[_BoxForm], value, where)
    image, boxes = _ImageForm(url="", width=size[0], height=size[1]), list[Box]()
    for form in forms:
        with suppress(BadData):
            boxes.append(_box(form, image, where))
    if not boxes:
        raise BadData(f"{where}: there is no box in the image.", hint=MEND)
    return boxes, len(forms) - len(boxes)


def _checked(form: Any, value: object, where: str) -> Any:
    try:
        return _rows(form).validate_python(value, strict=True)
    except ValidationError as error:
        raise BadData(f"{where}: {validation_message(error)}.", hint=MEND) from error


def _boxes(forms: Sequence[_BoxForm], image: _ImageForm, where: str) -> tuple[Box, ...]:
    """The boxes of a region of an image."""
    if not forms:
        raise BadData(f"{where}: the region has no box.", hint=MEND)
    return tuple(_box(form, image, f"{where}: box {at} of the region") for at, form in enumerate(forms, start=1))


def _box(form: _BoxForm, image: _ImageForm, name: str) -> Box:
    if form["width"] <= 0 or form["height"] <= 0:
        raise BadData(f"{name} has no area: {form['width']:g}×{form['height']:g} pixels.", hint=MEND)
    left, top = plain(form["left"]), plain(form["top"])
    right, bottom = plain(form["left"] + form["width"]), plain(form["top"] + form["height"])
    if right <= 0 or bottom <= 0 or left >= image["width"] or top >= image["height"]:
        raise BadData(
            f"{name} lies outside the image of {image['width']}×{image['height']} pixels, from ({left}, {top}) to "
            f"({right}, {bottom}).",
            hint=f"Boxes are left, top, width and height in pixels. {MEND}",
        )
    return left, top, right, bottom
