"""Folders as models are saved, made by hand; and an interpreter that is taken for vLLM's and plays its server."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.local.conftest import MakeFolder, make_folder, safetensors

__all__ = ["make_folder", "safetensors"]

PLAYER = '''\
#!{python}
"""Takes the words that vLLM's server is started with, and does what `PLAY` says."""
import http.server, json, os, sys, time

words = sys.argv[3:]
given = dict(zip(words, words[1:]))
play = json.loads({play!r})
open({seen!r}, "w").write(json.dumps({{"words": words, "key": os.environ.get("VLLM_API_KEY"), "pid": os.getpid(),
                                      "variables": sorted(os.environ), "folder": os.getcwd()}}))
print(play.get("says", "INFO starting"), flush=True)
if "code" in play:
    sys.exit(play["code"])

class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    def answer(self, text, status=200):
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer(play.get("metrics", "") if self.path == "/metrics" else "")
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != "Bearer " + os.environ["VLLM_API_KEY"]:
            return self.answer(json.dumps({{"error": {{"message": "Unauthorized"}}}}), 401)
        if play.get("dies"):
            print("RuntimeError: CUDA error: an illegal memory access", flush=True)
            os._exit(3)
        choice = {{"index": 0, "finish_reason": "stop", "message": {{"role": "assistant", "content": "red"}}}}
        usage = {{"prompt_tokens": 40, "completion_tokens": 1, "prompt_tokens_details": {{"cached_tokens": 0}}}}
        self.answer(json.dumps({{"model": asked["model"], "choices": [choice], "usage": usage}}))
    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(given["--port"])), Answers).serve_forever()
'''


@pytest.fixture
def player(tmp_path: Path) -> Callable[..., Path]:
    """Makes an interpreter that runs nothing it is given and plays a server; what it saw is `player.json` beside it."""

    def make(name: str = "player", **play: object) -> Path:
        path = tmp_path / name
        seen = str(path.with_suffix(".json"))
        path.write_text(PLAYER.format(python=sys.executable, play=json.dumps(play), seen=seen), encoding="utf-8")
        path.chmod(0o755)
        return path

    return make


Player = Callable[..., Path]
_ = MakeFolder
