"""LangSmith tracing that the environment switches on: nothing in a replay, and never a picture."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pytest

from tests.scripted import PICTURE
from tests.security.commands import Project
from tests.servers import FakeEndpoint


class Collector(ThreadingHTTPServer):
    """Takes traces, whatever they look like, and keeps them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Keeper)
        self.seen: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Keeper(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        kept = cast("Collector", self.server).seen
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        kept.append(f"{self.command} {self.path}\n{self.headers}".encode() + body)
        self.send_response(202 if self.command != "GET" else 404)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_PATCH = do_POST  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: the tests look for themselves."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_traces_are_announced_without_pictures_and_a_replay_sends_none(own_place: Path, collector: Collector) -> None:
    tracing = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": collector.url, "LANGSMITH_API_KEY": "ls-key"}
    with FakeEndpoint() as endpoint:
        project = Project.make(own_place, endpoint.url, **tracing)
        live = project.read("--json")
    picture = b64encode(PICTURE.read_bytes())
    seen = b"".join(collector.seen)
    collector.seen.clear()

    replayed = project.read("--json", "--replay", out="again")

    assert (live.returncode, replayed.returncode) == (0, 0)
    assert "prompts and answers leave this machine, pictures as digests only" in live.stderr
    assert b"image sha256:" in seen
    assert picture[:60] not in seen
    assert picture[600:660] not in seen
    assert collector.seen == []
    assert "LangSmith" not in replayed.stderr
    assert list(project.leaks()) == []
    assert [name for name in ("MARKED_KEY", "MARKED_HEADER") if project.env[name].encode() in seen] == []
