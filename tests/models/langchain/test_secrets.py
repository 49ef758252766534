"""The secrets of a chat model that someone has made: its own are blanked out of all that comes back."""

from __future__ import annotations

from traceback import TracebackException
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field, SecretStr

from askance.chat import ChatRequest, ChatResponse, Message, ModelId, TextPart, ToolCall
from askance.errors import CallError
from askance.models.langchain.langchain_model import LangChainModel, secrets_in

KEY, HEADER, INNER = "sk-marker-4711-qwertz", "header-marker-0815", "inner-marker-0815"
ECHO = f"{KEY}, {HEADER}, {INNER}"
HELLO = ChatRequest(model=ModelId("langchain", "m"), messages=(Message("user", (TextPart("Hello?"),)),))


class Login(BaseModel):
    token: SecretStr = SecretStr(INNER)


class Own(BaseChatModel):
    """A chat model of the user's that repeats its secrets, or raises them."""

    api_key: SecretStr = SecretStr(KEY)
    default_headers: dict[str, str] = Field(default={"X-Auth": f"Bearer {HEADER}", "X-Team": "everybody"})
    logins: list[Login] = Field(default=[Login()])
    answer: Any = None

    @property
    def _llm_type(self) -> str:
        return "own"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        local = ECHO
        if isinstance(self.answer, Exception):
            raise self.answer
        return ChatResult(generations=[ChatGeneration(message=self.answer or AIMessage(local))])


def test_secret_fields_and_headers_are_found_wherever_they_stand() -> None:
    found = secrets_in(Own())
    others = ("everybody", "X-Team", "Login", "own")

    assert [found.are_in(text) for text in (KEY, HEADER, INNER, *others)] == [True] * 3 + [False] * 4


def test_those_of_openais_class_are_found() -> None:
    model = ChatOpenAI(model="fake-model", api_key=SecretStr(KEY), default_headers={"api-key": HEADER})

    assert secrets_in(model).cleared(f"{KEY} {HEADER} fake-model") == "[key] [key] fake-model"


async def test_an_answer_repeats_none() -> None:
    blocks: list[Any] = [{"type": "reasoning", "reasoning": KEY}, {"type": "text", "text": ECHO}]
    call: Any = {"name": "look", "args": {"at": [HEADER]}, "id": INNER, "type": "tool_call"}
    about = {"model_name": KEY, "finish_reason": "tool_calls"}
    message = AIMessage(blocks, tool_calls=[call], response_metadata=about)

    assert await LangChainModel(Own(answer=message)).generate(HELLO) == ChatResponse(
        text="[key], [key], [key]",
        thinking="[key]",
        tool_calls=(ToolCall("[key]", "look", '{"at": ["[key]"]}'),),
        finish="tool_calls",
        model="[key]",
    )


class APIError(Exception):
    """An error as vendors name it."""

    def __init__(self, status: int, body: object = None) -> None:
        super().__init__("It failed.")
        self.status_code = status
        self.body = body


RAISED = {
    "words": (ValueError(ECHO), False),
    "a finish": (AIMessage("x", response_metadata={"finish_reason": KEY}), False),
    "a body": (APIError(500, {"error": {"message": ECHO, "code": KEY}}), False),
    "words of which the end is cut off": (APIError(500, {"error": {"message": "x" * 290 + KEY}}), False),
    "the variables of a frame": (ValueError("Oh no"), False),
    "nothing": (APIError(500), True),
}
"""Where secrets stand in what is raised, and whether it is chained to the error that it becomes."""


@pytest.mark.parametrize(("raised", "chained"), RAISED.values(), ids=RAISED)
async def test_an_error_repeats_none(raised: Any, chained: bool) -> None:
    with pytest.raises(CallError) as caught:
        await LangChainModel(Own(answer=raised)).generate(HELLO)
    error = caught.value
    frames = "".join(TracebackException.from_exception(error.__cause__ or error).format())

    assert (error.__cause__ is not None, error.__context__) == (chained, None)
    assert [part for part in (KEY[:-10], HEADER, INNER) if part in f"{error!r} {vars(error)} {frames}"] == []
