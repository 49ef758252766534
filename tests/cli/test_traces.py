"""`ASKANCE_OTEL`: the trace of a command, and collectors that are missing or hang."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from askance.otel import conventions
from tests.cli.command import DEMO, Command
from tests.otlp import SpanReceiver

CUP = str(DEMO / "pictures" / "brick-cup.jpg")
CAT = str(DEMO / "pictures" / "cat-cup.jpg")


@pytest.fixture(autouse=True)
def _empty_place(own_place: Path) -> None:
    """The working directory is empty."""


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[SpanReceiver]:
    with SpanReceiver() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield running


def test_a_run_its_pictures_their_links_and_calls_are_one_trace(
    receiver: SpanReceiver, askance: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKANCE_OTEL", "spans")

    done = askance("run", "atypicality", CUP, CAT, "--vlm", "demo")

    picture = [
        "  invoke_workflow atypicality",
        "    invoke_agent narration",
        "      chat handwritten",
        "    invoke_agent objects",
        "      chat handwritten",
        "    invoke_agent statement",
        "      chat handwritten",
    ]
    assert (done.code, receiver.tree()) == (0, ["run atypicality", *picture, *picture])
    assert {span.trace for span in receiver.spans} == {receiver.spans[0].trace}
    assert {span.attributes["askance.image"] for span in receiver.named("invoke_workflow")} == {CUP, CAT}
    assert (receiver.spans[0].schema, receiver.spans[0].service) == (conventions.SCHEMA_URL, "askance")
    assert "OpenTelemetry" not in done.err
    assert "collector" not in done.err


def test_an_investigation_shows_its_tools(
    receiver: SpanReceiver, askance: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKANCE_OTEL", "spans")

    askance("run", "investigate", CUP, "--vlm", "demo", "--tools", "unusual,zoom", "--calls", "6")

    assert receiver.tree() == [
        "run investigate",
        "  invoke_workflow investigate",
        "    invoke_agent reply",
        "      chat handwritten",
        "      chat handwritten",
        "      chat handwritten",
        "      execute_tool unusual",
        "        chat handwritten",
        "      execute_tool zoom",
        "        chat handwritten",
    ]
    assert {span.attributes["gen_ai.tool.name"] for span in receiver.named("execute_tool")} == {"unusual", "zoom"}


@pytest.mark.parametrize("how", ["missing", "hangs", "refuses"])
def test_a_collector_that_takes_nothing_is_said_once_and_nothing_waits_for_it(
    how: str, askance: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = [str(path) for path in sorted((DEMO / "pictures").iterdir())]
    without = askance("run", "atypicality", *pictures, "--vlm", "demo", "--json")
    monkeypatch.setenv("ASKANCE_OTEL", "spans")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")  # so that several batches fail

    with SpanReceiver(hangs=how == "hangs", status=500) as receiver:
        place = "http://127.0.0.1:9" if how == "missing" else receiver.url
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", place)
        begun = time.monotonic()
        done = askance("run", "atypicality", *pictures, "--vlm", "demo", "--json")
        took = time.monotonic() - begun

    assert done.stable == without.stable
    assert done.err.count("takes no traces") == 1
    assert f"The collector at {place}/v1/traces takes no traces" in done.err
    assert "Transient error" not in done.err
    assert took < 8.0  # by itself the SDK would wait for 10 to 30 s


def test_a_replay_sends_to_this_machine_alone(
    receiver: SpanReceiver, askance: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    askance("run", "atypicality", CUP, "--vlm", "demo")
    monkeypatch.setenv("ASKANCE_OTEL", "spans")

    here = askance("run", "atypicality", CUP, "--vlm", "demo", "--replay")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://user:secret@collector.example")
    there = askance("run", "atypicality", CUP, "--vlm", "demo", "--replay")

    assert (here.code, there.code) == (0, 0)
    assert {span.attributes["askance.call.replayed"] for span in receiver.named("chat")} == {True}
    said = "A replay opens no connection to another machine: no traces go to https://collector.example/v1/traces."
    assert f"askance: {said}\n" in there.err


def test_another_word_for_the_switch_is_refused(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKANCE_OTEL", "true")

    done = askance("run", "atypicality", CUP, "--vlm", "demo")

    assert (done.code, done.err) == (
        2,
        (
            "askance: ASKANCE_OTEL is 'true'.\n"
            "  → Set it to `spans`, to `content` for prompts and replies too, or to nothing.\n"
        ),
    )


def test_without_the_extra_the_way_to_it_is_said(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKANCE_OTEL", "spans")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)

    done = askance("run", "atypicality", CUP, "--vlm", "demo")

    assert (done.code, "pip install 'askance[otel]'" in done.err) == (2, True)


def test_while_it_is_off_nothing_of_it_is_loaded() -> None:
    script = (
        "import sys\nfrom askance.cli import main\n"
        f"sys.argv[1:] = ['run', 'atypicality', {CUP!r}, '--vlm', 'demo', '--quiet']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([name for name in sys.modules if name.partition('.')[0] in {'opentelemetry', 'mcp'}])"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_a_plan_makes_no_spans(receiver: SpanReceiver, askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKANCE_OTEL", "spans")

    done = askance("run", "atypicality", CUP, "--vlm", "demo", "--plan")

    assert (done.code, receiver.posts) == (0, 0)
