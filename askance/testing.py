"""Conformance checks: what every backend does, your own too.

A backend is checked against a fake server that replies as the check says. You write one function that makes your model
with such a server, or with a stub of the vendor's client, which turns a `ScriptedReply` into your vendor's wire format.
Then run all checks:

```python
@pytest.mark.parametrize("check", checks(cannot={"logprobs"}), ids=str)
async def test_conforms(check: Check) -> None:
    await check(make_my_model)
```

or, without pytest, `await check_backend(make_my_model, cannot={"logprobs"})`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from askance.chat import (
    ChatRequest,
    ChatResponse,
    ImagePart,
    Message,
    ModelId,
    Part,
    ResponseFormat,
    Role,
    Sampling,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
)
from askance.errors import (
    AskanceError,
    AuthError,
    BadRequest,
    CallError,
    CallTimeout,
    ContextExceeded,
    ImagesRejected,
    MalformedReply,
    ModelError,
    ModelNotFound,
    RateLimited,
    ServerFault,
    Unreachable,
    UsageError,
)
from askance.images import Image, Shown
from askance.models import Engine, get_model
from askance.models.backend import ChatModel, close
from askance.models.capabilities import RED_SQUARE
from askance.replay import MemoryStore

TIMEOUT = 5.0
"""Seconds after which a check fails."""

CONCURRENT_CALLS = 16
"""Calls that are made at the same time."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"type": "string"}},
    "required": ["colour"],
    "additionalProperties": False,
}


class NotConforming(AskanceError):
    """A backend fails a conformance check."""


ScriptedReply: TypeAlias = ChatResponse | CallError | None
"""What the server does, whatever it is asked: give this answer, cause this error in the client, or never reply (None).

A real model in place of the server has its own tokens and its own name: its backend leaves out the checks `usage`,
`cached tokens`, `served model` and `logprobs`, and keeps `counts`.
"""

ModelFactory: TypeAlias = Callable[[ScriptedReply], ChatModel]
"""Makes the model under check, with a server that gives the reply."""


@dataclass(frozen=True, slots=True)
class Check:
    """One conformance check: a thing that every backend does."""

    name: str
    run: Callable[[ModelFactory], Awaitable[None]]

    async def __call__(self, make_model: ModelFactory) -> None:
        """Checks the models that `make_model` makes.

        Raises:
            NotConforming: the check fails, or takes too long.
        """
        try:
            async with asyncio.timeout(TIMEOUT):
                await self.run(make_model)
        except TimeoutError:
            raise NotConforming(f"{self.name}: no result within {TIMEOUT:g} s.") from None

    def __str__(self) -> str:
        return self.name


def checks(*, cannot: Collection[str] = ()) -> list[Check]:
    """The checks, without those that the backend cannot pass.

    Raises:
        UsageError: no check has one of these names.
    """
    unknown = set(cannot) - {check.name for check in CHECKS}
    if unknown:
        raise UsageError(f"No check is called {min(unknown)!r}.", hint=f"Known: {', '.join(map(str, CHECKS))}.")
    return [check for check in CHECKS if check.name not in cannot]


async def check_backend(make_model: ModelFactory, *, cannot: Collection[str] = ()) -> None:
    """Runs all checks.

    Raises:
        NotConforming: one or more checks failed; the message lists all of them.
    """
    failed: list[str] = []
    for check in checks(cannot=cannot):
        try:
            await check(make_model)
        except Exception as error:  # noqa: BLE001  # a report on all of them
            failed.append(str(error) if isinstance(error, NotConforming) else f"{check.name}: {error!r}")
    if failed:
        raise NotConforming("\n".join(failed))


def ask(text: str = "Which colour?", *parts: Part, role: Role = "user", **fields: Any) -> ChatRequest:
    """A request of one turn; `fields` are those of `ChatRequest`."""
    turn = Message(role, (*parts, TextPart(text)))
    return ChatRequest(model=ModelId("check", "model", name="checked"), messages=(turn,), **fields)


def _picture() -> ImagePart:
    return ImagePart(Shown(Image.from_bytes(RED_SQUARE, name="red.png")))


def _answers(name: str, request: Callable[[], ChatRequest], reply: ChatResponse, *fields: str) -> Check:
    """The answer has the `fields` and the outcome of the scripted reply, and the request is not changed."""

    async def run(make_model: ModelFactory) -> None:
        asked = request()
        before = asked.canonical()
        response = await make_model(reply).generate(asked)
        for field in (*fields, "outcome"):
            wanted, got = getattr(reply, field), getattr(response, field)
            if got != wanted:
                raise NotConforming(f"{name}: `{field}` should be {wanted!r} and is {got!r}.")
        if asked.canonical() != before:
            raise NotConforming(f"{name}: the request was changed.")

    return Check(name, run)


