"""Plans of the v2 dialect: complete or in pieces, as planning steps, inside of other steps, and outside of steps."""

from typing import Any

import pytest

from limelight.events import (
    AgentStarted,
    AnyEvent,
    Plan,
    PlanDelta,
    StepFinished,
    StepStarted,
    TextDelta,
    TextFinished,
    Todo,
    ToolFinished,
    ToolStarted,
)
from tests.dialects.v2.messages import complete, messages_after_input, text_events, types


def test_plan_has_header_content_and_footer_and_the_second_is_an_update() -> None:
    def planning(number: int, text: str, *, update: bool) -> list[AnyEvent]:
        return [
            StepStarted(number=number, step_kind="planning"),
            Plan(text=text, update=update),
            StepFinished(number=number, step_kind="planning", duration_ms=10),
        ]

    found = messages_after_input(*planning(1, "First.", update=False), *planning(2, "Then.", update=True))
    expected = ["planning_header", "planning_content", "planning_footer", "separator"]
    assert types(complete(found)) == [*expected, *expected]
    first, second = (message["metadata"] for message in complete(found) if "planning_header" in types([message]))
    assert (first["planning_type"], first["agent_status"]) == ("initial", "initial_planning")
    assert (second["planning_type"], second["agent_status"], second["is_update_plan"]) == (
        "update",
        "update_planning",
        True,
    )
    assert [message["content"] for message in complete(found) if "planning_content" in types([message])] == [
        "First.",
        "Then.",
    ]


def test_planning_step_may_have_two_plans() -> None:
    found = messages_after_input(
        StepStarted(number=1, step_kind="planning"),
        Plan(text="First."),
        Plan(text="Better.", update=True),
        StepFinished(number=1, step_kind="planning"),
    )
    assert types(complete(found)) == ["planning_header", *["planning_content"] * 2, "planning_footer", "separator"]
    assert [m["content"] for m in complete(found) if "planning_content" in types([m])] == ["First.", "Better."]


def plan_contents(found: list[Any]) -> list[str]:
    return [message["content"] for message in complete(found) if "planning_content" in types([message])]


def test_plan_in_pieces_is_streamed_and_completed_once() -> None:
    found = messages_after_input(
        StepStarted(number=1, step_kind="planning"),
        PlanDelta(text="1. Look.\n"),
        PlanDelta(text="2. Answer."),
        Plan(text="1. Look.\n2. Answer."),
        StepFinished(number=1, step_kind="planning"),
    )
    text = [message for message in found if "planning_content" in types([message])]
    assert [message["content"] for message in text] == ["", "1. Look.\n", "2. Answer.", "1. Look.\n2. Answer."]
    assert [message["metadata"]["is_delta"] for message in text] == [False, True, True, False]
    assert len({message["metadata"]["stream_id"] for message in text}) == 1
    assert types(complete(found)) == ["planning_header", "planning_content", "planning_footer", "separator"]


@pytest.mark.parametrize(
    ("plan", "contents"),
    [
        (Plan(text="Look first."), ["Look first."]),  # the last piece is missing
        (Plan(text="Think."), ["Look ", "Think."]),
        (Plan(text="Lo", truncated=True), ["Look "]),  # a long plan is truncated in the log
        (Plan(text=""), ["Look "]),
    ],
)
def test_complete_plan_wins_over_its_pieces(plan: Plan, contents: list[str]) -> None:
    found = messages_after_input(StepStarted(number=1, step_kind="planning"), PlanDelta(text="Look "), plan)
    assert plan_contents(found) == contents


def test_unfinished_plan_ends_before_the_error_of_its_step() -> None:
    found = messages_after_input(
        StepStarted(number=1, step_kind="planning"),
        PlanDelta(text="1. Lo"),
        StepFinished(number=1, step_kind="planning", error="the model hung up"),
        StepStarted(number=1),
    )
    expected = ["planning_header", "planning_content", "error", "planning_footer", "separator", "action_header"]
    assert types(complete(found)) == expected
    assert plan_contents(found) == ["1. Lo"]
    assert {message["metadata"]["step_type"] for message in found[:-1]} == {"planning"}


def test_plan_keeps_a_framework_step_open_and_ends_an_implicit_one() -> None:
    plan = ["planning_header", "planning_content", "planning_footer", "separator"]
    written: list[AnyEvent] = [PlanDelta(text="Look."), Plan(text="Look.")]
    own = messages_after_input(StepStarted(number=1), *written, StepFinished(number=1))
    assert types(complete(own)) == ["action_header", *plan, "action_footer", "separator"]
    implicit = messages_after_input(TextDelta(message_id="m", text="Hm."), TextFinished(message_id="m"), *written)
    assert types(complete(implicit)) == ["action_header", "action_thought", "action_footer", "separator", *plan]


def test_todo_list_ends_the_open_plan() -> None:
    items = (Todo("look"),)
    found = messages_after_input(
        StepStarted(number=1, step_kind="planning"),
        PlanDelta(text="1. Look"),
        Plan(items=items),
        PlanDelta(text="Or not", update=True),
        Plan(text="Or not", update=True),
        StepFinished(number=1, step_kind="planning"),
    )
    assert plan_contents(found) == ["1. Look", "Or not"]


def test_texts_and_calls_between_its_pieces_do_not_split_a_plan() -> None:
    found = messages_after_input(
        PlanDelta(text="1. Look"),
        ToolStarted(call_id="c", name="look", args={}),
        TextDelta(message_id="m", text="Hm."),
        PlanDelta(text=" again"),
        ToolFinished(call_id="c", result=""),
        Plan(text="1. Look again"),
    )
    assert plan_contents(found) == ["1. Look again"]


def test_plans_of_two_agents_are_separate() -> None:
    found = messages_after_input(
        AgentStarted(agent_id="h", name="helper"),
        PlanDelta(text="Mine "),
        PlanDelta(agent_id="h", text="Its "),
        PlanDelta(text="all."),
        PlanDelta(agent_id="h", text="own."),
        Plan(agent_id="h", text="Its own."),
        Plan(text="Mine all."),
    )
    plans = [m for m in complete(found) if "planning_content" in types([m])]
    assert [(m["metadata"].get("agent_name"), m["content"]) for m in plans] == [
        ("helper", "Its own."),
        (None, "Mine all."),
    ]


def test_plan_in_a_framework_step_after_an_implicit_one_keeps_it_open() -> None:
    found = messages_after_input(
        *text_events("Hm."),
        StepStarted(number=1),
        Plan(text="Look."),
        StepFinished(number=1, input_tokens=3, output_tokens=4),
    )
    assert types(complete(found))[-2:] == ["action_footer", "separator"]
    assert complete(found)[-2]["metadata"]["token_usage"]["total_tokens"] == 7
