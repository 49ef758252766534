"""Small worlds in which looking wins, and one in which it does harm."""

from __future__ import annotations

import json
from typing import Any

from askance.agents import explain_from_picture
from askance.chat import ChatRequest, ChatResponse, ToolCall
from askance.images.regions import Box
from askance.models import Engine, ScriptedModel, get_model
from askance.replay import MemoryStore
from tests.investigator.agents import CALLS_TOOLS, IMAGE, agent_script, answer, call, eye_script, looking, tools_of

CLUE: Box = (700, 650, 780, 760)
"""Where the clue is, in thousandths; in the whole picture it is too small to be seen."""
SEEN_WHOLE, SEEN_CLOSE = "A street with a clock.", "The clock on the wall runs backwards."


def scene(request: ChatRequest) -> str:
    """What is seen in the picture as it is shown: the clue only where a crop is small enough around it."""
    (part,) = request.images
    view = part.shown.view
    if view.show != "crop":
        return SEEN_WHOLE
    left, top, right, bottom = view.boxes[0]
    inside = left <= CLUE[0] and top <= CLUE[1] and right >= CLUE[2] and bottom >= CLUE[3]
    close = (right - left) * (bottom - top) < 10 * (CLUE[2] - CLUE[0]) * (CLUE[3] - CLUE[1])
    return SEEN_CLOSE if inside and close else "Nothing to speak of."


def zooms_where_unusual(request: ChatRequest) -> ToolCall:
    """Zooms into the regions one after another, and then closer into the first where something is to be seen."""
    tries = [message for message in request.messages if message.role == "tool"]
    seen = [message.text for message in tries if "backwards" in message.text]
    if seen or tools_of(request) == ("answer",):
        return answer("The clock runs backwards." if seen else "Nothing is unusual.")
    boxes = [[0, 0, 300, 300], [650, 600, 850, 800], [300, 300, 600, 600]]
    return call("zoom", box=boxes[len(tries) % 3], question="What is here?")


async def test_an_agent_that_zooms_finds_what_the_picture_as_a_whole_does_not_show() -> None:
    fixed = ScriptedModel(
        lambda request: json.dumps({"explanation": scene(request)}), identity="eye", capabilities=CALLS_TOOLS
    )
    in_one_go = await explain_from_picture(get_model(fixed, engine=Engine(records=MemoryStore()))).ask(IMAGE)
    looked = await looking(agent_script(zooms_where_unusual), eye_script(scene), calls=8).ask(IMAGE)

    assert (str(in_one_go.value), str(looked.value)) == (SEEN_WHOLE, "The clock runs backwards.")
    assert len(looked.calls) == 5


async def test_an_agent_that_looks_at_a_misleading_place_does_worse() -> None:
    def misled(request: ChatRequest) -> Any:
        if len(request.messages) == 2:
            return call("zoom", region="top left", question="Is it odd?")
        return answer("A sign says that all is well." if "well" in request.messages[-1].text else SEEN_CLOSE)

    def sign(request: ChatRequest) -> ChatResponse | str:
        return "A sign says that all is well." if request.images[0].shown.view.show == "crop" else SEEN_CLOSE

    without = await looking(agent_script(lambda _: answer(SEEN_CLOSE)), eye_script(sign)).ask(IMAGE)
    looked = await looking(agent_script(misled), eye_script(sign)).ask(IMAGE)

    assert (str(without.value), str(looked.value)) == (SEEN_CLOSE, "A sign says that all is well.")