def _raises(error: CallError, request: Callable[[], ChatRequest] = ask) -> Check:
    """The error of the vendor's client becomes this error of the package."""
    name = f"raises {type(error).__name__}"

    async def run(make_model: ModelFactory) -> None:
        try:
            response = await make_model(error).generate(request())
        except AskanceError as raised:
            if type(raised) is not type(error):
                raise NotConforming(f"{name}: it raised {raised!r}.") from raised
            if isinstance(error, ModelError) and error.retry_after != getattr(raised, "retry_after", None):
                raise NotConforming(f"{name}: `retry_after` should be {error.retry_after!r}.") from raised
        else:
            raise NotConforming(f"{name}: it answered {response!r}.")

    return Check(name, run)


async def _same_seed(make_model: ModelFactory) -> None:
    model = make_model(ChatResponse(text="red"))
    asked = ask(sampling=Sampling(temperature=1.0, seed=7, max_tokens=50))
    texts = [(await model.generate(asked)).text for _ in range(2)]
    if texts != ["red", "red"]:
        raise NotConforming(f"seed: the same request with the same seed gave {texts!r}.")


async def _same_keys(make_model: ModelFactory) -> None:
    """Two models made alike have equal keys; another question, draw or name has another key."""
    one, other = (make_model(ChatResponse(text="red")) for _ in range(2))
    own = getattr(one, "id", None), getattr(other, "id", None)
    if own[0] != own[1]:
        raise NotConforming(f"keys: models that are made alike are {own[0]!r} and {own[1]!r}.")

    def key(model: ChatModel, text: str = "Which colour?", *, name: str = "checked", draw: int = 0) -> str:
        held = get_model(model, identity=name, engine=Engine(records=MemoryStore()))
        return held.request((Message("user", (_picture(), TextPart(text))),), draw=draw).key

    if key(one) != key(other):
        raise NotConforming("keys: models that are made alike ask the same under two keys.")
    if len({key(one), key(one, "Which shape?"), key(one, name="other"), key(one, draw=1)}) != 4:
        raise NotConforming("keys: different requests share a key.")


async def _counts(make_model: ModelFactory) -> None:
    response = await make_model(ChatResponse(text="red", usage=Usage(input=7, output=1))).generate(ask())
    usage = response.usage
    if not usage.input or not usage.output or max(usage.cached or 0, usage.image or 0) > usage.input:
        raise NotConforming(f"counts: tokens were spent, and it says {usage!r}.")


async def _side_by_side(make_model: ModelFactory) -> None:
    model = make_model(ChatResponse(text="red"))
    answers = await asyncio.gather(
        *(model.generate(ask(f"Which colour is {number}?")) for number in range(CONCURRENT_CALLS))
    )
    if [answer.text for answer in answers] != ["red"] * CONCURRENT_CALLS:
        raise NotConforming("side by side: not every call got its answer.")


async def _cancels(make_model: ModelFactory) -> None:
    task = asyncio.ensure_future(make_model(None).generate(ask()))
    done, _ = await asyncio.wait([task], timeout=0.05)
    if done:
        raise NotConforming("cancels: it answered although the server never does.")
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return
    raise NotConforming("cancels: it was cancelled and went on.")


async def _replays(make_model: ModelFactory) -> None:
    reply = ChatResponse(text="red", usage=Usage(input=7, output=1))
    records = MemoryStore()
    asked = get_model(make_model(reply), identity="checked", engine=Engine(records=records))
    first = await asked.generate(asked.request((Message("user", (_picture(), TextPart("Which colour?"))),)))
    silent = get_model(make_model(None), identity="checked", engine=Engine(records=records, mode="replay"))
    again = await silent.generate(silent.request((Message("user", (_picture(), TextPart("Which colour?"))),)))
    if again != first or not again.meta.replayed:
        raise NotConforming(f"replays: {first!r} came back as {again!r}.")
    await asked.aclose()


async def _closes(make_model: ModelFactory) -> None:
    model = make_model(ChatResponse(text="red"))
    await model.generate(ask())
    await close(model)
    await close(model)


