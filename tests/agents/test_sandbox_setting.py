"""The sandbox of agents: which agents have one, and which are served where code cannot be confined."""

from pathlib import Path

import pytest

from limelight.agents.resolve import ResolvedAgents, resolve_agents
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.sandbox import levels
from limelight.sandbox.levels import Availability
from limelight.sandbox.policy import Level


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
def test_public_server_serves_unconfined_code_if_the_setting_says_so(tmp_path: Path) -> None:
    chosen = offer(tmp_path, "[sandbox]\nlevel = 'none'")
    assert chosen.without_unconfined("none") == chosen


def test_setting_sandbox_is_refused_where_it_has_no_effect(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="code and commands of built-in agents always run in the sandbox"):
        offer(tmp_path, "[agents.codact]\nsandbox = true")
