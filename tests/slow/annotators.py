"""An OpenAI-compatible endpoint whose answers are people's: `python annotators.py FOLDER PORT`.

What it is asked about a cartoon of `read_cartoon.py`, it answers with what people wrote of that cartoon. Anything else
is refused: it is no model, and knows nothing beside its annotations.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.slow.read_cartoon import written


def serve(folder: Path, port: int) -> None:
    """Answer until the process ends."""
    answers = dict(written(folder).values())

    class Annotators(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Say that it is there."""
            self._send(200, {"object": "list", "data": [{"id": "people", "object": "model"}]})

        def do_POST(self) -> None:
            """The annotation of the described cartoon, as a completion."""
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = asked["messages"][-1]["content"]
            said = text if isinstance(text, str) else "".join(part["text"] for part in text)
            fields = next((answers[line] for line in said.splitlines() if line in answers), None)
            if fields is None:
                self._send(400, {"error": {"message": "Nobody wrote anything of this cartoon.", "code": 400}})
            else:
                self._send(200, _completion(json.dumps(fields, ensure_ascii=False)))

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name of the standard library
            """Nothing."""

        def _send(self, status: int, form: Mapping[str, Any]) -> None:
            body = json.dumps(form).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    ThreadingHTTPServer(("127.0.0.1", port), Annotators).serve_forever()


def _completion(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "people", "choices": [choice]}


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
