"""The flat format: seven documented types with their keys, one announcement for each call, truncated results."""

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from limelight.dialects.tool_calls import ToolCallsDialect
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    Status,
    TextDelta,
    ToolArgsDelta,
    ToolFinished,
    ToolReady,
    ToolStarted,
)
from tests.dialects.transcripts import SCRIPTS, live
from tests.support.strategies import RUN_ID, as_records, legal_runs, write_run

DOCUMENTED: dict[str, set[str]] = {
    "status": {"content"},
    "message": {"content"},
    "tool_call_start": {"tool_call_id", "tool_name", "tool_args"},
    "tool_call_complete": {"tool_call_id", "tool_name", "tool_args", "result"},
    "tool_call_error": {"tool_call_id", "tool_name", "tool_args", "error"},
    "error": {"message"},
    "done": set(),
}
RUNS: list[list[AnyEvent]] = [*SCRIPTS.values(), *(write_run(Random(seed), 100) for seed in range(10))]


def frames_of(run: list[AnyEvent]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(frame.data) for frame in live(ToolCallsDialect, as_records(run))]


def frames_after_start(*events: AnyEvent) -> list[dict[str, Any]]:
    """Return the frames after the first status."""
    return frames_of([RunStarted(agent="a"), *events])[1:]


@pytest.mark.requirement("tool-calls-document")
@pytest.mark.parametrize("type_", DOCUMENTED)
def test_documented_types_are_flat_and_have_the_documented_keys(type_: str) -> None:
    found = [frame for run in RUNS for frame in frames_of(run) if frame["type"] == type_]
    assert found
    assert all(DOCUMENTED[type_] <= set(frame) and "data" not in frame for frame in found)


@pytest.mark.requirement("tool-calls-document")
def test_no_other_types_are_sent() -> None:
    assert {frame["type"] for run in RUNS for frame in frames_of(run)} == set(DOCUMENTED)


@settings(max_examples=60)
@given(legal_runs(cut=False))
def test_run_begins_with_a_thinking_status_and_ends_with_done(run: list[AnyEvent]) -> None:
    frames = frames_of(run)
    assert frames[0] == {"type": "status", "content": "Thinking..."}
    assert [frame for frame in frames if frame["type"] == "done"] == [{"type": "done"}]
    assert frames[-1] == {"type": "done"}


@settings(max_examples=60)
@given(legal_runs(cut=False))
def test_every_call_starts_and_ends_once_with_the_same_name_and_arguments(run: list[AnyEvent]) -> None:
    def call_fields(frame: dict[str, Any]) -> tuple[str, str, str]:
        return frame["tool_call_id"], frame["tool_name"], repr(frame["tool_args"])

    frames = frames_of(run)
    started = [call_fields(frame) for frame in frames if frame["type"] == "tool_call_start"]
    ended = [call_fields(frame) for frame in frames if frame["type"] in ("tool_call_complete", "tool_call_error")]
    assert sorted(started) == sorted(ended)
    assert len(set(started)) == len(started)


def test_call_is_announced_when_its_arguments_are_complete() -> None:
    frames = frames_after_start(
        ToolStarted(call_id="c", name="read"),
        ToolArgsDelta(call_id="c", text='{"n": '),
        ToolArgsDelta(call_id="c", text="1}"),
        ToolReady(call_id="c", args={"n": 1}),
        ToolFinished(call_id="c", result={"found": True}),
    )
    call = {"tool_call_id": "c", "tool_name": "read", "tool_args": {"n": 1}}
    assert frames == [
        {"type": "tool_call_start", **call, "summary": "1"},
        {"type": "tool_call_complete", **call, "result": '{"found":true}'},
    ]


def test_call_that_ends_before_its_arguments_are_complete_is_still_announced() -> None:
    frames = frames_after_start(
        ToolStarted(call_id="c", name="read"), ToolFinished(call_id="c", result="Error: cut", error="cut")
    )
    call: dict[str, Any] = {"tool_call_id": "c", "tool_name": "read", "tool_args": {}}
    assert frames == [{"type": "tool_call_start", **call}, {"type": "tool_call_error", **call, "error": "cut"}]


