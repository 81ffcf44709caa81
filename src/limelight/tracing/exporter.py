"""Exports spans to a trace collector by OTLP over HTTP, in a thread of OpenTelemetry's SDK.

The SDK's queue is bounded and never blocks. While the collector is unavailable, spans are dropped, which is logged
once. `close` returns within a time limit. This module is imported only if an endpoint is set, because it needs the
extra `otel`. The SDK itself reads OpenTelemetry's variables for headers, certificates, time-outs and the size of the
queue.
"""

import asyncio
import logging
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from limelight import __version__
from limelight.redaction.rules import REDACTED
from limelight.tracing.span import Span

log = logging.getLogger(__name__)
CLOSE_SECONDS = 3
"""Time limit for sending the last spans when the server shuts down."""
SDK_LOGGERS = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")
"""Loggers of the SDK that report each failed export."""


class Exporter:
    """Sends spans to a trace collector: queues them in OpenTelemetry's SDK, which sends them in its thread."""

    def __init__(self, endpoint: str) -> None:
        self._resource = _resource()
        self._scope = InstrumentationScope("limelight", __version__)
        self._failures = FailureLog(endpoint)
        self._processor = BatchSpanProcessor(MonitoredExporter(OTLPSpanExporter(endpoint), self._failures))

    def export(self, spans: Sequence[Span]) -> None:
        with self._failures.capture() as captured:
            for span in spans:
                self._processor.on_end(self._readable(span))
        if captured:
            self._failures.failed(captured[0])

    async def close(self) -> None:
        """Send queued spans, for at most CLOSE_SECONDS, or not at all if the collector is known to be unavailable.

        The SDK shuts down in a daemon thread, so that a collector that hangs does not keep the process alive.
        """
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._processor.shutdown()
            with suppress(RuntimeError):  # the loop may be closed before the thread ends
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=shut_down, name="limelight-traces-end", daemon=True).start()
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), 0 if self._failures.is_down else CLOSE_SECONDS)
            self._failures.close()

    def _readable(self, span: Span) -> ReadableSpan:
        flags = TraceFlags(TraceFlags.SAMPLED if span.is_sampled else TraceFlags.DEFAULT)
        parent = None
        if span.parent_id is not None:
            parent = SpanContext(span.trace_id, span.parent_id, is_remote=span.parent_is_remote, trace_flags=flags)
        status = Status(StatusCode.ERROR, span.message or None) if span.failed else Status(StatusCode.UNSET)
        return ReadableSpan(
            name=span.name,
            context=SpanContext(span.trace_id, span.span_id, is_remote=False, trace_flags=flags),
            parent=parent,
            resource=self._resource,
            attributes=span.attributes,
            events=[Event(event.name, event.attributes, event.at_ns) for event in span.events],
            kind=SpanKind.INTERNAL,
            status=status,
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=self._scope,
        )


class FailureLog(logging.Filter):
    """Logs the first failed export and the first successful one after it.

    It suppresses the SDK's own messages about our exports, but not those about exports of agents that use the SDK.
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        address = urlsplit(endpoint)
        self._endpoint = address._replace(netloc=address.netloc.rpartition("@")[2], query="", fragment="").geturl()
        self._secrets = [secret for secret in (address.query, address.netloc.rpartition("@")[0]) if secret]
        """Parts of the endpoint's URL that may be secret. They are removed from error messages of the SDK."""
        self._current = threading.local()
        self.is_down = False
        for name in SDK_LOGGERS:
            logging.getLogger(name).addFilter(self)

    def close(self) -> None:
        """Stop filtering the loggers of the SDK."""
        for name in SDK_LOGGERS:
            logging.getLogger(name).removeFilter(self)

    @contextmanager
    def capture(self) -> Generator[list[str]]:
        """Collect the log messages of the SDK from this thread, during the `with` block, instead of logging them."""
        captured: list[str] = []
        self._current.captured = captured
        try:
            yield captured
        finally:
            self._current.captured = None

    def filter(self, record: logging.LogRecord) -> bool:
        captured: list[str] | None = getattr(self._current, "captured", None)
        if captured is None:
            return True
        captured.append(record.getMessage())
        return False

    def failed(self, reason: str) -> None:
        """Log a failed export, unless the one before failed too."""
        if not self.is_down:
            self.is_down = True
            for secret in self._secrets:
                reason = reason.replace(secret, REDACTED)
            log.warning("traces cannot be sent to %s and are dropped until they can: %s", self._endpoint, reason)

    def succeeded(self) -> None:
        """Log a successful export, if the one before failed."""
        if self.is_down:
            self.is_down = False
            log.warning("traces are sent to %s again", self._endpoint)


class MonitoredExporter(SpanExporter):
    """Wraps an exporter of the SDK, and reports the result of each export to a FailureLog."""

    def __init__(self, exporter: SpanExporter, failures: FailureLog) -> None:
        self._exporter = exporter
        self._failures = failures

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with self._failures.capture() as captured:
            result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._failures.succeeded()
        else:
            self._failures.failed(captured[0] if captured else "no reason was given")
        return result

    def shutdown(self) -> None:
        with self._failures.capture():
            self._exporter.shutdown()


def _resource() -> Resource:
    """Return the OpenTelemetry resource of all spans: the service, which is `limelight` unless a variable names it."""
    resource = Resource.create({SERVICE_VERSION: __version__})
    is_named = not str(resource.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service")
    return resource if is_named else resource.merge(Resource({SERVICE_NAME: "limelight"}))
