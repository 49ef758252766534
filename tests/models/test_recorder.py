from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from askance.chat import ChatRequest, ChatResponse, JsonObject, Outcome, Usage
from askance.errors import AuthError, BadRecord, ReplayMiss, StoreError, UsageError
from askance.models import CallEvent, Capabilities, Engine, ScriptedModel, get_model, recorder
from askance.replay import Leases, MemoryStore, Mode, Record, open_records, verify
from askance.replay.leases import StoreLeases

Ask = Callable[..., ChatRequest]
Engines = Callable[..., Engine]

ANSWERS: dict[str, ChatResponse] = {
    "answered": ChatResponse(text="a cup", usage=Usage(input=3, output=2)),
    "refused": ChatResponse(refusal="no", finish="refusal"),
    "filtered": ChatResponse(finish="content_filter"),
    "truncated": ChatResponse(text="a c", finish="length"),
}


async def ask_twice(engine: Engine, request: ChatRequest) -> tuple[list[str], int]:
    """Texts of two answers to one request, one after the other, and how often the model was asked."""
    script = ScriptedModel(["one", "two"], identity="scripted")
    model = get_model(script, engine=engine)
    texts = [(await model.generate(request)).text for _ in range(2)]
    return texts, len(script.requests)


@pytest.mark.parametrize(
    ("mode", "texts", "recorded"),
    [("auto", ["one", "one"], "one"), ("live", ["one", "two"], "one"), ("refresh", ["one", "two"], "two")],
    ids=["auto", "live", "refresh"],
)
async def test_modes(
    engine: Engines, ask: Ask, records: MemoryStore, mode: Mode, texts: list[str], recorded: str
) -> None:
    assert await ask_twice(engine(mode), ask()) == (texts, len(set(texts)))
    (record,) = records
    assert (record.key, record.response["text"]) == (ask().key, recorded)


async def test_live_leaves_what_is_on_record_and_refresh_does_not(
    engine: Engines, ask: Ask, records: MemoryStore
) -> None:
    for mode in ("auto", "live", "refresh"):
        await get_model(ScriptedModel([mode], identity="scripted"), engine=engine(mode)).generate(ask())
        assert [record.response["text"] for record in records] == ["refresh" if mode == "refresh" else "auto"]


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_what_came_back_is_replayed_as_what_it_is(engine: Engines, ask: Ask, answer: ChatResponse) -> None:
    first = await get_model(ScriptedModel([answer], identity="scripted"), engine=engine()).generate(ask())
    again = await get_model(ScriptedModel([], identity="scripted"), engine=engine("replay")).generate(ask())
    assert again == first == answer
    assert (first.meta.replayed, first.meta.stored, len(first.meta.tries)) == (False, True, 1)
    assert (again.meta.replayed, again.meta.stored, again.meta.tries) == (True, True, ())


async def test_a_failure_leaves_no_record(engine: Engines, ask: Ask, records: MemoryStore) -> None:
    with pytest.raises(AuthError):
        await get_model(ScriptedModel([AuthError("No key.")], identity="scripted"), engine=engine()).generate(ask())
    assert list(records) == []


async def test_a_miss_in_replay_names_the_nearest(engine: Engines, ask: Ask) -> None:
    await get_model(ScriptedModel(["a cup"], identity="scripted"), engine=engine()).generate(ask("What is odd?"))
    script = ScriptedModel(["never"], identity="scripted")
    with pytest.raises(ReplayMiss) as miss:
        await get_model(script, engine=engine("replay")).generate(ask("What is even?"))
    assert (miss.value.key, miss.value.nearest) == (ask("What is even?").key, ask("What is odd?").key)
    assert "+What is even?" in miss.value.diff.replace("+ ", "+")
    assert script.requests == []


