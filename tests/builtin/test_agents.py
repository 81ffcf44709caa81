"""Each built-in agent on a real server, its model the understudy: a plain question makes a run worth watching."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from limelight.agents.resolve import offered
from limelight.builtin.agent_config import IMPORTS, Kit
from limelight.builtin.codact import codact
from limelight.builtin.model_choice import ModelChoice
from limelight.builtin.search_tools import Lookup
from limelight.config import AgentSettings, Settings, load_settings
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
    ToolStarted,
    Usage,
)
from limelight.understudy.scripts import parse_scripts
from limelight.understudy.server import Understudy
from tests.sources.live_turn import FinishedRun, checked_run
from tests.support.server import Served, collect, serving
from tests.system.processes.server_process import free_port

QUESTION = "What do bees do in winter?"


@asynccontextmanager
async def stage(data: Path, name: str = "", config: str = "", **settings: Any) -> AsyncGenerator[Served]:
    """A server with one built-in agent, or with all of them."""
    file = data.with_suffix(".toml")
    file.write_text(config)
    agents = offered(load_settings(file, environ={}), [name] if name else (), environ={}).agents
    async with serving(agents=agents, data=data, **settings) as served:
        yield served


async def ask(served: Served, question: str = QUESTION, **body: Any) -> FinishedRun:
    run = checked_run(await collect(served.ask(question, format="records", **body)))
    assert isinstance(run.terminal, RunFinished), run.terminal
    return run


def calls(run: FinishedRun) -> list[str]:
    """The tools that were called, those of sub-agents with the name of whose they are."""
    who = {started.agent_id: started.name for started in run.all(AgentStarted)}
    return [f"{who[e.agent_id]}: {e.name}" if e.agent_id else e.name for e in run.all(ToolStarted)]


def failed(run: FinishedRun) -> list[str]:
    return [finished.error for finished in run.all(ToolFinished) if finished.error is not None]


def said_by(run: FinishedRun) -> str:
    """What everybody who watches is shown: the main agent's text and the answer, but not its thoughts."""
    return "".join(delta.text for delta in run.all(TextDelta) if not delta.agent_id) + str(run.answer)


async def test_deep_plans_looks_around_and_sends_a_researcher(tmp_path: Path) -> None:
    async with stage(tmp_path / "data", "deep") as served:
        run = await ask(served, session_id="s")
    assert calls(run)[0] == "write_todos"
    assert set(calls(run)[1:3]) == {"ls", "grep"}
    assert calls(run)[3:5] == ["read_file", "task"]
    assert {"researcher: search", "researcher: readurl"} <= set(calls(run))
    assert calls(run)[-1] == "write_todos"
    assert failed(run) == []
    assert [plan.items[0].status for plan in run.all(Plan)] == ["in_progress", "completed"]
    assert run.call("readurl").result.startswith("# How honey bees live")
    assert json.loads(run.call("search").result)[0]["url"] == "https://library.example/bees"
    assert run.all(ReasoningDelta), "what a model thinks is shown"
    assert run.all(Usage), "what it costs is known"
    assert "/bees.md" in str(run.call("ls").result)
    assert run.answer.startswith("In winter the bees sit close together")
    assert "- [How honey bees live](https://library.example/bees)" in run.answer
    assert not any(raw in run.answer for raw in ("['/", '{"', "{'", "lighthouses.md")), run.answer
    assert (tmp_path / "data" / "workspaces" / "s" / "bees.md").is_file()


async def test_execute_is_not_on_offer(tmp_path: Path) -> None:
    async with stage(tmp_path / "data", "deep") as served:
        run = await ask(served, "Please use execute")
    assert "execute" not in calls(run)


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "~/x", "/../x"])
async def test_a_deep_agent_that_tries_to_leave_its_folder_is_told_so_and_goes_on(tmp_path: Path, path: str) -> None:
    async with stage(tmp_path / "data", "deep") as served:
        run = await ask(served, f"use read_file on {path}")
    assert "read_file" in calls(run)
    assert "root:" not in run.answer


async def test_agno_lists_reads_and_calculates(tmp_path: Path) -> None:
    async with stage(tmp_path / "data", "agno") as served:
        run = await ask(served, f"{QUESTION} And what is 12 * 7 + 3?")
        assert set(calls(run)[:2]) == {"list_files", "calculate"}
        assert calls(run)[2:] == ["read_file"]
        assert json.loads(run.call("list_files").result) == ["bees.md", "lighthouses.md", "limelight.md", "rivers.csv"]
        assert str(run.call("calculate").result) == "87"
        assert failed(run) == []
        written = await ask(served, "Please use write_file about bees")
        assert written.call("write_file").error is None


async def test_a_bare_sum_reads_no_files(tmp_path: Path) -> None:
    async with stage(tmp_path / "data", "agno") as served:
        assert "read_file" not in calls(await ask(served, "What is 2 + 2?"))


