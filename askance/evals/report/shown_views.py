"""What of a picture is drawn on a page: the regions that a sample is about, and each view that a model was shown.

A sample is about regions where its inputs have `regions`: for each its boxes, in pixels of the picture as its file
stores it. What a model was shown is read in the requests on record, what an agent looked at in its steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from askance.errors import UsageError
from askance.evals.report.transcript_part import looked_at
from askance.images import RegionView, Shown
from askance.images.shown import key_of_shown

if TYPE_CHECKING:
    from askance.evals.report.run_part import RunPart
    from askance.evals.sample import Sample
    from askance.replay import Record

MOST_REGIONS = 12
"""More regions than these would hide the picture that they are drawn on."""


def views_of(parts: Sequence[RunPart]) -> dict[str, tuple[str, RegionView]]:
    """By key of what is shown: the digest of the picture, and the view of it; in the order of the samples."""
    views: dict[str, tuple[str, RegionView]] = {}
    for part in parts:
        for answer in part.answers:
            image = answer.sample.image
            if image is not None and (regions := regions_of(answer.sample)) is not None:
                views.setdefault(regions.key, (image.sha256, regions.view))
            views |= {each.key: (each.image.sha256, each.view) for each in looked_at(answer)}
            for record in part.run.records.get_all(answer.keys).values():
                for form in image_forms(record):
                    views |= {key: (form["sha256"], view) for key, view in views_in(form).items()}
    return views


def regions_of(sample: Sample) -> Shown | None:
    """The picture of a sample with the regions that it is about; None where there are none, or too many."""
    regions: Any = sample.inputs.get("regions")
    if sample.image is None or not isinstance(regions, list) or not 0 < len(cast("list[Any]", regions)) <= MOST_REGIONS:
        return None
    try:
        boxes = tuple(tuple(box) for region in cast("list[Any]", regions) for box in region)
        return Shown(sample.image, view=RegionView("highlight", boxes, "native pixels"))
    except (OverflowError, TypeError, ValueError, UsageError):
        return None


def image_forms(record: Record) -> Iterator[Mapping[str, Any]]:
    """The canonical forms of what a request shows, where that is a view."""
    messages: list[Any] = record.request.get("messages", [])
    parts = [part for message in messages for part in message.get("parts", ())]
    for form in (*parts, record.request.get("image")):
        if isinstance(form, Mapping) and "view" in form:
            yield cast("Mapping[str, Any]", form)


def views_in(form: Mapping[str, Any]) -> dict[str, RegionView]:
    """By key: the view in a canonical form of what is shown; two where it is two pictures, none where it is unknown."""
    try:
        view = RegionView.from_form(form["view"])
        shown = [replace(view, show=show) for show in ("highlight", "crop")] if view.show == "both" else [view]
        return {key_of_shown({**form, "view": each.canonical()}): each for each in shown}
    except (KeyError, UsageError):
        return {}
