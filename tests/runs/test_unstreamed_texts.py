"""Agents that do not stream: their texts are complete, and in order with other events."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    FinalAnswer,
    Plan,
    PlanDelta,
    ReasoningDelta,
    ReasoningFinished,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    TextDelta,
    TextFinished,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
)
from limelight.messages import Message
from limelight.runs.unstreamed_texts import UnstreamedTexts
from limelight.sources.base import Context
from tests.runs.execution import execution
from tests.support.server import offer, serving


def fed(*events: AnyEvent) -> list[AnyEvent]:
    texts = UnstreamedTexts()
    return [shown for event in events for shown in texts.feed(event)]


def delta(text: str, message_id: str = "m", agent_id: str = "") -> TextDelta:
    return TextDelta(message_id=message_id, text=text, agent_id=agent_id)


def test_text_is_released_when_it_is_finished() -> None:
    finished = TextFinished(message_id="m")
    assert fed(delta("a"), delta("b")) == []
    assert fed(delta("a"), delta("b"), finished) == [delta("ab"), finished]


def test_texts_of_several_agents_and_reasoning_are_separate() -> None:
    thought = ReasoningDelta(message_id="m", text="hm")
    events = fed(
        delta("a"), thought, delta("x", "n", "helper"), delta("b"), ReasoningFinished(message_id="m"),
        TextFinished(message_id="n", agent_id="helper"), TextFinished(message_id="m"),
    )  # fmt: skip
    assert events == [
        thought, ReasoningFinished(message_id="m"), delta("x", "n", "helper"),
        TextFinished(message_id="n", agent_id="helper"), delta("ab"), TextFinished(message_id="m"),
    ]  # fmt: skip


def test_deltas_of_arguments_are_dropped_and_output_is_not_held() -> None:
    output = ToolOutputDelta(call_id="c", text="line\n")
    ready = ToolReady(call_id="c", args={"a": 1})
    assert fed(ToolArgsDelta(call_id="c", text='{"a"'), ready, output) == [ready, output]


def test_open_text_is_released_before_the_end_of_its_agent_or_run() -> None:
    ended = AgentFinished(agent_id="helper")
    assert fed(delta("x", "n", "helper"), ended) == [delta("x", "n", "helper"), ended]
    assert fed(delta("a"), RunCancelled()) == [delta("a"), RunCancelled()]


def test_open_text_is_released_before_the_end_of_a_call_or_parent_that_ends_its_agent() -> None:
    outer = AgentStarted(agent_id="outer", name="outer", call_id="c")
    inner = AgentStarted(agent_id="inner", name="inner", parent_id="outer")
    text, ended = delta("x", "n", "inner"), ToolFinished(call_id="c", result="")
    assert fed(outer, inner, text, ended) == [outer, inner, text, ended]
    assert fed(outer, inner, text, AgentFinished(agent_id="outer"))[2:] == [text, AgentFinished(agent_id="outer")]


def test_open_text_is_released_before_the_answer_that_repeats_it() -> None:
    answer = FinalAnswer(content="ab", message_id="m")
    assert fed(delta("a"), delta("b"), answer, RunFinished()) == [delta("ab"), answer, RunFinished()]


async def test_texts_that_are_held_are_committed_before_the_run_fails() -> None:
    run = execution(streams=False)
    failed = RunFailed(code="agent_error", message="no more")
    run.emit(RunStarted(agent="a"))
    run.emit(delta("half a "))
    run.emit(delta("sentence"))
    run.seal(failed)
    events = [record.event for record in run.take().records]
    assert events == [RunStarted(agent="a"), delta("half a sentence"), TextFinished(message_id="m"), failed]


def test_texts_of_an_agent_and_its_parents_are_released_before_its_approval_request() -> None:
    helper = AgentStarted(agent_id="helper", name="helper", call_id="c")
    asked = ApprovalRequested(agent_id="helper", approval_id="p", name="rm", args={})
    other = AgentStarted(agent_id="other", name="other", call_id="d")
    finished = TextFinished(message_id="m")
    events = fed(
        helper, other, delta("I ", "m"), delta("will ask.", "n", "helper"), delta("busy", "o", "other"), asked,
        delta("said ", "m"), delta("so.", "m"), finished,
    )  # fmt: skip
    assert events == [helper, other, delta("I "), delta("will ask.", "n", "helper"), asked, delta("said so."), finished]


async def polite(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    yield "I would like to "
    yield "delete it."
    await ctx.approve("delete", {})
    yield " Thank you."


def polite_thread(messages: list[Message], ctx: Context) -> Iterator[str]:
    yield "I would like to "
    yield "delete it."
    ctx.approve_blocking("delete", {})
    yield " Thank you."


@pytest.mark.parametrize("agent", [polite, polite_thread])
async def test_approval_request_of_a_served_agent_comes_after_its_text(agent: Any, tmp_path: Path) -> None:
    shown: list[str] = []
    async with serving(agents=[offer(agent, enable_streaming=False)], data=tmp_path) as served:
        async for frame in served.ask("go"):
            if frame.type == "token":
                shown.append(frame.data["data"]["content"])
            if frame.type == "approval" and frame.data["data"]["state"] == "requested":
                shown.append("?")
                run_id = (await served.http.get("/sessions")).json()["sessions"][0]["run_id"]
                url = f"/runs/{run_id}/approvals/{frame.data['data']['approval_id']}"
                await served.http.post(url, json={"decision": "approve"})
    assert shown == ["I would like to delete it.", "?", " Thank you."]


def test_deltas_of_a_plan_are_dropped() -> None:
    assert fed(PlanDelta(text="Lo"), PlanDelta(text="ok."), Plan(text="Look.")) == [Plan(text="Look.")]
