"""Stop, and not standing in each other's way: threads end, nothing more is asked or done, and others go on."""

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
    TextDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.sources.base import UNSTOPPABLE
from limelight.sources.running_threads import still_running_text
from tests.sources.live_turn import record_of, saying, theatre
from tests.sources.recorded_requests import recorded
from tests.sources.smolagents.smolagents_scenarios import DONE, calling, coding, leading, nap
from tests.support.wait import eventually

TALK = "- steps: [{delay: 0.02}, {text: '" + "word " * 500 + "'}]\n" + DONE


def working() -> list[str]:
    """The threads in which agents are at work."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("limelight-run_")]


async def test_stop_while_the_model_talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    async with theatre(calling(), TALK, tmp_path) as stage:
        run = await stage.play_until(lambda e: isinstance(e, ReasoningDelta))
        await eventually(lambda: not working(), 2)  # the reply would take ten seconds
        assert len(requests) == 1
    assert isinstance(run.terminal, RunCancelled)
    assert len("".join(delta.text for delta in run.all(ReasoningDelta)).split()) < 100  # of five hundred
    assert Status(text=UNSTOPPABLE) not in run.events


async def test_stop_while_the_model_writes_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    async with theatre(calling(planning_interval=3), TALK, tmp_path) as stage:
        run = await stage.play_until(lambda e: isinstance(e, PlanDelta))
        await eventually(lambda: not working(), 2)
        assert len(requests) == 1
    assert isinstance(run.terminal, RunCancelled)
    assert run.all(Plan) == []
    assert [(step.step_kind, step.error) for step in run.all(StepFinished)] == [("planning", "stopped")]


async def test_stop_while_a_managed_agent_talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = recorded(monkeypatch)
    script = (
        "- match: a long tale\n  turns: [{steps: [{delay: 0.02}, {text: '" + "word " * 500 + "'}]}]\n"
        "- turns:\n    - steps: [{tool_calls: [{name: helper, arguments: {task: a long tale}},"
        " {name: helper, arguments: {task: again a long tale}}]}]\n"
    )
    async with theatre(leading(calling, calling), script, tmp_path) as stage:
        run = await stage.play_until(lambda e: isinstance(e, ReasoningDelta))
        await eventually(lambda: not working(), 2)
        assert len(requests) <= 3
    assert isinstance(run.terminal, RunCancelled)


async def test_stop_in_a_tool_ends_the_run_at_once_and_the_thread_with_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = recorded(monkeypatch)
    script = f"- steps: [{{tool_calls: [{{name: nap, arguments: {{seconds: 1.2}}}}]}}]\n{DONE}"
    async with theatre(calling(nap), script, tmp_path) as stage:
        begun = time.monotonic()
        run = await stage.play_until(saying("napping"))
        assert time.monotonic() - begun < 1.2
        assert isinstance(run.terminal, RunCancelled)
        assert [said.text for said in run.all(Status)] == ["napping", still_running_text(["nap"])]
        assert run.call("nap").error == "stopped"
        assert working()
        await eventually(lambda: not working(), 5)
        assert len(requests) == 1  # nobody asked the model how to go on


async def test_stop_while_the_model_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that waits for its first word cannot be broken off; the run ends all the same, and then the thread."""
    requests = recorded(monkeypatch)
    async with theatre(calling(), "- steps: [{delay: 2.5}, {text: late}]\n", tmp_path) as stage:
        playing = asyncio.create_task(stage.play(session_id="s"))
        await eventually(lambda: requests)
        await asyncio.sleep(0.5)  # the head of the reply is there by now, and then comes silence
        run_id = (await stage.served.http.get("/sessions/s")).json()["run_id"]
        (await stage.served.http.post(f"/runs/{run_id}/cancel", json={})).raise_for_status()
        run = await playing
        assert isinstance(run.terminal, RunCancelled)
        assert run.one(Status).text == UNSTOPPABLE
        await eventually(lambda: not working(), 5)
    assert run.reasoning() == ""


