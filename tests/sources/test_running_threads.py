"""What goes on in a thread after Stop is said, by name, before the run ends; what was broken off is not."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# The frameworks' own types are partly unknown.

import asyncio
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from limelight import status
from limelight.events import RunCancelled, RunFailed, Status
from limelight.sources.base import CURRENT, UNSTOPPABLE
from limelight.sources.running_threads import report_running_tools, still_running_text
from tests.sources.agno import agno_scenarios
from tests.sources.fake_turn import FakeContext
from tests.sources.langgraph import langgraph_scenarios
from tests.sources.langgraph.graphs import one_node
from tests.sources.live_turn import Stage, saying, theatre
from tests.sources.smolagents import smolagents_scenarios
from tests.support.wait import eventually

pytestmark = pytest.mark.usefixtures("agno_models")

NAP = "The tool nap cannot be interrupted and is still running; what it returns will be dropped."
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


@pytest.mark.parametrize("who", BOTH)
async def test_stop_names_the_tool_that_goes_on_and_only_that(who: str, tmp_path: Path) -> None:
    make, script = BOTH[who]
    async with theatre(make, script, tmp_path) as stage:
        run = await stage.play_until(saying("napping"))
    assert isinstance(run.terminal, RunCancelled)
    assert [said.text for said in run.all(Status)] == ["napping", NAP]


async def test_a_tool_that_goes_on_after_another_has_failed_is_named(tmp_path: Path) -> None:
    """LangGraph ends a run when a tool raises; its neighbour may be in a thread."""
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

    def make(stage: Stage) -> Any:
        return langgraph_scenarios.create_agent(langgraph_scenarios.model(stage), [later, nap])

    async with theatre(make, calls("{name: later, arguments: {}}", NAPPING), tmp_path) as stage:
        run = await stage.play()
    assert isinstance(run.terminal, RunFailed)
    assert [said.text for said in run.all(Status)] == [NAP]


async def test_a_node_that_is_an_ordinary_function_has_no_name_that_people_know(tmp_path: Path) -> None:
    def work(_: Any) -> dict[str, Any]:
        status("napping")
        time.sleep(1)
        return {}

    async with theatre(lambda _: one_node(work), "", tmp_path) as stage:
        run = await stage.play_until(saying("napping"))
    assert [said.text for said in run.all(Status)] == ["napping", UNSTOPPABLE]


def test_several_tools_are_named_once_each() -> None:
    two = "The tools a, b cannot be interrupted and are still running; what they return will be dropped."
    assert still_running_text(["b", "", "a", "b"]) == two
    assert still_running_text([""]) == still_running_text([]) == UNSTOPPABLE


def _waits(frame: FrameType) -> str | None:
    return "wait" if frame.f_code.co_name == "wait_for_it" else None


async def test_a_thread_belongs_to_the_run_that_started_it() -> None:
    """In the loop's own pool of threads, which is another one where Limelight is mounted into an app."""
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