def test_a_hit_needs_no_loop_and_no_other_thread(engine: Engines, ask: Ask) -> None:
    asyncio.run(_answer(engine(), ask()))
    coroutine = get_model(ScriptedModel([], identity="scripted"), engine=engine("replay")).generate(ask())
    with pytest.raises(StopIteration) as finished:
        coroutine.send(None)
    assert finished.value.value.text == "a cup"


async def _answer(engine: Engine, request: ChatRequest, *replies: str | ChatResponse) -> ChatResponse:
    return await get_model(ScriptedModel(replies or ["a cup"], identity="scripted"), engine=engine).generate(request)


async def test_what_live_leaves_on_record_is_no_answer_that_could_not_be_recorded(
    engine: Engines, ask: Ask, events: list[CallEvent]
) -> None:
    await _answer(engine(), ask())
    again = await _answer(engine("live"), ask(), "a bowl")
    assert (again.text, again.meta.stored, [event.phase for event in events]) == (
        "a bowl",
        False,
        ["started", "answered"] * 2,
    )


@pytest.mark.parametrize("outcome", ["refused", "filtered", "truncated"])
async def test_recorded_outcomes_are_asked_again_once_a_run(engine: Engines, ask: Ask, outcome: Outcome) -> None:
    await _answer(engine(), ask(), ANSWERS[outcome])
    script = ScriptedModel([ANSWERS[outcome], "never"], identity="scripted")
    model = get_model(script, engine=engine(retry=frozenset({outcome})))
    first, second = await model.generate(ask()), await model.generate(ask())
    assert (first.meta.replayed, second.meta.replayed, len(script.requests)) == (False, True, 1)


async def test_an_answered_one_is_not_asked_again(engine: Engines, ask: Ask) -> None:
    await _answer(engine(), ask())
    again = await _answer(engine(retry=frozenset({"refused", "invalid"})), ask(), "never")
    assert again.text == "a cup"


async def test_a_call_that_fails_when_asked_again_keeps_the_record(
    engine: Engines, ask: Ask, records: MemoryStore
) -> None:
    await _answer(engine(), ask(), ANSWERS["refused"])
    model = get_model(
        ScriptedModel([AuthError("No key."), "a cup"], identity="scripted"), engine=engine(retry=frozenset({"refused"}))
    )
    with pytest.raises(AuthError):
        await model.generate(ask())
    assert [record.response for record in records] == [ANSWERS["refused"].canonical()]
    assert (await model.generate(ask())).text == "a cup"


async def test_an_unreadable_answer_is_set_aside_on_demand(engine: Engines, ask: Ask) -> None:
    await _answer(engine(), ask(), "no JSON")
    script = ScriptedModel(["{}", "never"], identity="scripted")
    model = get_model(script, engine=engine(retry=frozenset({"invalid"})))
    assert model.asks_again("invalid")
    assert not model.asks_again("refused")
    texts = [(await model.generate(ask(), again=again)).text for again in (False, True, False, True)]
    assert texts == ["no JSON", "{}", "{}", "{}"]


async def test_a_replay_never_asks_again(engine: Engines, ask: Ask) -> None:
    await _answer(engine(), ask())
    model = get_model(ScriptedModel([], identity="scripted"), engine=engine("replay"))
    assert (await model.generate(ask(), again=True)).text == "a cup"
    with pytest.raises(UsageError, match=r"^`replay` asks nothing, so it cannot ask again \(`retry`\)\. Use the mode"):
        engine("replay", retry=frozenset({"refused"}))


