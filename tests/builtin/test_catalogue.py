"""The catalogue names the tools that the agents have: those that their models are offered, those of helpers too."""

from pathlib import Path

import pytest

from limelight.builtin.agent_config import EXECUTE
from limelight.builtin.catalogue import BUILT_INS, BuiltIn
from limelight.events import ToolStarted
from limelight.understudy import server
from limelight.understudy.improviser import improvise
from limelight.understudy.replies import Reply
from limelight.understudy.requests import ChatRequest
from limelight.understudy.smolagents_prompts import code_context, expects_code
from tests.builtin.test_agents import QUESTION, ask, stage


@pytest.mark.parametrize("one", BUILT_INS, ids=lambda one: one.name)
async def test_its_tools_are_listed(tmp_path: Path, one: BuiltIn, monkeypatch: pytest.MonkeyPatch) -> None:
    offered: set[str] = set()

    def listening(request: ChatRequest) -> Reply:
        tools = code_context(request).tools if expects_code(request) else request.tools
        offered.update(tool.name for tool in tools)
        return improvise(request)

    monkeypatch.setattr(server, "improvise", listening)
    async with stage(tmp_path / "data", one.name) as served:
        run = await ask(served, f"{QUESTION} What is 2 + 2?")
        more = "a slow tool" if one.name == "demo" else "two helpers at once"
        helpers = await ask(served, f"{more} about bees", session_id="more")
    called = {event.name for event in (*run.all(ToolStarted), *helpers.all(ToolStarted))}
    usual = set(one.tools) - {EXECUTE}  # which has to be turned on
    assert offered | called | ({"final_answer"} if one.source == "smolagents" else set()) == usual
