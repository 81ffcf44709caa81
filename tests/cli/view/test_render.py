"""Rendered lines: arguments, tool calls in narrow terminals, approval requests, durations."""

from typing import Any

import pytest

from limelight.cli.approval_dialogue import OpenApproval, approve_command
from limelight.cli.view.approval_prompt import ApprovalPrompt
from limelight.cli.view.render import (
    Subject,
    approval_changes,
    approval_lines,
    approval_subject,
    argument_lines,
    call_line,
    call_rows,
    change_lines,
    format_duration,
    shorten_arguments,
    source_lines,
)
from limelight.cli.view.run_state import Approval, RunState, ToolCall
from limelight.events import ApprovalRequested, FinalAnswer, RunStarted
from tests.support.strategies import as_records

LONG = "Is this right?\n" + "A line of the report.\n" * 4
MAIL = {"to": "ann", "text": "one\ntwo"}


def call(path: str, error: str = "", name: str = "read_file") -> ToolCall:
    return ToolCall("1", "", name, {"path": path}, "failed" if error else "done", 1500, error, summary=path)


def test_call_that_fits_is_one_line() -> None:
    assert call_rows(call("bees.md"), "", 40) == [call_line(call("bees.md"))] == ["✓ read_file bees.md  1.5 s"]


def test_call_that_is_too_long_has_its_argument_cut() -> None:
    long = "a/long/way/to/bees.md"
    assert call_rows(call(long), "", 30) == ["✓ read_file a/long/way…  1.5 s"]
    assert call_rows(call(long, "not there"), "", 45) == ["✗ read_file a/long/way/to/…  not there  1.5 s"]
    assert call_rows(call(long), "ann: ", 30) == ["✓ ann: read_file a/lon…  1.5 s"]


def test_call_error_that_does_not_fit_has_its_own_line() -> None:
    error = "there is no such file, and there never was one"
    rows = call_rows(call("a/long/way/to/bees.md", error), "", 40)
    assert rows == ["✗ read_file a/long/way/to/bees.md  1.5 s", error]
    assert call_line(call("bees.md", error)) == f"✗ read_file bees.md  {error}  1.5 s"


def test_call_without_a_seen_result_has_its_own_mark() -> None:
    unseen = ToolCall("1", "", "send_mail", {"to": "ann"}, "unseen", summary="ann")
    assert call_line(unseen) == "○ send_mail ann  no result seen"
    assert call_rows(unseen, "", 24) == ["○ send_mail ann", "no result seen"]


def test_stopped_and_rejected_calls_have_their_own_marks_and_no_error() -> None:
    stopped = ToolCall("1", "", "send_mail", {}, "stopped", 900, "the server was shut down", summary="ann")
    assert call_line(stopped) == "■ send_mail ann  stopped  900 ms"
    rejected = ToolCall("1", "", "send_mail", {}, "rejected", 0, "rejected by bob: no", summary="ann")
    assert call_line(rejected) == "⊘ send_mail ann  rejected  0 ms"


def test_call_duration_is_never_cut() -> None:
    assert call_rows(call("x", name="n" * 50), "", 30) == [f"✓ {'n' * 20}…  1.5 s"]
    assert call_rows(call("蜜蜂" * 20), "", 30) == ["✓ read_file 蜜蜂蜜蜂蜜…  1.5 s"]


def approval(name: str, args: dict[str, Any], **more: Any) -> Approval:
    return Approval("apr_1", "", "", name, args, **more)


def test_open_approval_shows_its_arguments_by_name() -> None:
    assert approval_lines(approval("send_mail", MAIL)) == [
        "? send_mail needs an approval (apr_1)",
        "    to = ann",
        "    text =",
        "      one",
        "      two",
    ]
    assert approval_lines(approval("send_mail", MAIL), with_name=False) == ["? needs an approval (apr_1)"]
    assert approval_lines(approval("send_mail", {"n": "x" * 500}))[-1] == "    …"


def test_edited_approval_shows_the_changes() -> None:
    edited = {"to": "bob", "text": "one\ntwo", "cc": "eve"}
    assert approval_lines(approval("send_mail", MAIL, decision="edit", by="ada", edited_args=edited)) == [
        "✓ send_mail approved with changes by ada",
        "    to = bob  (was ann)",
        "    cc = eve  (new)",
    ]
    assert change_lines({"a": "", "b": 1}, {"a": 2}) == ["a = 2  (was empty)", "b is left out"]
    assert change_lines('{"a', {"a": 2}) == change_lines({}, '{"a') == change_lines({}, None) == []


