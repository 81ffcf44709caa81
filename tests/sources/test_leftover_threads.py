"""Tools that still run in threads after Stop are named in a status; cancelled ones are not."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# The frameworks' own types are partly unknown.

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from limelight import status
from limelight.events import RunCancelled, RunFailed, Status
from limelight.messages import Message
from limelight.sources.base import CURRENT, UNSTOPPABLE, Context
from limelight.sources.leftover_threads import report_running_tools, still_running_text
from tests.sources.agno import agno_scenarios
from tests.sources.fake_turn import FakeContext
from tests.sources.langgraph import langgraph_scenarios
from tests.sources.langgraph.graphs import one_node
from tests.sources.live_turn import ModelEndpoint, run_agent, status_is
from tests.sources.smolagents import smolagents_scenarios
from tests.support.wait import eventually

pytestmark = pytest.mark.usefixtures("agno_models")

NAP = "The tool nap cannot be interrupted and is still running; what it returns will be dropped."
FUNCTION = "The function nap cannot be interrupted and is still running; what it returns will be dropped."
NAPPING = "{name: nap, arguments: {seconds: 1}}"
SLOW = "{name: slow, arguments: {name: x, seconds: 30}}"


def calls(*made: str) -> str:
    return f"- steps: [{{tool_calls: [{', '.join(made)}]}}]"


BOTH = {
    "langgraph": (langgraph_scenarios.plain, calls(NAPPING, SLOW)),
    "langgraph's helper": (langgraph_scenarios.deep, langgraph_scenarios.HELPER % ("nap", "{seconds: 1}")),
    "agno": (agno_scenarios.plain, calls(NAPPING, SLOW)),
    "agno's helper": (agno_scenarios.team, agno_scenarios.HELPER % ("nap", "{seconds: 1}")),
    "smolagents": (
        smolagents_scenarios.calling(smolagents_scenarios.nap, smolagents_scenarios.Patient()),
        calls(NAPPING, SLOW),
    ),
    "smolagents' code": (
        smolagents_scenarios.coding(smolagents_scenarios.nap),
        '- steps: [{text: "<code>\\nnap(1)\\n</code>"}]',
    ),
}


@pytest.mark.requirement("stop-does-not-wait")
@pytest.mark.parametrize("who", BOTH)
async def test_stop_names_only_the_tool_that_still_runs(who: str, tmp_path: Path) -> None:
    make, script = BOTH[who]
    run = await run_agent(make, script, tmp_path, stop_at=status_is("napping"))
    assert isinstance(run.terminal, RunCancelled)
    assert [said.text for said in run.all(Status)] == ["napping", NAP]


async def test_tool_that_still_runs_after_another_has_failed_is_named(tmp_path: Path) -> None:
    """LangGraph ends a run when a tool raises, while another tool may run in a thread."""
    began = threading.Event()

    @langgraph_scenarios.tool
    def later() -> str:
        """Fail when the other has begun."""
        began.wait(10)
        raise ValueError("no such file")

    @langgraph_scenarios.tool
    def nap(seconds: float) -> str:
        """Take a while."""
        began.set()
        time.sleep(seconds)
        return "rested"

    def make(endpoint: ModelEndpoint) -> Any:
        return langgraph_scenarios.create_agent(langgraph_scenarios.model(endpoint), [later, nap])

    run = await run_agent(make, calls("{name: later, arguments: {}}", NAPPING), tmp_path)
    assert isinstance(run.terminal, RunFailed)
    assert [said.text for said in run.all(Status)] == [NAP]


async def test_sync_node_that_still_runs_is_reported_without_a_name(tmp_path: Path) -> None:
    def work(_: Any) -> dict[str, Any]:
        status("napping")
        time.sleep(1)
        return {}

    run = await run_agent(lambda _: one_node(work), "", tmp_path, stop_at=status_is("napping"))
    assert [said.text for said in run.all(Status)] == ["napping", UNSTOPPABLE]


def blocks(may_end: threading.Event) -> Any:
    """An ordinary generator that blocks its own thread."""

    def agent(messages: list[Message], ctx: Context) -> Iterator[object]:
        ctx.emit(Status(text="napping"))  # from the thread that blocks next, so Stop finds it blocked
        may_end.wait(10)
        yield "I rest."

    return agent


def waits_for_function(may_end: threading.Event) -> Any:
    async def agent(messages: list[Message], ctx: Context) -> AsyncIterator[object]:
        def nap() -> None:
            ctx.emit(Status(text="napping"))
            may_end.wait(10)

        yield "I rest."
        await asyncio.to_thread(nap)

    return agent


def waits_for_builtin(may_end: threading.Event) -> Any:
    """A coroutine that waits for a function which has no Python frame of its own."""

    async def agent(messages: list[Message], ctx: Context) -> str:
        ctx.emit(Status(text="napping"))
        await asyncio.to_thread(time.sleep, 1)
        return "rested"

    return agent


@pytest.mark.requirement("stop-does-not-wait")
@pytest.mark.parametrize(
    ("make", "expected"), [(blocks, UNSTOPPABLE), (waits_for_function, FUNCTION), (waits_for_builtin, UNSTOPPABLE)]
)
async def test_thread_of_a_function_agent_that_still_runs_after_stop_is_reported(
    make: Callable[[threading.Event], Any], expected: str, tmp_path: Path
) -> None:
    may_end = threading.Event()
    try:
        run = await run_agent(lambda _: make(may_end), "", tmp_path, stop_at=status_is("napping"))
    finally:
        may_end.set()
    assert isinstance(run.terminal, RunCancelled)
    assert [said.text for said in run.all(Status)] == ["napping", expected]


async def test_thread_of_a_function_agent_that_ends_at_stop_is_not_reported(tmp_path: Path) -> None:
    def agent(messages: list[Message], ctx: Context) -> Iterator[object]:
        yield Status(text="napping")
        while not ctx.cancelled:
            time.sleep(0.001)

    run = await run_agent(lambda _: agent, "", tmp_path, stop_at=status_is("napping"))
    assert [said.text for said in run.all(Status)] == ["napping"]


def test_status_text_names_each_tool_once() -> None:
    two = "The tools a, b cannot be interrupted and are still running; what they return will be dropped."
    assert still_running_text(["b", "", "a", "b"]) == two
    assert still_running_text([""]) == still_running_text([]) == UNSTOPPABLE


def _waits(frame: FrameType) -> str | None:
    return "wait" if frame.f_code.co_name == "wait_for_it" else None


async def test_thread_is_reported_for_the_run_that_started_it() -> None:
    """In the default executor of the loop, which is used if Limelight is mounted into another app."""
    mine, others = FakeContext(), FakeContext()
    began, done = threading.Event(), threading.Event()

    def wait_for_it() -> None:
        began.set()
        done.wait(10)

    CURRENT.set(mine)
    waiting = asyncio.create_task(asyncio.to_thread(wait_for_it))
    await eventually(began.is_set)
    report_running_tools(others, _waits)
    report_running_tools(mine, lambda _: None)
    assert others.emitted == mine.emitted == []
    report_running_tools(mine, _waits)
    assert mine.emitted == [Status(text=still_running_text(["wait"]))]
    done.set()
    await waiting
    report_running_tools(mine, _waits)
    assert len(mine.emitted) == 1