class Broken(MemoryStore):
    """Records on a disk that is full."""

    def put_all(self, records: Iterable[Record], /) -> None:
        raise StoreError("The disk is full.")


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (Broken(), "The disk is full"),
        (MemoryStore(name="shelf", writable=False), "the store shelf is read-only"),
    ],
    ids=["full disk", "read-only"],
)
async def test_an_answer_that_cannot_be_recorded_is_not_lost(
    ask: Ask, records: MemoryStore, reason: str, events: list[CallEvent], caplog: pytest.LogCaptureFixture
) -> None:
    script = ScriptedModel(["one", "two"], identity="scripted")
    model = get_model(script, engine=Engine(records=records, observers=[events.append]))
    with caplog.at_level(logging.WARNING, "askance"):
        answers = [await model.generate(ask()), await model.generate(ask())]
    assert [(answer.text, answer.meta.stored) for answer in answers] == [("one", False), ("two", False)]
    assert [event.phase for event in events] == ["started", "unrecorded", "answered"] * 2
    assert caplog.messages == [f"Answers are not recorded: {reason}. The run goes on."]


async def test_the_store_of_the_project_is_used_by_default(ask: Ask, tmp_path: Path) -> None:
    await get_model(ScriptedModel(["a cup"], identity="scripted")).generate(ask())
    with open_records(tmp_path / "store", read_only=True) as store:
        assert [record.key for record in store] == [ask().key]


async def test_a_replay_makes_no_store(ask: Ask, tmp_path: Path) -> None:
    with pytest.raises(ReplayMiss):
        await get_model(ScriptedModel([], identity="scripted"), engine=Engine(mode="replay")).generate(ask())
    assert not (tmp_path / "store").exists()


class Nameless:
    async def generate(self, request: ChatRequest) -> ChatResponse:
        return ChatResponse(text="a cup")


async def test_a_model_without_identity_is_never_recorded(engine: Engines, ask: Ask, records: MemoryStore) -> None:
    model = get_model(Nameless(), engine=engine())
    answers = [await model.generate(ask()) for _ in range(2)]
    assert [(answer.meta.replayed, answer.meta.stored) for answer in answers] == [(False, False)] * 2
    assert list(records) == []


def test_a_model_without_identity_cannot_be_replayed(engine: Engines) -> None:
    with pytest.raises(UsageError) as error:
        get_model(Nameless(), engine=engine("replay"))
    assert str(error.value) == (
        "The answers of 'custom:Nameless' cannot be replayed: nothing tells them from another model's. "
        'Give the model a name of its own: `get_model(…, identity="…")`.'
    )
    assert str(get_model(Nameless(), identity="mine", engine=engine("replay")).id) == "mine"


async def test_observers_are_told(engine: Engines, ask: Ask, events: list[CallEvent]) -> None:
    model = get_model(
        ScriptedModel([ANSWERS["answered"]], identity="scripted"), engine=engine(), price={"input": 1.0, "output": 2.0}
    )
    await model.generate(ask())
    await model.generate(ask())
    usage, cost = Usage(input=3, output=2), (3 * 1 + 2 * 2) / 1e6
    assert [(event.phase, event.key, event.usage, event.cost) for event in events] == [
        ("started", ask().key, Usage(), None),
        ("answered", ask().key, usage, cost),
        ("replayed", ask().key, usage, cost),
    ]


