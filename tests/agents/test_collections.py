"""Targets that hold several agents: the `AgentOS` of Agno."""

from pathlib import Path

import pytest

from limelight.agents.resolve import resolve_agents
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.runs.agent_registry import Agent

FILE = """
from agno.agent import Agent
from agno.os import AgentOS
from agno.team import Team
from agno.workflow import Workflow

writer = Agent(name="Web Writer", description="Writes.", telemetry=False)
agent_os = AgentOS(
    agents=[writer, Agent(id="second", telemetry=False)],
    teams=[Team(name="Crew", members=[writer], telemetry=False)],
    workflows=[Workflow(name="Web Writer", description="Flows.", steps=[writer], telemetry=False)],
    telemetry=False,
)
small = AgentOS(agents=[writer], telemetry=False)
"""
ALL = ["Web-Writer", "second", "Crew", "Web-Writer-2"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "other.py").write_text(FILE)
    return tmp_path


def resolved(*targets: str, text: str = "", only: str | None = None) -> list[Agent]:
    file = Path("config.toml")
    file.write_text(text)
    return resolve_agents(load_settings(file, environ={}), targets, only=only, environ={}).agents


def test_agent_os_with_nothing_that_can_be_served_is_refused_by_the_names_of_what_it_has() -> None:
    Path("made.py").write_text(
        "from agno.agent.factory import AgentFactory\n"
        "from agno.db.in_memory import InMemoryDb\n"
        "from agno.os import AgentOS\n"
        "made = AgentFactory(db=InMemoryDb(), id='tenant', factory=lambda ctx: None)\n"
        "agent_os = AgentOS(agents=[made], telemetry=False)\n"
    )
    with pytest.raises(SetupError, match=r"no agent, team or workflow of Agno, only tenant \(AgentFactory\)"):
        resolved("made.py:agent_os")


@pytest.mark.requirement("agno-workflows")
def test_all_agents_teams_and_workflows_of_an_agent_os_are_served() -> None:
    agents = resolved("mine.py:agent_os")
    assert [agent.name for agent in agents] == ALL
    assert [agent.title for agent in agents] == ["Web Writer", "second", "Crew", "Web Writer-2"]
    assert [agent.description for agent in agents] == ["Writes.", "", "", "Flows."]
    assert {agent.source.framework for agent in agents} == {"agno"}


def test_agents_of_several_targets_have_names_of_their_own() -> None:
    (Path("many.py")).write_text(FILE)
    names = [agent.name for agent in resolved("mine.py:agent_os", "many.py:agent_os", "mine.py:writer")]
    assert names == [*ALL, *(f"many-agent_os-{name}" for name in ALL), "writer"]


def test_one_agent_of_a_collection_is_chosen_by_its_name() -> None:
    assert [agent.name for agent in resolved("mine.py:agent_os", only="Crew")] == ["Crew"]
    assert [agent.name for agent in resolved("mine.py:agent_os", only="")] == ["Web-Writer"]
    assert [agent.name for agent in resolved("mine.py:agent_os.Crew")] == ["Crew"]
    (writer,) = resolved("mine.py:agent_os.Web-Writer", only="Web-Writer")
    assert (writer.name, writer.title) == ("Web-Writer", "Web Writer")
    with pytest.raises(SetupError, match="there is no agent 'Crow'; did you mean 'Crew'"):
        resolved("mine.py:agent_os", only="Crow")
    with pytest.raises(SetupError, match="agent_os has no agent 'none'; it has: Web-Writer, second, Crew"):
        resolved("mine.py:agent_os.none")


def test_table_names_one_agent_of_a_collection() -> None:
    agents = resolved(text='[agents.team]\ntarget = "mine.py:agent_os.Crew"\n[agents.one]\ntarget = "mine.py:small"\n')
    assert [(agent.name, agent.title) for agent in agents] == [("team", "team"), ("one", "one")]
    with pytest.raises(SetupError, match=r"holds several agents; name one of them: mine.py:agent_os.Web-Writer, "):
        resolved(text='[agents.team]\ntarget = "mine.py:agent_os"\n')
