from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from askance.models.openai.lanes import lanes
from tests.servers import FakeEndpoint, Reply


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=lanes()) as client:
        yield client


class Counting(FakeEndpoint):
    """Counts connections."""

    connections = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await super()._serve(reader, writer)


async def _post(client: httpx2.AsyncClient, endpoint: FakeEndpoint) -> int:
    return (await client.post(f"{endpoint.url}/chat/completions", json={})).status_code


async def test_a_connection_is_used_again(client: httpx2.AsyncClient) -> None:
    endpoint = Counting()
    with endpoint:
        assert {await _post(client, endpoint) for _ in range(5)} == {200}
        assert endpoint.connections == 1


async def test_calls_at_once_get_a_connection_each(client: httpx2.AsyncClient) -> None:
    endpoint = Counting(delay=0.1)
    with endpoint:
        for _ in range(2):
            assert await asyncio.gather(*(_post(client, endpoint) for _ in range(20))) == [200] * 20
        assert endpoint.connections == 20


async def test_a_call_that_breaks_or_is_given_up_leaves_its_lane_to_the_next(client: httpx2.AsyncClient) -> None:
    with FakeEndpoint([Reply(reset=True), Reply(delay=60)]) as endpoint:
        with pytest.raises(httpx2.HTTPError):
            await _post(client, endpoint)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_post(client, endpoint), 0.3)
        assert await asyncio.wait_for(_post(client, endpoint), 5) == 200


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
def test_proxies_are_left_to_the_clients_own_transport(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    assert lanes() is None
