"""An endpoint that means harm: it streams without end, packs bombs, sends us elsewhere, and answers with anything."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from askance.agents import OptionsQuestion, StatementQuestion, choose_action_reasons, detect_statement
from askance.chains import action_reason
from askance.chat import ChatRequest, Message, TextPart
from askance.errors import AuthError, BadRequest, CallTimeout, MalformedReply, NotHttp
from askance.models import Capabilities, Engine, Model, RetryPolicy, ScriptedModel, get_model
from askance.nodes import Node
from askance.replay import MemoryStore
from askance.tools import narration, objects, scene_text, unusual
from tests.faults.run import picture
from tests.models.openai.test_transport import served
from tests.scripted import OPTIONS, PICTURE, model_of
from tests.servers import FakeEndpoint, Reply, chat_body

MB = 2**20

Stream = Callable[[], AsyncIterator[bytes]]


@contextmanager
def streaming(head: str, chunks: Stream) -> Generator[str]:
    """The address of a server that answers every request with `head` and then `chunks`, while they are taken."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 {head}\r\n\r\n".encode())
            async for chunk in chunks():
                writer.write(chunk)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def stop() -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(asyncio.start_server(serve, "127.0.0.1", 0), loop).result(10)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def model_at(url: str, *, tries: int = 1, timeout: float = 30.0, **settings: Any) -> Model:
    engine = Engine(records=MemoryStore(), policy=RetryPolicy(tries=tries, first_wait=0))
    return get_model(f"openai:fake-model@{url}", engine=engine, timeout=timeout, protocol="prompted", **settings)


def look(model: Model) -> ChatRequest:
    return model.request([Message("user", (TextPart("Look."),))])


async def gigabyte() -> AsyncIterator[bytes]:
    for _ in range(1024):
        yield b" " * MB


async def endless_drip() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(0.01)


def bomb(wbits: int) -> Stream:
    """300 MB of blanks, packed."""

    async def chunks() -> AsyncIterator[bytes]:
        packer = zlib.compressobj(wbits=wbits)
        for _ in range(300):
            yield packer.compress(b" " * MB)
        yield packer.flush()

    return chunks


async def ten_million_lists() -> AsyncIterator[bytes]:
    yield b'{"choices":['
    for _ in range(10):
        yield b"[]," * MB


BOMBS: dict[str, tuple[str, Stream]] = {
    "a gigabyte": ("200 OK", gigabyte),
    "a gigabyte announced": ("200 OK\r\ncontent-length: 1073741824", gigabyte),
    "gzip": ("200 OK\r\ncontent-encoding: gzip", bomb(31)),
    "deflate": ("200 OK\r\ncontent-encoding: deflate", bomb(15)),
    "values": ("200 OK", ten_million_lists),
}


@pytest.mark.parametrize(("head", "chunks"), BOMBS.values(), ids=BOMBS)
async def test_a_reply_without_measure_is_cut_off_and_costs_no_memory(
    head: str, chunks: Stream, memory: Callable[[], int]
) -> None:
    with streaming(head, chunks) as url:
        model = model_at(url)
        with pytest.raises(
            MalformedReply, match=r"cannot be read: (it is larger than 16 MB|It holds more than 1000000 v)"
        ):
            await model.generate(look(model))
        await model.aclose()

    assert memory() < 100 * MB


async def large_replies(model: Model, count: int) -> list[str]:
    asked = [model.request([Message("user", (TextPart(f"Look {number}."),))]) for number in range(count)]
    return [response.text for response in await asyncio.gather(*map(model.generate, asked))]


async def test_large_replies_at_once_take_the_memory_of_a_few(memory: Callable[[], int]) -> None:
    """Each of them is within its own limit, and all are read; of those that are large a few at a time."""

    async def chunks() -> AsyncIterator[bytes]:
        packer = zlib.compressobj(wbits=31)
        for _ in range(15):
            yield packer.compress(b" " * MB) + packer.flush(zlib.Z_SYNC_FLUSH)
            await asyncio.sleep(0.005)  # so that all of them are under way
        yield packer.compress(json.dumps(chat_body("A cup.")).encode()) + packer.flush()

    with streaming("200 OK\r\ncontent-encoding: gzip", chunks) as url:
        model = model_at(url)
        assert await large_replies(model, 16) == ["A cup."] * 16
        await model.aclose()

    assert memory() < 160 * MB


