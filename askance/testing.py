"""Conformance checks: what every backend does, and every store of records, your own too.

A backend is checked against a fake server that replies as the check says. You write one function that makes your model
with such a server, or with a stub of the vendor's client, which turns a `ScriptedReply` into your vendor's wire format.
Then run all checks:

```python
@pytest.mark.parametrize("check", checks(cannot={"logprobs"}), ids=str)
async def test_conforms(check: Check) -> None:
    await check(make_my_model)
```

or, without pytest, `await check_backend(make_my_model, cannot={"logprobs"})`.

A store is checked likewise, by `record_checks` or `check_records`: you write a `RecordsFactory`, which opens records by
name.
"""

from __future__ import annotations

import asyncio
import pickle  # noqa: TID251  # what is read here is written here
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from reprlib import Repr
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, get_args

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
    canonical_json,
)
from askance.errors import (
    AskanceError,
    AuthError,
    BadRequest,
    CallError,
    CallTimeout,
    ContextExceeded,
    DamagedRecord,
    ImagesRejected,
    MalformedReply,
    ModelError,
    ModelNotFound,
    OverBudget,
    RateLimited,
    ServerFault,
    StoreError,
    Unreachable,
    UsageError,
)
from askance.images import Image, Shown
from askance.models import Engine, get_model
from askance.models.backend import ChatModel, close
from askance.models.capabilities import RED_SQUARE
from askance.models.learnt_pace import LearntPace
from askance.replay import NOTHING, Budget, Cost, Leases, MemoryStore, Record, RecordKind, Records, verify

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
    """A backend or a store fails a conformance check."""


ScriptedReply: TypeAlias = ChatResponse | CallError | None
"""What the server does, whatever it is asked: give this answer, cause this error in the client, or never reply (None).

A real model in place of the server has its own tokens and its own name: its backend leaves out the checks `usage`,
`cached tokens`, `served model` and `logprobs`, and keeps `counts`.
"""

ModelFactory: TypeAlias = Callable[[ScriptedReply], ChatModel]
"""Makes the model under check, with a server that gives the reply."""


Factory = TypeVar("Factory")
Pickled = TypeVar("Pickled")


@dataclass(frozen=True, slots=True)
class Check(Generic[Factory]):
    """One conformance check: a thing that every backend does, or every store."""

    name: str
    run: Callable[[Factory], Awaitable[None]]

    async def __call__(self, factory: Factory) -> None:
        """Checks what `factory` makes: models or records.

        Raises:
            NotConforming: the check fails, or takes too long.
        """
        try:
            async with asyncio.timeout(TIMEOUT):
                await self.run(factory)
        except TimeoutError:
            raise NotConforming(f"{self.name}: no result within {TIMEOUT:g} s.") from None

    def __str__(self) -> str:
        return self.name


def checks(*, cannot: Collection[str] = ()) -> list[Check[ModelFactory]]:
    """The checks of a backend, without those that it cannot pass.

    Raises:
        UsageError: no check has one of these names.
    """
    return _without(cannot, CHECKS)


async def check_backend(make_model: ModelFactory, *, cannot: Collection[str] = ()) -> None:
    """Runs all checks of a backend.

    Raises:
        NotConforming: one or more checks failed; the message lists all of them.
    """
    await _run_all(checks(cannot=cannot), make_model)


def _without(cannot: Collection[str], known: Sequence[Check[Factory]]) -> list[Check[Factory]]:
    unknown = set(cannot) - {check.name for check in known}
    if unknown:
        raise UsageError(f"No check is called {min(unknown)!r}.", hint=f"Known: {', '.join(map(str, known))}.")
    return [check for check in known if check.name not in cannot]


async def _run_all(known: Sequence[Check[Factory]], factory: Factory) -> None:
    failed: list[str] = []
    for check in known:
        try:
            await check(factory)
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


