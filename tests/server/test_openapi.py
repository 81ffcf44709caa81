"""The OpenAPI document: it is valid, and describes the events of streams as they are sent."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31

from limelight import plugins
from limelight.server.endpoint import Endpoint
from limelight.server.openapi import openapi
from limelight.server.routes import ENDPOINTS
from limelight.server.stream_schemas import FRAMES
from tests.support.json_schemas import Checker

GOLDEN = Path(__file__).parents[1] / "dialects" / "golden"
DOCUMENT: dict[str, Any] = json.loads(openapi(ENDPOINTS))
EVENT = "#/components/schemas/ServerSentEvent"
STREAMS = [endpoint for endpoint in ENDPOINTS if endpoint.response == "text/event-stream"]


def test_document_is_valid_openapi() -> None:
    errors = jsonschema_rs.validator_for(OPENAPI_31).iter_errors(DOCUMENT)
    assert [(list(error.instance_path), error.message[:200]) for error in errors] == []


def test_references_of_the_document_exist() -> None:
    names = re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(DOCUMENT))
    assert len(names) > 100
    assert set(names) <= DOCUMENT["components"]["schemas"].keys()


@pytest.mark.parametrize("endpoint", STREAMS, ids=lambda endpoint: endpoint.path)
def test_response_of_a_stream_is_described_by_the_schema_of_its_events(endpoint: Endpoint) -> None:
    operation = DOCUMENT["paths"][endpoint.documented_path][endpoint.method.lower()]
    assert operation["responses"]["200"]["content"] == {"text/event-stream": {"schema": {"$ref": EVENT}}}


def test_stream_routes_are_known() -> None:
    paths = {endpoint.path for endpoint in STREAMS}
    assert paths == {"/chat/stream", "/runs/{run_id}/stream", "/sessions/{session_id}/stream"}


def test_frames_of_all_installed_formats_are_described() -> None:
    assert FRAMES.keys() == plugins.find("dialects").keys()


@pytest.mark.parametrize("format_", FRAMES)
def test_frames_of_a_format_fit_its_schema(format_: str) -> None:
    """All golden frames, and the frame of a gap."""
    event = Checker(DOCUMENT["components"], EVENT)
    frame = Checker(DOCUMENT["components"], f"{EVENT}/properties/data/x-formats/{format_}")
    anything = Checker(DOCUMENT["components"], f"{EVENT}/properties/data/contentSchema")
    files = sorted(GOLDEN.glob(f"*.{format_}.sse"))
    assert files
    blocks = [block for file in files for block in file.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    events = [dict(line.split(": ", 1) for line in block.strip().split("\n")) for block in blocks]
    assert [fault for one in events for fault in event.faults(one)] == []
    gap = plugins.get("dialects", format_)().gap(3, 5).decode()
    for payload in [*(one["data"] for one in events), gap]:
        assert frame.faults(json.loads(payload)) == anything.faults(json.loads(payload)) == [], payload


@pytest.mark.parametrize(
    ("format_", "payload"),
    [
        ("typed", {"kind": "token"}),
        ("tool_calls", {"content": "x"}),
        ("v2", {"role": "assistant", "content": "x"}),
        ("records", {"seq": 1, "run_id": "r", "at": 1, "event": {"kind": "unknown"}}),
    ],
)
def test_frame_that_is_none_of_the_format_does_not_fit_its_schema(format_: str, payload: dict[str, Any]) -> None:
    assert Checker(DOCUMENT["components"], f"{EVENT}/properties/data/x-formats/{format_}").faults(payload)
