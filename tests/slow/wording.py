"""What real servers say when they refuse: the questions that provoke it, and the words on record in `wording.json`.

    python -m tests.slow.wording URL MODEL [KEY]

asks a running server again and prints its part of the record. The fast tests hold the backend's reading of errors
against these words; a slow test holds the words against the servers.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("wording.json")
RED_DOT = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP8zwACTGCSAQANHQEDgslx/wAAAABJRU5ErkJggg=="
"""A PNG of two by two pixels."""

JsonObject = dict[str, Any]


def _text(text: str) -> list[JsonObject]:
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


def _picture(data: str) -> list[JsonObject]:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    return [{"role": "user", "content": [picture, {"type": "text", "text": "What is this?"}]}]


def _schema(schema: JsonObject) -> JsonObject:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}


def _numbers(**more: Any) -> JsonObject:
    array = {"type": "array", "items": {"type": "integer"}, **more}
    return {"type": "object", "properties": {"numbers": array}, "required": ["numbers"], "additionalProperties": False}


TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}
QUESTIONS: dict[str, JsonObject] = {
    "unknown_model": {"model": "no-such-model", "messages": _text("Hello")},
    "too_long": {"messages": _text("word " * 6000)},
    "too_many_tokens_asked_for": {"messages": _text("Hello"), "max_tokens": 50_000},
    "image": {"messages": _picture(RED_DOT)},
    "broken_image": {"messages": _picture(base64.b64encode(b"no picture").decode())},
    "schema_beyond_the_grammar": {"messages": _text("Hello"), "response_format": _schema(_numbers(uniqueItems=True))},
    "unknown_response_format": {"messages": _text("Hello"), "response_format": {"type": "xml"}},
    "too_many_logprobs": {"messages": _text("Hello"), "logprobs": True, "top_logprobs": 25},
    "tools": {"messages": _text("Hello"), "tools": [TOOL]},
    "negative_temperature": {"messages": _text("Hello"), "temperature": -1},
    "stop_words": {"messages": _text("Hello"), "stop": ["o"]},
    "unknown_field": {"messages": _text("Hello"), "nonsense": 1},
    "no_messages": {"messages": []},
    "wrong_key": {"messages": _text("Hello")},
}


def record() -> dict[str, dict[str, JsonObject]]:
    """Server → question → `status` and `body` (the JSON value, or the text where it is none), errors only."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def ask(url: str, model: str, question: str, *, key: str | None = None) -> JsonObject:
    """`status` and `body` of what the server says to one of `QUESTIONS`."""
    body = {"model": model, "max_tokens": 4, "temperature": 0, **QUESTIONS[question]}
    headers = {"content-type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {'wrong' if question == 'wrong_key' else key}"
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return {"status": reply.status, "body": _value(reply.read())}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "body": _value(error.read())}


def without_numbers(said: JsonObject) -> JsonObject:
    """`said` with each number in the body, such as a time or a line, as `#`."""
    return {"status": said["status"], "body": re.sub(r"\d+", "#", json.dumps(said["body"]))}


def _value(body: bytes) -> Any:
    text = body.decode()
    try:
        return json.loads(text)
    except ValueError:
        return text


def _main(url: str, model: str, key: str | None = None) -> None:
    said = {question: ask(url, model, question, key=key) for question in QUESTIONS}
    refused = {question: reply for question, reply in said.items() if reply["status"] != 200}
    sys.stdout.write(json.dumps(refused, indent=2) + "\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
