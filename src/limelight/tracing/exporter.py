"""The edge: spans go to a collector by OTLP over HTTP, in a thread of OpenTelemetry's SDK.

The queue is bounded and takes what it is given at once. While the collector is away spans are dropped, which is told
once; it ends within a bound, whatever the collector does. Imported only if an endpoint is set: it needs the extra
`otel`. Where spans go besides the endpoint (headers, certificates, time-outs, the size of the queue) the standard
variables of OpenTelemetry say, which the SDK reads itself.
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
"""How long the last spans may take. The server's end waits for it."""
TALKATIVE = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")
"""Loggers that would tell every failure; agents that use the SDK themselves hear theirs all the same."""


class Exporter:
    """Takes spans and sends them."""

    def __init__(self, endpoint: str) -> None:
        self._resource = _resource()
        self._scope = InstrumentationScope("limelight", __version__)
        self._complaints = Complaints(endpoint)
        self._processor = BatchSpanProcessor(Telling(OTLPSpanExporter(endpoint), self._complaints))

    def put(self, spans: Sequence[Span]) -> None:
        with self._complaints.heard() as complaint:
            for span in spans:
                self._processor.on_end(self._readable(span))
        if complaint.text:
            self._complaints.failed(complaint.text)

    async def close(self) -> None:
        """In a thread that does not keep the process alive: a collector that hangs is left behind.

        One that is known to be away is not waited for.
        """
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._processor.shutdown()
            with suppress(RuntimeError):  # the loop is closed: nobody waited so long
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=shut_down, name="limelight-traces-end", daemon=True).start()
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), 0 if self._complaints.is_down else CLOSE_SECONDS)
            self._complaints.close()

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


class Complaint:
    """What the SDK said first in one piece of work."""

    text = ""


class Complaints(logging.Filter):
    """Keeps what the SDK says of its failures from the log, but for the first. Its work for others is not touched."""

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        address = urlsplit(endpoint)
        self._endpoint = address._replace(netloc=address.netloc.rpartition("@")[2], query="", fragment="").geturl()
        self._secrets = [secret for secret in (address.query, address.netloc.rpartition("@")[0]) if secret]
        """What may be secret in the address, which the SDK's errors repeat."""
        self._at_work = threading.local()
        self.is_down = False
        for name in TALKATIVE:
            logging.getLogger(name).addFilter(self)

    def close(self) -> None:
        for name in TALKATIVE:
            logging.getLogger(name).removeFilter(self)

    @contextmanager
    def heard(self) -> Generator[Complaint]:
        """What this thread's SDK says meanwhile is held back."""
        complaint = self._at_work.complaint = Complaint()
        try:
            yield complaint
        finally:
            self._at_work.complaint = None

    def filter(self, record: logging.LogRecord) -> bool:
        complaint: Complaint | None = getattr(self._at_work, "complaint", None)
        if complaint is None:
            return True
        complaint.text = complaint.text or record.getMessage()
        return False

    def failed(self, why: str) -> None:
        if not self.is_down:
            self.is_down = True
            for secret in self._secrets:
                why = why.replace(secret, REDACTED)
            log.warning("traces cannot be sent to %s and are dropped until they can: %s", self._endpoint, why)

    def worked(self) -> None:
        if self.is_down:
            self.is_down = False
            log.warning("traces are sent to %s again", self._endpoint)


class Telling(SpanExporter):
    """Sends spans, and says once that it cannot."""

    def __init__(self, exporter: SpanExporter, complaints: Complaints) -> None:
        self._exporter = exporter
        self._complaints = complaints

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with self._complaints.heard() as complaint:
            result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._complaints.worked()
        else:
            self._complaints.failed(complaint.text or "no reason was given")
        return result

    def shutdown(self) -> None:
        with self._complaints.heard():
            self._exporter.shutdown()


def _resource() -> Resource:
    """What the variables say that this is; `limelight` if they do not."""
    resource = Resource.create({SERVICE_VERSION: __version__})
    is_named = not str(resource.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service")
    return resource if is_named else resource.merge(Resource({SERVICE_NAME: "limelight"}))
