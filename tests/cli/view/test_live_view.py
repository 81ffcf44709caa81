"""The live view: the lines that it prints permanently, and those that it redraws."""

from io import StringIO

import msgspec
import pytest
from rich.console import Console

from limelight.cli.view.live_view import Prose
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    FinalAnswer,
    Plan,
    PlanDelta,
    RunCancelled,
    RunFinished,
    RunStarted,
    SourceCited,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    Todo,
    ToolArgsDelta,
    ToolFinished,
    ToolReady,
    ToolStarted,
)
from tests.cli.view.screens import (
    RUN_NAMES,
    golden_records,
    plain_lines,
    plain_text,
    printed_lines,
    redrawn_lines,
    terminal_output,
)


def test_live_view_redraws_a_streaming_plan_and_prints_it_once_complete() -> None:
    deltas = (PlanDelta(text="1. Look\n"), PlanDelta(text="2. **An"))
    assert redrawn_lines(RunStarted(agent="a"), *deltas)[:3] == ["Plan:", "  1. Look", "  2. **An"]
    whole = Plan(text="1. Look\n2. **Answer**")
    assert printed_lines(*deltas, whole, *MESSAGE, *DONE)[1:-1] == ["Plan:", "   1 Look", "   2 Answer", "Here it is."]
    long = printed_lines(*deltas, Plan(text="1. Look", truncated=True), *MESSAGE, *DONE)
    assert long[1:-1] == ["Plan:", "   1 Look", "   2 **An", "Here it is."], "the deltas have more than the preview"
    between = printed_lines(deltas[0], SourceCited(title="A book"), deltas[1], whole, *MESSAGE, *DONE)
    assert between[1:-1] == ["Plan:", "   1 Look", "   2 Answer", "@ A book", "Here it is."]
    cut_off = StepFinished(number=1, step_kind="planning", error="hung up")
    again = (PlanDelta(text="Other", update=True), Plan(text="Other", update=True))
    printed = printed_lines(StepStarted(number=1, step_kind="planning"), *deltas, cut_off, *again, *MESSAGE, *DONE)
    assert printed[1:-1] == ["Plan:", "   1 Look", "   2 **An", "Plan:", "  Other", "Here it is."]


@pytest.mark.parametrize(
    "text", ["Use vector<int> x and List<String>.", "<think>hm</think>", "`a<b>` & <c>", "<div>\n\na\n\n</div>"]
)
def test_markdown_shows_angle_brackets_as_text(text: str) -> None:
    screen = StringIO()
    Console(file=screen, width=80).print(Prose(text))
    assert [c for c in screen.getvalue() if c in "<>"] == [c for c in text if c in "<>"]


MESSAGE = (TextDelta(message_id="m", text="Here it is."), TextFinished(message_id="m"))
DONE = (FinalAnswer(content="Here it is.", message_id="m"), RunFinished())


def test_live_view_prints_the_last_todos_above_the_answer() -> None:
    first = Plan(items=(Todo("Look", "in_progress"), Todo("Answer")))
    last = Plan(items=(Todo("Look", "completed"), Todo("Answer", "in_progress")), update=True)
    helped = Plan(agent_id="h", items=(Todo("Search", "completed"),))
    call = (ToolStarted(call_id="1", name="ls", args={}), ToolFinished(call_id="1"))
    lines = printed_lines(AgentStarted(agent_id="h", name="helper"), first, helped, *call, last, *MESSAGE, *DONE)
    at = lines.index("Plan:")
    assert lines[at : at + 3] == ["Plan:", "  ✓ Look", "  ▸ Answer"]
    assert lines[at + 3 : at + 6] == ["  Plan of helper:", "    ✓ Search", "Here it is."]
    assert "Plan:" in printed_lines(first, RunCancelled()), "also if nothing was said"


def test_live_view_prints_text_plans_in_their_place() -> None:
    events = (Plan(text="## Steps\n1. **Look**"), *MESSAGE, Plan(text="Only answer", update=True), *DONE)
    assert printed_lines(*events)[1:-1] == ["Plan:", "  Steps", "   1 Look", "Here it is.", "Plan:", "  Only answer"]


@pytest.mark.requirement("code-while-written")
def test_live_view_draws_the_end_of_code_while_the_agent_writes_it() -> None:
    code = "".join(f"line_{number} = 1\\n" for number in range(10)) + 'print(\\"\\u00e9'
    writing = (
        RunStarted(agent="a"),
        ToolStarted(call_id="c", name="python"),
        ToolArgsDelta(call_id="c", text='{"code": "'),
        ToolArgsDelta(call_id="c", text=code),
    )
    lines = redrawn_lines(*writing)
    assert [line.strip() for line in lines if ">" in line] == [
        *(f"> line_{number} = 1" for number in range(5, 10)),
        '> print("é',
    ]
    ready = ToolReady(call_id="c", args={"code": "line_0 = 1"})
    assert not [line for line in redrawn_lines(*writing, ready) if ">" in line]


def test_live_view_draws_messages_of_sub_agents_as_markdown() -> None:
    message = TextDelta(agent_id="h", message_id="x", text="# Report\n\nThey **dance**, `a` lot.")
    lines = printed_lines(
        AgentStarted(agent_id="h", name="helper"), message, AgentFinished(agent_id="h"), *MESSAGE, *DONE
    )
    assert lines[2:5] == ["  helper:", "    Report", "    They dance, a lot."]


