"""The typed format: seven documented types with their keys, and the types that Limelight adds."""

from itertools import pairwise
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from limelight.dialects.frame_encoder import FrameEncoder
from limelight.dialects.typed import TypedDialect
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    Plan,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SourceCited,
    Status,
    TextDelta,
    Todo,
    ToolFinished,
    ToolReady,
    ToolStarted,
)
from tests.dialects.transcripts import SCRIPTS, as_sent, live
from tests.support.strategies import as_records, legal_runs, write_run

DOCUMENTED: dict[str, set[str]] = {
    "status": {"description", "agent_depth"},
    "tool_start": {"tool_id", "name", "agent_depth"},
    "tool_end": {"tool_id", "name", "result", "agent_depth"},
    "token": {"content", "agent_depth"},
    "agent_start": {"agent_id", "name", "depth"},
    "agent_end": {"agent_id", "depth"},
    "done": set(),
}
ADDITIONAL: dict[str, set[str]] = {
    "error": {"message", "code", "error_id"},
    "cancelled": {"reason"},
    "reasoning": {"content", "agent_id", "agent_depth"},
    "plan": {"update"},
    "usage": {"model", "input_tokens", "output_tokens"},
    "approval": {"approval_id", "tool_id", "name", "args", "decisions", "expires_at", "state", "by"},
    "tool_args": {"tool_id", "content"},
    "tool_output": {"tool_id", "stream", "content"},
    "citation": {"title", "url", "text"},
    "artifact": {"artifact_id", "name", "media_type", "size", "url"},
    "answer": {"title", "content", "sources"},
}
RUNS: list[list[AnyEvent]] = [*SCRIPTS.values(), *(write_run(Random(seed), 100) for seed in range(10))]


def frames_of(run: list[AnyEvent]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(frame.data) for frame in live(TypedDialect, as_records(run))]


def data_of(*events: AnyEvent) -> list[dict[str, Any]]:
    """Return the data of the frames after the first status."""
    return [frame.get("data", {}) for frame in frames_of([RunStarted(agent="a"), *events])[1:]]


def types_and_data(*events: AnyEvent) -> list[tuple[str, dict[str, Any]]]:
    return [(frame["type"], frame["data"]) for frame in frames_of([RunStarted(agent="a"), *events])[1:]]


# Types and keys


@pytest.mark.requirement("typed-document")
@pytest.mark.parametrize("type_", DOCUMENTED)
def test_documented_types_have_the_documented_keys(type_: str) -> None:
    found = [frame for run in RUNS for frame in frames_of(run) if frame["type"] == type_]
    assert found
    assert all(DOCUMENTED[type_] <= set(frame.get("data", {})) for frame in found)


@pytest.mark.parametrize("type_", ADDITIONAL)
def test_additional_types_have_their_keys(type_: str) -> None:
    found = [frame["data"] for run in RUNS for frame in frames_of(run) if frame["type"] == type_]
    assert found
    assert all(ADDITIONAL[type_] <= set(data) for data in found)


def test_no_other_types_are_sent() -> None:
    assert {frame["type"] for run in RUNS for frame in frames_of(run)} == {*DOCUMENTED, *ADDITIONAL}


@settings(max_examples=60)
@given(legal_runs(cut=False))
def test_run_begins_with_a_thinking_status_and_ends_with_done(run: list[AnyEvent]) -> None:
    frames = frames_of(run)
    assert frames[0] == {"type": "status", "data": {"description": "Thinking...", "agent_depth": 0}}
    assert [frame for frame in frames if frame["type"] == "done"] == [{"type": "done"}]
    assert frames[-1] == {"type": "done"}


@settings(max_examples=40)
@given(legal_runs(cut=True))
def test_unfinished_run_has_no_done(run: list[AnyEvent]) -> None:
    assert all(frame["type"] != "done" for frame in frames_of(run))


@settings(max_examples=60)
@given(legal_runs(cut=False))
def test_every_tool_and_agent_ends_with_the_name_and_depth_of_its_start(run: list[AnyEvent]) -> None:
    frames = frames_of(run)
    tools = {
        (f["data"]["tool_id"], f["data"]["name"], f["data"]["agent_depth"]) for f in frames if f["type"] == "tool_start"
    }
    assert tools == {
        (f["data"]["tool_id"], f["data"]["name"], f["data"]["agent_depth"]) for f in frames if f["type"] == "tool_end"
    }
    agents = {(f["data"]["agent_id"], f["data"]["depth"]) for f in frames if f["type"] == "agent_start"}
    assert agents == {(f["data"]["agent_id"], f["data"]["depth"]) for f in frames if f["type"] == "agent_end"}


