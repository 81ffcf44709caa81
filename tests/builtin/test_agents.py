"""Each built-in agent on a server, with the understudy as its model."""

import json
from pathlib import Path

import pytest

from limelight.agents.resolve import resolve_agents
from limelight.builtin.agent_config import IMPORTS, AgentConfig
from limelight.builtin.model_choice import ModelChoice
from limelight.builtin.search_tools import SearchTools
from limelight.builtin.smolagents_agents import create_codact_agent
from limelight.config import AgentSettings, Settings
from limelight.events import (
    AgentStarted,
    ArtifactMade,
    Plan,
    PlanDelta,
    ReasoningDelta,
    RunFailed,
    RunFinished,
    Status,
    StepStarted,
    TextDelta,
    ToolFinished,
    ToolOutputDelta,
    Usage,
)
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.builtin.agent_runs import QUESTION, ask, call_names, serve_agent, tool_errors
from tests.sources.live_turn import FinishedRun, checked_run
from tests.support.server import collect, serving
from tests.system.processes.server_process import free_port


def shown_text(run: FinishedRun) -> str:
    """The text and the answer of the main agent, without reasoning."""
    return "".join(delta.text for delta in run.all(TextDelta) if not delta.agent_id) + str(run.answer)


async def test_deep_plans_reads_files_and_delegates_to_the_researcher(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "deep") as served:
        run = await ask(served, session_id="s")
    assert call_names(run)[0] == "write_todos"
    assert set(call_names(run)[1:3]) == {"ls", "grep"}
    assert call_names(run)[3:5] == ["read_file", "task"]
    assert {"researcher: search", "researcher: readurl"} <= set(call_names(run))
    assert call_names(run)[-1] == "write_todos"
    assert tool_errors(run) == []
    assert [plan.items[0].status for plan in run.all(Plan)] == ["in_progress", "completed"]
    assert run.call("readurl").result.startswith("# How honey bees live")
    assert json.loads(run.call("search").result)[0]["url"] == "https://library.example/bees"
    assert run.all(ReasoningDelta), "reasoning is shown"
    assert run.all(Usage), "token usage is reported"
    assert "/bees.md" in str(run.call("ls").result)
    assert "In winter the bees sit close together" in run.answer
    assert "- [How honey bees live](https://library.example/bees)" in run.answer
    assert not any(raw in run.answer for raw in ("['/", '{"', "{'", "lighthouses.md")), run.answer
    assert (tmp_path / "data" / "workspaces" / "s" / "bees.md").is_file()


@pytest.mark.requirement("commands-off")
async def test_deep_has_no_execute_by_default(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "deep") as served:
        run = await ask(served, "Please use execute")
    assert "execute" not in call_names(run)


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "~/x", "/../x"])
async def test_deep_that_tries_to_leave_its_workspace_gets_an_error_and_continues(tmp_path: Path, path: str) -> None:
    async with serve_agent(tmp_path / "data", "deep") as served:
        run = await ask(served, f"use read_file on {path}")
    assert "read_file" in call_names(run)
    assert "root:" not in run.answer


async def test_agno_lists_reads_and_calculates(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "agno") as served:
        run = await ask(served, f"{QUESTION} And what is 12 * 7 + 3?")
        assert set(call_names(run)[:2]) == {"list_files", "calculate"}
        assert call_names(run)[2:] == ["read_file"]
        assert json.loads(run.call("list_files").result) == ["bees.md", "lighthouses.md", "limelight.md", "rivers.csv"]
        assert str(run.call("calculate").result) == "87"
        assert tool_errors(run) == []
        written = await ask(served, "Please use write_file about bees")
        assert written.call("write_file").error is None


async def test_agno_reads_no_files_for_plain_arithmetic(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "agno") as served:
        assert "read_file" not in call_names(await ask(served, "What is 2 + 2?"))


async def test_agno_team_delegates_to_the_suitable_member(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "agno-team") as served:
        run = await ask(served)
        assert call_names(run) == ["delegate_task_to_member", "Researcher: search", "Researcher: readurl"]
        assert tool_errors(run) == []
        assert [started.name for started in run.all(AgentStarted)] == ["Researcher"]
        assert call_names(await ask(served, "What is 12 * 7?"))[1:] == ["Calculator: calculate"]
        both = await ask(served, "two helpers at once about bees")
        assert {started.name for started in both.all(AgentStarted)} == {"Researcher", "Calculator"}


async def test_react_searches_reads_and_answers(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "react") as served:
        run = await ask(served)
    assert [name for name in call_names(run) if name != "final_answer"] == ["search", "readurl"]
    assert tool_errors(run) == []
    assert len(run.all(StepStarted)) == 3
    assert run.reasoning() == "I search for “bees winter”.I read https://library.example/bees."
    assert run.text() == run.answer, "the answer is streamed"
    assert run.call("search").result[0]["title"] == "How honey bees live"
    assert "In winter bees do not sleep" in run.answer


