"""Spans on their way to a collector, by OTLP over HTTP, in the background.

What the environment says goes first, as everywhere in OpenTelemetry: `OTEL_EXPORTER_OTLP_ENDPOINT` and its like. A
collector that is missing, hangs or is too slow is said once, and what it does not take is lost; whoever makes spans
never waits for it. A collector on this machine is asked without a proxy, which might be on another.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from requests import Session
from typing_extensions import override

from askance.errors import UsageError, boundary
from askance.models.vendor_errors import public_address

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_log = logging.getLogger("askance")

GOODBYE: Final = 1.0
"""Seconds that the end of the work waits for the next batch to be taken; the SDK ends that after 30 seconds."""
PAUSE: Final = 30.0
"""Seconds after a failure in which nothing is sent."""
MOST_WAITING: Final = 32_768
"""Spans that wait to be sent at most; those beyond are lost."""
SOON: Final = 1_000.0
"""Milliseconds that a span waits for others at most."""


@dataclass(frozen=True, slots=True)
class SpanCollector:
    """A collector of spans."""

    address: str
    """Where spans are posted to."""

    @classmethod
    def of_environment(cls) -> SpanCollector:
        """The one that the environment names; by default one on this machine."""
        whole = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or "http://localhost:4318"
        return cls(whole or f"{base.rstrip('/')}/v1/traces")

    def __str__(self) -> str:
        try:
            return public_address(self.address)
        except ValueError:
            return "the address of OTEL_EXPORTER_OTLP_ENDPOINT"

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine."""
        try:
            host = urlsplit(self.address).hostname or ""
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    @contextmanager
    def provider(self) -> Generator[TracerProvider]:
        """A provider whose spans are sent to it until the block ends.

        Raises:
            UsageError: a variable of OpenTelemetry holds what it cannot.
        """
        with _vendor_kept_quiet(), boundary(_misconfigured):
            named = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "askance"}
            provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
            sender = _Sender(self)
            queue = _Queue(
                sender,
                max_queue_size=None if "OTEL_BSP_MAX_QUEUE_SIZE" in os.environ else MOST_WAITING,
                schedule_delay_millis=None if "OTEL_BSP_SCHEDULE_DELAY" in os.environ else SOON,
            )
            provider.add_span_processor(queue)
        with _vendor_kept_quiet():
            try:
                yield provider
            finally:
                _say_goodbye(provider, queue, sender)


def _misconfigured(words: str) -> UsageError:
    return UsageError(f"OpenTelemetry cannot be set up: {words}.", hint="Mend the variables OTEL_….")


class _Sender(SpanExporter):
    """Sends batches of spans; the first that fails is said, and the next are not tried for a while."""

    def __init__(self, collector: SpanCollector) -> None:
        self._collector = collector
        self._exporter = OTLPSpanExporter(endpoint=collector.address, session=_direct() if collector.is_here else None)
        self._silent_until = 0.0
        self._is_said = False
        self.taken = 0
        """Batches that the collector took."""
        self.tried = 0
        """Spans that were sent, or given up."""

    @override
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.tried += len(spans)
        if time.monotonic() < self._silent_until:
            return SpanExportResult.FAILURE
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.taken += 1
        else:
            self._silent_until = time.monotonic() + PAUSE
            self.say_lost()
        return result

    def say_lost(self) -> None:
        """Says once that spans are lost."""
        if self._is_said:
            return
        self._is_said = True
        if self.taken:
            _log.warning(
                "The collector at %s takes traces too slowly, or no more, so some are lost; all else goes on.",
                self._collector,
            )
        else:
            _log.warning(
                "The collector at %s takes no traces, so they are lost; all else goes on. See whether it runs, or set "
                "OTEL_EXPORTER_OTLP_ENDPOINT.",
                self._collector,
            )

    @override
    def shutdown(self) -> None:
        self._exporter.shutdown()


def _direct() -> Session:
    """A session that asks no proxy."""
    session = Session()
    session.trust_env = False
    return session


class _Queue(BatchSpanProcessor):
    """Spans that wait to be sent, counted."""

    queued = 0
    """Spans that were to be sent, those among them that found no place."""
    _lock = Lock()

    @override
    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            with self._lock:
                self.queued += 1
        super().on_end(span)


def _say_goodbye(provider: TracerProvider, queue: _Queue, sender: _Sender) -> None:
    """Sends what waits, as long as the collector takes it."""
    closing = Thread(target=provider.shutdown, name="askance-otel", daemon=True)
    closing.start()
    before = -1
    while closing.is_alive() and sender.taken > before:
        before = sender.taken
        closing.join(GOODBYE)
    if closing.is_alive() or sender.tried < queue.queued:
        sender.say_lost()
    if closing.is_alive():
        sender.shutdown()


@contextmanager
def _vendor_kept_quiet() -> Generator[None]:
    """Keeps the log of OpenTelemetry from telling of each batch what is said here once."""
    log = logging.getLogger("opentelemetry")
    quiet, propagate = logging.NullHandler(), log.propagate
    log.addHandler(quiet)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(quiet)
        log.propagate = propagate
