"""`limelight.status` in a tool belongs to the tool's agent, in every framework and at any depth."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownParameterType=false
# The frameworks' own types are partly unknown.

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from smolagents import Tool

from limelight import status
from limelight.events import AgentStarted, RunFinished, Status
from limelight.sources.base import CURRENT_AGENT_ID
from tests.sources.agno import agno_scenarios
from tests.sources.langgraph import langgraph_scenarios
from tests.sources.live_turn import FinishedRun, ModelEndpoint, run_agent
from tests.sources.smolagents import smolagents_scenarios
from tests.support.server import offer, serving

pytestmark = pytest.mark.usefixtures("agno_models")


def report(line: str) -> str:
    """Say a line."""
    status(line)
    return "reported"


async def report_async(line: str) -> str:
    """Say a line."""
    await asyncio.sleep(0)
    return report(line)


async def report_in_pieces(line: str) -> AsyncIterator[str]:
    """Say a line, and return in pieces."""
    yield "repor"
    status(line)
    yield "ted"


class Report(Tool):
    """As `report`."""

    name = "report"
    description = "Say a line."
    inputs = {"line": {"type": "string", "description": "The line."}}  # noqa: RUF012  (as smolagents has it)
    output_type = "string"

    def forward(self, line: str) -> str:
        return report(line)


class ReportAsync(Report):
    async def forward(self, line: str) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return await report_async(line)


def deep(say: Callable[..., Any]) -> Callable[[ModelEndpoint], object]:
    return lambda endpoint: langgraph_scenarios.deep(endpoint, tools=[tool("report")(say)])


def team(say: Callable[..., Any]) -> Callable[[ModelEndpoint], object]:
    named = agno_scenarios.tool(name="report")(say)
    return lambda endpoint: agno_scenarios.team(
        endpoint, members=[agno_scenarios.plain(endpoint, name="helper", tools=[named])]
    )


def managed(make: Callable[..., Callable[[ModelEndpoint], object]], say: Tool) -> Callable[[ModelEndpoint], object]:
    def helper(**options: Any) -> Callable[[ModelEndpoint], object]:
        return make(say, **options)

    return smolagents_scenarios.leading(smolagents_scenarios.calling, helper)


LINE = '{line: "from below"}'
CODED = """
- match: a small job
  turns:
    - steps: [{text: "<code>\\nreport('from below')\\n</code>"}]
    - steps: [{text: "<code>\\nfinal_answer('Done.')\\n</code>"}]
"""
CALLED = """
- match: a small job
  turns:
    - steps: [{tool_calls: [{name: report, arguments: {line: from below}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: Done.}}]}]
"""
MANAGING = """
- turns:
    - steps: [{tool_calls: [{name: helper, arguments: {task: a small job}}]}]
    - steps: [{tool_calls: [{name: final_answer, arguments: {answer: All done.}}]}]
"""
HELPERS: dict[str, tuple[Callable[[ModelEndpoint], object], str]] = {
    "langgraph": (deep(report), langgraph_scenarios.HELPER % ("report", LINE)),
    "langgraph, async": (deep(report_async), langgraph_scenarios.HELPER % ("report", LINE)),
    "agno": (team(report), agno_scenarios.HELPER % ("report", LINE)),
    "agno, async": (team(report_async), agno_scenarios.HELPER % ("report", LINE)),
    "agno, in pieces": (team(report_in_pieces), agno_scenarios.HELPER % ("report", LINE)),
    "smolagents": (managed(smolagents_scenarios.calling, Report()), CALLED + MANAGING),
    "smolagents, async": (managed(smolagents_scenarios.calling, ReportAsync()), CALLED + MANAGING),
    "smolagents, code": (managed(smolagents_scenarios.coding, Report()), CODED + MANAGING),
}


@pytest.mark.parametrize("who", HELPERS)
async def test_status_of_a_sub_agents_tool_belongs_to_the_sub_agent(who: str, tmp_path: Path) -> None:
    make, script = HELPERS[who]
    run = await run_agent(make, script, tmp_path)
    assert isinstance(run.terminal, RunFinished), run.terminal
    said = run.one(Status, text="from below")
    assert said.agent_id == run.call("report").started.agent_id == run.one(AgentStarted).agent_id


TWO_HELPERS = """
- match: "help: one"
  turns:
    - steps: [{tool_calls: [{name: report, arguments: {line: one}}]}]
    - steps: [{text: First.}]
- match: "help: two"
  turns:
    - steps: [{tool_calls: [{name: report, arguments: {line: two}}]}]
    - steps: [{text: Second.}]
- turns:
    - steps: [{tool_calls: [%s, %s]}]
    - steps: [{tool_calls: [{name: report, arguments: {line: three}}]}]
    - steps: [{text: All done.}]
"""
TASK = '{name: task, arguments: {description: "help: %s", subagent_type: helper}}'
TWO_DEEP = TWO_HELPERS % (TASK % "one", TASK % "two")
TWO_TEAM = TWO_HELPERS % (
    agno_scenarios.delegating("helper", "help: one"),
    agno_scenarios.delegating("helper", "help: two"),
)


def both_deep(endpoint: ModelEndpoint) -> object:
    said = tool("report")(report)
    helper: Any = {"name": "helper", "description": "Helps.", "system_prompt": "You help.", "tools": [said]}
    return langgraph_scenarios.create_deep_agent(
        model=langgraph_scenarios.model(endpoint), tools=[said], subagents=[helper]
    )


def both_team(endpoint: ModelEndpoint) -> object:
    members = [agno_scenarios.plain(endpoint, name="helper", tools=[report])]
    return agno_scenarios.team(endpoint, members=members, tools=[report])


@pytest.mark.parametrize(("make", "script"), [(both_deep, TWO_DEEP), (both_team, TWO_TEAM)], ids=["langgraph", "agno"])
async def test_statuses_of_parallel_sub_agents_and_the_main_agent_have_their_agent_ids(
    make: Callable[[ModelEndpoint], object], script: str, tmp_path: Path
) -> None:
    run = await run_agent(make, script, tmp_path)
    callers = {str(call.args["line"]): call.started.agent_id for call in _calls(run)}
    assert {said.text: said.agent_id for said in run.all(Status)} == callers
    assert callers["three"] == "" and len(set(callers.values())) == 3


def _calls(run: FinishedRun) -> list[Any]:
    return [run.call("report", number) for number in range(3)]


async def test_status_of_an_unknown_agent_belongs_to_the_main_agent(tmp_path: Path) -> None:
    """It may arrive before the start of its agent, and must not fail the tool."""

    async def agent(messages: Any, ctx: Any) -> Any:
        """Reports for an agent that has not started."""
        CURRENT_AGENT_ID.set(lambda: "helper-1")
        status("too early")
        await asyncio.to_thread(status, "from a thread")
        yield "done"

    async with serving(agents=[offer(agent, "agent")], data=tmp_path) as served:
        frames = [frame.data["event"] async for frame in served.ask("go", format="records")]
    assert [e.get("agent_id", "") for e in frames if e["kind"] == "status"] == ["", ""]
    assert frames[-1]["kind"] == "run_finished"
