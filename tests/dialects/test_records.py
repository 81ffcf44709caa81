"""The lossless dialect: a client reads the Records unchanged."""

import msgspec
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from limelight.dialects.records import RecordsDialect
from limelight.display_fields import DisplayFields
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    Record,
    StepFinished,
    StepStarted,
    ToolFinished,
    ToolStarted,
)
from tests.dialects.transcripts import DIALECTS, live
from tests.support.strategies import as_records, events, legal_runs


@settings(max_examples=100)
@given(events())
def test_record_decodes_to_itself(event: AnyEvent) -> None:
    record = Record(7, "run_1", 1_700_000_000_000, DisplayFields().add_to(event))
    (payload,) = RecordsDialect().feed(record)
    assert msgspec.json.decode(payload, type=Record) == record
    assert b"\n" not in payload


@settings(max_examples=30)
@given(legal_runs())
def test_each_record_has_one_frame_with_its_seq_as_cursor(run: list[AnyEvent]) -> None:
    records = as_records(run, first_seq=12)
    frames = live(RecordsDialect, records)
    assert [frame.id for frame in frames] == [str(record.seq) for record in records]
    assert [msgspec.json.decode(frame.data, type=Record) for frame in frames] == records


ENDINGS: list[AnyEvent] = [
    ToolStarted(call_id="a", name="wait", args={}),
    ToolStarted(call_id="b", name="wait", args={}),
    ApprovalRequested(approval_id="p", name="wait", args={}, call_id="b"),
    ApprovalResolved(approval_id="p", decision="reject", reason="x", by="system"),
    ToolFinished(call_id="b", error="x"),
    ToolFinished(call_id="a", error="x"),
    AgentStarted(agent_id="s", name="sub"),
    AgentFinished(agent_id="s", error="x"),
    StepStarted(number=1),
    StepFinished(number=1, error="x"),
]


@pytest.mark.requirement("derived-once")
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("stopped", "stopped"),
        ("the run ended before this did", "stopped"),
        ("the server stopped while the run was going on", "stopped"),
        ("the server was shut down", "stopped"),
        ("ValueError: stopped", ""),
    ],
)
def test_logs_of_older_versions_get_outcomes(text: str, outcome: str) -> None:
    """Version 0.1.0 marks events that the end of a run has closed only by the text of their error."""
    old = [replace(event, error=text) if getattr(event, "error", None) else event for event in ENDINGS]
    frames = live(RecordsDialect, [Record(n, "run_1", n, event) for n, event in enumerate(old, 1)])
    events = [msgspec.json.decode(frame.data, type=Record).event for frame in frames]
    ended = [event for event in events if isinstance(event, ToolFinished | AgentFinished | StepFinished)]
    assert [event.outcome for event in ended] == [outcome] * 4


@pytest.mark.requirement("derived-once")
def test_rejected_call_of_an_older_log_is_rejected() -> None:
    old: list[AnyEvent] = [
        ToolStarted(call_id="b", name="wait", args={}),
        ApprovalRequested(approval_id="p", name="wait", args={}, call_id="b"),
        ApprovalResolved(approval_id="p", decision="reject", by="ann"),
        ToolFinished(call_id="b", error="rejected by ann"),
    ]
    records = [Record(n, "run_1", n, event) for n, event in enumerate(old, 1)]
    for name in ("records", "typed", "tool_calls", "v2"):
        assert b'"outcome":"rejected"' in live(DIALECTS[name], records)[-1].data


def test_gap_names_first_and_last_record() -> None:
    assert msgspec.json.decode(RecordsDialect().gap(3, 9)) == {"gap": {"from": 3, "to": 9}}