def _answers(name: str, request: Callable[[], ChatRequest], reply: ChatResponse, *fields: str) -> Check[ModelFactory]:
    """The answer has the `fields` and the outcome of the scripted reply, and the request is not changed."""

    async def run(make_model: ModelFactory) -> None:
        sent = request()
        before = sent.canonical()
        response = await make_model(reply).generate(sent)
        for field in (*fields, "outcome"):
            wanted, got = getattr(reply, field), getattr(response, field)
            if got != wanted:
                raise NotConforming(f"{name}: `{field}` should be {wanted!r} and is {got!r}.")
        if sent.canonical() != before:
            raise NotConforming(f"{name}: the request was changed.")

    return Check(name, run)


def _raises(error: CallError, request: Callable[[], ChatRequest] = ask) -> Check[ModelFactory]:
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
    request = ask(sampling=Sampling(temperature=1.0, seed=7, max_tokens=50))
    texts = [(await model.generate(request)).text for _ in range(2)]
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
    model = get_model(make_model(reply), identity="checked", engine=Engine(records=records))
    first = await model.generate(model.request((Message("user", (_picture(), TextPart("Which colour?"))),)))
    silent = get_model(make_model(None), identity="checked", engine=Engine(records=records, mode="replay"))
    again = await silent.generate(silent.request((Message("user", (_picture(), TextPart("Which colour?"))),)))
    if again != first or not again.meta.replayed:
        raise NotConforming(f"replays: {first!r} came back as {again!r}.")
    await model.aclose()


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
    request = _with_tools()
    turns = (Message("assistant", (), (_CALL,)), Message("tool", (TextPart("It is red."),), tool_call_id="call_1"))
    return replace(request, messages=(*request.messages, *turns))


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

