"""Spans on their way to a collector, by OTLP over HTTP, in the background.

What the environment says goes first, as everywhere in OpenTelemetry: `OTEL_EXPORTER_OTLP_ENDPOINT` and its like. A
collector that is missing or hangs is said once, and its spans are lost; whoever makes spans never waits for it.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from typing_extensions import override

from askance.errors import UsageError, boundary
from askance.models.vendor_errors import public_address

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_log = logging.getLogger("askance")

GOODBYE: Final = 1.0
"""Seconds that the end of the work waits for a collector that takes nothing; while it takes spans, it may go on."""
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
            queue = BatchSpanProcessor(
                sender,
                max_queue_size=None if "OTEL_BSP_MAX_QUEUE_SIZE" in os.environ else MOST_WAITING,
                schedule_delay_millis=None if "OTEL_BSP_SCHEDULE_DELAY" in os.environ else SOON,
            )
            provider.add_span_processor(queue)
        with _vendor_kept_quiet():
            try:
                yield provider
            finally:
                _say_goodbye(provider, sender)


def _misconfigured(words: str) -> UsageError:
    return UsageError(f"OpenTelemetry cannot be set up: {words}.", hint="Mend the variables OTEL_….")


class _Sender(SpanExporter):
    """Sends batches of spans; the first that fails is said, and the next are not tried for a while."""

    def __init__(self, collector: SpanCollector) -> None:
        self._collector = collector
        self._exporter = OTLPSpanExporter(endpoint=collector.address)
        self._silent_until = 0.0
        self._is_said = False
        self.taken = 0
        """Batches that the collector took."""

    @override
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
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
        if not self._is_said:
            self._is_said = True
            _log.warning(
                "The collector at %s takes no traces, so they are lost; all else goes on. Start it, or set "
                "OTEL_EXPORTER_OTLP_ENDPOINT.",
                self._collector,
            )

    @override
    def shutdown(self) -> None:
        self._exporter.shutdown()


def _say_goodbye(provider: TracerProvider, sender: _Sender) -> None:
    """Sends what waits, as long as the collector takes it."""
    closing = Thread(target=provider.shutdown, name="askance-otel", daemon=True)
    closing.start()
    before = -1
    while closing.is_alive() and sender.taken > before:
        before = sender.taken
        closing.join(GOODBYE)
    if closing.is_alive():
        sender.say_lost()
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
