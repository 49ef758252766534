"""`openai:MODEL` as an embedder: what is sent, what is on record, and which errors are tried again."""

from __future__ import annotations

from typing import Any

import pytest

from askance.errors import AuthError, ConfigError, ReplayMiss
from askance.models import Engine, get_embedder
from askance.replay import MemoryStore
from tests.servers import FakeEndpoint, Reply, Seen


def vectors(seen: Seen) -> dict[str, Any]:
    """The lengths of the texts and of their first words, last text first."""
    texts: list[str] = seen.json["input"]
    made = [[len(text), len(text.split()[0])] for text in texts]
    data = [{"index": at, "embedding": each, "object": "embedding"} for at, each in enumerate(made)]
    return {"object": "list", "model": "m", "data": data[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}


async def test_texts_are_asked_for_in_batches_and_once() -> None:
    records = MemoryStore()
    with FakeEndpoint(vectors) as server:
        embedder = get_embedder(f"openai:m@{server.url}?dimensions=2&batch=2", engine=Engine(records=records))
        made = await embedder.embed(["a cup", "brick", "a", "brick"])
        await embedder.embed(["a"])

        assert [list(each) for each in made] == [[5, 1], [5, 5], [1, 1], [5, 5]]
        assert [body["input"] for body in server.bodies] == [["a cup", "brick"], ["a"]]
        assert [body["dimensions"] for body in server.bodies] == [2, 2]

    replay = get_embedder(f"openai:m@{server.url}?dimensions=2", engine=Engine(records=records, mode="replay"))
    assert [list(each) for each in await replay.embed(["brick"])] == [[5, 5]]
    with pytest.raises(ReplayMiss):
        await replay.embed(["never asked"])


async def test_a_fault_that_may_pass_is_tried_again_and_a_wrong_key_is_not() -> None:
    with FakeEndpoint([Reply(status=500), Reply(status=401)]) as server:
        server_then_key = get_embedder(f"openai:m@{server.url}", engine=Engine(records=MemoryStore()))

        with pytest.raises(AuthError):
            await server_then_key.embed(["a"])

        assert len(server.requests) == 2


def test_an_unknown_setting_is_told() -> None:
    with pytest.raises(ConfigError, match=r"'openai:m' has no setting 'size'\. There are: batch, dimensions"):
        get_embedder("openai:m?size=2", engine=Engine(records=MemoryStore()))
