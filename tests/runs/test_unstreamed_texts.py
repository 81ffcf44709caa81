"""Agents that do not stream: everything is said, and whole."""

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
    RunFinished,
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
from tests.support.agents import worker
from tests.support.server import collect, offer, serving


def fed(*events: AnyEvent) -> list[AnyEvent]:
    whole = UnstreamedTexts()
    return [said for event in events for said in whole.feed(event)]


def delta(text: str, message_id: str = "m", agent_id: str = "") -> TextDelta:
    return TextDelta(message_id=message_id, text=text, agent_id=agent_id)


def test_a_message_is_said_when_it_is_finished() -> None:
    finished = TextFinished(message_id="m")
    assert fed(delta("a"), delta("b")) == []
    assert fed(delta("a"), delta("b"), finished) == [delta("ab"), finished]


def test_messages_of_several_agents_and_thoughts_are_told_apart() -> None:
    thought = ReasoningDelta(message_id="m", text="hm")
    events = fed(
        delta("a"), thought, delta("x", "n", "helper"), delta("b"), ReasoningFinished(message_id="m"),
        TextFinished(message_id="n", agent_id="helper"), TextFinished(message_id="m"),
    )  # fmt: skip
    assert events == [
        thought, ReasoningFinished(message_id="m"), delta("x", "n", "helper"),
        TextFinished(message_id="n", agent_id="helper"), delta("ab"), TextFinished(message_id="m"),
    ]  # fmt: skip


def test_pieces_of_arguments_are_left_out_and_output_stays_live() -> None:
    output = ToolOutputDelta(call_id="c", text="line\n")
    ready = ToolReady(call_id="c", args={"a": 1})
    assert fed(ToolArgsDelta(call_id="c", text='{"a"'), ready, output) == [ready, output]


def test_what_is_open_when_somebody_ends_is_said_before() -> None:
    ended = AgentFinished(agent_id="helper")
    assert fed(delta("x", "n", "helper"), ended) == [delta("x", "n", "helper"), ended]
    assert fed(delta("a"), RunCancelled()) == [delta("a"), RunCancelled()]


def test_agents_that_end_with_a_call_or_with_their_parent_are_heard_before() -> None:
    outer = AgentStarted(agent_id="outer", name="outer", call_id="c")
    inner = AgentStarted(agent_id="inner", name="inner", parent_id="outer")
    text, ended = delta("x", "n", "inner"), ToolFinished(call_id="c", result="")
    assert fed(outer, inner, text, ended) == [outer, inner, text, ended]
    assert fed(outer, inner, text, AgentFinished(agent_id="outer"))[2:] == [text, AgentFinished(agent_id="outer")]


def test_a_text_is_said_before_the_answer_that_repeats_it() -> None:
    answer = FinalAnswer(content="ab", message_id="m")
    assert fed(delta("a"), delta("b"), answer, RunFinished()) == [delta("ab"), answer, RunFinished()]


async def test_an_agent_can_be_set_not_to_stream(tmp_path: Path) -> None:
    async def agent(messages: list[Message], ctx: Context) -> Any:
        for word in ("one ", "two ", "three"):
            yield word

    quiet = offer(agent, "quiet", enable_streaming=False)
    async with serving(agents=[quiet], data=tmp_path) as served:
        frames = await collect(served.ask("hi", format="records"))
    events = [frame.data["event"] for frame in frames]
    assert [e["text"] for e in events if e["kind"] == "text_delta"] == ["one two three"]
    assert events[0]["enable_streaming"] is False


async def test_what_such_an_agent_said_before_it_failed_is_there(tmp_path: Path) -> None:
    async def agent(messages: list[Message], ctx: Context) -> Any:
        yield "half a "
        yield "sentence"
        raise ValueError("no more")

    async with serving(agents=[offer(agent, "quiet", enable_streaming=False)], data=tmp_path) as served:
        frames = await collect(served.ask("hi", format="records"))
    kinds = [frame.data["event"]["kind"] for frame in frames]
    assert kinds == ["run_started", "text_delta", "text_finished", "run_failed"]
    assert frames[1].data["event"]["text"] == "half a sentence"


async def test_a_tool_has_a_status_text_of_its_own(tmp_path: Path) -> None:
    named = offer(worker, "named", status={"search": "Looking it up"})
    async with serving(agents=[named], data=tmp_path) as served:
        frames = await collect(served.ask("hi", format="records"))
    events = [frame.data["event"] for frame in frames]
    at = next(n for n, e in enumerate(events) if e["kind"] == "tool_started" and e["name"] == "search")
    assert events[at + 1] == {"kind": "status", "text": "Looking it up"}


def test_what_was_said_before_a_question_is_said_before_it() -> None:
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
async def test_a_question_comes_after_the_text_that_leads_to_it(agent: Any, tmp_path: Path) -> None:
    said: list[str] = []
    async with serving(agents=[offer(agent, enable_streaming=False)], data=tmp_path) as served:
        async for frame in served.ask("go"):
            if frame.type == "token":
                said.append(frame.data["data"]["content"])
            if frame.type == "approval" and frame.data["data"]["state"] == "requested":
                said.append("?")
                run_id = (await served.http.get("/sessions")).json()["sessions"][0]["run_id"]
                url = f"/runs/{run_id}/approvals/{frame.data['data']['approval_id']}"
                await served.http.post(url, json={"decision": "approve"})
    assert said == ["I would like to delete it.", "?", " Thank you."]


def test_pieces_of_a_plan_are_left_out() -> None:
    assert fed(PlanDelta(text="Lo"), PlanDelta(text="ok."), Plan(text="Look.")) == [Plan(text="Look.")]