async def test_large_replies_that_never_end_keep_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.models.openai.transport.LARGE_AT_ONCE", 2)
    connections = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal connections
        connections += 1
        if connections <= 4:
            yield b" " * 2 * MB
            await asyncio.sleep(60)
        yield json.dumps(chat_body("A cup.")).encode()

    with streaming("200 OK", chunks) as url:
        model, other = model_at(url), model_at(url)
        hanging = asyncio.ensure_future(large_replies(model, 4))
        while connections < 4:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        # Of the same server and client, and of another one.
        assert await asyncio.wait_for(large_replies(other, 1), 10) == ["A cup."]
        assert (await asyncio.wait_for(model.generate(look(model)), 10)).text == "A cup."
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        await model.aclose()
        await other.aclose()


async def test_a_text_without_measure_is_refused() -> None:
    with FakeEndpoint([chat_body("a" * 2_000_001), chat_body("a" * 2_000_000)]) as endpoint:
        model = model_at(endpoint.url)
        with pytest.raises(MalformedReply, match="cannot be read: It holds a text of more than 2000000 characters"):
            await model.generate(look(model))
        assert len((await model.generate(look(model))).text) == 2_000_000
        await model.aclose()


CODINGS = ["gzip, chunked", "gzip", "x-odd", "chunked, gzip", "chunked, identity", "chunked;q=1", "\xff\xfe"]


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_transfer_coding_that_was_not_asked_for_is_refused(coding: str) -> None:
    body = json.dumps(chat_body("A cup.")).encode()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: %s\r\n\r\n" % coding.encode("latin-1"))
        writer.write(chunked if "chunked" in coding else body)
        writer.close()

    async with served(serve) as url:
        model = model_at(url.partition("?")[0])
        with pytest.raises(MalformedReply, match=r"it is sent in the coding '.*', which was not asked for") as caught:
            await model.generate(look(model))
        await model.aclose()
    assert str(caught.value).isprintable()


async def test_a_head_without_measure_is_a_reply_that_cannot_be_read() -> None:
    """Not a server that cannot be reached, which is waited for as long as it has answered before."""
    replies = [None, *[Reply(body=chat_body(), headers={"x-long": "y" * 40_000})] * 50]
    with FakeEndpoint(replies) as endpoint:
        model = model_at(endpoint.url, tries=3)
        await model.generate(look(model))
        with pytest.raises(NotHttp) as caught:
            await model.generate(model.request([Message("user", (TextPart("Look again."),))]))
        await model.aclose()
        assert len(endpoint.requests) == 1 + 3
    assert str(caught.value) == (
        f"{endpoint.url} sent a reply that cannot be read: its head is too large, with a header of more than 32 kB or "
        "more than 128 of them. Check the address, the server, and any proxy before it."
    )


async def test_an_error_without_measure_is_the_error_that_it_is(memory: Callable[[], int]) -> None:
    with streaming("401 Unauthorized", gigabyte) as url:
        model = model_at(url)
        with pytest.raises(AuthError):
            await model.generate(look(model))
        await model.aclose()

    assert memory() < 50 * MB


async def test_a_reply_that_never_ends_is_cut_off_at_the_time_limit() -> None:
    with streaming("200 OK", endless_drip) as url:
        model = model_at(url, timeout=0.5)
        with pytest.raises(CallTimeout, match=r"gave no answer within 0\.5 s"):
            await model.generate(look(model))
        await model.aclose()


async def test_a_packing_that_was_not_asked_for_is_refused() -> None:
    with FakeEndpoint([Reply(body=b"x", headers={"content-encoding": "zstd"})]) as endpoint:
        model = model_at(endpoint.url)
        with pytest.raises(MalformedReply, match="it is packed by 'zstd', which was not asked for"):
            await model.generate(look(model))
        await model.aclose()
        assert endpoint.requests[0].headers["accept-encoding"] == "gzip, deflate"


