"""What clients show of calls and answers is derived once, and from the complete values."""

from typing import Any

import pytest
from msgspec.structs import replace

from limelight.display_fields import DisplayFields, summarize
from limelight.events import (
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    RunStarted,
    SourceLink,
    ToolFinished,
    ToolReady,
    ToolStarted,
)
from limelight.runs.truncation import fit
from tests.support.strategies import as_records


def presented(*events: AnyEvent) -> Any:
    """Return the last of the events, with its derived fields."""
    return as_records(events)[-1].event


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (None, ""),
        ({}, ""),
        ("not json", "not json"),
        ({"limit": 3, "path": "a.txt"}, "a.txt"),
        ({"words": ["bees", "honey"]}, "bees honey"),
        ({"a": {"b": 1}}, '{"b":1}'),
        ({"a": {"b": 1}, "n": 2}, "2"),
        ({"todos": [{"content": "Look", "status": "completed"}, {"content": "Tell"}]}, "Look, Tell"),
        ({"path": "a.txt", "content": "much"}, "a.txt"),
        ({"query": "", "n": 5}, "5"),
        ({"flags": [None, True, 3]}, "true, 3"),
        ({"query": None, "deep": None}, ""),
        ({"code": "\n  first = 1\nsecond = 2"}, "first = 1"),
        ({"query": "x" * 100}, "x" * 79 + "…"),
    ],
)
def test_summary_is_the_argument_that_describes_the_call_best(args: Any, expected: str) -> None:
    assert summarize(args) == expected


@pytest.mark.parametrize(
    ("name", "args", "language", "key"),
    [
        ("python_interpreter", {"code": "1"}, "python", "code"),
        ("python", {"script": "1"}, "python", "script"),
        ("python", {"other": "1"}, "python", ""),
        ("python", "not json", "python", ""),
        ("python", None, "python", ""),
        ("run_sql", {"code": "SELECT 1"}, "sql", "code"),
        ("execute", {"code": "ls"}, "bash", "code"),
        ("run", {"code": "x", "language": "Rust"}, "rust", "code"),
        ("run", {"code": "x"}, "text", "code"),
        ("py_exec", {"code": "x"}, "python", "code"),
        ("read", {"source": "https://example.org"}, "", ""),
        ("read", {"code": 7}, "", ""),
        ("read", None, "", ""),
    ],
)
def test_call_that_runs_code_names_its_language_and_argument(name: str, args: Any, language: str, key: str) -> None:
    event = presented(ToolStarted(call_id="c", name=name, args=args))
    assert (event.language, event.code_key) == (language, key)


def test_tools_that_an_agent_declares_replace_the_usual_python_tools() -> None:
    started = RunStarted(agent="a", python_tools=("calc",))
    assert presented(started, ToolStarted(call_id="c", name="calc", args={"source": "1"})).code_key == "source"
    assert presented(started, ToolStarted(call_id="c", name="python", args={"source": "1"})).language == ""


@pytest.mark.requirement("derived-once")
def test_streamed_arguments_are_presented_when_they_are_complete() -> None:
    started = ToolStarted(call_id="c", name="python")
    assert (presented(started).summary, presented(started).language) == ("", "python")
    ready = presented(started, ToolReady(call_id="c", args={"code": "1 + 1"}))
    assert (ready.summary, ready.language, ready.code_key) == ("1 + 1", "python", "code")


def test_edited_arguments_of_an_approval_are_presented_like_those_of_its_request() -> None:
    request = ApprovalRequested(approval_id="p", name="python", args={"code": "rm()"})
    resolved = presented(request, ApprovalResolved(approval_id="p", decision="edit", args={"code": "ls()"}))
    assert presented(request).summary == "rm()"
    assert (resolved.summary, resolved.language, resolved.code_key) == ("ls()", "python", "code")
    assert presented(request, ApprovalResolved(approval_id="p", decision="approve")).summary == ""


ASKED = ApprovalRequested(approval_id="p", name="rm", args={}, call_id="c")
REJECTED = ApprovalResolved(approval_id="p", decision="reject", by="ann")
EXPIRED = ApprovalResolved(approval_id="p", decision="reject", by="system", reason="expired")
APPROVED_LATER = ApprovalResolved(approval_id="q", decision="approve", by="ann")
FAILED = ToolFinished(call_id="c", error="it did not work")


