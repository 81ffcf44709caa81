"""smolagents: Stop ends threads, and nothing more is requested or run; agents do not block each other."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from smolagents import Tool, tool

from limelight import status
from limelight.events import (
    Plan,
    PlanDelta,
    ReasoningDelta,
    RunCancelled,
    RunFailed,
    Status,
    StepFinished,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from limelight.sources.base import UNSTOPPABLE
from limelight.sources.leftover_threads import still_running_text
from tests.sources.live_turn import serve_agent, status_is
from tests.sources.recorded_requests import Requests
from tests.sources.smolagents.smolagents_scenarios import DONE, calling, coding, leading, nap, working
from tests.support.wait import eventually

TALK = "- steps: [{delay: 0.02}, {text: '" + "word " * 500 + "'}]\n" + DONE


async def test_stop_during_a_reply_ends_the_run(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(calling(), TALK, tmp_path) as server:
        run = await server.run_until(lambda e: isinstance(e, ReasoningDelta))
        await eventually(lambda: not working(), 2)  # the reply would take ten seconds
        assert len(requests) == 1
    assert isinstance(run.terminal, RunCancelled)
    assert len("".join(delta.text for delta in run.all(ReasoningDelta)).split()) < 100  # of five hundred
    assert Status(text=UNSTOPPABLE) not in run.events


async def test_stop_during_a_plan_ends_the_run(tmp_path: Path, requests: Requests) -> None:
    async with serve_agent(calling(planning_interval=3), TALK, tmp_path) as server:
        run = await server.run_until(lambda e: isinstance(e, PlanDelta))
        await eventually(lambda: not working(), 2)
        assert len(requests) == 1
    assert isinstance(run.terminal, RunCancelled)
    assert run.all(Plan) == []
    assert [(step.step_kind, step.error) for step in run.all(StepFinished)] == [("planning", "stopped")]


async def test_stop_during_a_reply_of_a_managed_agent_ends_both_agents(tmp_path: Path, requests: Requests) -> None:
    script = (
        "- match: a long tale\n  turns: [{steps: [{delay: 0.02}, {text: '" + "word " * 500 + "'}]}]\n"
        "- turns:\n    - steps: [{tool_calls: [{name: helper, arguments: {task: a long tale}},"
        " {name: helper, arguments: {task: again a long tale}}]}]\n"
    )
    async with serve_agent(leading(calling, calling), script, tmp_path) as server:
        run = await server.run_until(lambda e: isinstance(e, ReasoningDelta))
        await eventually(lambda: not working(), 2)
        assert len(requests) <= 3
    assert isinstance(run.terminal, RunCancelled)


async def test_stop_in_a_tool_ends_the_run_at_once_and_the_thread_with_the_tool(
    tmp_path: Path, requests: Requests
) -> None:
    script = f"- steps: [{{tool_calls: [{{name: nap, arguments: {{seconds: 3}}}}]}}]\n{DONE}"
    async with serve_agent(calling(nap), script, tmp_path) as server:
        begun = time.monotonic()
        run = await server.run_until(status_is("napping"))
        assert time.monotonic() - begun < 3
        assert isinstance(run.terminal, RunCancelled)
        assert [said.text for said in run.all(Status)] == ["napping", still_running_text(["nap"])]
        assert run.call("nap").error == "stopped"
        assert working()
        await eventually(lambda: not working(), 10)
        assert len(requests) == 1  # no further request to the model


async def test_stop_before_the_first_token_ends_the_run(tmp_path: Path, requests: Requests) -> None:
    """A request that waits for its first token cannot be interrupted; the run ends at once, and the thread later."""
    async with serve_agent(calling(), "- steps: [{delay: 2.5}, {text: late}]\n", tmp_path) as server:
        playing = asyncio.create_task(server.run(session_id="s"))
        await eventually(lambda: requests)
        await asyncio.sleep(0.5)  # the head of the reply is there by now, and then comes silence
        run_id = (await server.served.http.get("/sessions/s")).json()["run_id"]
        (await server.served.http.post(f"/runs/{run_id}/cancel", json={})).raise_for_status()
        run = await playing
        assert isinstance(run.terminal, RunCancelled)
        assert run.one(Status).text == UNSTOPPABLE
        await eventually(lambda: not working(), 5)
    assert run.reasoning() == ""


async def test_stop_names_code_that_is_still_running(tmp_path: Path) -> None:
    """Code can be stopped between two lines, but not inside of one."""
    script = '- steps: [{text: "<code>\\nimport time\\nprint(1)\\ntime.sleep(1.5)\\n</code>"}]'
    async with serve_agent(coding(), script, tmp_path) as server:
        run = await server.run_until(lambda e: isinstance(e, ToolOutputDelta))
        await eventually(lambda: not working(), 5)
    assert run.one(Status).text == still_running_text(["python_interpreter"])


async def test_stop_closes_calls_of_code_before_the_code(tmp_path: Path) -> None:
    script = '- steps: [{text: "<code>\\nnap(1)\\n</code>"}]'
    async with serve_agent(coding(nap), script, tmp_path) as server:
        run = await server.run_until(status_is("napping"))
        await eventually(lambda: not working(), 5)
    assert run.call("nap").ended_at < run.call("python_interpreter").ended_at
    assert [said.text for said in run.all(Status)] == ["napping", still_running_text(["nap"])]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("make", [calling, coding])
async def test_tool_that_exits_ends_its_run_and_not_the_server(
    make: Any, kind: type[BaseException], tmp_path: Path
) -> None:
    """Its call ends with the error, and so does the code that made the call."""

    @tool
    def leave(why: str) -> str:
        """Leave.

        Args:
            why: For what reason.
        """
        raise kind(why)

    code = "- match: go\n  turns: [{steps: [{text: \"<code>\\nleave('bored')\\n</code>\"}]}]\n"
    call = "- match: go\n  turns: [{steps: [{tool_calls: [{name: leave, arguments: {why: bored}}]}]}]\n"
    last = '- match: still\n  turns: [{steps: [{text: "<code>\\nfinal_answer(1)\\n</code>"}]}]\n'
    if make is calling:
        last = "- match: still\n  turns: [{steps: [{tool_calls: [{name: final_answer, arguments: {answer: 1}}]}]}]\n"
    async with serve_agent(make(leave), (code if make is coding else call) + last, tmp_path) as server:
        run = await server.run("go", session_id="a")
        assert run.one(RunFailed).message == f"{kind.__name__}: bored"
        assert {call.name for call in run.all(ToolStarted)} >= {"leave"}
        assert {call.error for call in run.all(ToolFinished)} == {f"{kind.__name__}: bored"}
        assert (await server.run("still there?", session_id="a")).answer == 1


async def test_calls_that_have_not_started_at_stop_are_never_run(tmp_path: Path) -> None:
    ran: list[str] = []
    let_go = threading.Event()

    @tool
    def one_at_a_time(name: str) -> str:
        """Wait until the run is over.

        Args:
            name: Of whom.
        """
        ran.append(name)
        status("begun")
        let_go.wait(30)
        return name

    calls = ", ".join(f"{{name: one_at_a_time, arguments: {{name: n{n}}}}}" for n in range(6))
    script = f"- steps: [{{tool_calls: [{calls}]}}]\n{DONE}"
    async with serve_agent(calling(one_at_a_time, max_tool_threads=1), script, tmp_path) as server:
        await server.run_until(status_is("begun"))
        let_go.set()
        await eventually(lambda: not working(), 5)
    assert ran == ["n0"]


class Dream(Tool):
    """An async tool."""

    name = "dream"
    description = "Sleep without blocking."
    inputs = {"seconds": {"type": "number", "description": "How long."}}  # noqa: RUF012  (as smolagents has it)
    output_type = "string"
    ended: list[str]

    async def forward(self, seconds: float) -> str:
        try:
            status("dreaming")
            await asyncio.sleep(seconds)
        finally:
            self.ended.append("awake")
        return "rested"


@pytest.mark.parametrize("make", [calling, coding])
async def test_stop_cancels_async_tools(make: Any, tmp_path: Path) -> None:
    dream = Dream()
    dream.ended = []
    call = "- steps: [{tool_calls: [{name: dream, arguments: {seconds: 30}}]}]\n"
    code = '- steps: [{text: "<code>\\ndream(30)\\n</code>"}]\n'
    async with serve_agent(make(dream), code if make is coding else call, tmp_path) as server:
        run = await server.run_until(status_is("dreaming"))
        await eventually(lambda: not working(), 2)
    assert isinstance(run.terminal, RunCancelled)
    assert dream.ended == ["awake"]
    assert Status(text=UNSTOPPABLE) not in run.events
