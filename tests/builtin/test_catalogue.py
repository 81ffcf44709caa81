"""The catalogue lists the tools of each agent and its sub-agents, and imports no framework."""

import subprocess
import sys
from pathlib import Path

import pytest

from limelight.builtin.agent_config import EXECUTE
from limelight.builtin.catalogue import BUILT_INS, BuiltIn
from limelight.events import ToolStarted
from limelight.understudy import server
from limelight.understudy.chat_requests import ChatRequest
from limelight.understudy.improviser import improvise
from limelight.understudy.replies import Reply
from limelight.understudy.smolagents_prompts import code_context, expects_code
from tests.builtin.agent_runs import QUESTION, ask, serve_agent


@pytest.mark.parametrize("agent", BUILT_INS, ids=lambda agent: agent.name)
async def test_catalogue_lists_the_tools_of_each_agent(
    tmp_path: Path, agent: BuiltIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: set[str] = set()

    def recording_improvise(request: ChatRequest) -> Reply:
        tools = code_context(request).tools if expects_code(request) else request.tools
        offered.update(tool.name for tool in tools)
        return improvise(request)

    monkeypatch.setattr(server, "improvise", recording_improvise)
    async with serve_agent(tmp_path / "data", agent.name) as served:
        run = await ask(served, f"{QUESTION} What is 2 + 2?")
        more = "a slow tool" if agent.name == "demo" else "two helpers at once"
        helpers = await ask(served, f"{more} about bees", session_id="more")
    called = {event.name for event in (*run.all(ToolStarted), *helpers.all(ToolStarted))}
    expected = set(agent.tools) - {EXECUTE}  # it has to be enabled
    assert offered | called | ({"final_answer"} if agent.source == "smolagents" else set()) == expected


def test_import_of_the_catalogue_imports_no_framework() -> None:
    packages = sorted({package for agent in BUILT_INS for package in agent.packages})
    code = f"import sys, limelight.builtin.catalogue; print([name for name in {packages} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "[]\n"