@pytest.mark.parametrize(
    ("args", "title", "rest"),
    [
        ({"value": "Really send it?"}, "Really send it?", {}),
        ({"question": "Send?", "to": "ann"}, "Send?", {"to": "ann"}),
        ({"to": "ann", "message": " Send it? "}, "Send it?", {"to": "ann"}),
        ({"value": LONG}, LONG.replace("\n", " ")[:79] + "…", {"value": LONG}),
    ],
)
def test_subject_of_an_interrupt_is_its_question(args: dict[str, Any], title: str, rest: dict[str, Any]) -> None:
    assert approval_subject("interrupt", args) == Subject(title, rest, is_question=True)


def test_subject_of_a_tool_or_an_interrupt_without_text_is_its_name() -> None:
    assert approval_subject("interrupt", {"value": 42}) == Subject("interrupt", {"value": 42})
    assert approval_subject("send", {"question": "Send?"}) == Subject("send", {"question": "Send?"})
    assert approval_subject("interrupt", '{"value": "cu') == Subject("interrupt", '{"value": "cu')


def test_question_of_an_interrupt_is_shown_in_prompt_lines_and_command() -> None:
    args = {"question": "Which town?", "country": "France"}
    request = ApprovalRequested(approval_id="apr_1", name="interrupt", args=args)
    lines = [line.plain for line in ApprovalPrompt(request, "guide").draw(60, 30, 0)]
    assert lines[:2] == ["┃ guide asks: Which town?", "┃   country = France"]
    narrow = [line.plain for line in ApprovalPrompt(request, "guide").draw(24, 30, 0)]
    assert "[s]how all" in narrow[-2]
    assert approval_lines(approval("interrupt", args), with_name=False) == [
        '? "Which town?" waits for an answer (apr_1)',
        "    country = France",
    ]
    answered = approval("interrupt", args, decision="edit", by="ada", edited_args={"value": "Lyon"})
    assert approval_lines(answered) == ['✓ "Which town?" answered by ada', "    value = Lyon"]
    assert approval_lines(approval("interrupt", args, decision="approve", by="ada")) == [
        '✓ "Which town?" approved by ada'
    ]
    assert approval_changes("interrupt", args, {**args, "country": "Peru"}) == ["country = Peru  (was France)"]
    assert approve_command("http://x", OpenApproval("run_1", request)).startswith(
        '"Which town?" waits for a decision: '
    )


def test_shortened_arguments_show_the_start_of_each() -> None:
    lines, cut = shorten_arguments({"text": "\n".join("abcdefgh"), "path": "x" * 50}, width=20, max_lines=10)
    assert lines == ["text =", "  a", "  b", "  c", "  … 5 more lines", "path = xxxxxxxxxxxx…"]
    assert cut
    assert shorten_arguments({"a": "b", "c": [1]}, 20, 10) == (["a = b", "c = [1]"], False)
    assert shorten_arguments({"a": 1, "b": 2}, 20, 1) == (["a = 1"], True)
    assert shorten_arguments("not json", 20, 5) == (["not json"], False)


def test_argument_name_with_a_line_break_is_one_line() -> None:
    assert argument_lines({"b\nc": "d"}) == [["b c = d"]]


@pytest.mark.parametrize(
    ("ms", "expected"), [(None, ""), (0, "0 ms"), (999, "999 ms"), (1500, "1.5 s"), (61_000, "1 min 1 s")]
)
def test_duration_is_formatted_by_its_size(ms: int | None, expected: str) -> None:
    assert format_duration(ms) == expected


def test_source_is_a_line_with_its_title_and_its_url() -> None:
    sources = ("[Bees](https://example.org/bees)", "https://example.org/winter", "A book")
    state = RunState()
    for record in as_records([RunStarted(agent="a"), FinalAnswer(content="x", sources=sources)]):
        state.feed(record)
    lines = ["Sources:", "- Bees — https://example.org/bees", "- https://example.org/winter", "- A book"]
    assert source_lines(state) == lines
