"""An endpoint that answers as a model would, in a process of its own; it can limit, fail, hang and cut off.

    python server.py --latency 0.1 [--rate 50 --room 5] [--fail 0.05] [--hang 0.02] [--cut 0.02]

It prints its port, answers until its input closes, and then prints what it did as a line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any

JsonObject = dict[str, Any]

WORDS = ("cup", "cat", "wall", "sky", "car")


@dataclass(kw_only=True)
class Endpoint:
    """What the endpoint does, and what it did."""

    latency: float = 0.0
    """Seconds before each answer."""
    rate: float = math.inf
    """Requests a second that are let through, out of a bucket with `room` for so many."""
    room: int = 1
    fail: float = 0.0
    """Part of the requests that get a 500."""
    hang: float = 0.0
    """Part that get no answer."""
    cut: float = 0.0
    """Part whose JSON breaks off in a reply of status 200."""
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    did: dict[str, int] = field(default_factory=dict[str, int])
    tokens: float = 0.0
    at: float = 0.0
    first: float | None = None
    last: float = 0.0

    def count(self, what: str) -> None:
        """Notes that one request ended as `what`."""
        self.did[what] = self.did.get(what, 0) + 1

    def limited(self) -> int | None:
        """Whole seconds to wait, at least one, where the bucket is empty."""
        if self.rate == math.inf:
            return None
        now = time.monotonic()
        self.tokens = min(self.room, self.tokens + (now - self.at) * self.rate) if self.at else float(self.room)
        self.at = now
        if self.tokens < 1:
            return max(1, math.ceil((1 - self.tokens) / self.rate))
        self.tokens -= 1
        return None

    def reply(self, body: bytes) -> tuple[int, bytes, float, str]:
        """Status, body, seconds before it, and further header lines."""
        self.first = self.first or time.monotonic()
        self.last = time.monotonic()
        if (wait := self.limited()) is not None:
            self.count("limited")
            return 429, b'{"error": {"message": "Rate limit reached."}}', 0.0, f"retry-after: {wait}\r\n"
        fate = self.chance.random()
        if fate < self.fail:
            self.count("failed")
            return 500, b'{"error": {"message": "The server had an error."}}', self.latency, ""
        if fate < self.fail + self.hang:
            self.count("hung")
            return 200, b"", math.inf, ""
        made = completion(json.loads(body), hashlib.sha256(body).hexdigest())
        if fate < self.fail + self.hang + self.cut:
            self.count("cut")
            return 200, made[: len(made) // 2], self.latency, ""
        self.count("answered")
        return 200, made, self.latency, ""


class Connection(asyncio.Protocol):
    """One connection: requests one after the other, each answered after its time."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.parts: list[bytes] = []
        self.missing = 0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport if isinstance(transport, asyncio.Transport) else None

    def data_received(self, data: bytes) -> None:
        self.parts.append(data)
        self.missing -= len(data)
        if self.missing > 0:
            return
        whole = b"".join(self.parts)
        self.parts = [whole]
        head, blank, body = whole.partition(b"\r\n\r\n")
        if not blank:
            return
        self.missing = _length(head) - len(body)
        if self.missing <= 0:
            self.parts = []
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        status, made, seconds, more = self.endpoint.reply(body)
        if seconds == math.inf:
            return
        head = f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {len(made)}\r\n{more}\r\n"
        asyncio.get_running_loop().call_later(seconds, self._write, head.encode() + made)

    def _write(self, data: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def completion(body: JsonObject, digest: str) -> bytes:
    """A chat completion that satisfies the schema asked for; what it says follows from `digest`."""
    form: JsonObject = body.get("response_format", {})
    schema: JsonObject = form.get("json_schema", {}).get("schema", {})
    properties: JsonObject = schema.get("properties", {})
    says = {name: _value(name, wanted, digest) for name, wanted in properties.items()}
    reply = {
        "id": f"chatcmpl-{digest[:24]}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body.get("model"),
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "logprobs": None,
                "message": {"role": "assistant", "content": json.dumps(says) if says else "Yes."},
            }
        ],
        "usage": {"prompt_tokens": 800, "completion_tokens": 90, "total_tokens": 890},
    }
    return json.dumps(reply).encode()


def _value(name: str, form: JsonObject, digest: str) -> Any:
    seed = int(digest[:8], 16)
    items: JsonObject = form.get("items", {})
    if "enum" in form:
        return form["enum"][0]
    if form.get("type") == "integer":
        return seed % min(form.get("maximum", 20), 20) + 1
    if form.get("type") == "array" and (items.get("type") == "integer" or name == "answers"):
        most = items.get("maximum", 18)
        return [(seed + step) % most + 1 for step in (0, 5, 11)]
    if form.get("type") == "array":
        return [f"{word} {digest[place : place + 4]}" for place, word in enumerate(WORDS[: form.get("maxItems", 5)])]
    return f"A cup stands on a wall before a city at dusk, and its side is laid in bricks ({digest[:12]}). " * 4


async def serve(endpoint: Endpoint) -> None:
    """Answers on a free port of the loopback interface until standard input closes."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(endpoint), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()
    seconds = endpoint.last - endpoint.first if endpoint.first else 0.0
    print(json.dumps({"seconds": seconds, **endpoint.did}), flush=True)


def main() -> None:
    """Serve as told."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name in ("latency", "fail", "hang", "cut"):
        parser.add_argument(f"--{name}", type=float, default=0.0)
    parser.add_argument("--rate", type=float, default=math.inf)
    parser.add_argument("--room", type=int, default=1)
    asyncio.run(serve(Endpoint(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
