"""Resolution of targets and settings to agents, and the errors of settings."""

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from limelight.agents.resolve import ResolvedAgents, resolve_agents
from limelight.builtin import catalogue
from limelight.config import load_settings
from limelight.errors import SetupError

ALL = ["deep", "agno", "agno-team", "react", "codact", "demo"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bots.py").write_text('async def bot(messages, ctx):\n    """Says hello."""\n    yield "hello"\n')
    return tmp_path


def resolve(
    text: str = "", *targets: str, environ: dict[str, str] | None = None, only: str | None = None
) -> ResolvedAgents:
    Path("config.toml").write_text(text)
    return resolve_agents(load_settings(environ={}), targets, only=only, environ=environ or {})


def names(*arguments: str, **options: Any) -> list[str]:
    return [agent.name for agent in resolve(*arguments, **options).agents]


def error_of(text: str, *targets: str, **options: Any) -> str:
    with pytest.raises(SetupError) as caught:
        resolve(text, *targets, **options)
    assert "\n" not in caught.value.detail
    return caught.value.detail


MINE = '[agents.mine]\ntarget = "bots.py:bot"\n'


@pytest.mark.parametrize(
    ("text", "targets", "served"),
    [
        ("", [], ALL),
        ("[agents.codact]\nmax_steps = 5", [], ALL),
        ("[agents.codact]\n[agents.deep]", [], ALL),
        ('[agents.coder]\ntarget = "codact"', [], [*ALL, "coder"]),
        (MINE, [], ["mine"]),
        (f"{MINE}[agents.codact]", [], ["mine", "codact"]),
        (f"[agents.react]\n{MINE}[agents.demo]", [], ["react", "mine", "demo"]),
        ('[agents.deep]\ntarget = "bots.py:bot"', [], ["deep"]),
        ("", ["bots.py:bot"], ["bot"]),
        (MINE, ["demo", "bots.py:bot"], ["demo", "bot"]),
        (MINE, ["mine", "react"], ["mine", "react"]),
        ('[agents.coder]\ntarget = "codact"', ["coder"], ["coder"]),
        ('[agents.deep]\ntarget = "codact"', [], ALL),
    ],
)
def test_targets_and_tables_decide_which_agents_are_offered(text: str, targets: list[str], served: list[str]) -> None:
    assert names(text, *targets) == served


def test_table_adjusts_a_built_in_agent() -> None:
    text = """
    [agents.codact]
    title = "Coder"
    description = "Codes"
    enable_streaming = false
    max_steps = 7
    planning_interval = 2
    status = {search = "Looking"}
    """
    agents = {agent.name: agent for agent in resolve(text).agents}
    coder, other = agents["codact"], agents["react"]
    assert (coder.title, coder.description, coder.enable_streaming) == ("Coder", "Codes", False)
    assert (coder.max_steps, coder.status, coder.source.framework) == (7, {"search": "Looking"}, "smolagents")
    assert (other.title, other.enable_streaming, other.max_steps) == ("ReAct agent", True, None)


def test_table_adjusts_the_users_own_agent(folder: Path) -> None:
    (agent,) = resolve(f'{MINE}workspace = "files"\nenable_streaming = false\nstatus = {{x = "y"}}').agents
    assert (agent.title, agent.description, agent.workspace) == ("mine", "Says hello.", "files")
    assert (agent.enable_streaming, agent.status) == (False, {"x": "y"})


def test_built_in_agents_have_framework_and_description_before_loading() -> None:
    listed = {a.name: (a.source.framework, a.source.keeps_memory) for a in resolve().agents}
    assert listed["deep"] == ("langgraph", True)
    assert listed["demo"] == ("function", True)
    assert resolve().hint == ""
    assert resolve('[agents.deep]\ntarget = "codact"').agents[0].source.framework == "smolagents"
    for agent in resolve().agents:
        assert agent.title
        assert agent.description == agent.source.description != ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f'{MINE}model = "x"',
            "config.toml:3: [agents.mine] model has no effect on this agent: that agent brings",
        ),
        (f'{MINE}base_url = "x"', "config.toml:3: [agents.mine] base_url has no effect"),
        (f"{MINE}imports = []", "imports has no effect on this agent: they are for codact"),
        (
            f"{MINE}planning_interval = 2",
            "config.toml:3: [agents.mine] planning_interval has no effect on this agent:",
        ),
        (f"{MINE}max_steps = 2", "its framework (function) has no steps that could be counted"),
        (
            "[agents.demo]\nmodel = 'x'",
            "config.toml:2: [agents.demo] model has no effect on this agent: it uses no model",
        ),
        ("[agents.demo]\nmax_steps = 2", "its framework (function) has no steps"),
        ("[agents.deep]\nplanning_interval = 2", "its framework (langgraph) makes no plans of its own"),
        ("[agents.react]\nimports = ['math']", "they are for codact"),
        (
            "[agents.react]\nworkspace = 'x'",
            "config.toml:2: [agents.react] workspace has no effect on this agent: it has",
        ),
        (
            "[agents.bot]\ntitle = 'x'",
            "config.toml:1: [agents.bot] needs a target, e.g. target = 'my_module:agent', or",
        ),
        (
            "[agents.deep]\nbase_url = 'http://h/v1'",
            "config.toml:2: [agents.deep] base_url needs a model: set model too",
        ),
        (
            "[agents.deep]\nmodel = 'x'",
            "config.toml:2: [agents.deep] the model 'x' at https://api.openai.com/v1 needs a key: set OPENAI_API_KEY",
        ),
        (
            "[agents.codcat]",
            "config.toml:1: [agents.codcat] needs a target, e.g. target = 'my_module:agent'; did you mean 'codact'?",
        ),
        (
            "[agents.x]\ntarget = 'nobody'",
            "config.toml:2: [agents.x] target 'nobody': there is no module 'nobody' here",
        ),
        (
            "[agents.x]\n\ntarget = 'codcat'",
            "config.toml:3: [agents.x] target 'codcat': there is no module 'codcat' here; write module:name or "
            "path/to/file.py:name; did you mean 'codact'?",
        ),
        ("[agents.x]\ntarget = 'no.py:a'", "config.toml:2: [agents.x] target 'no.py:a': there is no file no.py"),
        (
            "[agents.x]\ntarget = 'bots.py:bit'",
            "config.toml:2: [agents.x] target 'bots.py:bit': bots.py has no 'bit'; it has: bot",
        ),
        (
            f"{MINE}workspace = 'config.toml'",
            "config.toml:3: [agents.mine] workspace: config.toml is not a folder",
        ),
        (
            f"{MINE}workspace = 'bots.py/x'",
            "config.toml:3: [agents.mine] workspace: bots.py/x cannot be created, as ",
        ),
        ("[agents.demo]\nworkspace = 'bots.py'", "config.toml:2: [agents.demo] workspace: bots.py is not a folder"),
        (f"{MINE}workspace = 'new/{'x' * 300}'", "cannot be created in "),
        (f'{MINE}workspace = "new/\\u0000"', "cannot be created in "),
        (f"{MINE}workspace = '~nobody-is-called-so/x'", "workspace: ~nobody-is-called-so/x cannot be reached: "),
        ("[tools]\nsearch_url = 'http://x/'", "config.toml:2: tools.search_url has no {query}"),
        (
            "[tools]\nsearch_url = 'x/{query}'",
            "config.toml:2: tools.search_url is not a valid address: it has to begin with http",
        ),
        (
            "[agents.codact]\nimports = ['math', 'statistcs']",
            "config.toml:2: [agents.codact] imports: there is no module 'statistcs' here; did you mean 'statistics'?",
        ),
        (
            "[agents.codact]\nimports = ['zzzzz.*']",
            "config.toml:2: [agents.codact] imports: there is no module 'zzzzz.*' here; pip install zzzzz, or leave",
        ),
        ("[agents.codact]\nimports = ['']", "config.toml:2: [agents.codact] imports: '' is not a module; leave it out"),
    ],
)
def test_settings_without_effect_and_invalid_ones_are_refused(text: str, message: str) -> None:
    assert message in error_of(text)


@pytest.mark.parametrize(
    "url", ["localhost:1/v1", "ftp://h/v1", "http://", "http:///v1", "h", "http://h:x/", "http://h h/", "http://[h/"]
)
def test_base_url_has_to_be_a_web_address(url: str) -> None:
    message = error_of(f"[agents.deep]\nmodel = 'm'\nbase_url = {url!r}")
    assert message.startswith(
        f"config.toml:3: [agents.deep] base_url {url!r} is not a valid address: it has to begin with http://"
    )
    message = error_of("", environ={"LIMELIGHT_MODEL": "m", "OPENAI_BASE_URL": url})
    assert message.startswith(f"OPENAI_BASE_URL {url!r} is not a valid address")


def test_workspace_without_write_permission_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "locked").mkdir()

    def access(path: Path, mode: int) -> bool:
        return "locked" not in str(path)

    monkeypatch.setattr(os, "access", access)
    assert error_of(f"{MINE}workspace = 'locked'").endswith("[agents.mine] workspace: locked cannot be written")
    assert f"workspace: locked/new cannot be created in {folder / 'locked'}" in error_of(
        f"{MINE}workspace = 'locked/new'"
    )
    assert names(f"{MINE}workspace = 'new'") == ["mine"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that is never writable")
@pytest.mark.parametrize(
    ("workspace", "message"),
    [
        ("/proc/nope", "/proc/nope cannot be created in /proc"),
        ("/proc/self/a/b", "/proc/self/a/b cannot be created in /proc/self"),
        ("/proc", "/proc cannot be written"),
    ],
)
def test_workspace_that_cannot_be_created_is_refused(workspace: str, message: str) -> None:
    assert error_of(f"{MINE}workspace = '{workspace}'").startswith(f"config.toml:3: [agents.mine] workspace: {message}")


def test_workspace_check_leaves_nothing_behind(folder: Path) -> None:
    (folder / "there").mkdir()
    assert names(f"{MINE}workspace = 'new/deep/down'") == names(f"{MINE}workspace = 'there'") == ["mine"]
    assert {one.name for one in folder.iterdir()} - {"__pycache__"} == {"bots.py", "config.toml", "there"}
    assert list((folder / "there").iterdir()) == []


def test_all_mistakes_of_all_agents_are_reported_together(folder: Path) -> None:
    text = """[agents.codact]
imports = ["zzzzz"]
planning_interval = 1
workspace = "x"
[agents.mine]
target = "bots.py:nobody"
model = "m"
[agents.deep]
max_steps = 3
planning_interval = 1
[agents.codcat]
"""
    with pytest.raises(SetupError) as caught:
        resolve(text)
    lines = caught.value.detail.splitlines()
    assert [line.split(" ")[0] for line in lines] == [f"config.toml:{at}:" for at in (4, 2, 6, 7, 10, 11)]


def test_mistake_that_affects_all_agents_is_reported_once() -> None:
    assert error_of("", environ={"LIMELIGHT_MODEL": "big"}).startswith(
        "the model 'big' at https://api.openai.com/v1 needs"
    )
    assert error_of("[tools]\nsearch_url = 'x'").count("search_url") == 1


def test_status_of_an_unknown_tool_is_a_warning() -> None:
    text = "[agents.codact]\ntitle = 'x'\n[agents.codact.status]\nsearch = 'a'\nserch = 'b'\npaint = 'c'"
    resolved = resolve(text)
    assert len(resolved.agents) == len(ALL)
    first, second = resolved.hint.splitlines()
    assert first == (
        "config.toml:5: [agents.codact] status.serch will not be shown: codact has no tool 'serch'; "
        "did you mean 'search'?"
    )
    assert second.startswith(
        "config.toml:6: [agents.codact] status.paint will not be shown: codact has no tool 'paint'"
    )
    assert second.endswith("it has: search, readurl, python_interpreter, final_answer")


def test_target_with_an_invalid_agent_name_is_refused(folder: Path) -> None:
    (folder / "bots.py").write_text("async def böt(messages, ctx):\n    yield 'hello'\n")
    assert "'böt' cannot be the name of an agent" in error_of("", "bots.py:böt")
    assert names('[agents.bot]\ntarget = "bots.py:böt"') == ["bot"]


def test_real_model_needs_a_key_for_agents_that_use_it() -> None:
    assert "OPENAI_API_KEY" in error_of("", environ={"LIMELIGHT_MODEL": "big"})
    assert names("", environ={"LIMELIGHT_MODEL": "big", "OPENAI_API_KEY": "k"}) == ALL
    assert names("", "demo", environ={"LIMELIGHT_MODEL": "big"}) == ["demo"]


def test_unknown_target_gets_a_suggestion_or_all_names() -> None:
    assert error_of("", "codcat").endswith(
        "there is no module 'codcat' here; write module:name or path/to/file.py:name; did you mean 'codact'?"
    )
    message = error_of("", "nobody")
    assert "there is no module 'nobody' here" in message
    assert message.endswith("or the name of a built-in agent: deep, agno, agno-team, react, codact, demo")


@pytest.fixture
def without_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that only smolagents is installed."""
    missing = {"deepagents", "agno"}

    def find(name: str) -> Any:
        return None if name in missing else importlib.util.find_spec(name)

    monkeypatch.setattr(catalogue, "find_spec", find)


@pytest.mark.usefixtures("without_frameworks")
class TestWithoutFrameworks:
    def test_agents_that_were_not_requested_are_left_out(self) -> None:
        resolved = resolve()
        assert [agent.name for agent in resolved.agents] == ["react", "codact", "demo"]
        assert resolved.hint == (
            "Left out, as their extras are not installed: deep, agno, agno-team  "
            "(pip install 'limelight[deepagents,agno]')"
        )

    @pytest.mark.parametrize(
        ("text", "targets"),
        [("", ["deep"]), ("[agents.deep]", []), (f"{MINE}[agents.deep]", []), ("[agents.deep]", ["deep"])],
    )
    def test_requested_agent_is_an_error(self, text: str, targets: list[str]) -> None:
        message = "agent 'deep' needs the deepagents extra: pip install 'limelight[deepagents]'"
        assert error_of(text, *targets) == message

    def test_requested_agent_under_another_name_is_an_error(self) -> None:
        assert "agent 'mine' needs the deepagents extra" in error_of('[agents.mine]\ntarget = "deep"')

    def test_default_agent_is_the_first_installed_one(self) -> None:
        assert names("", only="") == ["react"]
        assert "needs the agno extra" in error_of("", only="agno")


def test_only_loads_a_single_agent() -> None:
    broken = '[agents.broken]\ntarget = "nowhere:agent"\n'
    assert names(MINE + broken, only="") == ["mine"]
    assert names(MINE + broken, only="mine") == ["mine"]
    assert "there is no module" in error_of(MINE + broken, only="broken")
    assert error_of(MINE, only="nobody") == "there is no agent 'nobody'; there are: mine"
    assert error_of("", only="codcat") == "there is no agent 'codcat'; did you mean 'codact'?"
    assert names("", only="codact") == ["codact"]


def models(*arguments: str, **options: Any) -> dict[str, str]:
    return {agent.name: agent.model for agent in resolve(*arguments, **options).agents}


def test_model_is_the_understudy_or_empty_for_agents_without_one() -> None:
    assert models() == {**dict.fromkeys(ALL, "understudy"), "demo": ""}


def test_model_names_a_configured_model_and_is_empty_for_own_agents() -> None:
    environ = {"LIMELIGHT_MODEL": "big", "OPENAI_API_KEY": "k"}
    assert models("", environ=environ) == {**dict.fromkeys(ALL, "big"), "demo": ""}
    table = '[agents.react]\nmodel = "small"\nbase_url = "http://127.0.0.1:11434/v1"\n'
    assert models(table, environ=environ)["react"] == "small"
    assert models(f"{MINE}[agents.codact]") == {"mine": "", "codact": "understudy"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[agents.deep]\napprove = ['delet']", "has no approvable tool 'delet'; did you mean 'delete'?"),
        ("[agents.agno-team]\napprove = ['delegate_task_to_member']", "there are: search, readurl, calculate"),
        ("[agents.codact]\napprove = ['serch']", "codact has no approvable tool 'serch'; did you mean 'search'?"),
        (
            "[agents.react]\napprove = ['final_answer']",
            "react has no approvable tool 'final_answer'; there are: search",
        ),
        ("[agents.demo]\napprove = ['write_file']", "it asks itself: "),
        (f"{MINE}approve = ['x']", "it asks itself: "),
    ],
)
def test_approve_with_unsupported_tools_is_refused(text: str, message: str) -> None:
    detail = error_of(text)
    assert message in detail
    assert detail.startswith("config.toml:")


