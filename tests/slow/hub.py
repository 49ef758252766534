"""A model hub on the loopback: as much of one as its client needs to download a folder, and faults to order."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

COMMIT = "c0ffee" + "0" * 34
_RANGE = re.compile(r"bytes=(\d+)-")


@dataclass(kw_only=True)
class Hub:
    """A running hub; it gives out one folder under every name."""

    folder: Path
    url: str = ""
    breaks: int = 0
    """Answers with the largest file that are still to be broken off half-way."""
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Every request for a file's content: its name, and the range that was wanted."""

    def tree(self) -> list[dict[str, Any]]:
        return [
            {"type": "file", "path": self.name(file), "size": file.stat().st_size, "oid": self.etag(file)}
            for file in self.files()
            if not file.name.startswith(".")
        ] + [{"type": "file", "path": "onnx/model.json", "size": 1, "oid": "0"}]

    def files(self) -> list[Path]:
        return sorted(file for file in self.folder.rglob("*") if file.is_file())

    def name(self, file: Path) -> str:
        return file.relative_to(self.folder).as_posix()

    @property
    def largest(self) -> Path:
        return max(self.files(), key=lambda file: file.stat().st_size)

    def etag(self, file: Path) -> str:
        return sha1(file.read_bytes(), usedforsecurity=False).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    """Answers for the hub of its server."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object, **__: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)
        hub, path = self.server.hub, self.path.partition("?")[0]
        if path.startswith("/api/models/"):
            self._json(hub.tree() if "/tree/" in path else {"id": path.split("/revision")[0][12:], "sha": COMMIT})
            return
        # Behind `/resolve/` stand the revision and the file's name.
        file = hub.folder / path.partition("/resolve/")[2].partition("/")[2]
        if "/resolve/" in path and file.is_file():
            self._file(file, hub)
        else:
            self.send_error(404)

    def _file(self, file: Path, hub: Hub) -> None:
        content = file.read_bytes()
        wanted = _RANGE.match(self.headers.get("Range", ""))
        start = int(wanted[1]) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("ETag", f'"{hub.etag(file)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(content) - start))
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        hub.asked.append((hub.name(file), self.headers.get("Range", "")))
        if hub.breaks and file == hub.largest:
            hub.breaks -= 1
            self.close_connection = True
            content = content[: (start + len(content)) // 2]
        self.wfile.write(content[start:])

    def _json(self, value: object) -> None:
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: Hub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub = hub


@contextmanager
def hub_of(folder: Path) -> Generator[Hub]:
    """A hub with the model in `folder`."""
    hub = Hub(folder=folder)
    server = _Server(hub)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
