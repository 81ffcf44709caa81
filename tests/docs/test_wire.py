"""Every route, event and frame is documented key by key, and the documents name no others."""

import json
import re
from typing import Any

import msgspec
import pytest

from limelight.dialects.typed import TypedDialect
from limelight.errors import SetupError, all_errors
from limelight.events import (
    EVENT_TYPES,
    AnyEvent,
    Attachment,
    Event,
    FinalAnswer,
    Record,
    Todo,
    ToolReady,
    ToolStarted,
    kind_of,
)
from limelight.server.api_docs_page import docs_page
from limelight.server.endpoint import Endpoint
from limelight.server.routes import ENDPOINTS
from tests.dialects.transcripts import live, records_of
from tests.support.documents import read
from tests.support.markdown import blocks, codes, rows, sections

UNLISTED_ROUTES = {
    "GET /",
    "GET /icon.svg",
    "GET /theme.js",
    "GET /assets/{name}",
    "GET /docs",
    "GET /openapi.json",
    "GET /api/v2/asyncapi.json",
}
"""Routes that are not in `ENDPOINTS`, because they describe it."""


def keys_of(struct: type) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)}


def endpoint_name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.documented_path}"


def test_every_route_has_a_section_and_every_section_a_route() -> None:
    documented = {name for name in sections(read("docs/http.md"), 3) if "/" in name}
    assert documented == {endpoint_name(endpoint) for endpoint in ENDPOINTS} | UNLISTED_ROUTES


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=endpoint_name)
def test_route_is_documented_completely(endpoint: Endpoint) -> None:
    text = sections(read("docs/http.md"), 3)[endpoint_name(endpoint)]
    query = re.search(r"Query: (.*?)[.;]\s", text + " ", flags=re.DOTALL)
    named = {code for code in codes(query[1]) if code.isidentifier()} if query else set[str]()
    assert {param.name for param in endpoint.query} <= named | {"next"}
    assert named <= {param.name for param in endpoint.query} | {"next"}
    errors = re.search(r"^Errors: (.*)\Z", text.split("\n## ")[0].strip(), flags=re.MULTILINE | re.DOTALL)
    listed = codes(errors[1]) if errors else set[str]()
    assert listed == {error.code for error in endpoint.errors}


def test_bodies_are_documented_key_by_key() -> None:
    texts = sections(read("docs/http.md"), 3)
    for endpoint in ENDPOINTS:
        table = {next(iter(codes(row[0]))) for row in rows(texts[endpoint_name(endpoint)])}
        fields = keys_of(endpoint.body) if endpoint.body is not None else set[str]()
        if table:
            assert table == fields, endpoint_name(endpoint)
        elif endpoint.path != "/chat":  # which refers to the route before it
            assert fields <= codes(texts[endpoint_name(endpoint)]), endpoint_name(endpoint)


def test_responses_in_the_document_have_the_keys_of_the_code() -> None:
    texts = sections(read("docs/http.md"), 3)
    for endpoint in ENDPOINTS:
        for example in blocks(texts[endpoint_name(endpoint)], "json"):
            assert isinstance(endpoint.response, type)
            msgspec.convert(json.loads(example), endpoint.response)
            assert set(json.loads(example)) == keys_of(endpoint.response)


def test_docs_page_names_every_route_and_error() -> None:
    page = docs_page(ENDPOINTS)
    for endpoint in ENDPOINTS:
        assert f"<b>{endpoint.method}</b><code>{endpoint.documented_path}</code>" in page
    for error in all_errors():
        assert (f'id="error-{error.code}"' in page) == (not issubclass(error, SetupError))
    for target in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{target}"' in page


def test_every_event_has_a_section_and_every_section_an_event() -> None:
    assert set(sections(read("docs/events.md"), 3)) == {kind_of(event) for event in EVENT_TYPES}


@pytest.mark.parametrize("event", EVENT_TYPES, ids=kind_of)
def test_event_is_documented_with_all_fields_and_defaults(event: type[Event]) -> None:
    table = {next(iter(codes(row[0]))): row[2] for row in rows(sections(read("docs/events.md"), 3)[kind_of(event)])}
    expected = {
        field.name: "required" if field.required else f"`{json.dumps(msgspec.to_builtins(field.default))}`"
        for field in msgspec.structs.fields(event)
        if field.name != "agent_id"
    }
    assert table == expected


