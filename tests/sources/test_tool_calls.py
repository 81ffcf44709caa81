"""Shared bookkeeping of tool calls: unique ids, and the events from the first argument piece to the result."""

from limelight.events import ToolArgsDelta, ToolFinished, ToolOutputDelta, ToolReady, ToolStarted
from limelight.grammar import unseen_result
from limelight.sources.base import FileMade
from limelight.sources.tool_calls import CallIds, ToolCall


def test_assigned_call_ids_never_collide() -> None:
    ids = CallIds()
    raw_ids = ["a", "a", "a-2", "", "call", ""]
    assert list(map(ids.start, raw_ids)) == ["a", "a-2", "a-2-2", "call", "call-2", "call-3"]
    assert [ids.find(raw) for raw in ("a", "a-2", "", "unknown")] == ["a", "a-2-2", "call", "unknown"]
    assert [ids.finish(raw) for raw in ("a", "a", "", "")] == ["a", "a-2", "call", "call-3"]


def test_streamed_call_is_ready_once_and_finished_once() -> None:
    call = ToolCall("", "c1", "add")
    file = FileMade(name="a.txt", data=b"a")
    events = [
        *call.start(),
        *call.append_args('{"a": '),
        *call.append_args("1}"),
        *call.output("half"),
        *call.append_args("too late"),
        *call.ready({"a": 2}),
        *call.finish("3", duration_ms=5, files=[file]),
        *call.finish(error="too late"),
        *call.output("too late"),
        *call.finish_unseen(),
    ]
    assert events == [
        ToolStarted(call_id="c1", name="add"),
        ToolArgsDelta(call_id="c1", text='{"a": '),
        ToolArgsDelta(call_id="c1", text="1}"),
        ToolReady(call_id="c1", args={"a": 1}),
        ToolOutputDelta(call_id="c1", text="half"),
        file,
        ToolFinished(call_id="c1", result="3", duration_ms=5),
    ]


def test_call_with_complete_arguments_starts_with_them() -> None:
    call = ToolCall("helper-1", "c1", "add", {"a": 1})
    assert call.start() == [ToolStarted(agent_id="helper-1", call_id="c1", name="add", args={"a": 1})]
    assert call.ready() == []
    assert call.finish_unseen() == [unseen_result("helper-1", "c1")]


def test_arguments_that_are_not_json_stay_text() -> None:
    call = ToolCall("", "c1", "add")
    assert call.known_args == {}
    call.append_args('{"a": ')
    assert call.known_args == '{"a": '
    assert call.finish(error="cut off") == [
        ToolReady(call_id="c1", args='{"a": '),
        ToolFinished(call_id="c1", error="cut off"),
    ]
