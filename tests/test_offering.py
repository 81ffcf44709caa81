"""Which agents are served, and what a person reads whose setting would make no difference."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from limelight.builtin import catalogue
from limelight.builtin.catalogue import BUILT_INS
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.offering import Offer, offered

ALL = ["deep", "agno", "agno-team", "react", "codact", "demo"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bots.py").write_text('async def bot(messages, ctx):\n    """Says hello."""\n    yield "hello"\n')
    return tmp_path


def offer(text: str = "", *targets: str, environ: dict[str, str] | None = None, only: str | None = None) -> Offer:
    Path("config.toml").write_text(text)
    return offered(load_settings(environ={}), targets, only=only, environ=environ or {})


def names(*arguments: str, **options: Any) -> list[str]:
    return [agent.name for agent in offer(*arguments, **options).agents]


def wrong(text: str, *targets: str, **options: Any) -> str:
    with pytest.raises(SetupError) as caught:
        offer(text, *targets, **options)
    assert "\n" not in caught.value.detail
    return caught.value.detail


OWN = '[agents.mine]\ntarget = "bots.py:bot"\n'


@pytest.mark.parametrize(
    ("text", "targets", "served"),
    [
        ("", [], ALL),
        ("[agents.codact]\nmax_steps = 5", [], ALL),
        ("[agents.codact]\n[agents.deep]", [], ALL),
        ('[agents.coder]\ntarget = "codact"', [], [*ALL, "coder"]),
        (OWN, [], ["mine"]),
        (f"{OWN}[agents.codact]", [], ["mine", "codact"]),
        (f"[agents.react]\n{OWN}[agents.demo]", [], ["react", "mine", "demo"]),
        ('[agents.deep]\ntarget = "bots.py:bot"', [], ["deep"]),
        ("", ["bots.py:bot"], ["bot"]),
        (OWN, ["demo", "bots.py:bot"], ["demo", "bot"]),
        (OWN, ["mine", "react"], ["mine", "react"]),
        ('[agents.coder]\ntarget = "codact"', ["coder"], ["coder"]),
        ('[agents.deep]\ntarget = "codact"', [], ALL),
    ],
)
def test_what_is_served(text: str, targets: list[str], served: list[str]) -> None:
    assert names(text, *targets) == served


def test_a_table_adjusts_a_built_in_agent() -> None:
    text = """
    [agents.codact]
    title = "Coder"
    description = "Codes"
    enable_streaming = false
    max_steps = 7
    planning_interval = 2
    status = {search = "Looking"}
    """
    agents = {agent.name: agent for agent in offer(text).agents}
    coder, other = agents["codact"], agents["react"]
    assert (coder.title, coder.description, coder.enable_streaming) == ("Coder", "Codes", False)
    assert (coder.max_steps, coder.status, coder.source.framework) == (7, {"search": "Looking"}, "smolagents")
    assert (other.title, other.enable_streaming, other.max_steps) == ("ReAct agent", True, None)


def test_a_table_adjusts_an_agent_of_ones_own(folder: Path) -> None:
    (agent,) = offer(f'{OWN}workspace = "files"\nenable_streaming = false\nstatus = {{x = "y"}}').agents
    assert (agent.title, agent.description, agent.workspace) == ("mine", "Says hello.", "files")
    assert (agent.enable_streaming, agent.status) == (False, {"x": "y"})


def test_each_built_in_agent_says_what_it_is_before_anything_is_loaded() -> None:
    listed = {a.name: (a.source.framework, a.source.keeps_memory) for a in offer().agents}
    assert listed["deep"] == ("langgraph", True)
    assert listed["demo"] == ("function", False)
    for agent in offer().agents:
        assert agent.title
        assert agent.description == agent.source.description != ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            f'{OWN}model = "x"',
            "config.toml:3: [agents.mine] model makes no difference for this agent: that agent brings",
        ),
        (f'{OWN}base_url = "x"', "config.toml:3: [agents.mine] base_url makes no difference"),
        (f"{OWN}imports = []", "imports makes no difference for this agent: they are for codact"),
        (
            f"{OWN}planning_interval = 2",
            "config.toml:3: [agents.mine] planning_interval makes no difference for this agent:",
        ),
        (f"{OWN}max_steps = 2", "its framework (function) has no steps that could be counted"),
        (
            "[agents.demo]\nmodel = 'x'",
            "config.toml:2: [agents.demo] model makes no difference for this agent: it talks to no",
        ),
        ("[agents.demo]\nmax_steps = 2", "its framework (function) has no steps"),
        ("[agents.deep]\nplanning_interval = 2", "its framework (langgraph) makes no plans of its own"),
        ("[agents.react]\nimports = ['math']", "they are for codact"),
        (
            "[agents.react]\nworkspace = 'x'",
            "config.toml:2: [agents.react] workspace makes no difference for this agent: it has",
        ),
        (
            "[agents.bot]\ntitle = 'x'",
            "config.toml:1: [agents.bot] needs a target, e.g. target = 'my_module:agent', or",
        ),
        (
            "[agents.deep]\nbase_url = 'http://h/v1'",
            "config.toml:1: agent 'deep': base_url says where a model is, but not which",
        ),
        (
            "[agents.deep]\nmodel = 'x'",
            "agent 'deep': the model 'x' at https://api.openai.com/v1 needs a key: set OPENAI_API_KEY",
        ),
        ("[agents.x]\ntarget = 'nobody'", "there is no module 'nobody' here"),
        (f"{OWN}workspace = 'config.toml'", "config.toml:3: [agents.mine] workspace: config.toml is no folder"),
        ("[tools]\nsearch_url = 'http://x/'", "config.toml:2: tools.search_url has no {query} in it"),
    ],
)
def test_what_makes_no_difference_or_no_sense_is_refused(text: str, told: str) -> None:
    assert told in wrong(text)


def test_an_open_model_needs_its_key_for_every_agent_that_talks_to_one() -> None:
    assert "OPENAI_API_KEY" in wrong("", environ={"LIMELIGHT_MODEL": "big"})
    assert names("", environ={"LIMELIGHT_MODEL": "big", "OPENAI_API_KEY": "k"}) == ALL
    assert names("", "demo", environ={"LIMELIGHT_MODEL": "big"}) == ["demo"]


def test_a_table_may_put_one_built_in_agent_in_the_place_of_another() -> None:
    assert offer('[agents.deep]\ntarget = "codact"').agents[0].source.framework == "smolagents"


def test_a_name_that_is_none_is_told_which_there_are() -> None:
    told = wrong("", "depp")
    assert "there is no module 'depp' here" in told
    assert told.endswith("or the name of a built-in agent: deep, agno, agno-team, react, codact, demo")


@pytest.fixture
def without_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if only smolagents were installed."""
    gone = {"deepagents", "agno"}

    def find(name: str) -> Any:
        return None if name in gone else importlib.util.find_spec(name)

    monkeypatch.setattr(catalogue, "find_spec", find)