def test_examples_of_records_are_records() -> None:
    text = read("docs/protocols/records.md")
    for line in re.findall(r"^data: (.*)$", text, flags=re.MULTILINE):
        assert msgspec.json.encode(msgspec.json.decode(line, type=Record)).decode() == line
    assert {next(iter(codes(row[0]))) for row in rows(text)} == set(Record.__struct_fields__)
    assert [json.loads(example) for example in blocks(text, "json")] == [{"gap": {"from": 1, "to": 113}}]


FULL: dict[str, Any] = {
    "agent_id": "a",
    "attachments": (Attachment(media_type="text/plain"),),
    "items": (Todo("x"),),
    "decisions": ("approve",),
    "sources": ("s",),
    "args": {"x": 1},
    "stream": "stderr",
    "decision": "edit",
    "enable_streaming": False,
    "result_seen": False,
    "outcome": "stopped",
}
"""Values that differ from the defaults, for fields whose type is not specific enough."""


def sample(event: type[Event], *, full: bool) -> AnyEvent:
    """An event with all its fields, or only with the required ones."""
    by_type: dict[Any, Any] = {bool: True, int: 7, int | None: 7}
    fields = [field for field in msgspec.structs.fields(event) if full or field.required]
    values = {f.name: FULL.get(f.name, by_type.get(f.type, "x")) for f in fields}
    return event(**values)  # pyright: ignore[reportReturnType]


def typed_frames() -> dict[str, list[set[str]]]:
    """Every type of frame, with the sets of keys in which it occurs."""
    found: dict[str, list[set[str]]] = {}

    def take(payload: bytes) -> None:
        frame = json.loads(payload)
        found.setdefault(frame["type"], []).append(set(frame.get("data", {})))

    for full in (False, True):
        dialect = TypedDialect()
        events = [sample(event, full=full) for event in EVENT_TYPES]
        cut: dict[str, Any] = {"truncated": True, "size": 7, "result_url": "/x"} if full else {}
        events += [
            FinalAnswer(content="never streamed", **cut),
            FinalAnswer(content={"a": 1}),
            ToolStarted(call_id="y", name="x"),
            ToolReady(call_id="y", args="whole", **cut),
        ]
        for seq, event in enumerate(events, start=1):
            for payload in dialect.feed(Record(seq, "run", 0, event)):
                take(payload)
        take(dialect.gap(1, 2))
    return found


def test_every_frame_has_a_section_and_every_section_a_frame() -> None:
    assert set(sections(read("docs/protocols/typed.md"), 3)) == set(typed_frames())


@pytest.mark.parametrize("type_", sorted(typed_frames()))
def test_frame_is_documented_key_by_key(type_: str) -> None:
    text, frames = sections(read("docs/protocols/typed.md"), 3)[type_], typed_frames()[type_]
    table = {next(iter(codes(row[0]))): row[1] == "always" for row in rows(text)}
    assert table == {key: all(key in frame for frame in frames) for key in set[str]().union(*frames)}
    (example,) = [json.loads(block) for block in blocks(text, "json")]
    assert example["type"] == type_
    assert {key for key, always in table.items() if always} <= set(example.get("data", {})) <= set(table)


@pytest.mark.parametrize("name", ["README.md", "docs/protocols/typed.md"])
def test_example_frames_have_documented_types(name: str) -> None:
    frames = typed_frames()
    lines = re.findall(r"^data: (.*)$", read(name), flags=re.MULTILINE)
    assert len(lines) == (10 if name == "README.md" else 4)
    for line in lines:
        frame = msgspec.json.decode(line)
        assert msgspec.json.encode(frame).decode() == line
        assert set(frame.get("data", {})) <= set[str]().union(*frames[frame["type"]])


def test_every_fallback_is_documented_with_its_type_and_its_text() -> None:
    section = sections(read("docs/protocols/typed.md"), 2)["Fallbacks"]
    documented = {(next(iter(codes(row[0]))), next(iter(codes(row[1])))): row[2] for row in rows(section)}
    scripts = ("failed", "cancelled", "approval")
    frames = [json.loads(frame.data) for name in scripts for frame in live(TypedDialect, records_of(name))]
    sent = [frame for frame in frames if "fallback_for" in frame.get("data", {})]
    assert {(frame["data"]["fallback_for"], frame["type"]) for frame in sent} == set(documented)
    for frame in sent:
        data = frame["data"]
        label = str(data.get("description", data.get("content"))).strip().partition(": ")[0]
        assert f"`{label}" in documented[data["fallback_for"], frame["type"]]


def test_sample_events_differ_from_the_defaults() -> None:
    """Keys of frames with default values would not be found."""
    for event in EVENT_TYPES:
        full = sample(event, full=True)
        for field in msgspec.structs.fields(event):
            assert getattr(full, field.name) != field.default, (kind_of(event), field.name)
