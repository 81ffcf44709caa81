"""Agno: stopped and failed runs, down to members and tools, and the turn after them."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from limelight import status
from limelight.events import ApprovalRequested, RunCancelled, RunFinished, StepStarted, ToolStarted
from limelight.sources.agno.history import TURN_CUT_OFF
from limelight.sources.history import CUT_OFF
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.agno.agno_scenarios import DANGER, HELPER, answering, calling, plain, team
from tests.sources.agno.scripts import NAMED, REMEMBER
from tests.sources.live_turn import AgentServer, ModelEndpoint, serve_agent, status_is
from tests.sources.recorded_requests import Requests, conversation_in
from tests.support.server import offer, serving
from tests.support.wait import eventually

pytestmark = pytest.mark.usefixtures("agno_models")


async def test_turn_after_a_stop_works(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(plain, REMEMBER, tmp_path) as server:
        await server.run("my name is Ada", session_id="a")
        stopped = await server.run_until(
            lambda event: isinstance(event, ToolStarted), question="wait for me", session_id="a"
        )
        assert isinstance(stopped.terminal, RunCancelled)
        after = await server.run("and now?", session_id="a")
        assert after.answer == "I see."
        await server.run("and then?", session_id="a")
    cut = [("user", "wait for me"), ("assistant", "[slow]"), ("tool", CUT_OFF), ("assistant", TURN_CUT_OFF)]
    then = [("user", "and now?"), ("assistant", "I see."), ("user", "and then?")]
    assert conversation_in(requests[-1]) == [*NAMED, *cut, *then]
    assert not dangling(requests[-1])


async def test_stopped_conversations_leave_nothing_in_memory(tmp_path: Path) -> None:
    async with Understudy(parse_scripts(REMEMBER)) as understudy:
        endpoint = ModelEndpoint(understudy.base_url, understudy.key)
        agent = offer(plain(endpoint), "agent")
        async with serving(agents=[agent], data=tmp_path) as served:
            for number in range(3):
                await AgentServer(served, endpoint).run_until(
                    lambda event: isinstance(event, ToolStarted), question="wait for me", session_id=f"s{number}"
                )
            held = [kept for kept in vars(agent.source).values() if isinstance(kept, dict | set | list)]
            assert held
            await eventually(lambda: not any(held))


def dangling(request: dict[str, Any]) -> set[str]:
    called = {call["id"] for m in request["messages"] for call in m.get("tool_calls") or ()}
    return called ^ {m["tool_call_id"] for m in request["messages"] if m["role"] == "tool"}


async def test_stop_ends_members_and_their_tools(tmp_path: Path) -> None:
    ended: list[str] = []

    async def wait() -> str:
        """Wait."""
        try:
            status("waiting")
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("wait")
            raise
        return ""

    def make(endpoint: ModelEndpoint) -> Any:
        return team(endpoint, members=[plain(endpoint, name="helper", tools=[wait])])

    async with serve_agent(make, HELPER % ("wait", "{}"), tmp_path) as server:
        run = await server.run_until(status_is("waiting"))
        assert isinstance(run.terminal, RunCancelled)
        await eventually(lambda: ended == ["wait"])


async def test_stop_ends_a_tool_that_yields_events(tmp_path: Path) -> None:
    ended: list[str] = []

    async def drip() -> AsyncIterator[str]:
        """Drip."""
        try:
            yield "one"
            status("dripping")
            await asyncio.sleep(30)
        finally:
            ended.append("drip")

    script = answering(calling("drip", "{}"))
    async with serve_agent(lambda endpoint: plain(endpoint, tools=[drip]), script, tmp_path) as server:
        await server.run_until(status_is("dripping"))
        await eventually(lambda: ended == ["drip"])


async def test_stop_ends_a_run_that_waits_for_an_approval(tmp_path: Path) -> None:
    async with serve_agent(plain, DANGER, tmp_path) as server:
        run = await server.run_until(lambda event: isinstance(event, ApprovalRequested), session_id="a")
        assert isinstance(run.terminal, RunCancelled)
        assert run.call("danger").error is not None


async def test_step_limit_ends_the_run_with_the_last_text(tmp_path: Path) -> None:
    script = (
        "- steps: [{text: First.}, {tool_calls: [{name: add, arguments: {a: 1, b: 1}}]}]\n"
        "- steps: [{text: Second.}, {tool_calls: [{name: add, arguments: {a: 2, b: 2}}]}]\n"
        "- steps: [{text: Third.}]\n- steps: [{text: Fourth.}]"
    )
    async with Understudy(parse_scripts(script)) as understudy:
        endpoint = ModelEndpoint(understudy.base_url, understudy.key)
        agent = offer(plain(endpoint), "agent", max_steps=2)
        async with serving(agents=[agent], data=tmp_path) as served:
            run = await AgentServer(served, endpoint).run(session_id="a")
            again = await AgentServer(served, endpoint).run(session_id="a")
    assert run.terminal == RunFinished(code="max_steps")
    assert run.answer == "Second."
    assert len(run.all(StepStarted)) == 2
    assert again.answer == "Fourth."  # the model saw its three replies: two of the turn that was cut off, and the end