_LOOK: dict[str, Any] = {"type": "object", "properties": {"part": {"type": "string"}}}
_TOOL = ToolSpec("look", "Looks at a part of the picture.", _LOOK)
_CALL = ToolCall("call_1", "look", '{"part": "corner"}')


def _with_tools() -> ChatRequest:
    return ask("Look at the corner.", tools=(_TOOL,))


def _with_a_result() -> ChatRequest:
    asked = _with_tools()
    turns = (Message("assistant", (), (_CALL,)), Message("tool", (TextPart("It is red."),), tool_call_id="call_1"))
    return replace(asked, messages=(*asked.messages, *turns))


def _many_pictures() -> ChatRequest:
    turns = (Message("assistant", (TextPart("Red."),)), Message("user", (_picture(), TextPart("And this one?"))))
    first = ask("Which colours?", _picture(), _picture())
    return replace(first, messages=(*first.messages, *turns))


def _conversation() -> ChatRequest:
    roles: tuple[Role, ...] = ("system", "user", "assistant", "user")
    return replace(ask(), messages=tuple(Message(role, (TextPart(f"As {role}."),)) for role in roles))


def _sampled() -> ChatRequest:
    return ask(sampling=Sampling(temperature=0.5, top_p=0.9, seed=7, max_tokens=50, stop=("END",)))


_RED = ChatResponse(text="red")

CHECKS: tuple[Check, ...] = (
    _answers("text", ask, _RED, "text", "finish", "refusal", "thinking", "tool_calls"),
    _answers("unicode", lambda: ask("ערב 🌒 ß\n"), ChatResponse(text="ערב 🌒 ß\n\u0301"), "text"),
    _answers("conversation", _conversation, _RED, "text"),
    _answers("image", lambda: ask("Which colour?", _picture()), _RED, "text"),
    _answers("many images", _many_pictures, _RED, "text"),
    _answers("sampling", _sampled, _RED, "text"),
    _answers("stop", lambda: ask(sampling=Sampling(stop=("END", "###"), max_tokens=50)), _RED, "text", "finish"),
    Check("seed", _same_seed),
    _answers("tool call", _with_tools, ChatResponse(tool_calls=(_CALL,), finish="tool_calls"), "tool_calls", "finish"),
    _answers("tool result", _with_a_result, _RED, "text"),
    _answers(
        "schema",
        lambda: ask(response=ResponseFormat("json_schema", "answer", SCHEMA)),
        ChatResponse(text='{"colour": "red"}'),
        "text",
    ),
    _answers("json object", lambda: ask(response=ResponseFormat("json_object")), ChatResponse(text="{}"), "text"),
    _answers("refusal", ask, ChatResponse(refusal="I would rather not.", finish="refusal"), "refusal"),
    _answers("filtered", ask, ChatResponse(text="", finish="content_filter"), "finish"),
    _answers("truncated", ask, ChatResponse(text="re", finish="length"), "text", "finish"),
    _answers("thinking", ask, ChatResponse(text="red", thinking="It looks warm."), "text", "thinking"),
    _answers("usage", ask, ChatResponse(text="red", usage=Usage(input=7, output=1)), "usage"),
    Check("counts", _counts),
    _answers("cached tokens", ask, ChatResponse(text="red", usage=Usage(input=7, output=1, cached=4)), "usage"),
    _answers("served model", ask, ChatResponse(text="red", model="model-2026"), "model"),
    _answers(
        "logprobs",
        lambda: ask(sampling=Sampling(logprobs=1)),
        ChatResponse(text="red", logprobs=({"token": "red", "logprob": -0.5, "top": {"red": -0.5}},)),
        "logprobs",
    ),
    _raises(Unreachable("The connection broke.")),
    _raises(CallTimeout("Nothing came in time.")),
    _raises(AuthError("The key is wrong.", status=401)),
    _raises(ModelNotFound("The model does not exist.", status=404)),
    _raises(RateLimited("Slow down.", status=429, retry_after=2.0)),
    _raises(ServerFault("The server failed.", status=503)),
    _raises(MalformedReply("The reply is cut off.")),
    _raises(BadRequest("That is no request.", status=400)),
    _raises(ContextExceeded("This model's maximum context length is 512 tokens.", status=400)),
    _raises(
        ImagesRejected("This model does not support images.", status=400), lambda: ask("Which colour?", _picture())
    ),
    Check("side by side", _side_by_side),
    Check("cancels", _cancels),
    Check("keys", _same_keys),
    Check("replays", _replays),
    Check("closes", _closes),
)
"""All checks; `cannot` takes their names."""
