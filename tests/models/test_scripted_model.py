from __future__ import annotations

from collections.abc import Callable

import pytest

from askance.chat import ChatRequest, ChatResponse
from askance.errors import ServerFault, UsageError
from askance.models import Engine, ScriptedModel, get_model
from askance.replay import MemoryStore

Ask = Callable[..., ChatRequest]


async def test_a_queue_answers_in_order(ask: Ask) -> None:
    script = ScriptedModel(["a cup", ChatResponse(refusal="no"), ServerFault("It broke.")])
    assert await script.generate(ask("1")) == ChatResponse(text="a cup")
    assert await script.generate(ask("2")) == ChatResponse(refusal="no")
    with pytest.raises(ServerFault, match=r"^It broke\.$"):
        await script.generate(ask("3"))
    assert [request.messages[0].text for request in script.requests] == ["1", "2", "3"]
    assert repr(script) == "ScriptedModel(identity=None, asked=3)"


async def test_a_queue_that_has_run_out_says_so(ask: Ask) -> None:
    script = ScriptedModel(["a cup"], identity="short")
    await script.generate(ask())
    with pytest.raises(UsageError) as error:
        await script.generate(ask("What else?"))
    assert str(error.value) == (
        "The scripted model 'short' has 1 replies and was asked once more: 'What else?'. "
        "Give it more replies, or a function of the request."
    )


async def test_a_function_sees_the_request(ask: Ask) -> None:
    script = ScriptedModel(lambda request: request.messages[0].text.upper(), identity="shouts")
    assert (await script.generate(ask("a cup"))).text == "A CUP"
    assert str(script.id) == "shouts"


async def test_scripts_without_an_identity_share_no_answers(ask: Ask) -> None:
    records = MemoryStore()
    models = [get_model(ScriptedModel(lambda _, n=n: n), engine=Engine(records=records)) for n in ("one", "two")]
    assert [(await model.generate(ask())).text for model in models] == ["one", "two"]
    assert len(records) == 0
    with pytest.raises(UsageError) as caught:
        get_model(ScriptedModel([]), engine=Engine(mode="replay", records=records))
    assert str(caught.value) == (
        "The answers of 'scripted:scripted' cannot be replayed: nothing tells them from another model's. "
        'Give the model a name of its own: `get_model(…, identity="…")`.'
    )