@pytest.mark.usefixtures("without_frameworks")
class TestWithoutFrameworks:
    def test_agents_that_nobody_named_are_left_out_in_one_line(self) -> None:
        served = offer()
        assert [agent.name for agent in served.agents] == ["react", "codact", "demo"]
        assert served.hint == (
            "Left out, as their extras are not installed: deep, agno, agno-team  "
            "(pip install 'limelight[deepagents,agno]')"
        )

    @pytest.mark.parametrize(
        ("text", "targets"),
        [("", ["deep"]), ("[agents.deep]", []), (f"{OWN}[agents.deep]", []), ("[agents.deep]", ["deep"])],
    )
    def test_one_that_was_named_is_missed(self, text: str, targets: list[str]) -> None:
        told = "agent 'deep' needs the deepagents extra: pip install 'limelight[deepagents]'"
        assert wrong(text, *targets) == told

    def test_one_that_was_named_is_missed_though_another_of_its_kind_is_left_out(self) -> None:
        assert "agent 'mine' needs the deepagents extra" in wrong('[agents.mine]\ntarget = "deep"')

    def test_the_only_one_is_the_first_that_is_there(self) -> None:
        assert names("", only="") == ["react"]
        assert "needs the agno extra" in wrong("", only="agno")


def test_nothing_is_left_out_if_all_is_there() -> None:
    assert offer().hint == ""


def test_only_one_agent_is_loaded_if_only_one_is_wanted() -> None:
    broken = '[agents.broken]\ntarget = "nowhere:agent"\n'
    assert names(OWN + broken, only="") == ["mine"]
    assert names(OWN + broken, only="mine") == ["mine"]
    assert "there is no module" in wrong(OWN + broken, only="broken")
    assert wrong(OWN, only="nobody") == "there is no agent 'nobody'; there are: mine"
    assert names("", only="codact") == ["codact"]


def test_the_catalogue_is_in_order() -> None:
    assert [one.name for one in BUILT_INS] == ALL
