"""A collector of spans on this machine: OTLP over HTTP, decoded from protobuf as it arrives."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

ERROR = 2
"""Code of a span's status."""
CLIENT = 3
"""Kind of a span."""


@dataclass(frozen=True, slots=True)
class Received:
    """A span as it arrived."""

    name: str
    kind: int
    id: bytes
    parent: bytes
    trace: bytes
    attributes: dict[str, Any] = field(repr=False)
    status: int
    said: str
    """The words of the status."""
    events: list[tuple[str, dict[str, Any]]] = field(repr=False)
    schema: str = field(repr=False)
    service: str = field(repr=False)


class SpanReceiver:
    """Takes spans until the block ends.

    Args:
        status: of its replies.
        hangs: whether it never replies.
        delay: seconds that a reply takes.
    """

    def __init__(self, *, status: int = 200, hangs: bool = False, delay: float = 0.0) -> None:
        self.spans: list[Received] = []
        self.raw = b""
        """All that arrived, as it arrived."""
        self.posts = 0
        self.headers: dict[str, str] = {}
        """Those of the latest post."""
        received = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                received.posts += 1
                received.headers = dict(self.headers)
                if hangs:
                    received.released.wait(60)
                    return
                time.sleep(delay)
                if status == 200:
                    received.raw += body
                    received.spans += _spans(ExportTraceServiceRequest.FromString(body))
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
                pass

        self.released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """What `OTEL_EXPORTER_OTLP_ENDPOINT` is set to."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def named(self, beginning: str) -> list[Received]:
        """The spans whose names begin so, by their names."""
        return sorted((span for span in self.spans if span.name.startswith(beginning)), key=lambda span: span.name)

    def tree(self) -> list[str]:
        """The names of all spans, each indented below its parent, siblings by name."""

        def below(parent: bytes, depth: int) -> list[str]:
            own = sorted((span for span in self.spans if span.parent == parent), key=lambda span: span.name)
            return [line for span in own for line in (f"{'  ' * depth}{span.name}", *below(span.id, depth + 1))]

        return below(b"", 0)

    def wait(self, count: int, *, timeout: float = 20.0) -> None:
        """Returns when so many spans have arrived."""
        end = time.monotonic() + timeout
        while len(self.spans) < count:
            assert time.monotonic() < end, [span.name for span in self.spans]
            time.sleep(0.01)

    def __enter__(self) -> SpanReceiver:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _spans(request: ExportTraceServiceRequest) -> list[Received]:
    return [
        Received(
            name=span.name,
            kind=span.kind,
            id=span.span_id,
            parent=span.parent_span_id,
            trace=span.trace_id,
            attributes={each.key: _value(each.value) for each in span.attributes},
            status=span.status.code,
            said=span.status.message,
            events=[(event.name, {each.key: _value(each.value) for each in event.attributes}) for event in span.events],
            schema=scope.schema_url,
            service=next(_value(each.value) for each in whole.resource.attributes if each.key == "service.name"),
        )
        for whole in request.resource_spans
        for scope in whole.scope_spans
        for span in scope.spans
    ]


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return None if kind is None else getattr(value, kind)
