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


@pytest.mark.requirement("public-address-needs-key")
@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--port", "99999"), "`server.port`"),
        (("--host", "0.0.0.0"), "limelight keys create --data .limelight --user NAME`, or set LIMELIGHT_API_KEY"),
        (("--host", "::"), "limelight keys create --data .limelight --user NAME`, or set LIMELIGHT_API_KEY"),
        (("--root-path", "/limelight"), "limelight keys create --data .limelight"),
        (("--data", "file/data"), "file/data cannot be written (Not a directory): choose another with --data"),
        (("--config", "missing.toml"), "missing.toml cannot be read"),
        (("nowhere:agent",), "there is no module 'nowhere'"),
        (("",), "write module:name"),
        ((f"{AGENTS_FILE}:hello", f"{AGENTS_FILE}:hello"), "two agents named 'hello'"),
    ],
)
def test_serve_refuses_invalid_arguments_with_a_hint(tmp_path: Path, arguments: tuple[str, ...], hint: str) -> None:
    (tmp_path / "file").write_text("in the way")
    assert hint in refused(*arguments, folder=tmp_path, LIMELIGHT_PORT=str(free_port()))


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("LIMELIGHT_LOG", "bogus", "LIMELIGHT_LOG, which sets `log.level`: log.level is one of DEBUG, INFO"),
        ("LIMELIGHT_ROOT_PATH", "/a b", "write it as /limelight"),
    ],
)
def test_serve_refuses_an_invalid_environment_with_a_hint(tmp_path: Path, name: str, value: str, hint: str) -> None:
    environment: dict[str, Any] = {"LIMELIGHT_API_KEY": "sesame", "LIMELIGHT_PORT": str(free_port()), name: value}
    assert hint in refused(folder=tmp_path, **environment)


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
    ("config", "hint"),
    [
        ("[server]\nprot = 1", "config.toml:2: [server] has no setting 'prot'; did you mean 'port'?"),
        ("[agents.bot]\ntitle = 'x'", "config.toml:1: [agents.bot] needs a target"),
        ("[store]\nurl = 'paper:'", "there is no store 'paper'"),
        (
            "[server]\ndefault_format = 'morse'",
            "config.toml:2: there is no format 'morse' for server.default_format; there are: ",
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


def test_version_and_help_are_printed(tmp_path: Path) -> None:
    assert limelight("--version", folder=tmp_path).stdout == f"limelight {__version__}\n"
    printed = limelight("serve", "--help", folder=tmp_path, COLUMNS="120").stdout
    for option in ("--host", "--port", "--data", "--store", "--config", "--reload", "TARGET"):
        assert option in printed
    assert "[default: 8000]" in printed


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
