"""`infer`: what can be inferred from a region of a picture; and the link that says which region."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from askance.chains import REGION, infer
from askance.errors import UsageError
from askance.images import RegionView
from askance.models import get_model
from tests.scripted import PICTURE, model_of, scripted

SAID: Mapping[str, Any] = {"infer_from_picture": {"inference": "“Somebody is late.”"}}


async def test_an_inference_is_asked_of_the_highlighted_region() -> None:
    script = scripted(**SAID)

    reading = await infer(model_of(script), boxes=["10,10,60,60.5", (1, 2, 30, 40)]).ainvoke(PICTURE)

    assert (reading.outcome, str(reading.reply and reading.reply.value)) == ("answered", "Somebody is late.")
    (request,) = script.requests
    view = RegionView("highlight", ((10, 10, 60, 60.5), (1, 2, 30, 40)))
    assert [part.shown.view for part in request.images] == [view]
    assert "The region in question is tinted and outlined in magenta." in request.messages[-1].text


async def test_a_region_may_be_given_with_each_picture() -> None:
    script = scripted(**SAID)
    chain = infer(model_of(script), boxes=["10,10,60,60"])

    of_boxes = await chain.ainvoke({"image": PICTURE, "region": [[1, 2, 30, 40]]})
    await chain.ainvoke({"image": PICTURE, "region": of_boxes.to_dict()["links"]["region"]["value"]})
    await chain.ainvoke(
        {"image": PICTURE, "region": {"show": "crop", "boxes": [[100, 200, 900, 950]], "unit": "thousandths"}}
    )

    shown = [request.images[0].shown.view for request in script.requests]
    assert shown == [
        RegionView("highlight", ((1, 2, 30, 40),)),  # the second is replayed
        RegionView("crop", ((100, 200, 900, 950),), unit="thousandths"),
    ]


async def test_both_views_are_two_pictures_in_one_question() -> None:
    script = scripted(**SAID)

    await infer(model_of(script), boxes=["100,100,900,900"], unit="thousandths", show="both").ainvoke(PICTURE)

    assert [part.shown.view.show for part in script.requests[0].images] == ["highlight", "crop"]


async def test_a_box_outside_the_picture_is_the_outcome_of_that_picture() -> None:
    nobody = get_model("openai:m@http://127.0.0.1:9/v1", protocol="paper")

    reading = await infer(nobody, boxes=["9000,10,9100,60"]).ainvoke(PICTURE)

    assert reading.outcome == "failed"
    assert "lies outside the picture 'brick-cup.jpg'" in str(reading.reason)


WRONG: Mapping[str, tuple[Any, str]] = {
    "no box": ((), "`infer` needs a region of the image, and no box is given."),
    "three edges": (["1,2,3"], "This is no box: '1,2,3'."),
    "words": (["left,2,3,4"], "This is no box: 'left,2,3,4'."),
    "no area": (["3,2,3,4"], "The box (3, 2, 3, 4) has no area: 0×2 pixels."),
}


@pytest.mark.parametrize(("boxes", "sentence"), WRONG.values(), ids=WRONG)
def test_boxes_that_cannot_be_boxes_are_named(boxes: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        infer(model_of(scripted()), boxes=boxes)

    assert caught.value.message == sentence


@pytest.mark.parametrize("given", ["left", {"boxes": [[1, 2, 3, 4]], "colour": "red"}, 7])
def test_what_is_no_region_cannot_be_given(given: Any) -> None:
    with pytest.raises(UsageError):
        REGION.value(given)


def test_the_chain_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(infer(get_model("openai:m@http://127.0.0.1:9/v1"), boxes=["1,2,3,4"])))

    assert [step.link.name for step in again.steps] == ["reply"]
