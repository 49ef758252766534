"""What switches spans on: a `with` block, or the variable `ASKANCE_OTEL`; while they are off, no vendor is loaded."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from askance import otel
from askance.errors import UsageError, optional_library
from askance.models.call_scope import use_tracer

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from opentelemetry.trace import TracerProvider

    from askance.replay import Mode

_log = logging.getLogger("askance")

SWITCH: Final = "ASKANCE_OTEL"
"""Environment variable: `spans`, or `content` for prompts and replies as well."""


@contextmanager
def send_spans(provider: TracerProvider | None = None, *, content: bool = False) -> Generator[None]:
    """Makes spans of all that is done inside the block.

    ```python
    with send_spans():
        chain("ad.png")
    ```

    Args:
        provider: a `TracerProvider` of OpenTelemetry; by default one that sends its spans to the collector of the
            environment (`OTEL_EXPORTER_OTLP_ENDPOINT`), and is closed at the end.
        content: whether prompts and replies are in the spans; pictures stand there by their digests.

    Raises:
        MissingExtra: OpenTelemetry is not installed.
    """
    _check_installed()
    own = otel.SpanCollector.of_environment().provider() if provider is None else nullcontext(provider)
    with own as spans, use_tracer(otel.SpanTracer(spans, content=content)):
        yield


def spans_asked(mode: Mode) -> AbstractContextManager[None]:
    """The block that `SWITCH` asks for: one that sends spans, or one that does nothing.

    A replay opens no connection to another machine, so its spans go to a collector on this one, or nowhere.

    Args:
        mode: of the work.

    Raises:
        UsageError: the variable holds something else.
        MissingExtra: OpenTelemetry is not installed.
    """
    asked = os.environ.get(SWITCH, "")
    if not asked:
        return nullcontext()
    if asked not in {"spans", "content"}:
        raise UsageError(
            f"{SWITCH} is {asked!r}.",
            hint="Set it to `spans`, to `content` for prompts and replies too, or to nothing.",
        )
    _check_installed()
    collector = otel.SpanCollector.of_environment()
    if not collector.is_here and mode == "replay":
        _log.warning("A replay opens no connection to another machine: no traces go to %s.", collector)
        return nullcontext()
    if not collector.is_here and asked == "content":
        _log.warning("Prompts and replies go to %s, as %s=content asks; pictures as digests only.", collector, SWITCH)
    return send_spans(content=asked == "content")


def _check_installed() -> None:
    for needed in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        optional_library(needed, "otel")
