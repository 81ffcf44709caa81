"""Events: their kinds, JSON form and defaults, and imports without frameworks."""

import subprocess
import sys

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight import events
from limelight.events import (
    EVENT_TYPES,
    TERMINAL_TYPES,
    AnyEvent,
    Event,
    Record,
    Status,
    TextDelta,
    ToolFinished,
    kind_of,
)
from tests.support.strategies import event_of

DOCUMENTED_KINDS = {
    "run_started",
    "status",
    "text_delta",
    "text_finished",
    "reasoning_delta",
    "reasoning_finished",
    "plan_delta",
    "plan",
    "step_started",
    "step_finished",
    "tool_started",
    "tool_args_delta",
    "tool_ready",
    "tool_output_delta",
    "tool_finished",
    "agent_started",
    "agent_finished",
    "approval_requested",
    "approval_resolved",
    "source_cited",
    "artifact_made",
    "usage",
    "final_answer",
    "run_finished",
    "run_failed",
    "run_cancelled",
}
FRAMEWORKS_AND_SERVERS = ("starlette", "uvicorn", "fastapi", "httpx", "typer", "langgraph", "agno", "smolagents")

kinds = pytest.mark.parametrize("kind", EVENT_TYPES, ids=kind_of)


def test_event_kinds_equal_the_documented_ones() -> None:
    assert {kind_of(kind) for kind in EVENT_TYPES} == DOCUMENTED_KINDS


def test_every_event_class_of_the_module_is_in_the_union() -> None:
    defined = {
        value
        for value in vars(events).values()
        if isinstance(value, type) and issubclass(value, Event) and value is not Event
    }
    assert defined == set(EVENT_TYPES)


def test_three_kinds_are_terminal() -> None:
    assert {kind_of(kind) for kind in TERMINAL_TYPES} == {"run_finished", "run_failed", "run_cancelled"}


def test_kind_of_an_event_and_of_its_class_are_the_same() -> None:
    assert kind_of(Status(text="x")) == kind_of(Status) == "status"


@kinds
@settings(max_examples=25)
@given(data=st.data())
def test_record_survives_json(kind: type[Event], data: st.DataObject) -> None:
    record = Record(
        data.draw(st.integers(1, 2**53)), "run_1", data.draw(st.integers(0, 2**53)), data.draw(event_of(kind))
    )
    written = msgspec.json.encode(record)
    assert msgspec.json.decode(written, type=Record) == record
    assert msgspec.json.decode(written)["event"]["kind"] == kind_of(kind)


@kinds
def test_events_are_frozen_and_have_an_agent_id(kind: type[Event]) -> None:
    assert kind.__struct_config__.frozen
    assert "agent_id" in kind.__struct_fields__
    assert not {"seq", "run_id", "at", "id"} & set(kind.__struct_fields__), "an event knows no storage id and no clock"


def test_event_cannot_be_changed() -> None:
    event = TextDelta(message_id="m", text="a")
    with pytest.raises(AttributeError):
        event.text = "b"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    "event",
    [
        '{"kind": "tool_exploded"}',
        '{"text": "no kind"}',
        '{"kind": "status"}',
        '{"kind": "status", "text": 5}',
        '{"kind": "tool_output_delta", "call_id": "a", "text": "", "stream": "other"}',
    ],
)
def test_invalid_event_is_rejected(event: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(f'{{"seq": 1, "run_id": "r", "at": 0, "event": {event}}}', type=Record)


def test_tool_finished_of_an_older_log_has_a_result() -> None:
    old = b'{"kind":"tool_finished","call_id":"c","result":"x","duration_ms":3}'
    event = msgspec.json.decode(old, type=AnyEvent)
    assert event == ToolFinished(call_id="c", result="x", duration_ms=3, result_seen=True)
    assert msgspec.json.encode(event) == old


def test_defaults_are_not_written() -> None:
    assert (
        msgspec.json.encode(TextDelta(message_id="m", text="a")) == b'{"kind":"text_delta","message_id":"m","text":"a"}'
    )


@pytest.mark.parametrize("module", ["limelight", "limelight.events", "limelight.grammar", "limelight.runs.engine"])
def test_importing_pulls_in_no_framework_and_no_web_server(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert "limelight" in loaded
    assert not loaded & set(FRAMEWORKS_AND_SERVERS)
