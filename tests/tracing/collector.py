"""A local collector that accepts OTLP over HTTP as protobuf and keeps the spans. It can also hang, or refuse."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WAIT_SECONDS = 20


class Collector:
    """Listens inside of its `with` block. If it `hangs`, it accepts requests and does not answer them."""

    def __init__(self, *, hangs: bool = False, status: int = 200) -> None:
        self.status = status
        self.requests: list[tuple[str, dict[str, str], ExportTraceServiceRequest]] = []
        self.may_answer = threading.Event()
        if not hangs:
            self.may_answer.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for _, _, request in list(self.requests)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def resource(self) -> dict[str, Any]:
        return attributes_of(self.requests[0][2].resource_spans[0].resource.attributes)

    def wait_for(self, name: str, count: int = 1) -> list[Any]:
        """Wait until there are `count` spans of a name, and return all spans."""
        deadline = time.monotonic() + WAIT_SECONDS
        while sum(span.name == name for span in self.spans) < count:
            assert time.monotonic() < deadline, f"no {name} among {[span.name for span in self.spans]}"
            time.sleep(0.02)  # polls, because spans come from another process
        return self.spans

    def wait_for_request(self) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.requests:
            assert time.monotonic() < deadline, "no request has come"
            time.sleep(0.02)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                collector.requests.append((self.path, headers, ExportTraceServiceRequest.FromString(body)))
                collector.may_answer.wait()
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def attributes_of(attributes: Any) -> dict[str, Any]:
    """Return protobuf attributes as a dict."""
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in attributes}


def children(spans: list[Any], parent: Any) -> set[str]:
    return {span.name for span in spans if span.parent_span_id == parent.span_id}


def named(spans: list[Any], name: str) -> Any:
    (found,) = [span for span in spans if span.name == name]
    return found