def test_failure_and_stop_are_sent_before_done() -> None:
    failed = frames_of([RunStarted(agent="a"), RunFailed(code="agent_error", message="no", error_id="err_1")])
    assert failed[1:] == [
        {"type": "token", "data": {"content": "Error: no", "agent_depth": 0, "fallback_for": "error"}},
        {"type": "error", "data": {"message": "no", "code": "agent_error", "error_id": "err_1"}},
        {"type": "done"},
    ]
    stopped = frames_of([RunStarted(agent="a"), RunCancelled(reason="enough")])
    assert stopped[1:] == [
        {"type": "status", "data": {"description": "Stopped", "agent_depth": 0, "fallback_for": "cancelled"}},
        {"type": "cancelled", "data": {"reason": "enough"}},
        {"type": "done"},
    ]


# Fallbacks for clients that know only the documented types


@settings(max_examples=60)
@given(legal_runs(cut=False))
def test_fallback_is_a_documented_frame_before_the_additional_one(run: list[AnyEvent]) -> None:
    frames = frames_of(run)
    named: list[str] = []
    for frame, following in pairwise(frames):
        if name := frame.get("data", {}).get("fallback_for"):
            assert frame["type"] in DOCUMENTED
            assert following["type"] == name
            named.append(name)
    assert named == [frame["type"] for frame in frames if frame["type"] in ("error", "cancelled", "approval")]


@pytest.mark.parametrize("code", ["agent_error", "run_timeout", "silence_timeout", "interrupted", "log_full"])
def test_fallback_of_an_error_has_its_message(code: str) -> None:
    text, error, _ = frames_of([RunStarted(agent="a"), RunFailed(code=code, message="It took too long.")])[1:]
    assert text["data"]["content"] == f"Error: {error['data']['message']}"


BLOCK = "\n\nError: no"


@pytest.mark.parametrize(
    ("events", "content"),
    [
        ([], "Error: no"),
        ([Status(text="Looking")], "Error: no"),
        ([TextDelta(message_id="m", text="I will")], BLOCK),
        ([FinalAnswer(content="never streamed")], BLOCK),
        ([AgentStarted(agent_id="s", name="sub"), TextDelta(agent_id="s", message_id="m", text="I will")], BLOCK),
    ],
)
def test_fallback_of_an_error_is_a_separate_paragraph(events: list[AnyEvent], content: str) -> None:
    frames = frames_of([RunStarted(agent="a"), *events, RunFailed(code="agent_error", message="no")])
    assert frames[-3]["data"] == {"content": content, "agent_depth": 0, "fallback_for": "error"}


def test_fallback_of_an_error_is_not_joined_with_the_text_before_it() -> None:
    records = as_records(
        [
            RunStarted(agent="a"),
            TextDelta(message_id="m", text="I "),
            TextDelta(message_id="m", text="will"),
            RunFailed(code="agent_error", message="no"),
        ]
    )
    tokens = [
        (frame.id, msgspec.json.decode(frame.data)["data"])
        for frame in as_sent(TypedDialect, FrameEncoder(TypedDialect).catch_up(records))
        if b'"token"' in frame.data
    ]
    assert tokens == [
        ("3", {"content": "I will", "agent_depth": 0}),
        ("4.1", {"content": BLOCK, "agent_depth": 0, "fallback_for": "error"}),
    ]


def statuses(*events: AnyEvent) -> list[str]:
    return [data["description"] for data in data_of(*events) if data.get("fallback_for") == "approval"]


@pytest.mark.parametrize(
    ("decision", "status"),
    [
        (ApprovalResolved(approval_id="p", decision="approve", by="ada"), "Approved: rm"),
        (ApprovalResolved(approval_id="p", decision="edit", args={}, by="ada"), "Approved with changes: rm"),
        (ApprovalResolved(approval_id="p", decision="reject", reason="expired", by="ada"), "Rejected: rm"),
        (ApprovalResolved(approval_id="p", decision="reject", reason="expired", by="system"), "Approval expired: rm"),
        (ApprovalResolved(approval_id="p", decision="reject", reason="stopped", by="system"), "Approval withdrawn: rm"),
    ],
)
def test_approval_has_a_status_while_open_and_after_the_decision(decision: ApprovalResolved, status: str) -> None:
    request = ApprovalRequested(approval_id="p", name="rm", args={})
    assert statuses(request, decision) == ["Waiting for approval: rm", status]


def test_status_after_a_decision_names_an_approval_that_is_still_open() -> None:
    requests = [ApprovalRequested(approval_id=name, name=name, args={}) for name in ("a", "b", "c")]
    decisions = [ApprovalResolved(approval_id=name, decision="approve") for name in ("c", "a", "b")]
    assert statuses(*requests, *decisions)[3:] == ["Waiting for approval: b", "Waiting for approval: b", "Approved: b"]


