"""The plain view, read as by a stranger: what is code, what it printed, who says what, what is planned."""

from limelight.cli.view.blocks import MOST_CODE
from limelight.cli.view.plain import PlainView
from limelight.cli.view.state import MOST_OUTPUT
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    FinalAnswer,
    Plan,
    Record,
    RunFinished,
    RunStarted,
    TextDelta,
    TextFinished,
    Todo,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)

START = RunStarted(agent="a", input="hi")


def shown(*events: AnyEvent) -> list[str]:
    view = PlainView()
    return [line for n, event in enumerate(events, start=1) for line in view.feed(Record(n, "run", n, event))]


def said(text: str, agent_id: str = "") -> list[AnyEvent]:
    message = {"agent_id": agent_id, "message_id": f"m{hash(text)}"}
    return [TextDelta(**message, text=text), TextFinished(**message)]


def ran(code: str, *printed: str) -> list[AnyEvent]:
    output = [ToolOutputDelta(call_id="1", text=text) for text in printed]
    started = ToolStarted(call_id="1", name="python", args={"code": code})
    return [started, *output, ToolFinished(call_id="1", duration_ms=5)]


def test_code_and_what_it_printed_are_told_apart() -> None:
    assert shown(*ran("for word in words:\n\n    print(word)", "bees\n", "\nhoney\n\n")) == [
        "▸ python",
        "  > for word in words:",
        "  >",
        "  >     print(word)",
        "✓ python  5 ms  printed:",
        "  | bees",
        "  |",
        "  | honey",
    ]


def test_a_line_of_code_stays_in_its_row() -> None:
    assert shown(*ran("print(1)\n", "\n")) == ["▸ python print(1)", "✓ python print(1)  5 ms"]


def test_of_much_code_the_beginning_is_shown_and_of_much_output_the_end() -> None:
    lines = shown(*ran("\n".join(f"x{n}" for n in range(MOST_CODE + 5)), "first\n" + "y" * MOST_OUTPUT))
    assert lines[MOST_CODE + 1] == "  > … 5 more lines"
    assert lines[MOST_CODE + 2 :] == ["✓ python  5 ms  printed:", "  | …", f"  | {'y' * MOST_OUTPUT}"]
    assert shown(*ran("x = " + "y" * 500))[1].endswith("y…")


def test_a_plan_in_markdown_is_indented_text() -> None:
    assert shown(Plan(text="## 1. Facts\n- **The** task\n\n### Plan\n1. Look.\n")) == [
        "plan:",
        "  1. Facts",
        "    - The task",
        "  Plan",
        "    1. Look.",
    ]
    assert shown(Plan(text="First look.\n")) == ["plan:", "  First look."]


def test_a_plan_of_items_is_a_list_to_tick_off() -> None:
    items = (Todo("Look", "completed"), Todo("Think", "in_progress"), Todo("Tell"))
    helper = AgentStarted(agent_id="h", name="helper")
    assert shown(Plan(items=items)) == ["plan:", "  ✓ Look", "  ▸ Think", "  · Tell"]
    assert shown(helper, Plan(agent_id="h", items=items))[1:3] == ["  plan:", "    ✓ Look"]
    assert shown(Plan(text=" \n")) == []


def test_a_helper_is_named_once_and_leaves_no_empty_lines() -> None:
    lines = shown(
        AgentStarted(agent_id="h", name="helper"), *said("\nIt is:\n\n> so\n\n", "h"), AgentFinished(agent_id="h")
    )
    assert lines == ["▸ agent helper", "  helper: It is:", "    > so", "✓ agent helper"]
    assert shown(AgentStarted(agent_id="h", name="helper"), *said("\n\n", "h")) == ["▸ agent helper"]


def test_what_the_agent_says_stands_apart_from_what_it_does() -> None:
    events = (START, *said("Let me see.\n\n"), *ran("print(1)"), *said(" \n"), *said("So.\n\nIt is 1."))
    assert shown(*events, FinalAnswer(message_id="m"), RunFinished())[:-1] == [
        "● a: hi",
        "",
        "Let me see.",
        "",
        "▸ python print(1)",
        "✓ python print(1)  5 ms",
        "",
        "So.",
        "",
        "It is 1.",
        "",
    ]


def test_an_answer_that_was_not_streamed_stands_apart_too() -> None:
    assert shown(START, FinalAnswer(content="One.\n"), RunFinished())[1:] == ["", "One.", "", "Finished in 2 ms."]
