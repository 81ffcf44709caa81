"""`limelight serve`: refusals in one line with a hint, the version, the help."""

import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from limelight import __version__
from limelight.builtin import catalogue
from limelight.cli import app, serve
from limelight.server.process.uvicorn_server import LimelightServer
from tests.cli.runner import TEMPORARY_FAILURE, USAGE_ERROR, limelight, refused
from tests.client.server_thread import serve_in_thread
from tests.system.processes.agents import hello
from tests.system.processes.server_process import AGENTS_FILE, free_port


@pytest.mark.requirement("start-temporary-fault")
def test_serve_on_a_used_port_is_a_temporary_failure(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        line = refused("--port", str(port), folder=tmp_path, code=TEMPORARY_FAILURE)
    assert f"port {port} is taken" in line
    assert f"--port {port + 1}" in line


def test_serve_refuses_an_invalid_port(tmp_path: Path) -> None:
    assert "`server.port`" in refused("--port", "99999", folder=tmp_path)


@pytest.mark.requirement("public-address-needs-key")
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_serve_refuses_a_public_address_without_a_key(tmp_path: Path, host: str) -> None:
    line = refused("--host", host, "--port", str(free_port()), folder=tmp_path)
    assert "LIMELIGHT_API_KEY" in line and "limelight keys create" in line


def test_serve_refuses_a_data_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    line = refused("--data", "file/data", "--port", str(free_port()), folder=tmp_path)
    assert "file/data cannot be written" in line
    assert "--data" in line


@pytest.mark.requirement("one-server-per-folder")
def test_serve_on_a_used_data_folder_is_a_temporary_failure(tmp_path: Path) -> None:
    with serve_in_thread(hello, data=tmp_path / "data"):
        line = refused("--data", "data", "--port", str(free_port()), folder=tmp_path, code=TEMPORARY_FAILURE)
    assert "another server uses" in line


def test_systemd_unit_restarts_after_temporary_failures_only() -> None:
    unit = (Path(__file__).parents[2] / "deploy/systemd/limelight.service").read_text()
    (given_up,) = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("RestartPreventExitStatus=")]
    assert given_up.split() == [str(USAGE_ERROR)]


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("nowhere:agent", "there is no module 'nowhere'"),
        ("nowhere.py:agent", "there is no file nowhere.py"),
        (f"{AGENTS_FILE}:nobody", "it has: "),
        ("json:dumps", "async def agent(messages, ctx)"),
        ("", "write module:name"),
    ],
)
def test_serve_refuses_an_invalid_target_with_a_hint(tmp_path: Path, target: str, hint: str) -> None:
    assert hint in refused(target, "--port", str(free_port()), folder=tmp_path)


@pytest.mark.parametrize(
    ("config", "hint"),
    [
        ("[server]\nprot = 1", "did you mean 'port'?"),
        ("[serber]\nport = 1", "did you mean 'server'?"),
        ("[server]\nheartbeat_seconds = 'x'", "config.toml:2: [server] heartbeat_seconds is wrong: expected a number"),
        ("[server\n", "not valid TOML"),
        ("[server]\nheartbeat_seconds = 0", "config.toml:2: [server] heartbeat_seconds is wrong"),
        ("[limits]\nrun_seconds = -5", "config.toml:2: [limits] run_seconds is wrong"),
        ("[agents.bot]\ntitle = 'x'", "config.toml:1: [agents.bot] needs a target"),
        ("[agents.codact]\nimports = ['no_such_module']", "config.toml:2: [agents.codact] imports: there is no module"),
        ("[store]\nurl = 'paper:'", "there is no store 'paper'"),
        (
            "[server]\ndefault_format = 'morse'",
            "config.toml:2: there is no format 'morse' for server.default_format; there",
        ),
        (
            "[server]\ndefault_format = 'recods'",
            "config.toml:2: there is no format 'recods' for server.default_format; did",
        ),
    ],
)
def test_serve_refuses_an_invalid_configuration_with_a_hint(tmp_path: Path, config: str, hint: str) -> None:
    (tmp_path / "config.toml").write_text(config)
    assert hint in refused("--port", str(free_port()), folder=tmp_path)


def test_serve_prints_one_line_for_each_mistake_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[server]\nprot = 1\nhost = 5")
    result = limelight("serve", folder=tmp_path, code=2)
    assert [line.partition(" is ")[0].partition(";")[0] for line in result.stderr.splitlines()] == [
        "limelight: config.toml:2: [server] has no setting 'prot'",
        "limelight: config.toml:3: [server] host",
    ]


def test_serve_refuses_two_agents_with_one_name(tmp_path: Path) -> None:
    line = refused(f"{AGENTS_FILE}:hello", f"{AGENTS_FILE}:hello", "--port", str(free_port()), folder=tmp_path)
    assert "two agents named 'hello'" in line


def test_serve_refuses_an_invalid_log_level(tmp_path: Path) -> None:
    line = refused("--port", str(free_port()), folder=tmp_path, LIMELIGHT_LOG="bogus")
    assert "LIMELIGHT_LOG, which sets `log.level`: log.level is one of DEBUG, INFO, WARNING, ERROR, not bogus" in line


def test_serve_refuses_a_missing_configuration_file(tmp_path: Path) -> None:
    assert "missing.toml cannot be read" in refused("--config", "missing.toml", folder=tmp_path)


def test_version_and_help_are_printed(tmp_path: Path) -> None:
    assert limelight("--version", folder=tmp_path).stdout == f"limelight {__version__}\n"
    printed = limelight("serve", "--help", folder=tmp_path, COLUMNS="120").stdout
    for option in ("--host", "--port", "--data", "--store", "--config", "--reload", "TARGET"):
        assert option in printed
    assert "[default: 8000]" in printed


def test_serve_refuses_a_root_path_without_a_key(tmp_path: Path) -> None:
    line = refused("--root-path", "/limelight", "--port", str(free_port()), folder=tmp_path)
    assert "a key is needed" in line
    assert "limelight keys create --data .limelight" in line
    wrong = refused("--root-path", "/a b", folder=tmp_path, LIMELIGHT_API_KEY="sesame", LIMELIGHT_PORT=str(free_port()))
    assert "write it as /limelight" in wrong


def test_serve_names_built_in_agents_without_their_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, served = catalogue.find_spec, list[str]()

    def find(name: str) -> Any:
        return None if name == "agno" else real(name)

    def record_agents(server: LimelightServer) -> None:
        served.extend(agent.name for agent in server.runtime.agents)

    def any_port(host: str, port: int) -> socket.socket:
        return socket.socket()

    def no_log(*_: object) -> None:
        """Leaves the log of the test process unchanged."""

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "find_spec", find)
    monkeypatch.setattr(serve, "bind", any_port)
    monkeypatch.setattr(serve, "set_up_log", no_log)
    monkeypatch.setattr(LimelightServer, "run", record_agents)
    result = CliRunner().invoke(app, ["serve"])
    assert result.output == (
        "Left out, as their extras are not installed: agno, agno-team  (pip install 'limelight[agno]')\n"
    )
    assert served == ["deep", "react", "codact", "demo"]
