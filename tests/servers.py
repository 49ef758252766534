"""An OpenAI-compatible endpoint on this machine that does as it is told.

    with FakeEndpoint() as endpoint:
        client = AsyncOpenAI(base_url=endpoint.url, api_key="-")

It speaks chat completions, responses and `/models`, answers a JSON schema with a small valid instance and anything else
with a plain sentence, and keeps every request. `reply` scripts it: a function of the request, or a list that is used up
in order. `tests.replies` has the words of real servers.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, TypeAlias, cast

from tests.instances import instance

SENTENCE = "A cup of coffee stands on a brick wall."
"""What is answered where nothing else was asked for."""

JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def json(self) -> JsonObject:
        return json.loads(self.body) if self.body else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes back: a mapping as JSON, text and bytes as they are."""

    status: int = 200
    body: JsonObject | str | bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0
    """Seconds before the first byte; infinity never answers."""
    cut: int | None = None
    """Bytes of the body after which the connection is closed."""
    reset: bool = False
    """The connection is reset: without an answer, or after `cut` bytes of the body."""
    drip: float = 0.0
    """Seconds between two bytes of the body."""
    phrase: str | None = None
    """What the status line says besides the number; None is what it stands for."""

    @property
    def payload(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


Answer: TypeAlias = Reply | str | JsonObject | None
"""A string is the model's text; a mapping the JSON body; None the default."""
Script: TypeAlias = Callable[[Seen], Answer] | Iterable[Answer]


class FakeEndpoint:
    """An OpenAI-compatible server on a free port of the loopback interface, in a thread of its own.

    Args:
        reply: What to answer to calls of a model: a function of the request, or answers in order, then the default.
        models: Names listed at `/models`; the first one answers as the served model.
        delay: Seconds before each answer to a call of a model.
    """

    def __init__(
        self, reply: Script | None = None, *, models: tuple[str, ...] = ("fake-model",), delay: float = 0.0
    ) -> None:
        self.models = models
        self.delay = delay
        self.requests: list[Seen] = []
        """Calls of a model, in order of arrival."""
        self.others: list[Seen] = []
        """All other requests, such as those for the list of models."""
        self.port = 0
        self._function = reply if callable(reply) else None
        self._queue: deque[Answer] = deque(() if reply is None or callable(reply) else reply)
        self._loop = asyncio.new_event_loop()
        self._arrived = threading.Condition()
        self._serving: set[asyncio.Task[None]] = set()
        self._writers = set[asyncio.StreamWriter]()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-endpoint", daemon=True)

    @property
    def url(self) -> str:
        """Base address, with `/v1`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def bodies(self) -> list[JsonObject]:
        """The JSON of each call of a model."""
        return [request.json for request in self.requests]

    def wait(self, count: int = 1, *, timeout: float = 60.0) -> None:
        """Returns when `count` calls of a model have arrived; from a coroutine, call it in a thread.

        Raises:
            TimeoutError: they have not within `timeout` seconds.
        """
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self.requests) >= count, timeout):
                msg = f"{len(self.requests)} calls have arrived, not {count}"
                raise TimeoutError(msg)

    def __enter__(self) -> FakeEndpoint:
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._connected, "127.0.0.1", self.port))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Any) -> Any:
        done: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(timeout=10)

    def down(self) -> None:
        """Takes the server away, as a crash does; connections break."""
        self._do(self._stop())

    def up(self) -> None:
        """Brings it back, at the same address."""
        self._server = self._do(asyncio.start_server(self._connected, "127.0.0.1", self.port))

    async def _stop(self) -> None:
        # asyncio loses a connection that was accepted when its server closes, so those are made first, and no more.
        for listening in self._server.sockets:
            self._loop.remove_reader(listening)
        await asyncio.sleep(0)
        self._server.close()
        # A connection that is only just being accepted is served first, or nobody would close it.
        while others := asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task())}:
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        writers, self._writers = self._writers, set[asyncio.StreamWriter]()
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            self._serving.discard(task)
            self._writers.discard(writer)
            writer.close()

        self._writers.add(writer)
        task = self._loop.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(ended)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (seen := await _read(reader)) is not None and await self._answer(seen, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        """Sends the reply; says whether the connection stays open."""
        reply = self._reply(seen)
        if reply.delay or self.delay:
            await asyncio.sleep(10**6 if math.isinf(reply.delay) else reply.delay + self.delay)
        if reply.reset and reply.cut is None:
            _reset(writer)
            return False
        body = reply.payload
        headers = {"content-type": "application/json", "content-length": str(len(body)), **reply.headers}
        head = [f"HTTP/1.1 {reply.status} {reply.phrase or HTTPStatus(reply.status).phrase}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        # One write for head and body: two would wait for the other side's delayed acknowledgement.
        writer.write("\r\n".join([*head, "", ""]).encode("latin-1") + (b"" if reply.drip else body[: reply.cut]))
        await writer.drain()
        for place in range(len(body) if reply.drip else 0):
            await asyncio.sleep(reply.drip)
            writer.write(body[place : place + 1])
            await writer.drain()
        if reply.reset:
            await asyncio.sleep(0.05)  # what was written is on its way: a reset would overtake it
            _reset(writer)
        return reply.cut is None

    def _reply(self, seen: Seen) -> Reply:
        if seen.path.endswith("/models"):
            self.others.append(seen)
            return Reply(body={"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]})
        if not seen.path.partition("?")[0].endswith(("/chat/completions", "/responses", "/embeddings")):
            self.others.append(seen)
            return Reply(status=404, body={"detail": "Not Found"})
        with self._arrived:
            self.requests.append(seen)
            self._arrived.notify_all()
        answer = self._function(seen) if self._function else self._queue.popleft() if self._queue else None
        return self._finished(answer, seen)

    def _finished(self, answer: Answer, seen: Seen) -> Reply:
        if isinstance(answer, Reply):
            return answer
        if isinstance(answer, dict):
            return Reply(body=answer)
        text = default_text(seen.json) if answer is None else answer
        shape = responses_body if "/responses" in seen.path else chat_body
        return Reply(body=shape(text, model=self.models[0]))


def _reset(writer: asyncio.StreamWriter) -> None:
    """Has the connection reset when it is closed: a linger time of zero makes it so."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def _read(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    start, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = start.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Seen(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


def chat_body(
    text: str | None = SENTENCE, *, model: str = "fake-model", finish: str = "stop", **message: Any
) -> JsonObject:
    """A chat completion; further keywords enter its message."""
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
        "usage": usage,
    }