def test_failed_call_has_an_error_and_no_result() -> None:
    frames = frames_after_start(
        ToolStarted(call_id="c", name="read", args={"name": "x"}),
        ToolFinished(call_id="c", result="Error: no such file", error="no such file"),
    )
    assert frames[1:] == [
        {
            "type": "tool_call_error",
            "tool_call_id": "c",
            "tool_name": "read",
            "tool_args": {"name": "x"},
            "error": "no such file",
        }
    ]


@pytest.mark.parametrize("length", [1_999, 2_000, 2_001, 9_000])
def test_result_over_2000_characters_is_truncated_and_links_to_the_complete_one(length: int) -> None:
    (end,) = frames_after_start(
        ToolStarted(call_id="a/b", name="read", args={}), ToolFinished(call_id="a/b", result="é" * length)
    )[1:]
    if length <= 2_000:
        assert end["result"] == "é" * length
        assert "truncated" not in end
    else:
        assert end["result"] == "é" * 2_000 + "..."
        assert (end["truncated"], end["size"]) == (True, 2 * length)
        assert end["result_url"] == f"/runs/{RUN_ID}/tools/a%2Fb"


def test_sub_agent_text_is_not_sent_and_its_tools_have_its_name() -> None:
    frames = frames_after_start(
        ToolStarted(call_id="t", name="task", args={}),
        AgentStarted(agent_id="s", name="researcher", call_id="t"),
        Status(agent_id="s", text="Reading"),
        TextDelta(agent_id="s", message_id="m", text="I look."),
        ToolStarted(agent_id="s", call_id="c", name="search", args={}),
        ToolFinished(agent_id="s", call_id="c", result="found"),
        AgentFinished(agent_id="s"),
        ToolFinished(call_id="t", result="report"),
        TextDelta(message_id="m2", text="Here."),
    )
    assert [frame["content"] for frame in frames if "content" in frame] == ["researcher › Reading", "Here."]
    assert [frame["tool_name"] for frame in frames if "tool_name" in frame] == [
        "task",
        "researcher › search",
        "researcher › search",
        "task",
    ]


def test_approval_has_a_status_while_open_and_after_the_decision() -> None:
    sub = AgentStarted(agent_id="s", name="researcher")
    first = ApprovalRequested(agent_id="s", approval_id="p1", name="send_mail", args={})
    second = ApprovalRequested(approval_id="p2", name="publish", args={})
    decisions = [
        ApprovalResolved(approval_id="p2", decision="reject", by="ada"),
        ApprovalResolved(agent_id="s", approval_id="p1", decision="approve", by="ada"),
    ]
    assert frames_after_start(sub, first, second, *decisions) == [
        {"type": "status", "content": "Waiting for approval: researcher › send_mail"},
        {"type": "status", "content": "Waiting for approval: publish"},
        {"type": "status", "content": "Waiting for approval: researcher › send_mail"},
        {"type": "status", "content": "Approved: researcher › send_mail"},
    ]


def test_answer_is_sent_once_whether_streamed_or_not() -> None:
    streamed = frames_after_start(TextDelta(message_id="m", text="Yes."), FinalAnswer(content="Yes.", message_id="m"))
    not_streamed = frames_after_start(FinalAnswer(content="Yes."))
    assert streamed == not_streamed == [{"type": "message", "content": "Yes."}]


def test_failure_and_stop_are_sent_before_done() -> None:
    failed = frames_after_start(RunFailed(code="agent_error", message="no", error_id="err_1"))
    assert failed == [
        {"type": "error", "message": "no", "code": "agent_error", "error_id": "err_1"},
        {"type": "done"},
    ]
    assert frames_after_start(RunCancelled(reason="x")) == [{"type": "status", "content": "Stopped"}, {"type": "done"}]
    assert frames_after_start(RunFinished()) == [{"type": "done"}]
