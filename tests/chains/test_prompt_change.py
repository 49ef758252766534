"""Prompt files that were edited since their calls were recorded: a plan says which, and what changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image as Pillow

from askance.agents.combine import Combiner, Verbalizations
from askance.agents.inference import AcceptanceWeigher, InferenceQuestion, RatingWeigher
from askance.chains import Plan, action_reason, ask, plan
from askance.chains.prompt_change import PromptChange, prompt_change
from askance.chat import ChatResponse
from askance.images import Image
from askance.models import ScriptedModel
from askance.prompts import Form, PromptLibrary
from askance.prompts.word_diff import marked
from askance.replay import MemoryStore
from tests.scripted import OPTIONS, PICTURE, model_of, scripted

LIKELY = ChatResponse(text="yes", logprobs=({"token": "yes", "logprob": -0.1, "top": {"yes": -0.1, "no": -2.5}},))
GIVEN = {"image": PICTURE, "options": OPTIONS}


def edited(folder: Path, name: str, old: str, new: str, form: Form = "json") -> PromptLibrary:
    file = PromptLibrary([]).eject(name, form=form, to=folder)
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    return PromptLibrary([folder])


async def planned(store: MemoryStore, *, prompts: PromptLibrary | None = None, image: Path = PICTURE) -> Plan:
    chain = action_reason(model_of(scripted(), store), prompts=prompts)
    return await plan(chain, [{**GIVEN, "image": image}])


@pytest.fixture
async def recorded() -> MemoryStore:
    store = MemoryStore()
    await action_reason(model_of(scripted(), store)).ainvoke(GIVEN)
    return store


def words(change: PromptChange) -> list[str]:
    return [marked(each) for each in change.changes]


async def test_the_file_and_the_words_that_changed_are_told(recorded: MemoryStore, tmp_path: Path) -> None:
    prompts = edited(
        tmp_path, "narration", "Describe the image in detail.", "Describe the image in one short sentence."
    )
    (change,) = (await planned(recorded, prompts=prompts)).changed_prompts

    assert (change.file, change.links, change.overlay) == (tmp_path / "narration.json.prompt", ("narration",), True)
    assert words(change) == ["Describe the image in [-detail-]{+one short sentence+}. …"]


async def test_a_prompt_with_values_in_it_is_told_too(recorded: MemoryStore, tmp_path: Path) -> None:
    prompts = edited(tmp_path, "choose_action_reasons", "Based on the context", "By the context alone")
    (change,) = (await planned(recorded, prompts=prompts)).changed_prompts

    assert change.links == ("answers",)
    assert "[-Based on-]{+By+} the context{+ alone+}" in words(change)[0]


async def test_a_word_that_was_taken_out_is_told(recorded: MemoryStore, tmp_path: Path) -> None:
    prompts = edited(tmp_path, "unusual", "What is unusual about this image?", "What is unusual?")
    (change,) = (await planned(recorded, prompts=prompts)).changed_prompts

    assert words(change) == ["What is unusual[- about this image-]? …"]


@pytest.mark.parametrize("question", ["What is it?", "What is the cup?", "Is the image of a cup?"])
async def test_another_question_is_no_edit_of_the_prompt(question: str) -> None:
    chain = ask(model_of(ScriptedModel(lambda _: '{"answer": "Of bricks."}'), MemoryStore()))
    await chain.ainvoke({"image": PICTURE, "question": "What is the cup made of?"})
    again = await plan(chain, [{"image": PICTURE, "question": question}])

    assert (again.calls, again.changed_prompts) == (1, ())


async def test_nothing_is_said_where_nothing_or_something_else_changed(recorded: MemoryStore, tmp_path: Path) -> None:
    Pillow.new("RGB", (20, 20)).save(tmp_path / "new.png")
    same = edited(tmp_path / "same", "narration", "Describe", "Describe")
    told = await planned(recorded, prompts=same)
    new_picture = await planned(recorded, image=tmp_path / "new.png")
    nothing = await planned(MemoryStore())

    assert (told.calls, told.changed_prompts) == (0, ())
    assert (new_picture.calls, new_picture.changed_prompts) == (7, ())
    assert (nothing.calls, nothing.changed_prompts) == (7, ())


async def test_another_value_in_a_prompt_is_no_edit_of_it() -> None:
    store = MemoryStore()
    node = Combiner(model_of(scripted(), store))
    await node.ask({"narration": "A dog sits on a chair.", "unusual": "The chair stands on the ceiling."})
    asked = Verbalizations.model_validate(
        {"narration": "A dog sleeps beneath a table.", "unusual": "The chair stands on the ceiling."}
    )

    request = node.request(asked, "json_schema")
    assert prompt_change("description", node, [request], records=store) is None


async def test_a_record_of_another_prompt_is_no_earlier_state_of_this_one(tmp_path: Path) -> None:
    store = MemoryStore()
    model = model_of(ScriptedModel(lambda _: LIKELY, identity="eye"), store)
    asked = InferenceQuestion(image=Image.load(PICTURE), inference="It rained.")
    accepts, rates = AcceptanceWeigher(model, top=5, sees=True), RatingWeigher(model, top=5, sees=True)
    assert (await accepts.ask(asked)).answered
    prompts = edited(tmp_path, accepts.prompt_name, "Is it plausible?", "Is that likely?", form="text")
    newer = AcceptanceWeigher(model, top=5, sees=True, prompts=prompts)

    change = prompt_change("score", newer, [newer.request(asked, "paper")], records=store)
    assert change is not None
    assert "[-it plausible-]{+that likely+}" in words(change)[0]
    assert prompt_change("score", rates, [rates.request(asked, "paper")], records=store) is None