async def test_stop_names_code_that_goes_on(tmp_path: Path) -> None:
    """Between two lines code can be left; inside of one, nobody can."""
    script = '- steps: [{text: "<code>\\nimport time\\nprint(1)\\ntime.sleep(1.5)\\n</code>"}]'
    async with theatre(coding(), script, tmp_path) as stage:
        run = await stage.play_until(lambda e: isinstance(e, ToolOutputDelta))
        await eventually(lambda: not working(), 5)
    assert run.one(Status).text == still_running_text(["python_interpreter"])


async def test_calls_of_code_are_closed_before_the_code_that_made_them(tmp_path: Path) -> None:
    script = '- steps: [{text: "<code>\\nnap(1)\\n</code>"}]'
    async with theatre(coding(nap), script, tmp_path) as stage:
        run = await stage.play_until(saying("napping"))
        await eventually(lambda: not working(), 5)
    assert run.call("nap").ended_at < run.call("python_interpreter").ended_at
    assert [said.text for said in run.all(Status)] == ["napping", still_running_text(["nap"])]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("make", [calling, coding])
async def test_a_tool_that_exits_ends_its_run_and_not_the_server(
    make: Any, kind: type[BaseException], tmp_path: Path
) -> None:
    """It was run, so its call says how it ended, and so does the code that called it."""

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
    async with theatre(make(leave), (code if make is coding else call) + last, tmp_path) as stage:
        run = await stage.play("go", session_id="a")
        assert run.one(RunFailed).message == f"{kind.__name__}: bored"
        assert {call.name for call in run.all(ToolStarted)} >= {"leave"}
        assert {call.error for call in run.all(ToolFinished)} == {f"{kind.__name__}: bored"}
        assert (await stage.play("still there?", session_id="a")).answer == 1


async def test_calls_that_have_not_begun_when_it_is_stopped_are_never_run(tmp_path: Path) -> None:
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
    async with theatre(calling(one_at_a_time, max_tool_threads=1), script, tmp_path) as stage:
        await stage.play_until(saying("begun"))
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
async def test_async_tools_are_broken_off(make: Any, tmp_path: Path) -> None:
    dream = Dream()
    dream.ended = []
    call = "- steps: [{tool_calls: [{name: dream, arguments: {seconds: 30}}]}]\n"
    code = '- steps: [{text: "<code>\\ndream(30)\\n</code>"}]\n'
    async with theatre(make(dream), code if make is coding else call, tmp_path) as stage:
        run = await stage.play_until(saying("dreaming"))
        await eventually(lambda: not working(), 2)
    assert isinstance(run.terminal, RunCancelled)
    assert dream.ended == ["awake"]
    assert Status(text=UNSTOPPABLE) not in run.events


async def test_one_agents_tool_holds_nobody_else_up(tmp_path: Path) -> None:
    """While one run sleeps in a tool that blocks, another streams to its end, and the server answers."""
    script = (
        "- match: nap\n  turns:\n"
        "    - steps: [{tool_calls: [{name: slow, arguments: {name: it, seconds: 3}}]}]\n"
        "    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: Rested.}}]}]\n"
        "- match: talk\n  turns:\n    - steps: [{delay: 0.005}, {text: " + "word " * 20 + "},"
        " {tool_calls: [{name: final_answer, arguments: {answer: Said.}}]}]\n"
    )
    async with theatre(calling(), script, tmp_path) as stage:
        napping = asyncio.Event()

        async def nap() -> None:
            async for frame in stage.served.ask("nap", format="records", session_id="a"):
                if isinstance(record_of(frame).event, ToolReady):
                    napping.set()

        sleeper = asyncio.create_task(nap())
        await asyncio.wait_for(napping.wait(), 10)
        run = await stage.play("talk", session_id="b")
        health = await stage.served.http.get("/health")
        assert not sleeper.done()
        await sleeper
    assert health.status_code == 200
    assert run.answer == "Said." and len("".join(delta.text for delta in run.all(ReasoningDelta)).split()) == 20
    assert run.all(TextDelta) == []