def test_status_of_an_approval_has_the_agent_of_its_subject() -> None:
    sub = AgentStarted(agent_id="s", name="sub")
    mine = ApprovalRequested(approval_id="p1", name="rm", args={})
    its = ApprovalRequested(agent_id="s", approval_id="p2", name="publish", args={})
    found = data_of(sub, its, mine, ApprovalResolved(approval_id="p1", decision="approve"))
    assert [(data["description"], data.get("agent_id"), data["agent_depth"]) for data in found[1::2]] == [
        ("Waiting for approval: publish", "s", 1),
        ("Waiting for approval: rm", None, 0),
        ("Waiting for approval: publish", "s", 1),
    ]


# Depth


@pytest.mark.requirement("typed-depth")
def test_depth_is_right_when_agents_end_out_of_order() -> None:
    depths = [
        (frame["type"], frame["data"].get("agent_id"), frame["data"].get("depth", frame["data"].get("agent_depth")))
        for frame in frames_of(SCRIPTS["sub_agents"])
        if frame["type"] in ("agent_start", "agent_end", "token")
    ]
    assert depths == [
        ("agent_start", "a1", 1),
        ("agent_start", "a2", 1),
        ("token", "a1", 1),
        ("token", "a2", 1),
        ("token", "a1", 1),
        ("agent_start", "a3", 2),
        ("agent_end", "a2", 1),
        ("agent_end", "a3", 2),
        ("agent_end", "a1", 1),
        ("token", None, 0),
    ]


def test_agent_start_names_the_parent_and_the_spawning_call() -> None:
    call = ToolStarted(call_id="c", name="task", args={})
    started = data_of(call, AgentStarted(agent_id="a", name="n", call_id="c"), AgentFinished(agent_id="a", error="no"))
    assert started[1] == {"agent_id": "a", "name": "n", "depth": 1, "parent_id": "", "tool_id": "c"}
    assert started[2] == {"agent_id": "a", "depth": 1, "error": "no"}


def test_frames_of_a_sub_agent_have_its_id_and_depth() -> None:
    sub = AgentStarted(agent_id="a", name="n")
    found = data_of(sub, Status(agent_id="a", text="x"), TextDelta(agent_id="a", message_id="m", text="y"))
    assert found[1:] == [
        {"description": "x", "agent_depth": 1, "agent_id": "a"},
        {"content": "y", "agent_depth": 1, "agent_id": "a"},
    ]


# Answers and values


def test_streamed_answer_is_not_sent_again() -> None:
    assert data_of(
        TextDelta(message_id="m", text="yes"), FinalAnswer(content="yes", message_id="m"), RunFinished()
    ) == [
        {"content": "yes", "agent_depth": 0},
        {},
    ]


@pytest.mark.parametrize(("content", "sent"), [("yes", "yes"), ({"a": 1}, '{"a":1}')])
def test_answer_that_was_not_streamed_is_sent_as_text(content: Any, sent: str) -> None:
    assert data_of(FinalAnswer(content=content))[0] == {"content": sent, "agent_depth": 0}


def test_title_and_sources_of_a_streamed_answer_are_sent_without_a_token() -> None:
    answer = FinalAnswer(content="yes", title="May I?", sources=("https://example.org/",))
    links = [{"title": "", "url": "https://example.org/"}]
    more = {"title": "May I?", "content": "yes", "sources": ["https://example.org/"], "source_links": links}
    assert types_and_data(answer) == [("token", {"content": "yes", "agent_depth": 0}), ("answer", more)]
    streamed = msgspec.structs.replace(answer, message_id="m")
    text = TextDelta(message_id="m", text="yes")
    assert types_and_data(text, streamed) == [("token", {"content": "yes", "agent_depth": 0}), ("answer", more)]


def test_answer_that_is_a_json_value_is_sent_as_value() -> None:
    assert types_and_data(FinalAnswer(content={"a": 1}))[1:] == [
        ("answer", {"title": "", "content": {"a": 1}, "sources": []})
    ]
    truncated = FinalAnswer(content="[1, 2", title="Numbers", truncated=True, size=99_999, result_url="/runs/r/answer")
    assert data_of(truncated)[1] == {
        "title": "Numbers",
        "content": "[1, 2",
        "sources": [],
        "truncated": True,
        "size": 99_999,
        "result_url": "/runs/r/answer",
    }


def test_empty_answer_has_no_frame() -> None:
    assert data_of(FinalAnswer(content="")) == []


