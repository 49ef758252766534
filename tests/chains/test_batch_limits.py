"""What bounds a batch: what an endpoint takes, and what of a stranger's file and page is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from askance.chat import ModelId
from askance.errors import BadRequest, MalformedReply
from askance.models import ModelSettings
from askance.models.batch.policy import BatchPolicy
from askance.models.openai.batch_api import BatchApi, batch_api
from tests.batch_client import QUICK, Run
from tests.batch_server import BatchServer, Made, Serve


def api_of(server: BatchServer) -> BatchApi:
    return batch_api(ModelSettings(id=ModelId("openai", "gpt-4o", server.url)))


def test_a_batch_holds_no_more_than_the_provider_takes() -> None:
    """Fifty thousand requests, and an input file of 200 MB."""
    policy = BatchPolicy()

    assert (policy.most_calls, policy.most_bytes) == (50_000, 200_000_000)


def test_files_are_as_large_as_the_endpoint_takes_and_no_larger(
    serve: Serve, tmp_path: Path, pictures: list[str]
) -> None:
    with serve(most_bytes=4000) as server:
        run = Run(server.url, tmp_path, pictures, policy=replace(QUICK, most_bytes=4000))

        assert [line["outcome"] for line in run.in_batches()] == ["answered"] * 2
        assert set(server.made.values()) == {1}


def test_a_file_that_is_too_large_for_the_endpoint_is_said(serve: Serve, tmp_path: Path, pictures: list[str]) -> None:
    with serve(most_bytes=4000) as server, pytest.raises(BadRequest, match="larger than 4000 bytes"):
        Run(server.url, tmp_path, pictures).in_batches()

    assert server.batches == {}


def test_a_line_that_is_too_long_is_passed_over(
    serve: Serve, tmp_path: Path, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askance.models.batch.results.LARGEST_LINE", 5000)
    with serve() as server:
        longer = b'"error": null, "more": "' + b"x" * 9000 + b'"}\n'
        server.spoil = lambda content: (
            content.replace(b'"error": null}\n', longer, 1) if len(server.batches) == 1 else content
        )
        run = Run(server.url, tmp_path, pictures)

        assert run.in_batches() == run.online()
        assert sorted(server.made.values()) == [1] * 13 + [2]


async def test_a_file_is_read_up_to_its_limit(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.models.openai.batch_api.LARGEST_FILE", 5000)
    with serve() as server:
        api = api_of(server)
        for size in (5000, 5001):
            (server.folder / f"file-{size}").write_bytes(b"x" * size)
            server.files[f"file-{size}"] = {}
        await api.download("file-5000", tmp_path / "whole")
        with pytest.raises(MalformedReply, match="'file-5001' is larger than"):
            await api.download("file-5001", tmp_path / "cut")
        await api.aclose()

    assert [(tmp_path / name).stat().st_size for name in ("whole", "cut")] == [5000, 0]


async def test_a_page_is_read_up_to_its_limit(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve() as server:
        api = api_of(server)
        server.batches["b1"] = Made({"id": "b1", "status": "completed", "metadata": {"askance_part": "p"}})
        found = await api.find_batches("p")
        monkeypatch.setattr("askance.models.openai.batch_api.LARGEST_PAGE", 50)
        with pytest.raises(MalformedReply, match="sent a reply that cannot be read: It is larger than"):
            await api.find_batches("p")
        await api.aclose()

    assert [batch.id for batch in found] == ["b1"]
