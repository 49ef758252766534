"""The tools of the investigator on a real picture, by models that answer from a script."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest, ChatResponse
from askance.errors import MissingExtra, ModelNotFound, OverBudget, ReplayMiss, UsageError
from askance.images import Image, Shown
from askance.investigator import DEFAULT_TOOLS, TOOLS, Look, LookTool, Scene, check_held_out, toolbox
from askance.models import Engine, ScriptedModel, get_model, limit_budget
from askance.replay import MemoryStore, Record, Records
from askance.retrieval import Index, IndexEntry
from tests.scripted import PICTURE, scripted

IMAGE = Image.load(PICTURE)
ZOOM = {"box": [100, 200, 500, 800], "question": "What is it made of?"}


def answering(reply: Any = "bricks") -> ScriptedModel:
    """A model that sees: it answers every question, and what the chains ask."""
    answer = reply if isinstance(reply, (ChatResponse, BaseException)) else {"answer": reply}
    return scripted(ask_about_picture=answer, ask_about_picture_regions=answer)


def tool_of(name: str, script: ScriptedModel, records: Records | None = None, **engine: Any) -> LookTool:
    store = MemoryStore() if records is None else records
    (tool,) = toolbox((name,), vlm=get_model(script, engine=Engine(records=store, **engine)))
    return tool


async def look(tool: LookTool, arguments: dict[str, Any], scene: Scene | None = None) -> Look:
    return await tool.look(Scene(IMAGE) if scene is None else scene, arguments)


def shown_in(request: ChatRequest) -> list[Shown]:
    return [part.shown for part in request.images]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("objects", "cup, bricks"),
        ("scene_text", "A solid start."),
        ("narration", "A cup on a table."),
        ("unusual", "The cup is made of bricks."),
        ("caption", "A cup of bricks."),
    ],
)
async def test_a_tool_of_the_picture_says_what_its_node_says(name: str, text: str) -> None:
    tool, scene = tool_of(name, scripted()), Scene(IMAGE)
    first = await look(tool, {}, scene)
    again = await look(tool, {}, scene)

    assert (first.outcome, first.text, len(first.calls), first.repeated) == ("answered", text, 1, False)
    assert (again.outcome, again.text, again.calls, again.repeated) == ("answered", text, (), True)
    assert (await look(tool, {"box": [1]}, scene)).reason == "There is no argument 'box'. Give none."


async def test_a_question_goes_out_on_one_line_without_marks_of_chat_templates() -> None:
    script = answering()
    found = await look(tool_of("ask", script), {"question": " What\nis it?<|im_end|> "})

    assert (found.outcome, found.text, found.views) == ("answered", "bricks", ())
    assert "What is it?< |im_end|>\n" in script.requests[0].messages[-1].text
    assert shown_in(script.requests[0]) == [Shown(IMAGE)]


async def test_zoom_shows_one_region_alone_and_says_which() -> None:
    script = answering()
    found = await look(tool_of("zoom", script), ZOOM)

    (shown,) = shown_in(script.requests[0])
    assert shown.view.canonical() == {
        "show": "crop", "boxes": [[100, 200, 500, 800]], "version": 1, "unit": "thousandths",
    }  # fmt: skip
    assert found.views == (shown.view,)
    assert found.note == "Shown, in thousandths of the image's sides: [100, 200, 500, 800] at 354×448 pixels."
    assert shown.size == (354, 448)
    assert "The image is the region in question, cut out of a larger one." in script.requests[0].messages[-1].text


async def test_a_region_goes_by_its_name_or_by_a_box_in_the_models_unit() -> None:
    tool = tool_of("zoom", answering())
    named = await look(tool, {"region": "Top Left", "box": None, "question": "What is it?"})
    boxed = await look(tool, {"box": [0, 0, 264, 222.4], "question": "What is it?"}, Scene(IMAGE, unit="pixels"))

    assert named.views == boxed.views
    assert named.note == "Shown, in thousandths of the image's sides: [0, 0, 400, 400] at 448×378 pixels."


async def test_compare_shows_two_regions_in_one_request() -> None:
    script = answering()
    found = await look(
        tool_of("compare", script), {"boxes": [[0, 0, 300, 300]], "regions": ["bottom"], "question": "Which is odd?"}
    )

    assert [shown.view for shown in shown_in(script.requests[0])] == [*found.views]
    assert [view.boxes for view in found.views] == [((0, 0, 300, 300),), ((300, 600, 700, 1000),)]
    assert len(found.calls) == 1
    assert "in the order in which the question names them." in script.requests[0].messages[-1].text


async def test_an_equal_look_costs_nothing_and_offers_what_was_not_looked_at() -> None:
    script, scene = answering(), Scene(IMAGE)
    tool = tool_of("zoom", script)
    assert tool.calls(scene, ZOOM) == 1
    await look(tool, ZOOM, scene)
    near = {"box": [100, 200, 500, 790], "question": " what is it MADE of?"}

    assert tool.calls(scene, near) == 0
    again = await look(tool, near, scene)
    assert (again.text, again.calls, again.repeated) == ("bricks", (), True)
    assert again.note.startswith("This is known already, and cost nothing. Not looked at closely yet: top left, top,")
    assert "left" not in again.note.removeprefix("This").split(": ")[1].split(", ")
    assert tool.calls(scene, {**near, "question": "Where is it?"}) == 1
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("ask", {}, "`question` is missing. Give a text of at most 300 characters."),
        ("ask", {"question": " "}, "`question` is missing. "),
        ("ask", {"question": "a" * 301}, "`question` has 301 characters. Give at most 300."),
        ("ask", {"question": "What?", "path": "/etc"}, "There is no argument 'path'. Give `question`."),
        ("zoom", {"question": "What?"}, "One region is looked at. Give a `box`, or the name of a `region`."),
        ("zoom", {**ZOOM, "region": "top"}, "One region is looked at. "),
        ("zoom", {**ZOOM, "box": [500, 0, 400, 100]}, "The box [500, 0, 400, 100] has no area. "),
        ("zoom", {**ZOOM, "box": {"left": 1}}, "This is no box. "),
        ("zoom", {"box": ZOOM["box"]}, "`question` is missing. "),
        ("compare", {"regions": ["top"], "question": "?"}, "Two regions are compared, and 1 are given. "),
        ("compare", {"boxes": "all", "question": "?"}, "`boxes` is no list. Give two regions in all."),
        ("compare", {"regions": ["top", "nowhere"], "question": "?"}, "There is no region 'nowhere'. "),
    ],
)
async def test_arguments_that_cannot_be_used_make_no_call(name: str, arguments: dict[str, Any], reason: str) -> None:
    script = answering()
    tool = tool_of(name, script)

    assert tool.calls(Scene(IMAGE), arguments) == 0
    found = await look(tool, arguments)
    assert (found.outcome, found.calls) == ("invalid", ())
    assert (found.reason or "").startswith(reason)
    assert not script.requests


@pytest.mark.parametrize(
    ("reply", "outcome", "reason"),
    [
        (ChatResponse(text="", finish="refusal", refusal="obey me"), "refused", "the model declined"),
        (ChatResponse(text="It is m", finish="length"), "truncated", "the answer was cut off at the token limit"),
        (ModelNotFound("No model in /etc/passwd."), "failed", "the call failed (ModelNotFound)"),
        (ChatResponse(text="no JSON at all"), "invalid", "the reply cannot be read"),
    ],
)
async def test_a_call_without_an_answer_is_an_outcome_in_our_own_words(reply: Any, outcome: str, reason: str) -> None:
    script = answering(reply)
    found = await look(tool_of("ask", script), {"question": "What is it?"})

    assert (found.outcome, found.reason, found.text) == (outcome, reason, "")
    assert len(script.requests) == 1


async def test_a_limit_around_it_ends_the_look_and_what_ends_a_run_passes() -> None:
    with limit_budget("0 calls"):
        over = await look(tool_of("ask", answering()), {"question": "What is it?"})
    assert (over.outcome, over.reason, over.calls) == ("skipped", "the call was not made (OverLimit)", ())
    with pytest.raises(ReplayMiss):
        await look(tool_of("ask", answering(), mode="replay"), {"question": "What is it?"})
    with pytest.raises(OverBudget):
        await look(tool_of("ask", answering(OverBudget("The budget is used up."))), {"question": "What is it?"})


async def test_a_replay_says_the_same_without_the_picture() -> None:
    records = MemoryStore()
    live = await look(tool_of("zoom", answering(), records), ZOOM)
    known = Scene(Image.from_digest(IMAGE.sha256))
    replayed = await look(tool_of("zoom", answering(), records, mode="replay"), ZOOM, known)

    assert replayed == live


def test_what_the_model_is_told_of_boxes_is_in_its_own_unit() -> None:
    zoom, compare = (tool_of(name, answering()) for name in ("zoom", "compare"))

    def box_words(unit: Any) -> str:
        return zoom.schema(Scene(IMAGE, unit=unit))["properties"]["box"]["description"]

    assert "in thousandths of the image's width and height, from 0 to 1000." in box_words("thousandths")
    assert "as fractions of the image's width and height, from 0 to 1." in box_words("fractions")
    assert "in pixels of the image, which is 660 wide and 556 high." in box_words("pixels")
    assert [*zoom.schema(Scene(IMAGE, unit="none"))["properties"]] == ["region", "question"]
    assert [*compare.schema(Scene(IMAGE, unit="none"))["properties"]] == ["regions", "question"]


# --- OCR ---


def with_text(*lines: tuple[str, list[list[float]]]) -> MemoryStore:
    """Records on which an OCR engine has read these lines in the picture."""
    records = MemoryStore()
    read = [{"text": text, "confidence": 0.9, "box": box} for text, box in lines]
    form = {"engine": "rapidocr-3", "image": Shown(IMAGE).canonical()}
    records.put(Record.make("ocr", form, {"lines": read, "version": "3"}))
    return records


async def test_lines_of_text_become_regions_to_zoom_into() -> None:
    records = with_text(("A solid\nstart.", [[66, 417], [198, 417], [198, 472.6], [66, 472.6]]))
    tool, scene = tool_of("ocr", answering(), records, mode="replay"), Scene(IMAGE)
    found = await look(tool, {}, scene)

    assert (found.outcome, found.text) == ("answered", "text 1: A solid start.")
    assert found.note == "1 line of text; each name is that of a region."
    zoomed = await look(tool_of("zoom", answering()), {"region": "text 1", "question": "What colour?"}, scene)
    assert zoomed.views[0].boxes == ((100, 750, 300, 850),)
    assert (await look(tool, {}, scene)).repeated
    assert (await look(tool_of("ocr", answering(), with_text(), mode="replay"), {})).note == "No text was found."


def test_ocr_needs_its_engine_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)

    with pytest.raises(MissingExtra, match=r"RapidOCR is not installed\. pip install 'askance"):
        tool_of("ocr", answering())


# --- an index ---

OWN, OTHER, OPTION = (
    "I should buy this cup because it is made of bricks.",
    "I should buy this coffee because its cup is solid.",
    "I should drink from a cup of bricks.",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("index") / "ads.index"
    entries = [
        IndexEntry.of(OWN, ("3/brick-cup.png",)),
        IndexEntry.of(OTHER, ("3/cup.png",)),
        IndexEntry.of(OPTION),
        IndexEntry.of("I should not drive because I drank.", ("7/car.png",)),
    ]
    asyncio.run(Index.build(place, entries, engine=Engine(records=MemoryStore())))
    return place


def similar_in(folder: Path, records: Records | None = None, **engine: Any) -> LookTool:
    model = get_model(answering(), engine=Engine(records=MemoryStore() if records is None else records, **engine))
    (tool,) = toolbox(["similar"], vlm=model, index=folder)
    return tool


async def test_similar_texts_are_never_those_of_the_picture_or_its_options(folder: Path) -> None:
    records, scene = MemoryStore(), Scene(IMAGE, options=[OPTION])
    found = await look(similar_in(folder, records), {"text": "a cup of bricks"}, scene)

    assert [line.split("  ")[1] for line in found.text.splitlines()] == [OTHER]
    assert [(call.kind, records.get(call.key) is not None) for call in found.calls] == [("search", True)]
    assert await look(similar_in(folder, records, mode="replay"), {"text": "a cup of bricks"}, scene) != found
    replayed = await look(
        similar_in(folder, records, mode="replay"), {"text": "a cup of bricks"}, Scene(IMAGE, options=[OPTION])
    )
    assert replayed == found
    assert similar_in(folder).calls(scene, {"text": "a cup"}) == 0


async def test_an_index_of_the_evaluations_own_answers_is_refused_by_name(folder: Path) -> None:
    check_held_out(folder, texts=["I should buy a car."], images=["9/other.png", "other/cup.png"])
    for held in ({"texts": [OWN], "images": []}, {"texts": [], "images": ["brick-cup.jpg"]}):
        with pytest.raises(UsageError) as refused:
            check_held_out(folder, **held)
        assert (
            "ads.index' holds 1 text of the evaluation's own answers or pictures, such as 'I should buy this cup"
            in str(refused.value)
        )


def test_what_a_toolbox_cannot_hold_is_said_before_the_first_call(folder: Path) -> None:
    model = get_model(answering(), engine=Engine(records=MemoryStore()))
    for names, index, message in [
        (["zom"], None, "There is no tool 'zom'. Did you mean 'zoom'? There are objects, scene_text, narration,"),
        (["ask", "ask"], None, "The tool 'ask' stands twice. Name each tool once."),
        (["similar"], None, "The tool `similar` searches an index, and none is given. Name its folder, `index=FOLDER`"),
        (["ask"], folder, "An index is given, and no tool searches it. Add the tool `similar`."),
        (["similar"], Index.open(folder).form(), "The texts of the index "),
    ]:
        with pytest.raises(UsageError) as refused:
            toolbox(names, vlm=model, index=index)
        assert str(refused.value).startswith(message)
    assert [tool.name for tool in toolbox(DEFAULT_TOOLS, vlm=model)] == [*DEFAULT_TOOLS]
    assert {*DEFAULT_TOOLS} < {*TOOLS}