@pytest.mark.requirement("derived-once")
@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ((FAILED,), ""),
        ((replace(FAILED, error="stopped"),), "failed"),
        ((ASKED, REJECTED, FAILED), "rejected"),
        ((ASKED, EXPIRED, FAILED), "rejected"),
        ((ASKED, replace(EXPIRED, reason="the run ended before this did"), FAILED), ""),
        ((ASKED, replace(REJECTED, decision="approve"), FAILED), ""),
        ((ASKED, REJECTED, ToolFinished(call_id="c", result="not sent")), ""),
        ((ASKED, REJECTED, replace(FAILED, call_id="d")), ""),
        ((ASKED, REJECTED, replace(FAILED, outcome="stopped")), "stopped"),
        ((replace(ASKED, call_id=""), REJECTED, FAILED), ""),
        ((ASKED, REJECTED, replace(ASKED, approval_id="q"), APPROVED_LATER, FAILED), ""),
    ],
    ids=[
        "none",
        "stop-text",
        "rejected",
        "expired",
        "withdrawn",
        "approved",
        "handled",
        "other-call",
        "stopped",
        "no-call",
        "approved-later",
    ],
)
def test_call_that_fails_after_its_approval_was_rejected_is_rejected(
    events: tuple[AnyEvent, ...], outcome: str
) -> None:
    assert presented(*events).outcome == outcome


@pytest.mark.requirement("derived-once")
def test_truncated_arguments_keep_what_was_derived_from_the_complete_ones() -> None:
    event = ToolStarted(call_id="c", name="python", args={"code": "x = 1\n" * 10_000, "path": "a.py"})
    (stored,) = fit(event, "run_1", 10**6, present=DisplayFields().add_to).events
    assert isinstance(stored, ToolStarted) and stored.truncated
    assert (stored.summary, stored.language, stored.code_key) == ("a.py", "python", "code")
    assert DisplayFields().add_to(stored) == stored, "reading it again changes nothing"


STARTED = AgentStarted(agent_id="a", name="helper", call_id="c")


@pytest.mark.requirement("derived-once")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"subagent_type": "reader", "description": "Read it.\nAll of it."}, "Read it.\nAll of it."),
        ({"prompt": "p", "task": "t", "path": "a.txt"}, "t"),
        ({"task": " ", "request": "r"}, "r"),
        ({"task": {"text": "t"}, "instructions": "i"}, "i"),
        ({"path": "a.txt"}, "a.txt"),
        ("not json", "not json"),
        ({}, ""),
        ({"task": "t" * 3000}, "t" * 1999 + "…"),
        ({"task": "t" * 50_000, "path": "a.txt"}, "t" * 1999 + "…"),
    ],
)
def test_task_of_a_sub_agent_is_an_argument_of_the_call_that_started_it(args: Any, expected: str) -> None:
    for calls in (
        [ToolStarted(call_id="c", name="task", args=args)],
        [ToolStarted(call_id="c", name="task"), ToolReady(call_id="c", args=args)],
        fit(ToolStarted(call_id="c", name="task", args=args), "run_1", 10**6).events,  # as an older version logged it
    ):
        assert presented(*calls, STARTED).task == expected


def test_task_of_a_sub_agent_is_that_of_the_edited_arguments() -> None:
    call = ToolStarted(call_id="c", name="task", args={"task": "old"})
    request = ApprovalRequested(approval_id="p", name="task", args={"task": "old"}, call_id="c")
    approved = ApprovalResolved(approval_id="p", decision="approve")
    edited = ApprovalResolved(approval_id="p", decision="edit", args={"task": "new"})
    assert presented(call, request, approved, STARTED).task == "old"
    assert presented(call, request, edited, STARTED).task == "new"


def test_task_that_a_source_gives_is_kept_and_shortened() -> None:
    call = ToolStarted(call_id="c", name="task", args={"task": "t"})
    assert presented(call, replace(STARTED, task="own")).task == "own"
    (stored,) = fit(replace(STARTED, task="x" * 3000), "run_1", 10**6).events
    assert isinstance(stored, AgentStarted) and len(stored.task) == 2000


def test_sub_agent_without_an_open_call_has_no_task() -> None:
    call = ToolStarted(call_id="c", name="task", args={"task": "t"})
    assert presented(call, replace(STARTED, call_id="")).task == ""
    assert presented(call, ToolFinished(call_id="c"), replace(STARTED, call_id="c")).task == ""