async def test_a_packed_reply_is_read() -> None:
    body = gzip.compress(json.dumps(chat_body("A cup.")).encode())
    with FakeEndpoint([Reply(body=body, headers={"content-encoding": "gzip"})]) as endpoint:
        model = model_at(endpoint.url)
        assert (await model.generate(look(model))).text == "A cup."
        await model.aclose()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_endpoint_sends_us_on(status: int) -> None:
    with FakeEndpoint() as other:
        to = f"{other.url}/chat/completions"
        with FakeEndpoint(lambda seen: Reply(status=status, headers={"location": to})) as endpoint:
            model = model_at(endpoint.url, tries=3)
            with pytest.raises(BadRequest) as caught:
                await model.generate(look(model))
            await model.aclose()
            assert len(endpoint.requests) == 1
        assert other.requests + other.others == []
    assert str(caught.value) == (
        f"{endpoint.url} rejects the request (status {status}): it redirects to {to!r}, which is not followed."
        " Give the address itself: requests and keys are sent to no other."
    )


# Answers that no model should give ------------------------------------------------------------------------------------

ANSWERS: dict[str, str] = {
    "nested": '{"a":' * 100_000,
    "nested lists": '{"objects":' + "[" * 100_000,
    "an open fence": "```" + " " * 1_000_000,
    "many fences": "```json " * 100_000,
    "a huge number": '{"answers": [' + "9" * 10_000 + "]}",
    "infinity": '{"answers": [1e999], "statement": 1e999}',
    "no number": '{"answers": [NaN], "statement": NaN}',
    "truth": '{"answers": [true], "statement": true}',
    "half a pair": '{"objects": ["\\ud800"], "lines": ["\\ud800"], "description": "\\ud800", "unusual": "\\ud800"}',
    "nothing": '{"objects": null, "lines": null, "description": null, "unusual": null, "answers": null}',
    "objects": '{"objects": {}, "lines": {}, "description": {}, "unusual": {}, "answers": {}, "statement": {}}',
    "controls": '{"objects": ["\\u0000\\u001b[2J"], "lines": ["\\u202e"], "unusual": "\\u0007"}',
    "very long": json.dumps(dict.fromkeys(("description", "unusual"), "x" * 2_000_000)),
    "ten thousand objects": json.dumps({"objects": [f"object {number}" for number in range(10_000)]}),
}

NODES: dict[str, Callable[[Model], tuple[Node[Any, Any], Any]]] = {
    "objects": lambda model: (objects(model), PICTURE),
    "scene text": lambda model: (scene_text(model), PICTURE),
    "narration": lambda model: (narration(model), PICTURE),
    "unusual": lambda model: (unusual(model), PICTURE),
    "choose": lambda model: (
        choose_action_reasons(model),
        OptionsQuestion(description="A cup.", options=tuple(OPTIONS)),
    ),
    "detect": lambda model: (detect_statement(model), StatementQuestion(description="A cup.", objects=("cup", "wall"))),
}


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
async def test_any_answer_ends_as_an_outcome(node: Callable[[Model], tuple[Node[Any, Any], Any]]) -> None:
    ended: dict[str, object] = {}
    for name, answer in ANSWERS.items():
        script = ScriptedModel(lambda _, said=answer: said, capabilities=Capabilities(schema="enforced"))
        asked, subject = node(model_of(script))
        try:
            result = await asyncio.wait_for(asked.ask(subject), 20)
        except Exception as error:  # noqa: BLE001  # all that go wrong are told at once
            ended[name] = error
        else:
            ended[name] = result.outcome, result.value is None

    wanted = [("answered", False), ("invalid", True)]
    assert {name: end for name, end in ended.items() if end not in wanted} == {}


async def test_a_reply_that_fills_a_prompt_is_the_outcome_of_its_own_link() -> None:
    """The texts of one picture are too long together for the prompt that combines them; the other picture is read."""
    long = picture(7)

    def reply(request: ChatRequest) -> str:
        of_long = any(part.shown.image.sha256 == long.sha256 for part in request.images)
        return "**" * 480_000 + "a" if of_long else "Answer: 1"

    chain = action_reason(model_of(ScriptedModel(reply), protocol="paper"))
    sources = [{"image": each, "options": OPTIONS, "objects": ["bottle"]} for each in (long, picture(8))]
    first, second = [reading async for reading in chain.read_all(sources)]

    ended = {name: result.outcome for name, result in first.links.items()}
    assert [ended[name] for name in ("narration", "description", "answers")] == ["answered", "failed", "skipped"]
    description = first.links["description"]
    assert (description.error, description.reason) == (
        "PromptTooLong",
        "Prompt 'combine' gives more than 1000000 characters. Give it shorter values.",
    )
    assert second.links["description"].answered
    assert second.links["answers"].answered