# Input and context

GRAPHS = """
from dataclasses import dataclass
from typing import TypedDict
from langgraph.graph import START, StateGraph

class In(TypedDict):
    topic: str
    words: int

class State(In):
    text: str

@dataclass
class Context:
    tone: str
    model: str = "small"

def make(**options):
    builder = StateGraph(State, input_schema=In, **options)
    builder.add_node("only", lambda state: {})
    builder.add_edge(START, "only")
    return builder

graph = make(context_schema=Context)
free = make()

async def later():
    return graph
"""


@pytest.fixture
def graphs(folder: Path) -> None:
    (folder / "graphs.py").write_text(GRAPHS)


@pytest.mark.usefixtures("graphs")
def test_table_sets_input_and_context() -> None:
    text = """
    [agents.writer]
    target = "graphs.py:graph"
    input = {words = 200}
    context = {tone = "calm"}
    context_from_request = ["model"]
    """
    (agent,) = resolve(text).agents
    assert agent.context_from_request == ("model",)
    assert agent.source.schemas.input is not None and agent.source.schemas.input["required"] == ["topic"]
    assert agent.source.schemas.context is not None and agent.source.schemas.context["required"] == []
    assert (
        resolve('[agents.writer]\ntarget = "graphs.py:graph"\ncontext_from_request = true')
        .agents[0]
        .context_from_request
    )


