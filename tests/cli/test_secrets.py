"""Keys and secret headers are found in nothing that a command leaves, by whichever way a model is asked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import pytest

from tests.batch_client import QUICK
from tests.batch_server import BatchServer
from tests.cli.command import Command
from tests.security.commands import HEADER, KEY, SECRETS, SETTINGS, Project
from tests.servers import FakeEndpoint, Reply, chat_body, default_text, error

ECHO = f"Bearer {KEY} and {HEADER}"

TASK = """\
name: posters
summary: Which claim a poster argues for.
data: samples.jsonl
chain: end-to-end
choose: single
score: choice
options: [I should drink tea., I should buy bricks.]
"""

JsonObject = dict[str, Any]
Model = Callable[[JsonObject], "Reply | str"]


def chatty(body: JsonObject) -> Reply | str:
    """Answers as wanted, and repeats the secrets wherever a word may stand; the probe alone finds it sober."""
    text = default_text(body)
    if '"quokka-17"' in text:
        return text
    return Reply(body=chat_body(text.replace("cup", ECHO), reasoning_content=ECHO))


def failing(reply: Reply, *, times: int) -> Model:
    """`chatty`, but for the first `times` questions for the narration."""
    left = [times] * times

    def answer(body: JsonObject) -> Reply | str:
        form = body.get("response_format", {}).get("json_schema", {})
        return reply if form.get("name") == "narration" and left and left.pop() else chatty(body)

    return answer


MODELS: dict[str, tuple[Callable[[], Model], int]] = {
    "answer": (lambda: chatty, 0),
    "400": (lambda: failing(error(400, f"Strange headers: {ECHO}."), times=1), 1),
    "500": (lambda: failing(error(500, f"Out of memory: {ECHO}"), times=5), 1),
}
"""What an endpoint answers, and the exit code of a run at it."""

WAYS = {"openai": "openai", "langchain": "langchain:openai", "batch": "openai"}
"""Providers, as specs begin."""


def serving(way: str, folder: Path, model: Model) -> AbstractContextManager[Any]:
    if way == "batch":
        return BatchServer(folder, answer=model)
    return FakeEndpoint(lambda seen: last(model(seen.json)))


def last(reply: Reply | str) -> Reply:
    """`reply`, after which the connection is closed: LangChain keeps its own open for as long as the process lives."""
    whole = reply if isinstance(reply, Reply) else Reply(body=chat_body(reply))
    return replace(whole, headers={**whole.headers, "connection": "close"})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("model", "code"), MODELS.values(), ids=MODELS)
def test_no_file_and_no_word_of_a_command_holds_a_secret(
    askance: Command,
    own_place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    way: str,
    model: Callable[[], Model],
    code: int,
) -> None:
    monkeypatch.setattr("askance.models.batch.batches.BatchPolicy", lambda: QUICK)
    for name, value in {**SECRETS, "ASKANCE_STORE": str(own_place / "store"), "ASKANCE_TRUST": str(own_place)}.items():
        monkeypatch.setenv(name, value)
    more, settings = ["--batch"] if way == "batch" else [], SETTINGS.replace("openai", WAYS[way], 1)
    page = ["--options", "options.json", "--out", "out", "--html", "page.html", "--json"]
    with serving(way, tmp_path / "endpoint", model()) as server:
        project = Project.make(own_place, server.url, settings)
        done = [askance("run", "action-reason", "ad.jpg", *page, *more)]
        Path("posters.yaml").write_text(TASK, encoding="utf-8")
        Path("samples.jsonl").write_text('{"image": "ad.jpg", "target": 1}\n', encoding="utf-8")
        done += [askance("eval", "run", "posters.yaml", "--out", "evaluated", *more)]
    done += [askance("pack", "evaluated"), askance("cache", "export", "all.jsonl")]
    project.said += [caplog.text, *(text for each in done for text in (each.out, each.err))]

    assert [each.code for each in done] == [code, 0, 0, 0]
    for name in ("page.html", "all.jsonl", "out/samples.jsonl", "store/cache.db"):
        assert b"[key]" in Path(name).read_bytes(), name
    assert is_zipfile("runs.pack")
    assert list(project.leaks()) == []