def test_tool_end_repeats_the_name_and_has_the_result_as_string() -> None:
    start, end = (
        ToolStarted(call_id="c", name="sum", args={"a": 1}),
        ToolFinished(call_id="c", result=[3], duration_ms=7),
    )
    assert data_of(start, end) == [
        {"tool_id": "c", "name": "sum", "agent_depth": 0, "args": {"a": 1}, "summary": "1"},
        {"tool_id": "c", "name": "sum", "result": "[3]", "agent_depth": 0, "duration_ms": 7},
    ]


def test_tool_end_has_a_duration_of_zero() -> None:
    start, end = ToolStarted(call_id="c", name="t", args={}), ToolFinished(call_id="c", duration_ms=0)
    assert data_of(start, end)[1]["duration_ms"] == 0


def test_truncated_result_has_its_size_and_a_link() -> None:
    (end,) = [frame["data"] for frame in frames_of(SCRIPTS["truncated_result"]) if frame["type"] == "tool_end"]
    assert len(end["result"]) == 10_000
    assert (end["truncated"], end["size"], end["result_url"]) == (True, 50_000, "/runs/run_0/tools/c1")


def test_arguments_are_sent_once() -> None:
    """Arguments that came in pieces are not repeated when they are complete: only their summary is sent then."""
    frames = [f["data"] for f in frames_of(SCRIPTS["streamed_args"]) if f["type"] == "tool_args"]
    assert frames == [
        {"tool_id": "c1", "content": '{"path": "x.txt", '},
        {"tool_id": "c1", "content": '"content": "é"}'},
        {"tool_id": "c1", "content": "", "summary": "x.txt"},
        {"tool_id": "c2", "content": '{"path":"/"}', "summary": "/"},
    ]


def test_truncated_arguments_are_marked() -> None:
    ready = ToolReady(call_id="c", args="preview", summary="a.md", truncated=True, size=99, result_url="/u")
    assert data_of(ToolStarted(call_id="c", name="t"), ready)[1] == {
        "tool_id": "c",
        "content": "preview",
        "summary": "a.md",
        "truncated": True,
        "size": 99,
        "result_url": "/u",
    }


def test_plan_has_text_or_items() -> None:
    assert data_of(Plan(text="look"), Plan(items=(Todo("look", "completed"),), update=True)) == [
        {"text": "look", "update": False, "agent_depth": 0},
        {"items": [{"content": "look", "status": "completed"}], "update": True, "agent_depth": 0},
    ]


def test_citation_has_all_keys_when_they_are_empty() -> None:
    assert data_of(SourceCited(title="t")) == [{"title": "t", "url": "", "text": "", "agent_depth": 0}]


def test_decision_repeats_the_request_with_the_edited_arguments() -> None:
    request = ApprovalRequested(approval_id="p", name="rm", args={"path": "/"}, call_id="c", expires_at=5)
    edited = ApprovalResolved(approval_id="p", decision="edit", args={"path": "/tmp"}, by="ada", reason="safer")
    same = {
        "approval_id": "p",
        "tool_id": "c",
        "name": "rm",
        "decisions": ["approve", "edit", "reject"],
        "expires_at": 5,
        "agent_depth": 0,
    }
    assert data_of(ToolStarted(call_id="c", name="rm", args={}), request, edited)[2::2] == [
        {**same, "args": {"path": "/"}, "summary": "/", "state": "requested", "by": ""},
        {**same, "args": {"path": "/tmp"}, "summary": "/tmp", "state": "edit", "by": "ada", "reason": "safer"},
    ]


def test_truncated_arguments_of_an_approval_are_marked() -> None:
    _, data = data_of(ApprovalRequested(approval_id="p", name="rm", args="{…", truncated=True, size=99))
    assert (data["args"], data["truncated"]) == ("{…", True)


def test_gap_names_first_and_last_record() -> None:
    assert msgspec.json.decode(TypedDialect().gap(3, 9)) == {"type": "gap", "data": {"from": 3, "to": 9}}


def test_messages_of_an_agent_are_separated_by_a_blank_line() -> None:
    def tokens(*events: AnyEvent) -> str:
        return "".join(data["content"] for data in data_of(*events) if "content" in data)

    first = [TextDelta(message_id="a", text="One"), TextDelta(message_id="a", text=" two.")]
    assert tokens(*first) == "One two."
    assert tokens(*first, TextDelta(message_id="b", text="Three.")) == "One two.\n\nThree."
    assert tokens(*first, FinalAnswer(content="Done.")) == "One two.\n\nDone."
    assert tokens(FinalAnswer(content="Done.")) == "Done."
