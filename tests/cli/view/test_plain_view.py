"""The plain view: golden files, and how code, output, plans and messages are distinguished."""

import os
from pathlib import Path

import pytest

from limelight.cli.view.render import MAX_CODE_LINES
from limelight.cli.view.run_state import MAX_OUTPUT
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    FinalAnswer,
    Plan,
    RunFinished,
    RunStarted,
    TextDelta,
    TextFinished,
    Todo,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from tests.cli.view.screens import RUN_NAMES, golden_records, plain_lines, plain_text

GOLDEN = Path(__file__).parent / "golden"
START = RunStarted(agent="a", input="hi")


@pytest.mark.parametrize("name", RUN_NAMES)
def test_plain_view_of_each_golden_run_equals_its_file(name: str) -> None:
    found, path = plain_text(golden_records(name)), GOLDEN / f"{name}.txt"
    if os.environ.get("LIMELIGHT_GOLDEN") == "write":
        path.write_text(found)
    assert found == path.read_text()


def test_each_golden_file_belongs_to_a_golden_run() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(RUN_NAMES)


def message(text: str, agent_id: str = "") -> list[AnyEvent]:
    ids = {"agent_id": agent_id, "message_id": f"m{hash(text)}"}
    return [TextDelta(**ids, text=text), TextFinished(**ids)]


def python_call(code: str, *output: str) -> list[AnyEvent]:
    deltas = [ToolOutputDelta(call_id="1", text=text) for text in output]
    started = ToolStarted(call_id="1", name="python", args={"code": code})
    return [started, *deltas, ToolFinished(call_id="1", duration_ms=5)]


def test_plain_view_marks_code_and_output() -> None:
    assert plain_lines(*python_call("for word in words:\n\n    print(word)", "bees\n", "\nhoney\n\n")) == [
        "▸ python",
        "  > for word in words:",
        "  >",
        "  >     print(word)",
        "✓ python  5 ms  printed:",
        "  | bees",
        "  |",
        "  | honey",
    ]


def test_plain_view_shows_one_line_of_code_in_the_line_of_its_call() -> None:
    assert plain_lines(*python_call("print(1)\n", "\n")) == ["▸ python print(1)", "✓ python print(1)  5 ms"]


def test_plain_view_shows_the_start_of_long_code_and_the_end_of_long_output() -> None:
    lines = plain_lines(
        *python_call("\n".join(f"x{n}" for n in range(MAX_CODE_LINES + 5)), "first\n" + "y" * MAX_OUTPUT)
    )
    assert lines[MAX_CODE_LINES + 1] == "  > … 5 more lines"
    assert lines[MAX_CODE_LINES + 2 :] == ["✓ python  5 ms  printed:", "  | …", f"  | {'y' * MAX_OUTPUT}"]
    assert plain_lines(*python_call("x = " + "y" * 500))[1].endswith("y…")


def test_plain_view_distinguishes_parallel_sub_agents_of_one_name() -> None:
    ids = ("h1", "h2")
    lines = plain_lines(
        *(AgentStarted(agent_id=id_, name="helper") for id_ in ids),
        *(event for id_ in ids for event in message(f"I am {id_}.", id_)),
        *(AgentFinished(agent_id=id_) for id_ in ids),
    )
    assert lines == [
        "▸ agent helper",
        "▸ agent helper 2",
        "  helper: I am h1.",
        "  helper 2: I am h2.",
        "✓ agent helper",
        "✓ agent helper 2",
    ]


def test_plain_view_shows_a_markdown_plan_as_indented_text() -> None:
    assert plain_lines(Plan(text="## 1. Facts\n- **The** task\n\n### Plan\n1. Look.\n")) == [
        "plan:",
        "  1. Facts",
        "    - The task",
        "  Plan",
        "    1. Look.",
    ]
    assert plain_lines(Plan(text="First look.\n")) == ["plan:", "  First look."]


def test_plain_view_shows_todos_as_a_list_with_marks() -> None:
    items = (Todo("Look", "completed"), Todo("Think", "in_progress"), Todo("Tell"))
    sub_agent = AgentStarted(agent_id="h", name="helper")
    assert plain_lines(Plan(items=items)) == ["plan:", "  ✓ Look", "  ▸ Think", "  · Tell"]
    assert plain_lines(sub_agent, Plan(agent_id="h", items=items))[1:3] == ["  plan:", "    ✓ Look"]
    assert plain_lines(Plan(text=" \n")) == []


def test_plain_view_names_a_sub_agent_once_and_drops_empty_lines() -> None:
    lines = plain_lines(
        AgentStarted(agent_id="h", name="helper"), *message("\nIt is:\n\n> so\n\n", "h"), AgentFinished(agent_id="h")
    )
    assert lines == ["▸ agent helper", "  helper: It is:", "    > so", "✓ agent helper"]
    assert plain_lines(AgentStarted(agent_id="h", name="helper"), *message("\n\n", "h")) == ["▸ agent helper"]


def test_plain_view_separates_text_of_the_agent_by_empty_lines() -> None:
    events = (
        START,
        *message("Let me see.\n\n"),
        *python_call("print(1)"),
        *message(" \n"),
        *message("So.\n\nIt is 1."),
    )
    assert plain_lines(*events, FinalAnswer(message_id="m"), RunFinished())[:-1] == [
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


def test_plain_view_separates_an_answer_that_was_not_streamed() -> None:
    assert plain_lines(START, FinalAnswer(content="One.\n"), RunFinished())[1:] == ["", "One.", "", "Finished in 2 ms."]
