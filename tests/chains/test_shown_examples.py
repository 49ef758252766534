"""Examples travel through a chain to the node that answers, and plans count what is asked behind them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler

from askance.chains import Chain, action_reason, end_to_end, explain, plan, verbalize
from askance.chains.reading import reading_of
from askance.chat import ChatRequest
from askance.errors import UsageError
from askance.images import Image
from askance.models import ScriptedModel
from askance.nodes import Example
from askance.prompts import PromptLibrary
from tests.example_prompts import with_example
from tests.scripted import OPTIONS, PICTURE, PICTURES, model_of, name_of, scripted

ONE = Example(values={"description": "A clock.", "options": ("Tick", "Yum", "Sit")}, answer=2)
SEEN = Example(values={"options": ("Tick", "Yum")}, answer=1, image=Image.from_path(max(PICTURES.glob("*.jpg"))))
GIVEN: dict[str, Any] = {"image": PICTURE, "options": OPTIONS}


@pytest.fixture
def prompts(tmp_path: Path) -> PromptLibrary:
    return with_example(tmp_path / "prompts", "choose_action_reasons", "end_to_end_multi")


def roles(script: ScriptedModel) -> dict[str, list[str]]:
    """By what is asked for, the roles of the request's turns."""
    return {name_of(request): [message.role for message in request.messages] for request in script.requests}


def last_of(script: ScriptedModel) -> ChatRequest:
    return script.requests[-1]


async def test_the_node_that_answers_shows_them_and_no_other_does(prompts: PromptLibrary) -> None:
    script, plain = scripted(), scripted()

    reading = await action_reason(model_of(script), prompts=prompts).ainvoke({**GIVEN, "examples": [ONE, ONE]})
    await action_reason(model_of(plain), prompts=prompts).ainvoke(GIVEN)

    assert reading.examples == (ONE, ONE)
    assert reading.outcome == "answered"
    shown, without = roles(script), roles(plain)
    assert shown.pop("choose_action_reasons") == ["system", *["user", "assistant"] * 2, "user"]
    assert without.pop("choose_action_reasons") == ["system", "user"]
    assert shown == without


class Listener(BaseCallbackHandler):
    """Listens, so that the chain takes LangChain's way."""


@pytest.mark.parametrize(
    "form", [SEEN, {"values": {"options": ["Tick", "Yum"]}, "answer": 1, "image": str(SEEN.image and SEEN.image.path)}]
)
async def test_a_chain_takes_an_example_or_its_fields_on_both_paths(prompts: PromptLibrary, form: Any) -> None:
    straight, traced = scripted(), scripted()

    await end_to_end(model_of(straight), prompts=prompts).ainvoke({**GIVEN, "examples": [form]})
    await end_to_end(model_of(traced), prompts=prompts).ainvoke(
        {**GIVEN, "examples": [form]}, {"callbacks": [Listener()]}
    )

    assert last_of(straight).key == last_of(traced).key
    assert [len(message.parts) for message in last_of(straight).messages if message.role == "user"] == [2, 2]


async def test_a_reading_keeps_its_examples(prompts: PromptLibrary) -> None:
    script = scripted()
    chain = end_to_end(model_of(script), prompts=prompts)
    reading = await chain.ainvoke({**GIVEN, "examples": [SEEN]})

    assert pickle.loads(pickle.dumps(reading)).examples == (SEEN,)
    assert reading_of(reading, chain.target, chain.links).examples == (SEEN,)


async def test_a_run_of_digests_replays(prompts: PromptLibrary, tmp_path: Path) -> None:
    script = scripted()
    model = model_of(script)
    await end_to_end(model, prompts=prompts).ainvoke({**GIVEN, "examples": [SEEN]})
    known = Example.from_form(SEEN.form())

    replayed = await end_to_end(
        model_of(scripted(), model.engine.recorder.records, mode="replay"), prompts=prompts
    ).ainvoke({"image": Image.from_digest(Image.from_path(PICTURE).sha256), "options": OPTIONS, "examples": [known]})

    assert (replayed.outcome, known.image and known.image.path) == ("answered", None)


@pytest.mark.parametrize(
    "given", ["x", [{"answer": 1}], [{"values": {}, "more": 1}], [None]], ids=["text", "no values", "more", "nothing"]
)
def test_what_is_no_list_of_examples_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="cannot be shown as an example"):
        end_to_end(model_of(scripted())).invoke({**GIVEN, "examples": given})


def test_a_chain_that_could_not_show_them_says_so() -> None:
    with pytest.raises(UsageError, match="The chain 'verbalize' shows its model no examples") as caught:
        verbalize(model_of(scripted())).invoke({"image": PICTURE, "examples": [SEEN]})
    assert caught.value.hint


def test_a_callers_own_function_may_read_them() -> None:
    def answer(question: Any) -> list[int]:
        return [len(question.examples)]

    chain = end_to_end(model_of(scripted())).with_nodes(answers=answer)

    assert chain.invoke({**GIVEN, "examples": [SEEN]}).require(chain.target).numbers == (1,)


# --- plans ---


def counts(chain: Chain, given: list[dict[str, Any]]) -> Any:
    import asyncio

    planned = asyncio.run(plan(chain, given))
    return planned, {line.link: (line.known, line.dependent) for line in planned.links}


def test_questions_with_other_examples_are_other_calls(prompts: PromptLibrary) -> None:
    several = [{**GIVEN, "examples": [each]} for each in (ONE, ONE, Example(values=ONE.values, answer=1))]

    _, dependent = counts(action_reason(model_of(scripted()), prompts=prompts), several)
    _, known = counts(end_to_end(model_of(scripted()), prompts=prompts), [{**GIVEN, "examples": [SEEN]}, GIVEN])

    assert dependent["answers"] == (0, 2)
    assert (dependent["objects"], dependent["description"]) == ((1, 0), (0, 1))
    assert known == {"answers": (2, 0)}


@pytest.mark.parametrize("make", [action_reason, end_to_end])
def test_what_is_planned_counts_the_examples_tokens(prompts: PromptLibrary, make: Any) -> None:
    long = Example(values={"description": "A clock. " * 400, "options": ("Tick", "Yum")}, answer=1)
    chain = make(model_of(scripted()), prompts=prompts)

    plain, _ = counts(chain, [GIVEN])
    few, _ = counts(chain, [{**GIVEN, "examples": [long] * 3}])

    of = {
        name: next(line for line in each.links if line.link == "answers").input.expected
        for name, each in (("plain", plain), ("few", few))
    }
    assert of["few"] - of["plain"] == pytest.approx(3 * 3600 / 4, rel=0.25)


def test_two_questions_about_one_described_picture_are_two_calls() -> None:
    chain = explain(model_of(scripted()), context="caption")

    _, found = counts(chain, [{"image": PICTURE, "question": each} for each in ("Why?", "Who?", "Why?")])

    assert found == {"description": (1, 0), "reply": (0, 2)}
