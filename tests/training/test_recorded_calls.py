"""Examples made of recorded calls: which ones, what each of them holds, and what is left out of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from askance.chains import verbalize
from askance.chat import ChatRequest, ChatResponse
from askance.errors import UsageError
from askance.evals import Run
from askance.evals.run import picture_answer
from askance.evals.sample import Score
from askance.images import Image, RegionView, Shown
from askance.replay import MemoryStore, Record
from askance.training.recorded_calls import CallFilter, RecordedExamples, examples_of_records, examples_of_runs
from tests.faults.run import picture
from tests.scripted import model_of, scripted

PICTURES = [picture(number) for number in range(3)]
AT_HAND = {image.sha256: image for image in PICTURES}
JUDGE = {"judge": "a judge", "digest": "d", "card": {"accuracy": 0.9}}


def at_hand(wanted: Mapping[str, str]) -> Mapping[str, Image]:
    return {digest: AT_HAND[digest] for digest in wanted if digest in AT_HAND}


def run_over(images: Sequence[Image] = PICTURES, scores: Sequence[Score | None] = (), **replies: Any) -> Run:
    """A run over pictures, whose answers a script gives."""
    records = MemoryStore()
    chain = verbalize(model_of(scripted(**replies), records))
    answers = [picture_answer(chain.invoke({"image": image}).to_dict()) for image in images]
    scored = [replace(answer, score=score) for answer, score in zip(answers, scores, strict=bool(scores))]
    return Run.unkept({"chain": "verbalize"}, answers=scored or answers, records=records)


def texts(made: RecordedExamples) -> list[str]:
    return [example.completion[0]["content"][0]["text"] for example in made.examples]


def test_a_call_becomes_what_was_asked_and_answered() -> None:
    run = run_over(PICTURES[:1])

    made = examples_of_runs([run], CallFilter(links=("narration",)), pictures=at_hand)

    (example,) = made.examples
    (record,) = [each for each in run.records if each.request["response"]["name"] == "narration"]
    system, user = example.prompt
    assert system == {
        "role": "system",
        "content": [{"type": "text", "text": record.request["messages"][0]["parts"][0]["text"]}],
    }
    assert [part["type"] for part in user["content"]] == ["image", "text"]
    assert user["content"][1]["text"] == record.request["messages"][1]["parts"][1]["text"]
    assert example.completion == (
        {"role": "assistant", "content": [{"type": "text", "text": '{"description": "A cup on a table."}'}]},
    )
    assert example.images == (PICTURES[0],)
    assert {name: example.meta[name] for name in ("key", "link", "sample")} == {
        "key": record.key,
        "link": "narration",
        "sample": PICTURES[0].name,
    }
    assert example.meta["schema"]["required"] == ["description"]
    assert made.models == ("scripted",)


def seen(request: ChatRequest) -> Any:
    return {"description": f"The picture {request.images[0].shown.image.sha256[:4]}."}


def test_all_calls_about_a_picture_are_one_group_be_they_of_two_runs() -> None:
    two = [run_over(narration=seen), run_over(narration=seen, unusual={"unusual": "Nothing."})]

    made = examples_of_runs(two, CallFilter(), pictures=at_hand)

    assert {example.group for example in made.examples} == {*made.names} == {*made.pictures}
    assert len(made.pictures) == 3
    assert {len(example.images) for example in made.examples} == {0, 1}, "the step that reads words is among them"
    assert all({*pictures} <= made.names[group] for group, pictures in made.pictures.items())


def test_words_that_stand_for_several_pictures_are_left_out_though_one_is_not_wanted() -> None:
    scores = [Score(values={"accuracy": value}) for value in (1.0, 0.0)]

    made = examples_of_runs([run_over(PICTURES[:2])], CallFilter(links=("description",)), pictures=at_hand)
    unwanted = examples_of_runs(
        [run_over(PICTURES[:2], scores)],
        CallFilter(links=("description",), min_scores={"accuracy": 1}),
        pictures=at_hand,
    )

    assert made.examples == unwanted.examples == []
    assert made.left_out["the same words are about several pictures"] == 1
    assert len(made.pictures) == 2


REFUSED = ChatResponse(text="I cannot", refusal="I cannot")
CUT = ChatResponse(text='{"description": "A', finish="length")
LEFT_OUT: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "refused": ({"narration": REFUSED}, {"the link ended as refused": 1}),
    "cut off": ({"narration": CUT}, {"the link ended as truncated": 1}),
    "unread": ({"narration": "what?"}, {"the link ended as invalid": 1}),
}


@pytest.mark.parametrize(("replies", "left_out"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_is_no_answer_is_left_out_and_counted(replies: dict[str, Any], left_out: dict[str, int]) -> None:
    made = examples_of_runs(
        [run_over(PICTURES[:1], **replies)], CallFilter(links=("narration", "objects")), pictures=at_hand
    )

    assert [example.meta["link"] for example in made.examples] == ["objects"]
    assert made.left_out == left_out


def test_a_reply_that_was_asked_for_again_is_left_out() -> None:
    def at_second(request: ChatRequest) -> Any:
        return {"description": "Better."} if len(request.messages) > 2 else "no object"

    made = examples_of_runs(
        [run_over(PICTURES[:1], narration=at_second)], CallFilter(links=("narration",)), pictures=at_hand
    )

    assert [json.loads(text) for text in texts(made)] == [{"description": "Better."}]
    assert [turn["role"] for turn in made.examples[0].prompt] == ["system", "user", "assistant", "user"]
    assert made.left_out == {"the reply lacks what its schema asks for": 1}


def test_thinking_is_left_out() -> None:
    thought = ChatResponse(
        text='<think>It is {"description": "no"}?</think>\n{"description": "A cup."}', thinking="Hm, a cup."
    )

    made = examples_of_runs(
        [run_over(PICTURES[:1], narration=thought)], CallFilter(links=("narration",)), pictures=at_hand
    )

    assert texts(made) == ['{"description": "A cup."}']
    assert "Hm" not in str(made.examples)


def test_a_call_whose_picture_is_not_at_hand_is_left_out() -> None:
    made = examples_of_runs([run_over(PICTURES[:2])], CallFilter(links=("narration",)), pictures=lambda _: {})

    assert made.examples == []
    assert made.left_out == {"a picture is not at hand": 2}
    assert [*made.pictures.values()] == [{image.sha256: None} for image in PICTURES[:2]]


def test_answers_are_taken_by_their_scores() -> None:
    scores = [Score(values={"accuracy": value}) for value in (1.0, 0.4)]
    run = run_over(scores=[*scores, None])

    made = examples_of_runs([run], CallFilter(links=("narration",), min_scores={"accuracy": 0.5}), pictures=at_hand)

    assert [example.meta["score"] for example in made.examples] == [{"accuracy": 1.0}]
    assert made.left_out == {"accuracy below 0.5": 1, "the answer has no score": 1}
    with pytest.raises(UsageError) as caught:
        examples_of_runs([run], CallFilter(min_scores={"bleu": 1}), pictures=at_hand)
    assert str(caught.value) == "The run 'readings' has no score 'bleu'. It has accuracy."


def test_answers_are_taken_by_a_judge_that_has_a_card() -> None:
    right, wrong = (Score(values={"judged": value}, notes={"judge": JUDGE}) for value in (1.0, 0.0))
    wanted = CallFilter(links=("narration",), judged=True)

    made = examples_of_runs([run_over(scores=[right, wrong, right])], wanted, pictures=at_hand)

    assert [example.images for example in made.examples] == [(PICTURES[0],), (PICTURES[2],)]
    assert made.left_out == {"judged below 1": 1}
    no_card = replace(right, notes={"judge": {**JUDGE, "card": None}})
    with pytest.raises(UsageError, match="has no card: how often it is wrong is not known"):
        examples_of_runs([run_over(scores=[right, no_card, right])], wanted, pictures=at_hand)
    with pytest.raises(UsageError, match="No judge has scored the run"):
        examples_of_runs([run_over()], wanted, pictures=at_hand)


def test_models_are_taken_by_name_and_equal_answers_once() -> None:
    twice = [run_over(PICTURES[:1]), run_over(PICTURES[:1])]
    assert examples_of_runs(twice, CallFilter(models=("script",)), pictures=at_hand).examples
    assert not examples_of_runs(twice, CallFilter(models=("gpt*",)), pictures=at_hand).examples

    (record,) = [each for each in twice[0].records if each.request["response"]["name"] == "narration"]
    again = Record.make("chat", {**record.request, "draw": 1}, record.response)
    made = examples_of_records([record, again], CallFilter(dedupe=True), pictures=at_hand)
    assert len(made.examples) == 1
    assert made.left_out == {"equal to another": 1}


def test_records_alone_say_neither_link_nor_what_a_text_is_about() -> None:
    run = run_over(PICTURES[:1])

    made = examples_of_records(run.records, CallFilter(), pictures=at_hand)

    seeing = {example.group for example in made.examples if example.images}
    reading = {example.group for example in made.examples if not example.images}
    assert {*made.pictures} == seeing
    assert reading
    assert not reading & seeing
    for wanted in (CallFilter(links=("narration",)), CallFilter(min_scores={"accuracy": 1}), CallFilter(judged=True)):
        with pytest.raises(UsageError, match="Records alone do not say which link a call was for"):
            examples_of_records(run.records, wanted, pictures=at_hand)


def test_of_a_view_what_was_sent_is_the_picture() -> None:
    view = RegionView("crop", ((0, 0, 8, 8),))
    run = run_over(PICTURES[:1])
    record = next(each for each in run.records if each.images)
    request = json.loads(json.dumps(record.request))
    request["messages"][1]["parts"][0]["view"] = view.canonical()

    made = examples_of_records([Record.make("chat", request, record.response)], CallFilter(), pictures=at_hand)

    ((shown,),) = [example.images for example in made.examples]
    assert shown.data == Shown(PICTURES[0], view=view).prepare().data
    request["messages"][1]["parts"][0]["view"] = {"show": "sideways"}
    made = examples_of_records([Record.make("chat", request, record.response)], CallFilter(), pictures=at_hand)
    assert made.left_out == {"a view of its picture cannot be drawn": 1}


def test_calls_with_tools_are_left_out() -> None:
    run = run_over(PICTURES[:1])
    record = next(each for each in run.records if each.images)
    asked = Record.make("chat", {**record.request, "tools": [{"name": "zoom"}]}, record.response)

    made = examples_of_records([asked], CallFilter(), pictures=at_hand)

    assert made.left_out == {"with tools": 1}