async def test_the_team_delegates_to_who_fits(tmp_path: Path) -> None:
    async with stage(tmp_path / "data", "agno-team") as served:
        run = await ask(served)
        assert calls(run) == ["delegate_task_to_member", "Researcher: search", "Researcher: readurl"]
        assert failed(run) == []
        assert [started.name for started in run.all(AgentStarted)] == ["Researcher"]
        assert calls(await ask(served, "What is 12 * 7?"))[1:] == ["Calculator: calculate"]
        both = await ask(served, "two helpers at once about bees")
        assert {started.name for started in both.all(AgentStarted)} == {"Researcher", "Calculator"}


async def test_react_searches_reads_and_answers(tmp_path: Path) -> None:
    async with stage(tmp_path / "data", "react") as served:
        run = await ask(served)
    assert [name for name in calls(run) if name != "final_answer"] == ["search", "readurl"]
    assert failed(run) == []
    assert len(run.all(StepStarted)) == 3
    assert run.call("search").result[0]["title"] == "How honey bees live"
    assert "In winter bees do not sleep" in run.answer


async def test_codact_plans_writes_code_that_prints_and_plans_again(tmp_path: Path) -> None:
    async with stage(tmp_path / "data", "codact") as served:
        run = await ask(served)
    assert calls(run)[:4] == ["python_interpreter", "search", "python_interpreter", "readurl"]
    assert failed(run) == []
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


async def test_the_settings_of_codact_reach_it(tmp_path: Path) -> None:
    config = '[agents.codact]\nplanning_interval = 1\nmax_steps = 2\nstatus = {search = "Looking it up"}'
    async with stage(tmp_path / "data", "codact", config) as served:
        run = await ask(served)
    assert len(run.all(Plan)) >= 2
    assert isinstance(run.terminal, RunFinished)
    assert run.terminal.code == "max_steps"
    assert "Looking it up" in [status.text for status in run.all(Status)]


@pytest.mark.parametrize("module", [*IMPORTS, "os", "subprocess", "socket"])
def test_codacts_code_imports_what_is_stated_and_nothing_that_reaches_out(module: str) -> None:
    model = ModelChoice("m", "http://127.0.0.1:1/v1", "k")
    agent = codact(Kit(model=model, lookup=Lookup()))
    if module in IMPORTS:
        agent.python_executor(f"import {module}")
    else:
        with pytest.raises(Exception, match="not allowed"):
            agent.python_executor(f"import {module}")
        freed = codact(Kit(model=model, lookup=Lookup(), imports=(module,)))
        freed.python_executor(f"import {module}")


@pytest.mark.parametrize("name", ["deep", "agno", "agno-team", "react", "codact"])
async def test_a_model_that_is_named_is_asked(tmp_path: Path, name: str) -> None:
    async with Understudy(parse_scripts("- steps: [{text: It will be dry.}]")) as real:
        environ = {"LIMELIGHT_MODEL": "m", "OPENAI_BASE_URL": real.base_url, "OPENAI_API_KEY": real.key}
        one_step = Settings(agents={name: AgentSettings(max_steps=1)})
        async with serving(agents=offered(one_step, [name], environ=environ).agents, data=tmp_path) as served:
            run = await ask(served, "Will it rain?")
    said = "".join(str(getattr(event, "text", "")) for event in run.events)
    assert "dry" in said


@pytest.mark.parametrize("name", ["deep", "agno", "agno-team", "react", "codact"])
async def test_a_model_that_does_not_answer_is_named_by_its_address(tmp_path: Path, name: str) -> None:
    address = f"http://127.0.0.1:{free_port()}/v1"
    environ = {"LIMELIGHT_MODEL": "m", "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "k"}
    async with serving(agents=offered(Settings(), [name], environ=environ).agents, data=tmp_path) as served:
        run = checked_run(await collect(served.ask("Will it rain?", format="records")))
    assert isinstance(run.terminal, RunFailed)
    assert address in run.terminal.message


async def test_all_of_them_on_one_server(tmp_path: Path) -> None:
    async with stage(tmp_path / "data") as served:
        listed = (await served.http.get("/agents")).json()["agents"]
        assert [(a["name"], a["default"]) for a in listed][:1] == [("deep", True)]
        for agent in listed:
            run = await ask(served, agent=agent["name"], session_id=agent["name"])
            assert run.all(ToolFinished)
            assert run.text() or run.answer
            assert bool(run.all(ArtifactMade)) == (agent["name"] == "demo")


async def test_they_remember_the_conversation(tmp_path: Path) -> None:
    async with stage(tmp_path / "data") as served:
        for name in ("deep", "agno", "agno-team", "react", "codact"):
            first = await ask(served, agent=name, session_id=name)
            assert "stand-in without a model" in said_by(first), f"{name} introduces itself"
            second = await ask(served, "And lighthouses?", agent=name, session_id=name)
            assert "stand-in without a model" not in said_by(second), f"{name} introduces itself once"


async def test_an_agent_with_a_folder_of_its_own_finds_nothing_new_in_it(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.txt").write_text("my bees sleep")
    async with stage(tmp_path / "data", "deep", f'[agents.deep]\nworkspace = "{own}"') as served:
        run = await ask(served)
    assert "mine.txt" in str(run.call("ls").result)
    assert [path.name for path in own.iterdir()] == ["mine.txt"]
