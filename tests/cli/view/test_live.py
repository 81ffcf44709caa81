"""What the live view leaves on the screen, where the golden pictures do not reach."""

from io import StringIO

import msgspec
import pytest
from rich.console import Console

from limelight.cli.view.live import LiveView
from limelight.cli.view.markdown import Prose
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
    ToolFinished,
    ToolReady,
    ToolStarted,
)
from tests.cli.view.test_views import moving, numbered, plain


def test_a_plan_in_words_is_drawn_while_it_is_written_and_once_when_it_is_whole() -> None:
    pieces = (PlanDelta(text="1. Look\n"), PlanDelta(text="2. **An"))
    assert moving(numbered(RunStarted(agent="a"), *pieces))[:3] == ["Plan:", "  1. Look", "  2. **An"]
    whole = Plan(text="1. Look\n2. **Answer**")
    assert shown(*pieces, whole, *SAID, *DONE)[1:-1] == ["Plan:", "   1 Look", "   2 Answer", "Here it is."]
    long = shown(*pieces, Plan(text="1. Look", truncated=True), *SAID, *DONE)
    assert long[1:-1] == ["Plan:", "   1 Look", "   2 **An", "Here it is."], "of a preview the pieces had more"
    between = shown(pieces[0], SourceCited(title="A book"), pieces[1], whole, *SAID, *DONE)
    assert between[1:-1] == ["Plan:", "   1 Look", "   2 Answer", "@ A book", "Here it is."]
    cut_off = StepFinished(number=1, step_kind="planning", error="hung up")
    again = (PlanDelta(text="Other", update=True), Plan(text="Other", update=True))
    told = shown(StepStarted(number=1, step_kind="planning"), *pieces, cut_off, *again, *SAID, *DONE)
    assert told[1:-1] == ["Plan:", "   1 Look", "   2 **An", "Plan:", "  Other", "Here it is."]


@pytest.mark.parametrize(
    "text", ["Use vector<int> x and List<String>.", "<think>hm</think>", "`a<b>` & <c>", "<div>\n\na\n\n</div>"]
)
def test_angle_brackets_are_text(text: str) -> None:
    screen = StringIO()
    Console(file=screen, width=80).print(Prose(text))
    assert [c for c in screen.getvalue() if c in "<>"] == [c for c in text if c in "<>"]


def shown(*events: AnyEvent, width: int = 70) -> list[str]:
    """What is left on a screen of that width when these have happened, without empty lines."""
    screen = StringIO()
    view = LiveView(Console(file=screen, force_terminal=False, width=width, height=40), moving=False)
    for record in numbered(RunStarted(agent="a"), *events):
        view.feed(record)
    return [line.rstrip() for line in screen.getvalue().splitlines() if line.strip()]


SAID = (TextDelta(message_id="m", text="Here it is."), TextFinished(message_id="m"))
DONE = (FinalAnswer(content="Here it is.", message_id="m"), RunFinished())


def test_the_last_state_of_a_plan_stands_above_the_answer() -> None:
    first = Plan(items=(Todo("Look", "in_progress"), Todo("Answer")))
    last = Plan(items=(Todo("Look", "completed"), Todo("Answer", "in_progress")), update=True)
    helped = Plan(agent_id="h", items=(Todo("Search", "completed"),))
    call = (ToolStarted(call_id="1", name="ls", args={}), ToolFinished(call_id="1"))
    lines = shown(AgentStarted(agent_id="h", name="helper"), first, helped, *call, last, *SAID, *DONE)
    at = lines.index("Plan:")
    assert lines[at : at + 3] == ["Plan:", "  ✓ Look", "  ▸ Answer"]
    assert lines[at + 3 : at + 6] == ["  Plan of helper:", "    ✓ Search", "Here it is."]
    assert "Plan:" in shown(first, RunCancelled()), "also if nothing was said"


def test_plans_in_words_are_drawn_where_they_were_made() -> None:
    events = (Plan(text="## Steps\n1. **Look**"), *SAID, Plan(text="Only answer", update=True), *DONE)
    assert shown(*events)[1:-1] == ["Plan:", "  Steps", "   1 Look", "Here it is.", "Plan:", "  Only answer"]


def test_what_helpers_say_is_drawn_as_markdown() -> None:
    said = TextDelta(agent_id="h", message_id="x", text="# Report\n\nThey **dance**, `a` lot.")
    lines = shown(AgentStarted(agent_id="h", name="helper"), said, AgentFinished(agent_id="h"), *SAID, *DONE)
    assert lines[2:5] == ["  helper:", "    Report", "    They dance, a lot."]


def test_what_a_tool_asks_itself_stands_below_its_call() -> None:
    events: list[AnyEvent] = []
    for name in ("bees", "tides"):
        events.append(ToolStarted(call_id=name, name="delete", args={"name": name}))
        events.append(ToolReady(call_id=name, args={"name": name}))
    for name in ("bees", "tides"):
        events.append(ApprovalRequested(approval_id=f"apr-{name}", name="delete", args={"name": name}))
    events.append(ApprovalResolved(approval_id="apr-tides", decision="reject", by="ann"))
    events.append(ApprovalResolved(approval_id="apr-bees", decision="approve", by="bob"))
    events += [ToolFinished(call_id="bees"), ToolFinished(call_id="tides")]
    lines = shown(*events)[1:]
    assert lines == ["✓ delete bees", "  ✓ approved by bob", "✓ delete tides", "  ✗ rejected by ann"]


def test_a_call_waits_until_all_its_questions_are_answered() -> None:
    def asked(approval_id: str) -> ApprovalRequested:
        return ApprovalRequested(approval_id=approval_id, call_id="1", name="mail", args={})

    one = ApprovalResolved(approval_id="x", decision="approve", by="ann")
    events = (RunStarted(agent="a"), ToolStarted(call_id="1", name="mail", args={}), asked("x"), asked("y"), one)
    assert moving(numbered(*events))[:3] == ["? mail", "  ✓ approved by ann", "  ? needs an approval (y)"]


TOLD = FinalAnswer(content="They **dance**.", title="Bees", sources=("https://example.org/" + "b" * 80, "A book"))
SOURCES = ["Sources:", "- https://example.org/" + "b" * 80, "- A book"]


def test_an_answer_stands_between_its_title_and_its_sources() -> None:
    assert shown(TOLD, RunFinished())[1:-1] == ["Bees", "They dance.", *SOURCES]
    lines = plain(numbered(RunStarted(agent="a"), TOLD, RunFinished())).splitlines()
    assert lines[1:-1] == ["", "# Bees", "", "They **dance**.", *SOURCES, ""]


def test_a_streamed_answer_has_its_title_and_sources_too() -> None:
    said = (TextDelta(message_id="m", text="They **dance**."), TextFinished(message_id="m"))
    told = msgspec.structs.replace(TOLD, message_id="m")
    assert shown(*said, told, RunFinished())[1:-1] == ["Bees", "They dance.", *SOURCES]
    lines = plain(numbered(RunStarted(agent="a"), *said, told, RunFinished())).splitlines()
    assert lines[1:-1] == ["", "They **dance**.", "", "Title: Bees", *SOURCES, ""]
    cited = SourceCited(title="A book")
    assert shown(*said, cited, told, RunFinished())[1:-1] == ["They dance.", "@ A book", "Title: Bees", *SOURCES]
