"""A command, an endpoint, pictures and options for the tests of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from askance.cli import main
from tests.batch_client import QUICK, answer
from tests.batch_server import BatchServer
from tests.cli.command import Command, Done, Workplace, draw, log_kept, telling
from tests.servers import FakeEndpoint


@pytest.fixture
def askance(capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """Runs the command in this process."""

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, out, err)

    with log_kept():
        yield run


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A working directory for what the tests of a module begin with."""
    return Workplace(tmp_path_factory.mktemp("workplace"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits before another try, unless the endpoint asks for it."""
    from tenacity import wait_none

    def no_wait(**_: float) -> wait_none:
        return wait_none()

    monkeypatch.setattr("tenacity.wait_random_exponential", no_wait)


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    """An endpoint that holds every answer to its schema and describes no two pictures alike."""
    with FakeEndpoint(telling) as running:
        yield running


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    """An endpoint that takes batches and is looked at without a wait."""
    monkeypatch.setattr("askance.models.batch.batches.BatchPolicy", lambda: QUICK)
    with BatchServer(tmp_path / "endpoint", answer=answer) as running:
        yield running


@pytest.fixture
def vlm(endpoint: FakeEndpoint) -> str:
    """The spec of the endpoint's model."""
    return f"openai:fake-model@{endpoint.url}"


@pytest.fixture
def ads(own_place: Path) -> list[str]:
    """Three pictures in the folder `ads`."""
    draw(own_place / "ads", "a.png", "b.png", "c.png")
    return ["ads/a.png", "ads/b.png", "ads/c.png"]


@pytest.fixture
def options(own_place: Path) -> str:
    """A file with three options."""
    file = own_place / "options.txt"
    file.write_text("I should drink tea.\nI should buy bricks.\nI should fly.\n", encoding="utf-8")
    return file.name
