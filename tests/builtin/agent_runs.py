"""Servers with built-in agents, and their finished runs, for tests."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from limelight.agents.resolve import resolve_agents
from limelight.config import load_settings
from limelight.events import AgentStarted, RunFinished, ToolFinished, ToolStarted
from tests.sources.live_turn import FinishedRun, checked_run
from tests.support.server import Frame, Served, collect, serving

QUESTION = "What do bees do in winter?"


@asynccontextmanager
async def serve_agent(data: Path, name: str = "", config: str = "", **settings: Any) -> AsyncGenerator[Served]:
    """A server with one built-in agent, or with all of them."""
    file = data.with_suffix(".toml")
    file.write_text(config)
    agents = resolve_agents(load_settings(file, environ={}), [name] if name else (), environ={}).agents
    async with serving(agents=agents, data=data, **settings) as served:
        yield served


async def ask(served: Served, question: str = QUESTION, **body: Any) -> FinishedRun:
    run = checked_run(await collect(served.ask(question, format="records", **body)))
    assert isinstance(run.terminal, RunFinished), run.terminal
    return run


async def ask_and_decide(served: Served, question: str, **decision: Any) -> FinishedRun:
    """A run of session `s` in which each approval request gets this decision."""
    frames: list[Frame] = []
    async for frame in served.ask(question, format="records", session_id="s"):
        frames.append(frame)
        if frame.data["event"]["kind"] == "approval_requested":
            await decide(served, frame, **decision)
    return checked_run(frames)


async def decide(served: Served, request: Frame, **decision: Any) -> None:
    """Decide an approval request."""
    path = f"/runs/{request.data['run_id']}/approvals/{request.data['event']['approval_id']}"
    assert (await served.http.post(path, json=decision)).status_code == 200


def call_names(run: FinishedRun) -> list[str]:
    """The tool calls, those of sub-agents with the name of the agent."""
    names = {started.agent_id: started.name for started in run.all(AgentStarted)}
    return [f"{names[e.agent_id]}: {e.name}" if e.agent_id else e.name for e in run.all(ToolStarted)]


def tool_errors(run: FinishedRun) -> list[str]:
    return [finished.error for finished in run.all(ToolFinished) if finished.error is not None]