async def test_an_observer_that_fails_harms_no_call(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    def fails(event: CallEvent) -> None:
        raise ValueError(event.phase)

    engine = Engine(records=MemoryStore(), observers=[fails])
    assert (
        await get_model(ScriptedModel(["a cup"], identity="scripted"), engine=engine).generate(ask())
    ).text == "a cup"
    assert caplog.messages == ["An observer of calls failed."] * 2


async def test_a_closed_engine_has_written_everything_and_opens_again(ask: Ask, tmp_path: Path) -> None:
    engine = Engine()
    model = get_model(ScriptedModel(["one", "two"], capabilities=Capabilities(), identity="scripted"), engine=engine)
    await model.generate(ask(draw=1))
    model.notice("it ignores the schema", schema="ignored")
    await engine.aclose()
    with open_records(tmp_path / "store", read_only=True) as store:
        assert sorted(record.kind for record in store) == ["chat", "endpoint"]
    assert (await model.generate(ask(draw=1))).meta.replayed
    assert (await model.generate(ask(draw=2))).meta.stored
    await engine.aclose()


async def test_the_settings_file_may_say_where_the_records_are(
    ask: Ask, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_place / "askance.toml").write_text('store = "answers"')
    monkeypatch.delenv("ASKANCE_STORE")
    model = get_model(ScriptedModel(["a cup"], identity="scripted"))
    await model.generate(ask())
    await model.engine.aclose()
    assert (own_place / "answers" / "cache.db").is_file()


async def test_what_a_batch_has_asked_for_is_not_asked_again(ask: Ask, tmp_path: Path) -> None:
    script = ScriptedModel(["one", "two"], identity="scripted")
    with open_records(tmp_path) as records:
        engines = [Engine(records=records) for _ in range(2)]
        leases = engines[0].recorder.leases
        assert leases is not None
        leases.assign_to_batch("batch-1", [ask().key])
        waiting = asyncio.ensure_future(get_model(script, engine=engines[1]).generate(ask()))
        await asyncio.sleep(0.3)
        assert (waiting.done(), len(script.requests)) == (False, 0)
        records.put(Record.make("chat", ask().canonical(), ChatResponse(text="from the batch").canonical()))
        assert (await asyncio.wait_for(waiting, 5)).text == "from the batch"
        leases.release_batch("batch-1")
        for engine in engines:
            await engine.aclose()


class Elsewhere(MemoryStore):
    """Records of another kind that several processes share."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._place = folder

    def leases(self) -> Leases | None:
        return StoreLeases(self._place)


async def test_records_of_any_kind_are_paid_for_once(ask: Ask, tmp_path: Path) -> None:
    records, script = Elsewhere(tmp_path), ScriptedModel(["one", "two"], identity="scripted")
    engines = [Engine(records=records) for _ in range(2)]
    answers = await asyncio.gather(*(get_model(script, engine=engine).generate(ask()) for engine in engines))
    for engine in engines:
        await engine.aclose()

    assert ([answer.text for answer in answers], len(script.requests)) == (["one", "one"], 1)


def later(record: Record, answer: ChatResponse | None = None) -> Record:
    """The record as another process makes it anew."""
    response = record.response if answer is None else answer.canonical()
    return replace(record, response=response, at=moment(datetime.now(UTC) + timedelta(seconds=-1)))


def moment(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("mode", ["auto", "refresh"])
@pytest.mark.parametrize("when", ["while it waits", "before it asks"])
async def test_what_another_process_has_asked_anew_is_not_asked_again(
    ask: Ask, mode: Mode, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both processes were told `--retry refused`, or to refresh."""
    with open_records() as store, open_records() as others:
        await _answer(Engine(records=store), ask(), ANSWERS["refused"])
        (old,) = store
        store.put(replace(old, at="2026-01-02T03:04:05Z"))
        monkeypatch.setattr(recorder, "record_time", lambda: moment(datetime.now(UTC) - timedelta(minutes=1)))
        script = ScriptedModel(["ours"], identity="scripted")
        model = get_model(
            script, engine=Engine(records=store, mode=mode, retry=frozenset({"refused"} if mode == "auto" else ()))
        )
        monkeypatch.undo()
        theirs = store.leases()
        assert theirs is not None
        if when == "before it asks":
            others.put(later(old))
            answer = await model.generate(ask())
        else:
            async with theirs.lease(old.key, lambda: False):
                waiting = asyncio.create_task(model.generate(ask()))
                await asyncio.sleep(0.3)
                others.put(later(old, ANSWERS["answered"]))
                answer = await asyncio.wait_for(waiting, 10)
        theirs.close()
        await model.engine.aclose()
    assert (answer.outcome, script.requests) == ("answered" if when == "while it waits" else "refused", [])


async def test_a_damaged_record_is_this_call_s_failure_alone(ask: Ask) -> None:
    with open_records() as store:
        for text in ("one", "two"):
            await _answer(Engine(records=store), ask(text))
        with closing(sqlite3.connect(store.beside("cache.db"), isolation_level=None)) as file:
            file.execute("UPDATE Cache SET value = '{' WHERE key = ?", (ask("one").key,))
        model = get_model(ScriptedModel([], identity="scripted"), engine=Engine(records=store, mode="replay"))
        with pytest.raises(
            BadRecord, match=r"^The row .* is damaged: .* `askance cache verify` finds all such records"
        ):
            await model.generate(ask("one"))
        assert (await model.generate(ask("two"))).text == "a cup"
        with pytest.raises(ReplayMiss) as miss:
            await model.generate(ask("three"))
        refreshed = await _answer(Engine(records=store, mode="refresh"), ask("one"), "anew")
        assert (miss.value.nearest, refreshed.text) == (ask("two").key, "anew")
        assert list(verify(store)) == []


async def test_one_that_cannot_be_written_keeps_no_other_from_it(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    texts = [f"question {number}" for number in range(8)]
    with open_records() as store:
        engine = Engine(records=store)
        model = get_model(ScriptedModel(lambda _: "a cup", identity="scripted"), engine=engine)
        bad = [ChatResponse(text="x", logprobs=({"token": "x", "logprob": float("nan")},))]
        odd = get_model(ScriptedModel(bad, identity="scripted"), engine=engine)
        await asyncio.gather(odd.generate(ask("odd")), *(model.generate(ask(text)) for text in texts))
        await engine.aclose()
        assert {record.key for record in store.of_kind("chat")} == {ask(text).key for text in texts}
    assert caplog.text.count("Answers are not recorded") == 1


class Far(MemoryStore):
    """Records behind a network; `blocks` are the keys that were fetched at once, and `threads` who fetched them."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[list[str]] = []
        self.threads = set[str]()
        self.here: dict[str, Record] = {}

    @property
    def remote(self) -> bool:
        return True

    def near(self, key: str, canonical_text: str, /) -> JsonObject | None:
        return self.here[key].response if key in self.here else None

    def fetch(self, keys: Iterable[str], /) -> set[str]:
        self.blocks.append([*keys])
        self.threads.add(threading.current_thread().name)
        time.sleep(0.05)  # a round trip
        there = {key: record for key in self.blocks[-1] if (record := self.get(key)) is not None}
        self.here |= there
        return {*there}


async def test_records_behind_a_network_are_fetched_in_blocks_and_no_loop_waits(ask: Ask) -> None:
    far = Far()
    model = get_model(ScriptedModel(lambda _: "a cup", identity="scripted"), engine=Engine(records=far))
    asked = [ask(f"number {number}") for number in range(20)]
    await asyncio.gather(*(model.generate(each) for each in asked))
    far.blocks.clear()

    again = get_model(ScriptedModel([], identity="scripted"), engine=Engine(records=far, mode="replay"))
    answers = await asyncio.gather(*(again.generate(each) for each in asked))
    assert [answer.text for answer in answers] == ["a cup"] * 20
    assert far.threads == {"askance-look-up_0"}
    assert sum(map(len, far.blocks)) == 20
    assert len(far.blocks) <= 3
    far.blocks.clear()
    assert (await again.generate(asked[0])).meta.replayed
    assert far.blocks == [], "what was fetched is near"


async def test_the_answer_that_is_on_record_first_is_everybodys(ask: Ask, records: MemoryStore) -> None:
    """A process that was stopped for longer than its lease lasts has an answer to what another has asked meanwhile."""
    other = Record.make("chat", ask().canonical(), ChatResponse(text="theirs").canonical())

    def late(_: ChatRequest) -> str:
        records.put(other)
        return "ours"

    model = get_model(ScriptedModel(late, identity="scripted"), engine=Engine(records=records))
    answer = await model.generate(ask())
    assert (answer.text, answer.meta.stored, answer.meta.replayed) == ("theirs", True, False)
    assert [*records.of_kind("chat")] == [other]
