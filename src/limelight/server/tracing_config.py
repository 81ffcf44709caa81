"""Configuration of tracing, from the settings and the standard environment variables of OpenTelemetry."""

import os
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from limelight.config import Settings
from limelight.errors import SetupError
from limelight.events import Record
from limelight.runs.queries import records_of
from limelight.stores.base import Store
from limelight.tracing.tracer import Tracer

TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONTENT_VALUES = ("true", "1", "span_only", "span_and_event")
"""Values of the environment variable CONTENT that put inputs, arguments, results and answers into spans."""
PATH = "/v1/traces"


def make_tracing(settings: Settings, store: Store, environ: Mapping[str, str] = os.environ) -> Tracer | None:
    """Return the tracer of the server; None if tracing is disabled or no endpoint is configured.

    Raises SetupError if the endpoint or the protocol is invalid, or if OpenTelemetry's SDK is not installed.
    """
    endpoint, place = _endpoint(settings, environ)
    is_disabled = (
        environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none"
    )
    if not endpoint or is_disabled:
        return None
    _check(endpoint, place, environ)
    try:
        from limelight.tracing.exporter import Exporter
    except ImportError as error:
        raise SetupError(f"{place}traces need OpenTelemetry's SDK: pip install 'limelight[otel]'") from error

    async def read(run_id: str) -> AsyncIterator[Record]:
        run = await store.run(run_id)
        if run is not None:
            async for record in records_of(store, run):
                yield record

    content = environ.get(CONTENT, "").lower()
    return Tracer(Exporter(endpoint), read, content=content in CONTENT_VALUES if content else settings.tracing.content)


def _endpoint(settings: Settings, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the URL to which traces are sent, and a prefix for error messages that says where it is configured.

    The environment variable TRACES_ENDPOINT has the complete URL. PATH is appended to a URL from the settings.
    """
    if environ.get(TRACES_ENDPOINT):
        return environ[TRACES_ENDPOINT], f"{TRACES_ENDPOINT}: "
    base = settings.tracing.endpoint.rstrip("/")
    return base if not base or base.endswith(PATH) else f"{base}{PATH}", settings.origin.place("tracing", "endpoint")


def _check(endpoint: str, place: str, environ: Mapping[str, str]) -> None:
    try:
        address = urlsplit(endpoint)
        is_valid = address.scheme in ("http", "https") and bool(address.hostname) and (address.port or 1) > 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise SetupError(f"{place}{endpoint!r} is not the address of a collector; write it as http://127.0.0.1:4318")
    for name in PROTOCOLS:
        if environ.get(name, "http/protobuf") != "http/protobuf":
            raise SetupError(f"{name}: traces are sent as http/protobuf only, not {environ[name]!r}")
