"""Spans: what a collector on this machine receives of samples, links and calls, and what it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from askance.chains import atypicality, end_to_end
from askance.errors import ModelError, ServerFault, UsageError
from askance.evals import Evaluation, Sample, evaluate, right_or_wrong
from askance.evals.solver import ChainSolver
from askance.images import Image
from askance.models import Engine, RetryPolicy, get_model, limit_budget
from askance.otel import send_spans
from askance.replay import MemoryStore
from askance.tools import narration
from tests.otlp import CLIENT, ERROR, SpanReceiver
from tests.scripted import OPTIONS, PICTURE, model_of, scripted
from tests.servers import FakeEndpoint, error

KEY = "sk-do-not-tell-4711"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[SpanReceiver]:
    with SpanReceiver() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield running


def test_samples_of_an_evaluation_stand_between_the_run_and_its_chains(receiver: SpanReceiver) -> None:
    model = model_of(scripted())
    samples = [
        Sample(id=name, image=Image.load(PICTURE), target=[2], inputs={"options": OPTIONS}) for name in ("one", "two")
    ]
    task = Evaluation(name="cups", samples=samples, solver=ChainSolver(end_to_end(model)), scorer=right_or_wrong())

    with send_spans():
        evaluate(task)

    below = ["    invoke_workflow end_to_end", "      invoke_agent answers", "        chat scripted"]
    assert receiver.tree() == ["run cups", "  sample one", *below, "  sample two", *below]
    assert [span.attributes["askance.outcome"] for span in receiver.named("sample")] == ["answered"] * 2
    assert [span.attributes["askance.epoch"] for span in receiver.named("sample")] == [0, 0]


def test_a_call_has_the_attributes_of_the_conventions(receiver: SpanReceiver, own_place: Path) -> None:
    with FakeEndpoint() as endpoint:
        spec = f"openai:fake-model@{endpoint.url}"
        vlm = get_model(spec, engine=Engine(records=MemoryStore()), temperature=0.5, seed=7, max_tokens=99)
        with send_spans():
            narration(vlm).invoke(PICTURE)
            narration(vlm).invoke(PICTURE)

    asked, again = sorted(receiver.named("chat"), key=lambda span: span.attributes["askance.call.replayed"])
    assert (asked.name, asked.kind, asked.status) == ("chat fake-model", CLIENT, 0)
    key = asked.attributes.pop("askance.call.key")
    assert asked.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "fake-model",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.seed": 7,
        "gen_ai.request.max_tokens": 99,
        "gen_ai.output.type": "json",
        "gen_ai.prompt.name": "narration",
        "gen_ai.response.model": "fake-model",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "server.address": "127.0.0.1",
        "server.port": endpoint.port,
        "askance.call.replayed": False,
        "askance.call.tries": 1,
        "askance.outcome": "answered",
    }
    assert (again.attributes["askance.call.key"], again.attributes["askance.call.replayed"]) == (key, True)


def test_prompts_and_replies_stay_here_unless_they_are_asked_for(receiver: SpanReceiver) -> None:
    model = model_of(scripted(narration={"description": "A cup that nobody may hear of."}))

    with send_spans():
        narration(model).invoke(PICTURE)

    assert b"nobody may hear of" not in receiver.raw
    assert b"Describe" not in receiver.raw
    assert not {name for span in receiver.spans for name in span.attributes if "messages" in name or "instr" in name}


def test_asked_for_they_are_in_the_form_of_the_conventions_with_pictures_as_digests(receiver: SpanReceiver) -> None:
    model = model_of(scripted())

    with send_spans(content=True):
        narration(model).invoke(PICTURE)

    attributes = receiver.spans[0].attributes
    picture, text = json.loads(attributes["gen_ai.input.messages"])[-1]["parts"]
    assert picture == {"type": "file", "modality": "image", "file_id": f"sha256:{Image.load(PICTURE).sha256}"}
    assert text["type"] == "text"
    assert json.loads(attributes["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": '{"description": "A cup on a table."}'}]}
    ]
    assert PICTURE.read_bytes()[200:260] not in receiver.raw
    assert b"base64" not in receiver.raw


def test_half_a_pair_in_a_reply_costs_no_span(receiver: SpanReceiver) -> None:
    model = model_of(scripted(narration='{"description": "Half \ud800 a pair."}'))

    with send_spans(content=True):
        narration(model).invoke(PICTURE)

    (call,) = receiver.spans
    assert "Half ? a pair." in call.attributes["gen_ai.output.messages"]


def test_an_error_while_a_span_is_made_harms_no_call(
    receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("askance.otel.span_tracer._asked_of", breaks)
    with send_spans():
        said = narration(model_of(scripted())).invoke(PICTURE)

    assert (said.text, receiver.spans) == ("A cup on a table.", [])
    assert "A span of a call could not be made." in caplog.text


def test_a_variable_of_opentelemetry_that_cannot_be_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "-1")

    with pytest.raises(UsageError, match="OpenTelemetry cannot be set up: ValueError"), send_spans():
        pass


def test_secrets_are_blanked_out_of_what_is_sent(
    receiver: SpanReceiver, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = model_of(scripted(narration={"description": f"The key is {KEY}."}))

    with send_spans(content=True):
        narration(model).invoke(PICTURE)

    assert KEY.encode() not in receiver.raw
    assert "The key is [key]." in receiver.spans[0].attributes["gen_ai.output.messages"]


def test_keys_and_headers_that_settings_name_are_blanked_out_whatever_their_variables_are_called(
    receiver: SpanReceiver, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_HEADER", "header-4711")
    monkeypatch.setenv("MY_ACCESS", "access-4711")
    with FakeEndpoint(lambda _: error(400, "not header-4711 or access-4711")) as endpoint:
        settings: dict[str, Any] = {
            "key_variable": "MY_ACCESS",
            "headers": {"x-access": "env:MY_HEADER"},
            "protocol": "json_schema",
        }
        vlm = get_model(f"openai:m@{endpoint.url}", engine=Engine(records=MemoryStore()), **settings)
        with send_spans(content=True):
            with pytest.raises(ModelError):
                narration(vlm).invoke(PICTURE)
            narration(model_of(scripted(narration={"description": "header-4711 access-4711"}))).invoke(PICTURE)

    assert len(receiver.named("chat")) == 2
    assert b"4711" not in receiver.raw


def test_a_collector_on_this_machine_is_asked_without_a_proxy_and_with_the_headers_of_the_environment(
    receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-collector=mine")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with SpanReceiver() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        with send_spans():
            narration(model_of(scripted())).invoke(PICTURE)

    assert (proxy.posts, len(receiver.spans)) == (0, 1)
    assert receiver.headers["x-collector"] == "mine"


@pytest.mark.parametrize(("content", "said"), [(False, False), (True, True)])
def test_a_call_that_fails_says_how_and_its_words_only_with_the_content(
    content: bool, said: bool, receiver: SpanReceiver, own_place: Path
) -> None:
    with FakeEndpoint(lambda _: error(500, "your prompt was: a cup")) as endpoint:
        engine = Engine(records=MemoryStore(), policy=RetryPolicy(tries=2))
        vlm = get_model(f"openai:m@{endpoint.url}", engine=engine, protocol="json_schema")
        with send_spans(content=content), pytest.raises(ServerFault):
            narration(vlm).invoke(PICTURE)

    (call,) = receiver.named("chat")
    assert (call.status, call.attributes["error.type"]) == (ERROR, "ServerFault")
    assert [(name, each["exception.type"]) for name, each in call.events] == [("askance.try", "ServerFault")] * 2
    assert call.attributes["askance.call.tries"] == len(endpoint.requests) == 2
    assert (b"your prompt was" in receiver.raw) is said


def test_a_link_without_an_answer_is_an_error_and_what_needs_it_is_skipped(receiver: SpanReceiver) -> None:
    model = model_of(scripted(objects="no JSON", narration={"description": "A cup."}))

    with send_spans():
        atypicality(model)(PICTURE)

    links = {span.attributes["gen_ai.agent.name"]: span for span in receiver.named("invoke_agent")}
    assert {name: span.attributes["askance.outcome"] for name, span in links.items()} == {
        "objects": "invalid",
        "narration": "answered",
        "statement": "skipped",
    }
    assert {name: span.status == ERROR for name, span in links.items()} == {
        "objects": True,
        "narration": False,
        "statement": False,
    }


def test_a_limit_inside_refuses_before_a_span_begins(receiver: SpanReceiver) -> None:
    model = model_of(scripted())

    with send_spans(), limit_budget("1 call"):
        atypicality(model)(PICTURE)

    assert len(receiver.named("chat")) == 1


def test_the_end_waits_for_a_collector_that_takes_spans(
    receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(scripted())
    node = narration(model)
    node.invoke(PICTURE)

    with send_spans():
        for _ in range(600):  # more than a batch of the SDK's
            node.invoke(PICTURE)

    assert len(receiver.spans) == 600


def test_spans_that_a_slow_collector_does_not_get_are_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"):
        monkeypatch.setenv(name, "8")
    node = narration(model_of(scripted()))

    with SpanReceiver(delay=0.3) as slow:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", slow.url)
        with send_spans():
            for _ in range(60):
                node.invoke(PICTURE)

    assert 0 < len(slow.spans) < 60
    assert caplog.text.count("takes traces too slowly, or no more, so some are lost") == 1


def test_a_provider_of_ones_own_is_used_and_stays_open() -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    model = model_of(scripted())

    with send_spans(provider), provider.get_tracer("mine").start_as_current_span("mine") as mine:
        narration(model).invoke(PICTURE)
    with send_spans(provider):
        narration(model).invoke(PICTURE)

    first, _, second = memory.get_finished_spans()
    assert (first.parent and first.parent.span_id) == mine.get_span_context().span_id
    assert second.parent is None
