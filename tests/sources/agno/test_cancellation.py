"""Agno: what is stopped, fails or reaches its limit ends down to members and tools, and the next turn works."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Agno's own types are partly unknown.

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from limelight import status
from limelight.events import (
    ApprovalRequested,
    RunCancelled,
    RunFailed,
    RunFinished,
    StepStarted,
    ToolStarted,
)
from limelight.sources.agno.history import TURN_CUT_OFF
from limelight.sources.history import CUT_OFF
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.agno.agno_scenarios import (
    DANGER,
    HELPER,
    answering,
    calling,
    plain,
    team,
)
from tests.sources.agno.scripts import NAMED, REMEMBER
from tests.sources.live_turn import Stage, Theatre, saying, theatre
from tests.sources.recorded_requests import recorded, said
from tests.support.server import offer, serving
from tests.support.wait import eventually

pytestmark = pytest.mark.usefixtures("agno_models")


async def test_after_stop_the_next_turn_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    async with theatre(plain, REMEMBER, tmp_path) as stage:
        await stage.play("my name is Ada", session_id="a")
        stopped = await stage.play_until(
            lambda event: isinstance(event, ToolStarted), question="wait for me", session_id="a"
        )
        assert isinstance(stopped.terminal, RunCancelled)
        after = await stage.play("and now?", session_id="a")
        assert after.answer == "I see."
        await stage.play("and then?", session_id="a")
    cut = [("user", "wait for me"), ("assistant", "[slow]"), ("tool", CUT_OFF), ("assistant", TURN_CUT_OFF)]
    then = [("user", "and now?"), ("assistant", "I see."), ("user", "and then?")]
    assert said(requests[-1]) == [*NAMED, *cut, *then]
    assert not dangling(requests[-1])


async def test_nothing_is_kept_of_conversations_that_were_stopped_and_never_go_on(tmp_path: Path) -> None:
    async with Understudy(parse_scripts(REMEMBER)) as understudy:
        stage = Stage(understudy.base_url, understudy.key)
        agent = offer(plain(stage), "agent")
        async with serving(agents=[agent], data=tmp_path) as served:
            for number in range(3):
                await Theatre(served, stage).play_until(
                    lambda event: isinstance(event, ToolStarted), question="wait for me", session_id=f"s{number}"
                )
            held = [kept for kept in vars(agent.source).values() if isinstance(kept, dict | set | list)]
            assert held
            await eventually(lambda: not any(held))


async def test_after_an_error_of_the_model_the_next_turn_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    async with theatre(plain, REMEMBER, tmp_path) as stage:
        broken = await stage.play("break", session_id="a")
        assert isinstance(broken.terminal, RunFailed) and "out of order" in broken.terminal.message
        assert (await stage.play("and now?", session_id="a")).answer == "I see."
    assert not dangling(requests[-1])


def dangling(request: dict[str, Any]) -> set[str]:
    called = {call["id"] for m in request["messages"] for call in m.get("tool_calls") or ()}
    return called ^ {m["tool_call_id"] for m in request["messages"] if m["role"] == "tool"}


async def test_stop_ends_the_members_and_their_tools(tmp_path: Path) -> None:
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

    def make(stage: Stage) -> Any:
        return team(stage, members=[plain(stage, name="helper", tools=[wait])])

    async with theatre(make, HELPER % ("wait", "{}"), tmp_path) as stage:
        run = await stage.play_until(saying("waiting"))
        assert isinstance(run.terminal, RunCancelled)
        await eventually(lambda: ended == ["wait"])


async def test_stop_ends_a_tool_that_sends_events(tmp_path: Path) -> None:
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
    async with theatre(lambda stage: plain(stage, tools=[drip]), script, tmp_path) as stage:
        await stage.play_until(saying("dripping"))
        await eventually(lambda: ended == ["drip"])


async def test_stop_while_a_person_thinks(tmp_path: Path) -> None:
    async with theatre(plain, DANGER, tmp_path) as stage:
        run = await stage.play_until(lambda event: isinstance(event, ApprovalRequested), session_id="a")
        assert isinstance(run.terminal, RunCancelled)
        assert run.call("danger").error is not None


async def test_the_limit_of_steps_keeps_what_was_said(tmp_path: Path) -> None:
    script = (
        "- steps: [{text: First.}, {tool_calls: [{name: add, arguments: {a: 1, b: 1}}]}]\n"
        "- steps: [{text: Second.}, {tool_calls: [{name: add, arguments: {a: 2, b: 2}}]}]\n"
        "- steps: [{text: Third.}]\n- steps: [{text: Fourth.}]"
    )
    async with Understudy(parse_scripts(script)) as understudy:
        stage = Stage(understudy.base_url, understudy.key)
        agent = offer(plain(stage), "agent", max_steps=2)
        async with serving(agents=[agent], data=tmp_path) as served:
            run = await Theatre(served, stage).play(session_id="a")
            again = await Theatre(served, stage).play(session_id="a")
    assert run.terminal == RunFinished(code="max_steps")
    assert run.answer == "Second."
    assert len(run.all(StepStarted)) == 2
    assert again.answer == "Fourth."  # the model saw its three replies: two of the turn that was cut off, and the end