def test_live_view_draws_approvals_without_call_id_below_their_call() -> None:
    events: list[AnyEvent] = []
    for name in ("bees", "tides"):
        events.append(ToolStarted(call_id=name, name="delete", args={"name": name}))
        events.append(ToolReady(call_id=name, args={"name": name}))
    for name in ("bees", "tides"):
        events.append(ApprovalRequested(approval_id=f"apr-{name}", name="delete", args={"name": name}))
    events.append(ApprovalResolved(approval_id="apr-tides", decision="reject", by="ann"))
    events.append(ApprovalResolved(approval_id="apr-bees", decision="approve", by="bob"))
    events += [ToolFinished(call_id="bees"), ToolFinished(call_id="tides")]
    lines = printed_lines(*events)[1:]
    assert lines == ["✓ delete bees", "  ✓ approved by bob", "✓ delete tides", "  ✗ rejected by ann"]


def test_call_waits_until_all_its_approvals_are_decided() -> None:
    def request(approval_id: str) -> ApprovalRequested:
        return ApprovalRequested(approval_id=approval_id, call_id="1", name="mail", args={})

    one = ApprovalResolved(approval_id="x", decision="approve", by="ann")
    events = (RunStarted(agent="a"), ToolStarted(call_id="1", name="mail", args={}), request("x"), request("y"), one)
    assert redrawn_lines(*events)[:3] == ["? mail", "  ✓ approved by ann", "  ? needs an approval (y)"]


ANSWER = FinalAnswer(content="They **dance**.", title="Bees", sources=("https://example.org/" + "b" * 80, "A book"))
SOURCES = ["Sources:", "- https://example.org/" + "b" * 80, "- A book"]


def test_views_show_an_answer_between_its_title_and_its_sources() -> None:
    assert printed_lines(ANSWER, RunFinished())[1:-1] == ["Bees", "They dance.", *SOURCES]
    lines = plain_lines(RunStarted(agent="a"), ANSWER, RunFinished())
    assert lines[1:-1] == ["", "# Bees", "", "They **dance**.", *SOURCES, ""]


def test_views_show_title_and_sources_of_a_streamed_answer() -> None:
    message = (TextDelta(message_id="m", text="They **dance**."), TextFinished(message_id="m"))
    answer = msgspec.structs.replace(ANSWER, message_id="m")
    assert printed_lines(*message, answer, RunFinished())[1:-1] == ["Bees", "They dance.", *SOURCES]
    lines = plain_lines(RunStarted(agent="a"), *message, answer, RunFinished())
    assert lines[1:-1] == ["", "They **dance**.", "", "Title: Bees", *SOURCES, ""]
    cited = SourceCited(title="A book")
    assert printed_lines(*message, cited, answer, RunFinished())[1:-1] == [
        "They dance.",
        "@ A book",
        "Title: Bees",
        *SOURCES,
    ]


@pytest.mark.parametrize("name", RUN_NAMES)
def test_live_view_shows_each_call_and_the_end_of_each_golden_run(name: str) -> None:
    records = golden_records(name)
    screen = terminal_output(records)
    for record in records:
        if isinstance(record.event, ToolStarted):
            assert record.event.name in screen
    assert plain_text(records).splitlines()[-1][:60] in screen


def test_live_view_does_not_redraw_printed_items() -> None:
    message = (RunStarted(agent="a"), TextDelta(message_id="m", text="Starting."), TextFinished(message_id="m"))
    assert "Starting." in redrawn_lines(*message)[0]
    lines = redrawn_lines(*message, ToolStarted(call_id="1", name="sleep", args={}))
    assert [line[2:] for line in lines if line] == ["sleep", "working"]


def test_live_view_redraws_the_end_of_a_long_text() -> None:
    text = " ".join(f"w{number}" for number in range(1500))
    lines = redrawn_lines(RunStarted(agent="a"), TextDelta(message_id="m", text=text))
    assert any("w1499" in line for line in lines)
    assert "working" in lines[-1] or "working" in lines[-2]
    assert len(lines) <= 20
    assert all(len(line) <= 60 for line in lines)


def test_live_view_names_the_sub_agent_of_each_line_if_there_are_several() -> None:
    events: list[AnyEvent] = [RunStarted(agent="a")]
    for name in ("alpha", "beta"):
        events += [AgentStarted(agent_id=name, name=name), TextDelta(agent_id=name, message_id=name, text="hm " * 40)]
        events.append(ToolStarted(agent_id=name, call_id=name, name="search", args={"q": "x" * 100}))
    lines = redrawn_lines(*events, height=40)
    for name in ("alpha", "beta"):
        assert any(line.startswith(f"  {name}: hm") for line in lines)
        assert sum(f"{name}: search xxx" in line for line in lines) == 1
    assert all(line.startswith("  ") or line[:1] in "▸⠋ " or line[2:] == "working" for line in lines if line)


def test_live_view_cuts_a_note_at_the_edge_of_the_screen() -> None:
    cited = SourceCited(title="Bees in winter", url="https://example.org/bees")
    assert printed_lines(cited, *MESSAGE, width=30)[1] == "@ Bees in winter https://exam…"
