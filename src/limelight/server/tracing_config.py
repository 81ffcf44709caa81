"""Whether runs are traced, as the settings and the standard variables of OpenTelemetry say."""

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
WITH_CONTENT = ("true", "1", "span_only", "span_and_event")
"""What other programs take this variable to mean that spans have content."""
PATH = "/v1/traces"


def tracing_of(settings: Settings, store: Store, environ: Mapping[str, str] = os.environ) -> Tracer | None:
    """None without an endpoint. Raises SetupError if what is set cannot work."""
    endpoint, where = _endpoint(settings, environ)
    is_off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none"
    if not endpoint or is_off:
        return None
    _check(endpoint, where, environ)
    try:
        from limelight.tracing.exporter import Exporter
    except ImportError as error:
        raise SetupError(f"{where}traces need OpenTelemetry's SDK: pip install 'limelight[otel]'") from error

    async def read(run_id: str) -> AsyncIterator[Record]:
        run = await store.run(run_id)
        if run is not None:
            async for record in records_of(store, run):
                yield record

    content = environ.get(CONTENT, "").lower()
    return Tracer(Exporter(endpoint), read, content=content in WITH_CONTENT if content else settings.tracing.content)


def _endpoint(settings: Settings, environ: Mapping[str, str]) -> tuple[str, str]:
    """Where traces go, and where that is said. One that is for traces alone is taken as it is written."""
    if environ.get(TRACES_ENDPOINT):
        return environ[TRACES_ENDPOINT], f"{TRACES_ENDPOINT}: "
    base = settings.tracing.endpoint.rstrip("/")
    return base if not base or base.endswith(PATH) else f"{base}{PATH}", settings.origin.place("tracing", "endpoint")


def _check(endpoint: str, where: str, environ: Mapping[str, str]) -> None:
    try:
        address = urlsplit(endpoint)
        is_address = address.scheme in ("http", "https") and bool(address.hostname) and (address.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address:
        raise SetupError(f"{where}{endpoint!r} is no address of a collector; write it as http://127.0.0.1:4318")
    for name in PROTOCOLS:
        if environ.get(name, "http/protobuf") != "http/protobuf":
            raise SetupError(f"{name}: traces are sent as http/protobuf only, not {environ[name]!r}")