async def test_codact_plans_writes_code_that_prints_and_plans_again(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "codact") as served:
        run = await ask(served)
    assert call_names(run)[:4] == ["python_interpreter", "search", "python_interpreter", "readurl"]
    assert tool_errors(run) == []
    assert [plan.update for plan in run.all(Plan)] == [False, True]
    assert "Updated facts" in (run.all(Plan)[1].text or "")
    for plan in run.all(Plan):
        pieces = [piece.text for piece in run.all(PlanDelta) if piece.update == plan.update]
        assert len(pieces) > 20, "a plan is shown while it is written"
        assert "".join(pieces) == plan.text
    printed = "".join(event.text for event in run.all(ToolOutputDelta))
    assert "https://library.example/bees" in printed
    assert "In winter bees do not sleep" in printed
    assert "2 of 2 words in How honey bees live: bees, winter" in printed


async def test_codact_applies_its_settings(tmp_path: Path) -> None:
    config = '[agents.codact]\nplanning_interval = 1\nmax_steps = 2\nstatus = {search = "Looking it up"}'
    async with serve_agent(tmp_path / "data", "codact", config) as served:
        run = await ask(served)
    assert len(run.all(Plan)) >= 2
    assert isinstance(run.terminal, RunFinished)
    assert run.terminal.code == "max_steps"
    assert "Looking it up" in [status.text for status in run.all(Status)]


@pytest.mark.parametrize("module", [*IMPORTS, "os", "subprocess", "socket"])
def test_codact_can_import_the_configured_modules_only(module: str) -> None:
    model = ModelChoice("m", "http://127.0.0.1:1/v1", "k")
    agent = create_codact_agent(AgentConfig(model=model, search_tools=SearchTools()))
    if module in IMPORTS:
        agent.python_executor(f"import {module}")
    else:
        with pytest.raises(Exception, match="not allowed"):
            agent.python_executor(f"import {module}")
        configured = create_codact_agent(AgentConfig(model=model, search_tools=SearchTools(), imports=(module,)))
        configured.python_executor(f"import {module}")


@pytest.mark.parametrize("name", ["deep", "agno", "agno-team", "react", "codact"])
async def test_configured_model_is_used(tmp_path: Path, name: str) -> None:
    async with Understudy(parse_scripts("- steps: [{text: It will be dry.}]")) as real:
        environ = {"LIMELIGHT_MODEL": "m", "OPENAI_BASE_URL": real.base_url, "OPENAI_API_KEY": real.key}
        one_step = Settings(agents={name: AgentSettings(max_steps=1)})
        async with serving(agents=resolve_agents(one_step, [name], environ=environ).agents, data=tmp_path) as served:
            run = await ask(served, "Will it rain?")
    text = "".join(str(getattr(event, "text", "")) for event in run.events)
    assert "dry" in text


@pytest.mark.parametrize("name", ["deep", "agno", "agno-team", "react", "codact"])
async def test_unreachable_model_is_named_by_its_address(tmp_path: Path, name: str) -> None:
    address = f"http://127.0.0.1:{free_port()}/v1"
    environ = {"LIMELIGHT_MODEL": "m", "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "k"}
    async with serving(agents=resolve_agents(Settings(), [name], environ=environ).agents, data=tmp_path) as served:
        run = checked_run(await collect(served.ask("Will it rain?", format="records")))
    assert isinstance(run.terminal, RunFailed)
    assert address in run.terminal.message


async def test_all_agents_run_on_one_server_and_show_the_notice_once_per_conversation(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data") as served:
        listed = (await served.http.get("/agents")).json()["agents"]
        assert [agent["name"] for agent in listed if agent["default"]] == ["deep"]
        for name in (agent["name"] for agent in listed):
            first = await ask(served, agent=name, session_id=name)
            assert first.all(ToolFinished)
            assert first.text() or first.answer
            assert bool(first.all(ArtifactMade)) == (name == "demo")
            assert ("stand-in without a model" in shown_text(first)) == (name != "demo"), name
            second = await ask(served, "And lighthouses?", agent=name, session_id=name)
            assert "stand-in without a model" not in shown_text(second), f"{name} remembers the conversation"


async def test_configured_workspace_gets_no_sample_files(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.txt").write_text("my bees sleep")
    async with serve_agent(tmp_path / "data", "deep", f'[agents.deep]\nworkspace = "{own}"') as served:
        run = await ask(served)
    assert "mine.txt" in str(run.call("ls").result)
    assert [path.name for path in own.iterdir()] == ["mine.txt"]