@pytest.mark.usefixtures("graphs")
@pytest.mark.parametrize(
    ("setting", "mistake"),
    [
        ("input = {word = 1}", "input.word: there is no 'word'; did you mean 'words'?"),
        ('input = {words = "x"}', 'input.words: expected a whole number, got "x"'),
        ('input = {thread_id = "x"}', "input.thread_id: 'thread_id' is reserved: only the server sets it"),
        ('context = {ton = "x"}', "context.ton: there is no 'ton'; did you mean 'tone'?"),
        ('context = {user_id = "x"}', "context.user_id: 'user_id' is reserved: only the server sets it"),
        ('context_from_request = ["modell"]', "context_from_request: there is no 'modell'; did you mean 'model'?"),
        ('context_from_request = ["run_id"]', "context_from_request: 'run_id' is reserved: only the server sets it"),
        ('context_from_request = "tone"', "context_from_request is wrong: expected true, false or a list, got"),
    ],
)
def test_wrong_input_and_context_are_named_with_their_line(setting: str, mistake: str) -> None:
    error = error_of(f'[agents.writer]\ntarget = "graphs.py:graph"\n{setting}')
    assert error.startswith(f"config.toml:3: [agents.writer] {mistake}")


@pytest.mark.usefixtures("graphs")
def test_graph_without_a_context_schema_takes_any_context() -> None:
    (agent,) = resolve('[agents.a]\ntarget = "graphs.py:free"\ncontext = {anything = 1}').agents
    assert agent.source.schemas.context == {"type": "object"}


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (f"{MINE}input = {{a = 1}}", "input has no effect on this agent: it is asked with messages only"),
        (f"{MINE}context = {{a = 1}}", "context has no effect on this agent: it takes no context"),
        (f"{MINE}context_from_request = true", "context_from_request has no effect on this agent: it takes no context"),
        ("[agents.deep]\ninput = {a = 1}", "input has no effect on this agent: it is asked in words only"),
        ("[agents.demo]\ncontext_from_request = true", "context_from_request has no effect on this agent: it is asked"),
    ],
)
def test_input_and_context_of_agents_that_take_none_are_mistakes(text: str, mistake: str) -> None:
    assert mistake in error_of(text)


class DataFolder:
    """The resources of a server, for a source that is opened without one."""

    def __init__(self, data: Path) -> None:
        self.data = data

    async def understudy(self) -> tuple[str, str]:
        raise NotImplementedError


@pytest.mark.usefixtures("graphs")
async def test_values_for_a_graph_of_a_factory_are_checked_when_it_is_opened(tmp_path: Path) -> None:
    text = '[agents.a]\ntarget = "graphs.py:later"\ncontext = {ton = "x"}'
    (agent,) = resolve(text).agents
    with pytest.raises(SetupError, match=r"context\.ton is wrong: there is no 'ton'; did you mean 'tone'"):
        await agent.source.open(DataFolder(tmp_path))
