"""Records to test with."""

from __future__ import annotations

from askance.chat import ChatRequest, ChatResponse, JsonObject, Message, ModelId, Sampling, TextPart
from askance.replay import Record

AT = "2026-01-31T12:00:00Z"
DIGEST = "ab" * 32


def request(text: str = "Name the objects.", *, model: str = "gpt-4o", temperature: float | None = None) -> JsonObject:
    return ChatRequest(
        model=ModelId("openai", model),
        messages=(Message("system", (TextPart("You look at advertisements."),)), Message("user", (TextPart(text),))),
        sampling=Sampling(temperature=temperature),
    ).canonical()


def record(text: str = "Name the objects.", answer: str = "a cup", *, model: str = "gpt-4o", at: str = AT) -> Record:
    return Record.make("chat", request(text, model=model), ChatResponse(text=answer).canonical(), at=at)


def picture_request(digest: str = DIGEST, text: str = "Name the objects.") -> JsonObject:
    form = request(text)
    image = {"type": "image", "sha256": digest, "policy": {"name": "clean", "version": 1}}
    form["messages"][1]["parts"].insert(0, image)
    return form


def search_request(query: str = "a cup made of bricks", *, index: str = DIGEST, k: int = 2) -> JsonObject:
    return {
        "how": "bm25",
        "index": {"sha256": index, "count": 9},
        "model": {"name": "bm25"},
        "settings": {"k1": 1.5},
        "query": query,
        "k": k,
    }


def search(query: str = "a cup made of bricks", *, index: str = DIGEST) -> Record:
    response = {"ids": ["01" * 8, "02" * 8], "scores": [2.5, 1.0], "texts": ["a brick", "a cup"]}
    return Record.make("search", search_request(query, index=index), response, at=AT)