CHECKS: tuple[Check[ModelFactory], ...] = (
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
"""All checks of a backend; `cannot` takes their names."""


# ---- stores ----------------------------------------------------------------------------------------------------------


class RecordsFactory(Protocol):
    """Opens the records under check, and damages them."""

    def open(self, name: str, /, *, read_only: bool = False) -> Records:
        """The records of a name, which are empty at first; what is opened twice is the same records."""
        ...

    def damage(self, name: str, key: str, /) -> None:
        """Writes something that is no record in place of the record with this key, past the store."""
        ...


def record_checks(*, cannot: Collection[str] = ()) -> list[Check[RecordsFactory]]:
    """The checks of a store of records, without those that it cannot pass.

    Raises:
        UsageError: no check has one of these names.
    """
    return _without(cannot, RECORD_CHECKS)


async def check_records(factory: RecordsFactory, *, cannot: Collection[str] = ()) -> None:
    """Runs all checks of a store; each has records of its own name.

    Raises:
        NotConforming: one or more checks failed; the message lists all of them.
    """
    await _run_all(record_checks(cannot=cannot), factory)


def _of_records(name: str, run: Callable[[RecordsFactory, str], Awaitable[None]]) -> Check[RecordsFactory]:
    async def named(factory: RecordsFactory) -> None:
        try:
            await run(factory, name.replace(" ", "-"))
        except NotConforming as error:
            raise NotConforming(f"{name}: {error.message}") from error

    return Check(name, named)


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 120


def _expect(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise NotConforming(f"{what} should be {_SHORT.repr(expected)} and is {_SHORT.repr(actual)}.")


def _refuses(what: str, error: type[Exception], act: Callable[[], object]) -> None:
    try:
        result = act()
    except error:
        return
    raise NotConforming(f"{what} should raise {error.__name__} and gave {_SHORT.repr(result)}.")


def _made(number: int = 0, *, kind: RecordKind = "chat", text: str = "a cup") -> Record:
    request = ask(f"What is number {number}?").canonical()
    return Record.make(kind, request, ChatResponse(text=text).canonical(), at="2026-01-31T12:00:00Z")


def _sorted(records: Sequence[Record]) -> list[Record]:
    return sorted(records, key=lambda record: record.key)


_ODD: dict[str, Any] = {
    "texts": ["", "ערב 🌒 ß\n\u0301", "\x00\x7f\x1b", "\ud83c", '"},"response":{'],
    "numbers": [0, -1, 2**63, 2**64 - 1, 0.1, 1e300, -2.5],
    "others": [None, True, False, [], {}],
    "deep": [[[[[[[[{"a": [{}]}]]]]]]]],
}


async def _empty(factory: RecordsFactory, name: str) -> None:
    with factory.open(name) as records:
        key = _made().key
        answers = (records.get(key), records.answer(key, "{}"), len(records.get_all([key])), len(records))
        _expect("what records hold at first", answers, (None, None, 0, 0))
        _expect("what there is to read at first", [*records.keys(), *records, *records.of_kind("chat")], [])
        if not records.name:
            raise NotConforming("`name` should say where the records are and is empty.")


async def _gets(factory: RecordsFactory, name: str) -> None:
    facts = {"ab" * 32: {"sent": "cd" * 32, "media_type": "image/png", "width": 2, "height": 1}}
    odd = [Record.make(kind, {"odd": _ODD, "kind": kind}, _ODD, images=facts, at="") for kind in get_args(RecordKind)]
    with factory.open(name) as records:
        records.put(_made())
        records.put_all(odd)
        for record in (_made(), *odd):
            _expect(f"the record of the kind {record.kind!r} that was put", records.get(record.key), record)


async def _gets_all(factory: RecordsFactory, name: str) -> None:
    stored, absent = [_made(number) for number in range(600)], [_made(-number).key for number in range(1, 1200)]
    with factory.open(name) as records:
        records.put_all(stored)
        keys = [key for record, other in zip(stored, absent, strict=False) for key in (record.key, other)]
        records_found = records.get_all([*keys, *absent, keys[0]])
        _expect("the number of records that `get_all` finds", len(records_found), len(stored))
        _expect("what `get_all` finds, in order", [*records_found.items()], [(record.key, record) for record in stored])


async def _reads_answers(factory: RecordsFactory, name: str) -> None:
    record = _made()
    with factory.open(name) as records:
        records.put(record)
        for canonical_text in (canonical_json(record.request), "{}"):
            _expect("the response by `answer`", records.answer(record.key, canonical_text), record.response)


async def _puts_again(factory: RecordsFactory, name: str) -> None:
    with factory.open(name) as records:
        records.put(_made(text="first"))
        records.put_all([_made(text="second"), _made(text="third")])
        _expect("the last record put under one key", records.get(_made().key), _made(text="third"))
        _expect("the number of records under one key", (len(records), len([*records])), (1, 1))


async def _puts_all_or_none(factory: RecordsFactory, name: str) -> None:
    false = replace(_made(2), key="0" * 64)
    with factory.open(name) as records:
        _refuses("a record whose key is not that of its request", StoreError, lambda: records.put(false))
        _refuses("a block with such a record", StoreError, lambda: records.put_all([_made(1), false]))
        _expect("the number of records after a refusal", len(records), 0)


async def _keeps_order(factory: RecordsFactory, name: str) -> None:
    made = [_made(number, kind="ocr" if number % 3 else "chat") for number in range(200)]
    with factory.open(name) as records:
        records.put_all(made)
        _expect("the keys, sorted", [*records.keys()], sorted(record.key for record in made))
        _expect("the records, sorted by key", [*records], _sorted(made))
        _expect("the records without damage", [*records.readable()], _sorted(made))


async def _tells_kinds(factory: RecordsFactory, name: str) -> None:
    made = [_made(number, kind="ocr" if number % 3 else "chat") for number in range(200)]
    with factory.open(name) as records:
        records.put_all(made)
        for kind in ("chat", "ocr", "embed"):
            wanted = [record for record in made if record.kind == kind]
            _expect(f"records of the kind {kind!r}, as they were added", [*records.of_kind(kind)], wanted)
            _expect("these without damage", [*records.readable(kind)], wanted)


async def _removes(factory: RecordsFactory, name: str) -> None:
    made = [_made(number) for number in range(5)]
    with factory.open(name) as records:
        records.put_all(made)
        records.remove([made[1].key, made[3].key, "0" * 64])
        _expect("what is left", _sorted([*records]), _sorted([made[0], made[2], made[4]]))


async def _finds_damage(factory: RecordsFactory, name: str) -> None:
    sound, broken = _made(1), _made(2)
    with factory.open(name) as records:
        records.put_all([sound, broken])
    factory.damage(name, broken.key)
    with factory.open(name) as records:
        _expect("the record beside a damaged one", records.get(sound.key), sound)
        reads: dict[str, Callable[[], object]] = {
            "`get`": lambda: records.get(broken.key),
            "`get_all`": lambda: records.get_all([sound.key, broken.key]),
            "`answer`": lambda: records.answer(broken.key, canonical_json(broken.request)),
            "iteration": lambda: [*records],
        }
        for how, read in reads.items():
            _refuses(f"{how} of a damaged record", DamagedRecord, read)
        damaged = set[str]()
        _expect("the records that are not damaged", [*records.readable(damaged=damaged)], [sound])
        _expect("the keys of those that are", damaged, {broken.key})
        _expect("what `verify` names", {problem.key for problem in verify(records)}, {broken.key})
        records.put(broken)
        _expect("a damaged record that is put anew", records.get(broken.key), broken)


async def _reads_only(factory: RecordsFactory, name: str) -> None:
    with factory.open(name) as records:
        records.put(_made(1))
    with factory.open(name, read_only=True) as records:
        _expect("whether it can be written", records.writable, expected=False)
        _expect("its leases", records.leases(), None)
        _refuses("`put`", StoreError, lambda: records.put(_made(2)))
        _refuses("`remove`", StoreError, lambda: records.remove([_made(1).key]))
        _expect("what is there", [*records], [_made(1)])


async def _shares(factory: RecordsFactory, name: str) -> None:
    with factory.open(name) as one, factory.open(name) as other:
        _expect("whether both can be written", (one.writable, other.writable), (True, True))
        one.put(_made(1))
        _expect("what one has put, for another", other.get(_made(1).key), _made(1))
        other.put(_made(1, text="another"))
        _expect("what another has replaced", one.get(_made(1).key), _made(1, text="another"))


async def _takes_threads(factory: RecordsFactory, name: str) -> None:
    with factory.open(name) as records, ThreadPoolExecutor(CONCURRENT_CALLS) as threads:
        made = [_made(number) for number in range(10 * CONCURRENT_CALLS)]
        done = [*threads.map(records.put, made)]
        _expect("how many threads have put", len(done), len(made))
        _expect("what threads get", [*threads.map(records.get, [record.key for record in made])], made)


async def _reopens(factory: RecordsFactory, name: str) -> None:
    records = factory.open(name)
    records.put(_made())
    for _ in range(2):
        records.close()
    _expect("what records hold that were closed", records.get(_made().key), _made())
    records.close()
    with factory.open(name) as again:
        _expect("what they hold that are opened again", again.get(_made().key), _made())


def _pickled(value: Pickled) -> Pickled:
    return pickle.loads(pickle.dumps(value))  # noqa: S301


async def _travels(factory: RecordsFactory, name: str) -> None:
    with factory.open(name) as records, _pickled(records) as other:
        _expect("whether a pickle can be written", other.writable, expected=True)
        other.put(_made())
        _expect("what was put through a pickle", records.get(_made().key), _made())


async def _has_places(factory: RecordsFactory, name: str) -> None:
    with factory.open(name) as records:
        if records.folder is None:
            _refuses("`beside` without a folder", StoreError, lambda: records.beside("pictures"))
        else:
            _expect("`beside`", records.beside("pictures"), records.folder / "pictures")


async def _leases(factory: RecordsFactory, name: str) -> None:
    with factory.open(name) as records, factory.open(name) as others:
        own, other = records.leases(), others.leases()
        if own is None or other is None:
            raise NotConforming("`leases` gives none, so two processes may pay for one call.")
        try:
            await _hold(own, other)
        finally:
            own.close()
            other.close()


async def _hold(own: Leases, other: Leases) -> None:
    key, next_key = _made(1).key, _made(2).key
    _expect("a lease that is free, and again for another", (own.take(key), other.take(key)), (True, False))
    _expect("whether each owns it", (own.owns(key), other.owns(key), other.is_free(key)), (True, False, False))
    async with other.lease(key, lambda: True):
        _expect("a lease whose answer has come meanwhile", other.owns(key), expected=False)
    own.release(key)
    async with other.lease(key, lambda: False):
        _expect("a lease while another is held", (other.owns(key), own.take(key)), (True, False))
    _expect("whether a lease is free at its end", own.is_free(key), expected=True)
    _expect("whether a batch may have it", own.assign_to_batch("batch", [key, next_key]), expected=True)
    _expect("leases that a batch holds", (other.take(key), other.take(next_key)), (False, False))
    own.release_batch("batch")
    _expect("leases that a batch has freed", (other.take(key), own.take(next_key)), (True, True))
    own.close()
    _expect("a lease of one that is closed", other.take(next_key), expected=True)
    keys = [_made(number).key for number in range(10, 10 + 2 * CONCURRENT_CALLS)]

    def take_all(leases: Leases) -> list[bool]:
        return [leases.take(key) for key in keys]

    with ThreadPoolExecutor(2) as threads:
        one, two = threads.map(take_all, (own, other))
    held = {first + second for first, second in zip(one, two, strict=True)}
    _expect("how many hold each lease that two race for", held, {1})


async def _keeps_budgets(factory: RecordsFactory, name: str) -> None:
    with factory.open(name) as records, factory.open(name) as others:
        own, other, apart = (
            of.ledger(each, Budget(calls=3)) for of, each in ((records, "a"), (others, "a"), (others, "b"))
        )
        try:
            first = own.reserve(Cost(calls=2))
            if first is None:
                raise NotConforming("the first call should have its budget and has to wait.")
            _expect("what does not fit beside a call under way", other.reserve(Cost(calls=2)), None)
            own.settle(first, Cost(calls=1))
            second = other.reserve(Cost(calls=2))
            if second is None:
                raise NotConforming("a call should have the budget that another has left and has to wait.")
            other.settle(second, Cost(calls=2))
            _refuses("a call beyond the budget", OverBudget, lambda: own.reserve(Cost(calls=1)))
            for ledger in (own, other, _pickled(own)):
                _expect("what is spent of one budget", ledger.balance().spent, Cost(calls=3))
            _expect("what is spent of another", apart.balance().spent, NOTHING)
        finally:
            for ledger in (own, other, apart):
                ledger.close()


async def _keeps_pace(factory: RecordsFactory, name: str) -> None:
    with factory.open(name) as records:
        own = LearntPace(rpm=1.0)
        pace = records.pace(ModelId("check", "model"), own, rpm=1.0, tpm=None)
        for _ in range(100):  # a pace that others share asks for it in a thread
            if pace.wait(now := time.monotonic()) <= 0:
                break
            await asyncio.sleep(0.05)
        else:
            raise NotConforming("the first call may not start within 5 s.")
        pace.started(now)
        _expect("whether a second has to wait, at one a minute", pace.wait(now) > 1, expected=True)


RECORD_CHECKS: tuple[Check[RecordsFactory], ...] = (
    _of_records("empty", _empty),
    _of_records("get", _gets),
    _of_records("get all", _gets_all),
    _of_records("answer", _reads_answers),
    _of_records("same key", _puts_again),
    _of_records("all or none", _puts_all_or_none),
    _of_records("order", _keeps_order),
    _of_records("kinds", _tells_kinds),
    _of_records("remove", _removes),
    _of_records("damaged", _finds_damage),
    _of_records("read only", _reads_only),
    _of_records("shared", _shares),
    _of_records("threads", _takes_threads),
    _of_records("closed", _reopens),
    _of_records("pickle", _travels),
    _of_records("folder", _has_places),
    _of_records("leases", _leases),
    _of_records("ledger", _keeps_budgets),
    _of_records("pace", _keeps_pace),
)
"""All checks of a store of records; `cannot` takes their names."""