def responses_body(text: str = SENTENCE, *, model: str = "fake-model", **fields: Any) -> JsonObject:
    """A reply of the responses API; further keywords enter its top level."""
    content: JsonObject = {"type": "output_text", "text": text, "annotations": []}
    output: JsonObject = {
        "id": "msg-1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    start: JsonObject = {"id": "resp-1", "object": "response", "created_at": 0, "status": "completed", "model": model}
    rest: JsonObject = {
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": [output],
        "usage": usage,
    }
    return {**start, **rest, **fields}


def tool_call(name: str, arguments: JsonObject, *, call_id: str = "call-1") -> JsonObject:
    """A tool call of a chat completion's message."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def error(
    status: int,
    message: str,
    *,
    code: str | int | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """An error in the shape of OpenAI, which vLLM and llama.cpp follow."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
    return Reply(status=status, body=body, headers=headers or {})


def old_vllm_error(status: int, message: str) -> Reply:
    """An error in the flat shape of earlier vLLM releases."""
    return Reply(status=status, body={"object": "error", "message": message, "type": "BadRequestError", "code": status})


def default_text(body: JsonObject) -> str:
    """A small instance of the schema that the request asks for, or a plain sentence."""
    form: JsonObject = body.get("response_format") or body.get("text", {}).get("format") or {}
    if form.get("type") == "json_schema":
        return json.dumps(instance(form.get("json_schema", form)["schema"]))
    return "{}" if form.get("type") == "json_object" else SENTENCE