@pytest.mark.parametrize(
    ("args", "summary"),
    [
        ({"content": "x" * 50_000, "path": "a.txt"}, "x" * 79 + "…"),
        ({"path": "a.txt", "content": "x" * 50_000}, "a.txt"),
        ("x" * 50_000, "x" * 79 + "…"),
        ({"text": " " * 50_000}, ""),
    ],
)
def test_summary_of_truncated_arguments_of_an_older_log_is_read_from_their_preview(args: Any, summary: str) -> None:
    (logged,) = fit(ToolStarted(call_id="c", name="write", args=args), "run_1", 10**6).events
    assert presented(logged).summary == summary


BEES: dict[str, Any] = {"title": "Bees", "content": "They dance.", "sources": ["https://example.org"]}


@pytest.mark.requirement("derived-once")
@pytest.mark.parametrize(
    "content",
    [
        BEES,
        '{"title": "Bees", "content": "They dance.", "sources": ["https://example.org"]}',
        "{'title': 'Bees', 'content': 'They dance.', 'sources': ['https://example.org']}",
        'Final answer: {"title": "Bees", "content": "They dance.", "sources": ["https://example.org"]}',
        '```json\n{"title": "Bees", "content": "They dance.", "sources": ["https://example.org"]}\n```',
    ],
    ids=["dict", "json", "literal", "prefix", "fenced"],
)
def test_parts_of_a_structured_answer_become_fields_in_every_form(content: Any) -> None:
    answer = presented(FinalAnswer(content=content))
    links = (SourceLink("", "https://example.org"),)
    sources = ("https://example.org",)
    assert answer == FinalAnswer(title="Bees", content="They dance.", sources=sources, source_links=links)
    assert presented(answer) == answer


def test_title_and_sources_of_the_event_win_over_those_of_its_content() -> None:
    answer = presented(FinalAnswer(content=BEES, title="Mine", sources=("a book",)))
    assert (answer.title, answer.content, answer.sources) == ("Mine", "They dance.", ("a book",))
    assert answer.data == BEES


@pytest.mark.parametrize(
    "value",
    [{**BEES, "confidence": 0.9}, {"content": "They dance."}, {"title": "Bees", "legs": 6}, {**BEES, "title": 7}],
    ids=["other keys", "content only", "no content", "converted"],
)
def test_object_that_the_fields_do_not_describe_completely_is_kept_as_data(value: dict[str, Any]) -> None:
    assert presented(FinalAnswer(content=value)).data == value


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"title": "Bees", "url": "https://example.org/a"}, "[Bees](https://example.org/a)"),
        ({"name": "Bees", "link": "https://example.org/a"}, "[Bees](https://example.org/a)"),
        ({"title": "[Bees]", "url": "https://example.org/a"}, "[Bees] https://example.org/a"),
        ({"title": "Bees", "url": "page 7"}, "Bees page 7"),
        ({"url": "https://example.org/a"}, "https://example.org/a"),
        ({"page": 7}, '{"page":7}'),
        ("a book", "a book"),
        (7, "7"),
    ],
)
def test_source_that_is_an_object_keeps_its_title_and_address(source: Any, expected: str) -> None:
    answer = presented(FinalAnswer(content={"title": "t", "content": "c", "sources": [source, None]}))
    assert answer.sources == (expected,)


@pytest.mark.parametrize("content", ["plain", '{"legs": 6}', "{not json}", 7, [1], None])
def test_other_answers_are_unchanged(content: Any) -> None:
    assert presented(FinalAnswer(content=content)) == FinalAnswer(content=content)


def test_text_answer_loses_its_prefix() -> None:
    assert presented(FinalAnswer(content=" Final answer: yes")).content == "yes"


def test_structured_answer_that_does_not_fit_with_its_data_is_stored_as_given() -> None:
    value = {"content": "x" * 20_000, "note": "y" * 10_000}
    made = fit(FinalAnswer(content=value), "run_1", 10**6, present=DisplayFields().add_to)
    (answer,), (result,) = made.events, made.results
    assert isinstance(answer, FinalAnswer)
    assert (answer.truncated, answer.data, answer.content) == (True, None, "x" * 10_000)
    assert len(result.body) == answer.size
    assert replace(answer, truncated=False, size=0, result_url="") == FinalAnswer(content="x" * 10_000)
