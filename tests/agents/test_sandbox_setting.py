"""The sandbox of agents: which agents have one, and which are served where code cannot be confined."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from limelight.agents.resolve import ResolvedAgents, resolve_agents
from limelight.auth.key_file import Keyring
from limelight.cli import app, serve
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.sandbox import levels
from limelight.sandbox.levels import Availability
from limelight.sandbox.policy import Level
from limelight.server.process.uvicorn_server import LimelightServer
from tests.builtin.agent_runs import serve_agent


def offer(folder: Path, text: str = "", *targets: str) -> ResolvedAgents:
    file = folder / "config.toml"
    file.write_text(text)
    return resolve_agents(load_settings(file, environ={}), targets)


@pytest.fixture
def no_level_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine may have all levels, so the probes are replaced."""

    def availability(level: Level) -> Availability:
        return Availability(level, level == "none", "" if level == "none" else f"there is no {level}")

    monkeypatch.setattr(levels, "availability", availability)


def test_only_agents_that_run_code_have_a_sandbox(tmp_path: Path) -> None:
    agents = offer(tmp_path).agents
    assert {agent.name for agent in agents if agent.sandbox is not None} == {"codact"}
    with_commands = offer(tmp_path, "[agents.deep]\nexecute = true").agents
    assert {agent.name for agent in with_commands if agent.sandbox is not None} == {"deep", "codact"}


def test_sandbox_has_the_limits_of_the_settings_and_hides_data_and_configuration(tmp_path: Path) -> None:
    text = f"[store]\ndata = '{tmp_path / 'data'}'\n[sandbox]\nmemory_mb = 512\nnetwork = true\nread_only = ['/opt/x']"
    sandbox = offer(tmp_path, text, "codact").agents[0].sandbox
    assert sandbox is not None
    assert (sandbox.limits.memory_mb, sandbox.network, sandbox.read_only) == (512, True, ("/opt/x",))
    assert set(sandbox.hidden) == {str(tmp_path / "data"), str(tmp_path / "config.toml")}


@pytest.mark.requirement("sandbox-level-setting")
@pytest.mark.usefixtures("no_level_works")
def test_level_that_does_not_work_is_refused_with_its_place_and_reason(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as refused:
        offer(tmp_path, "\n[sandbox]\nlevel = 'landlock'")
    assert "config.toml:3: sandbox.level = 'landlock' does not work here: there is no landlock" in refused.value.detail


@pytest.mark.usefixtures("no_level_works")
@pytest.mark.requirement("sandbox-public-server")
def test_public_server_leaves_out_agents_whose_code_cannot_be_confined(tmp_path: Path) -> None:
    public = offer(tmp_path).without_unconfined("auto")
    assert "codact" not in [agent.name for agent in public.agents]
    assert "react" in [agent.name for agent in public.agents]
    assert "codact" in public.hint and "there is no bubblewrap" in public.hint
    with pytest.raises(SetupError, match="LIMELIGHT_SANDBOX=none serves them anyway"):
        offer(tmp_path, "", "codact").without_unconfined("auto")


@pytest.mark.usefixtures("no_level_works")
@pytest.mark.requirement("sandbox-public-server")
def test_public_server_serves_unconfined_code_if_the_setting_allows_it(tmp_path: Path) -> None:
    chosen = offer(tmp_path, "[sandbox]\nlevel = 'none'")
    assert chosen.without_unconfined("none") == chosen


@pytest.mark.usefixtures("no_level_works")
@pytest.mark.requirement("sandbox-public-server")
@pytest.mark.parametrize("auth", ["api_key", "issuer", "insecure_no_auth", "a key", ""])
def test_server_that_others_may_use_on_this_machine_is_public(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, auth: str
) -> None:
    """Behind a proxy on this machine the server listens on 127.0.0.1, and `server.root_path` may be empty."""
    served = list[str]()

    def record_agents(server: LimelightServer) -> None:
        served.extend(agent.name for agent in server.runtime.agents)

    def any_port(host: str, port: int) -> socket.socket:
        return socket.socket()

    def no_log(*_: object) -> None:
        """Leaves the log of the test process unchanged."""

    values = {"api_key": "'sk-1'", "issuer": "'https://login.example.org'", "insecure_no_auth": "true"}
    config = f"[auth]\n{auth} = {values[auth]}\n" if auth in values else ""
    config += "audience = 'limelight'\n" if auth == "issuer" else ""
    (tmp_path / "config.toml").write_text(f"{config}[store]\ndata = '{tmp_path / 'data'}'\n")
    if auth == "a key":
        Keyring(tmp_path / "data").create("ann", ("use",), 1)
    monkeypatch.setattr(serve, "bind", any_port)
    monkeypatch.setattr(serve, "set_up_log", no_log)
    monkeypatch.setattr(LimelightServer, "run", record_agents)
    result = CliRunner().invoke(app, ["serve", "--config", str(tmp_path / "config.toml")])
    assert result.exit_code == 0, result.output
    assert "react" in served
    assert ("codact" in served) == (auth == "")
    assert ("Left out, as code of a model would run unconfined" in result.output) == (auth != "")


@pytest.mark.usefixtures("no_level_works")
@pytest.mark.requirement("sandbox-public-server")
@pytest.mark.parametrize("level", ["auto", "none"])
async def test_key_that_is_created_later_ends_the_use_of_unconfined_code(tmp_path: Path, level: str) -> None:
    data = tmp_path / "data"
    config = f"[sandbox]\nlevel = '{level}'"
    async with serve_agent(data, "codact", config, sandbox__level=level) as served:
        body = {"messages": [{"role": "user", "content": "What is 2 + 2?"}]}
        assert (await served.http.post("/chat", json=body)).status_code == 200
        _, key = Keyring(data).create("ann", ("use",), 1)
        headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": "203.0.113.9"}
        answer = await served.http.post("/chat", json=body, headers=headers)
    assert answer.status_code == (200 if level == "none" else 403), answer.text
    assert level == "none" or "no sandbox that confines it" in answer.json()["detail"]


def test_setting_sandbox_is_refused_where_it_has_no_effect(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="code and commands of built-in agents always run in the sandbox"):
        offer(tmp_path, "[agents.codact]\nsandbox = true")


@pytest.mark.requirement("sandbox-reported")
async def test_list_of_agents_names_the_level_and_why_it_is_weaker(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "", "[sandbox]\nlevel = 'landlock'") as served:
        listed = (await served.http.get("/agents")).json()["agents"]
    found = {agent["name"]: (agent["sandbox"], agent["sandbox_reason"]) for agent in listed}
    assert found["codact"] == ("landlock", "set by sandbox.level")
    assert found["react"] == ("", "")
