"""An endpoint on this machine with a batch interface: files, batches and chat completions, as OpenAI has them.

    with BatchServer(tmp_path) as server:
        chain = action_reason(f"openai:gpt-4o@{server.url}", …)

A batch moves on by one state each time that it is looked at: validating, in_progress, finalizing, then completed (or
what `fate` says). What was uploaded and answered is on the disk and outlives every client. `fault` is told of each
request twice, before anything is done and before the reply is sent, and may kill the client, wait, or reply itself.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

from tests.servers import Reply, chat_body, default_text, error

JsonObject: TypeAlias = dict[str, Any]

When = Literal["before", "after"]
Step = Literal["upload", "files", "create", "batches", "poll", "cancel", "content", "delete", "chat"]
Fault: TypeAlias = Callable[[Step, When], Reply | None]
Fate = Literal["completed", "expired", "cancelled"]

NEXT = {"validating": "in_progress", "in_progress": "finalizing", "cancelling": "cancelled"}
ENDED = ("completed", "failed", "expired", "cancelled")

BATCH_EXPIRED = {
    "code": "batch_expired",
    "message": "This request could not be executed before the completion window expired.",
}


@dataclass(frozen=True)
class ErrorContext:
    """A request: what it is about, by its address, and what it brings."""

    step: Step
    name: str
    query: Mapping[str, str]
    body: bytes
    kind: str


@dataclass
class Made:
    """A batch."""

    form: JsonObject
    done: Counter[str] = field(default_factory=Counter[str])
    """Calls made, by custom id."""


class BatchServer:
    """The endpoint, in threads of its own.

    Args:
        folder: keeps the files.
        answer: the reply to the body of a call.
        fault: see the top of this module.
        fate: how a batch ends, and which of its calls (counted from 0) are made; by number of the batch, from 0.
        most_calls: a batch may hold.
        most_bytes: an uploaded file may have.
        room: calls that may be under way in batches at a time; more fail as they do at OpenAI.
    """

    def __init__(
        self,
        folder: Path,
        *,
        answer: Callable[[JsonObject], Reply | str] = default_text,
        fault: Fault | None = None,
        fate: Callable[[int], tuple[Fate, Callable[[int], bool]]] | None = None,
        most_calls: int = 50_000,
        most_bytes: int = 200_000_000,
        room: int = 10**9,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.answer = answer
        self.fault = fault
        self.fate = fate
        self.most_calls = most_calls
        self.most_bytes = most_bytes
        self.room = room
        self.files: dict[str, JsonObject] = {}
        self.batches: dict[str, Made] = {}
        self.chats: list[JsonObject] = []
        """Bodies of calls that were made online."""
        self.steps: list[Step] = []
        """Every request, in order of arrival."""
        self.spoil: Callable[[bytes], bytes] = bytes
        """What becomes of an output file when it is made."""
        self.complaints: Callable[[JsonObject], Iterable[JsonObject]] = self._complaints
        """What keeps a batch from being begun."""
        self._lock = threading.RLock()
        self._under_way = 0
        self._still = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def made(self) -> Counter[str]:
        """How often each call was made in a batch, by custom id."""
        return sum((batch.done for batch in self.batches.values()), Counter[str]())

    def __enter__(self) -> BatchServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def lines(self, file: str) -> list[JsonObject]:
        """The lines of an uploaded file."""
        return [json.loads(line) for line in (self.folder / file).read_bytes().splitlines()]

    # --- requests ---

    def reply(self, asked: ErrorContext) -> Reply:
        match asked.step:
            case "upload" | "files" | "content" | "delete":
                return self._of_files(asked)
            case "create":
                return self._create(json.loads(asked.body))
            case "batches":
                return self._page([made.form for made in self.batches.values()], asked.query)
            case "poll" | "cancel":
                return self._of_batch(asked)
            case "chat":
                self.chats.append(json.loads(asked.body))
                return self._answered(json.loads(asked.body))

    def _of_files(self, asked: ErrorContext) -> Reply:
        if asked.step == "upload":
            return self._upload(asked.body, asked.kind)
        if asked.step == "files":
            purpose = asked.query.get("purpose")
            return self._page([form for form in self.files.values() if purpose in {None, form["purpose"]}], asked.query)
        if asked.name not in self.files:
            return _unknown("file", asked.name)
        if asked.step == "content":
            return Reply(body=(self.folder / asked.name).read_bytes())
        del self.files[asked.name]
        return Reply(body={"id": asked.name, "object": "file", "deleted": True})

    def _of_batch(self, asked: ErrorContext) -> Reply:
        made = self.batches.get(asked.name)
        if made is None:
            return _unknown("batch", asked.name)
        if asked.step == "poll":
            self._move(made)
        elif made.form["status"] not in ENDED:
            made.form["status"] = "cancelling"
        return Reply(body=made.form)

    def _page(self, forms: list[JsonObject], query: Mapping[str, str]) -> Reply:
        newest = list(reversed(forms))
        start = next((place for place, form in enumerate(newest, 1) if form["id"] == query.get("after")), 0)
        page = newest[start : start + int(query.get("limit", 20))]
        more = start + len(page) < len(newest)
        ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
        return Reply(body={"object": "list", "data": page, "has_more": more, **ends})

    def _upload(self, body: bytes, kind: str) -> Reply:
        name, content, purpose = _parts(body, kind)
        if len(content) > self.most_bytes:
            return error(400, f"The input of a batch must not be larger than {self.most_bytes} bytes.")
        return Reply(body=self._file(content, name=name, purpose=purpose))

    def _file(self, content: bytes, *, name: str, purpose: str) -> JsonObject:
        number = f"file-{len(list(self.folder.iterdir())):04d}"
        (self.folder / number).write_bytes(content)
        form = {"id": number, "object": "file", "bytes": len(content), "filename": name, "purpose": purpose}
        self.files[number] = {**form, "created_at": 0, "status": "processed"}
        return self.files[number]

    def _create(self, asked: JsonObject) -> Reply:
        if asked["completion_window"] != "24h" or asked["input_file_id"] not in self.files:
            return error(400, f"Cannot find file {asked['input_file_id']}.", param="file_id")
        number = f"batch_{len(self.batches):04d}"
        form: JsonObject = {
            "id": number,
            "object": "batch",
            "status": "validating",
            "created_at": int(time.time()),
            "output_file_id": None,
            "error_file_id": None,
            "errors": None,
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
            **asked,
        }
        self.batches[number] = Made(form)
        return Reply(body=form)

    # --- what becomes of a batch ---

    def _move(self, made: Made) -> None:
        form = made.form
        if form["status"] == "validating" and (complaints := list(self.complaints(form))):
            form |= {"status": "failed", "errors": {"object": "list", "data": complaints}}
        elif form["status"] == "finalizing":
            self._end(made)
        elif form["status"] == "cancelling":
            form["status"] = "cancelled"
        elif form["status"] not in ENDED:
            form["status"] = NEXT[form["status"]]
            form["request_counts"]["total"] = len(self.lines(form["input_file_id"]))

    def _complaints(self, form: JsonObject) -> Iterator[JsonObject]:
        lines = self.lines(form["input_file_id"])
        names = Counter(line["custom_id"] for line in lines)
        models = {line["body"]["model"] for line in lines}
        waiting = sum(made.form["request_counts"]["total"] for made in self._running())
        if waiting + len(lines) > self.room:
            yield _complaint("token_limit_exceeded", f"Enqueued token limit reached for {models}.")
        if len(lines) > self.most_calls:
            yield _complaint("too_many_tasks", "The batch holds too many requests.")
        for number, line in enumerate(lines, 1):
            if names[line["custom_id"]] > 1:
                yield _complaint("duplicate_custom_id", "The custom_id stands twice.", number)
            if line["url"] != form["endpoint"] or line["method"] != "POST":
                yield _complaint("mismatched_endpoint", "The url is not that of the batch.", number)
            if len(models) > 1:
                yield _complaint("mismatched_model", "A batch is for one model.", number)

    def _running(self) -> list[Made]:
        return [made for made in self.batches.values() if made.form["status"] in {"in_progress", "finalizing"}]

    def _end(self, made: Made) -> None:
        form, number = made.form, list(self.batches).index(made.form["id"])
        fate, reached = (self.fate or _completed)(number)
        good: list[JsonObject] = []
        bad: list[JsonObject] = []
        for place, line in enumerate(self.lines(form["input_file_id"])):
            entry: JsonObject = {"id": f"batch_req_{place}", "custom_id": line["custom_id"], "response": None}
            if reached(place):
                made.done[line["custom_id"]] += 1
                reply = self._answered(line["body"])
                body: Any = json.loads(reply.payload)
                entry["response"] = {"status_code": reply.status, "request_id": f"req_{place}", "body": body}
                (good if reply.status == 200 else bad).append({**entry, "error": None})
            elif fate == "expired":
                bad.append({**entry, "error": BATCH_EXPIRED})
        random.Random(number).shuffle(good)  # answers come in any order
        form["status"] = fate
        form["request_counts"] |= {"completed": len(good), "failed": len(bad)}
        for name, entries in (("output_file_id", good), ("error_file_id", bad)):
            if entries:
                content = b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)
                content = self.spoil(content) if name == "output_file_id" else content
                form[name] = self._file(content, name="output.jsonl", purpose="batch_output")["id"]

    def _answered(self, body: JsonObject) -> Reply:
        answer = self.answer(body)
        return answer if isinstance(answer, Reply) else Reply(body=chat_body(answer, model=body["model"]))

    def wait(self) -> None:
        """Returns when no request is under way: what a client that was killed had asked for is done by then.

        Raises:
            TimeoutError: one takes a minute.
        """
        with self._still:
            if not self._still.wait_for(lambda: self._under_way == 0, 60):
                raise TimeoutError

    def serve(self, method: str, address: str, body: bytes, kind: str) -> Reply:
        with self._still:
            self._under_way += 1
        try:
            return self._serve(method, address, body, kind)
        finally:
            with self._still:
                self._under_way -= 1
                self._still.notify_all()

    def _serve(self, method: str, address: str, body: bytes, kind: str) -> Reply:
        parts = urlsplit(address)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        found = _step(method, parts.path)
        if found is None:
            return Reply(status=404, body={"detail": "Not Found"})
        step, name = found
        self.steps.append(step)
        said = self.fault(step, "before") if self.fault else None
        if said is not None:
            return said
        with self._lock:
            reply = self.reply(ErrorContext(step, name, query, body, kind))
            reply = Reply(status=reply.status, body=reply.payload, headers=reply.headers)
        said = self.fault(step, "after") if self.fault else None
        return reply if said is None else said


class _Handler(BaseHTTPRequestHandler):
    """One connection to a server."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one write: two would wait for the other side's delayed acknowledgement

    def __init__(self, server: BatchServer, *connection: Any) -> None:
        self.batches = server
        super().__init__(*connection)

    def do_POST(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # http.server's signature
        """Says nothing."""

    def _serve(self) -> None:
        try:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            kind = self.headers.get("content-type", "")
            self._send(self.batches.serve(self.command, self.path, body, kind))
        except OSError:  # the client is gone, or is to think that the server is
            self.close_connection = True

    def _send(self, reply: Reply) -> None:
        if reply.reset:
            raise ConnectionResetError
        payload = reply.payload
        self.send_response(reply.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload[: reply.cut])
        self.wfile.flush()
        self.close_connection = reply.cut is not None


_STEPS: tuple[tuple[str, str, Step], ...] = (
    ("POST", r"/v1/files", "upload"),
    ("GET", r"/v1/files", "files"),
    ("GET", r"/v1/files/([^/]+)/content", "content"),
    ("DELETE", r"/v1/files/([^/]+)", "delete"),
    ("POST", r"/v1/batches", "create"),
    ("GET", r"/v1/batches", "batches"),
    ("GET", r"/v1/batches/([^/]+)", "poll"),
    ("POST", r"/v1/batches/([^/]+)/cancel", "cancel"),
    ("POST", r"/v1/chat/completions", "chat"),
)


def _step(method: str, path: str) -> tuple[Step, str] | None:
    for wanted, pattern, step in _STEPS:
        found = re.fullmatch(pattern, path)
        if found and method == wanted:
            return step, found[1] if found.groups() else ""
    return None


def _parts(body: bytes, kind: str) -> tuple[str, bytes, str]:
    """File name, content and purpose of a multipart upload."""
    boundary = b"--" + re.findall(r'boundary="?([^";]+)', kind)[0].encode()
    name, content, purpose = "", b"", ""
    for part in body.split(boundary)[1:-1]:
        head, _, value = part.partition(b"\r\n\r\n")
        value = value.removesuffix(b"\r\n")
        if b'name="file"' in head:
            name = re.findall(rb'filename="([^"]+)"', head)[0].decode()
            content = value
        elif b'name="purpose"' in head:
            purpose = value.decode()
    return name, content, purpose


def _completed(number: int) -> tuple[Fate, Callable[[int], bool]]:
    return "completed", lambda place: True


def _complaint(code: str, message: str, line: int | None = None) -> JsonObject:
    return {"code": code, "message": message, "line": line, "param": None}


def _unknown(what: str, name: str) -> Reply:
    return error(404, f"No such {what}: {name}.")


Serve = Callable[..., BatchServer]
"""Begins an endpoint of a test; takes what `BatchServer` takes beside folder and answers."""
