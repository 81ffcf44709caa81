"""`limelight serve` as a person meets it: what is wrong is one line that says what to do."""

import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from limelight import __version__
from tests.system.processes.server_process import AGENTS_FILE, ServerProcess, free_port


def limelight(*arguments: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "limelight", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


WRONG, LATER = 2, 75
"""Exit codes: of a set-up that no second start would mend, and of one that it might."""


def refused(*arguments: str, folder: Path, code: int = WRONG, **environment: str) -> str:
    """The one line on stderr of a command that does not start."""
    ended = limelight("serve", *arguments, folder=folder, **environment)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("limelight: ")
    return line


def test_a_taken_port(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        line = refused("--port", str(port), folder=tmp_path, code=LATER)
    assert f"port {port} is taken" in line
    assert f"--port {port + 1}" in line


def test_an_impossible_port(tmp_path: Path) -> None:
    assert "`server.port`" in refused("--port", "99999", folder=tmp_path)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_open_address_needs_a_key(tmp_path: Path, host: str) -> None:
    line = refused("--host", host, "--port", str(free_port()), folder=tmp_path)
    assert "LIMELIGHT_API_KEY" in line


def test_an_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    line = refused("--data", "file/data", "--port", str(free_port()), folder=tmp_path)
    assert "file/data cannot be written" in line
    assert "--data" in line


def test_a_second_server_on_the_same_folder(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "hello"):
        line = refused("--data", "data", "--port", str(free_port()), folder=tmp_path, code=LATER)
    assert "another server uses" in line


def test_a_service_manager_goes_on_where_another_start_may_help() -> None:
    unit = (Path(__file__).parents[2] / "deploy/systemd/limelight.service").read_text()
    (given_up,) = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("RestartPreventExitStatus=")]
    assert given_up.split() == [str(WRONG)]


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
def test_a_target_that_is_none(tmp_path: Path, target: str, hint: str) -> None:
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
def test_a_wrong_configuration(tmp_path: Path, config: str, hint: str) -> None:
    (tmp_path / "config.toml").write_text(config)
    assert hint in refused("--port", str(free_port()), folder=tmp_path)


def test_several_mistakes_are_a_line_each(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[server]\nprot = 1\nhost = 5")
    told = limelight("serve", folder=tmp_path)
    assert told.returncode == 2
    assert [line.partition(" is ")[0].partition(";")[0] for line in told.stderr.splitlines()] == [
        "limelight: config.toml:2: [server] has no setting 'prot'",
        "limelight: config.toml:3: [server] host",
    ]


def test_it_ends_in_good_order_though_nobody_reads_what_it_says(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "limelight", "serve", "--port", "0", f"{AGENTS_FILE}:hello"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            assert b"Limelight serves hello" in server.stdout.readline()
            server.stdout.close()
            server.send_signal(signal.SIGINT)
            assert server.wait(20) == 0
        finally:
            server.kill()


def test_two_agents_of_one_name(tmp_path: Path) -> None:
    line = refused(f"{AGENTS_FILE}:hello", f"{AGENTS_FILE}:hello", "--port", str(free_port()), folder=tmp_path)
    assert "two agents named 'hello'" in line


def test_a_log_level_that_is_none(tmp_path: Path) -> None:
    line = refused("--port", str(free_port()), folder=tmp_path, LIMELIGHT_LOG="bogus")
    assert "LIMELIGHT_LOG, which sets `log.level`: log.level is one of DEBUG, INFO, WARNING, ERROR, not bogus" in line


def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    assert "missing.toml cannot be read" in refused("--config", "missing.toml", folder=tmp_path)


def test_version_and_help(tmp_path: Path) -> None:
    assert limelight("--version", folder=tmp_path).stdout == f"limelight {__version__}\n"
    said = limelight("serve", "--help", folder=tmp_path, COLUMNS="120").stdout
    for option in ("--host", "--port", "--data", "--store", "--config", "--reload", "TARGET"):
        assert option in said
    assert "[default: 8000]" in said


def test_without_a_target_the_built_in_agents_are_served(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        _, listed = server.get("/agents")
        assert [(a["name"], a["framework"], a["default"]) for a in listed["agents"]] == [
            ("deep", "langgraph", True),
            ("agno", "agno", False),
            ("agno-team", "agno", False),
            ("react", "smolagents", False),
            ("codact", "smolagents", False),
            ("demo", "function", False),
        ]
        assert all(agent["title"] and agent["description"] for agent in listed["agents"])
        frames = server.ask("What do bees do?", agent="demo").take(10**6)
        types = {data["type"] for _, data in frames}
        assert {"status", "token", "plan", "tool_start", "tool_end", "agent_start", "agent_end", "artifact"} <= types
        said = "".join(d["data"]["content"] for _, d in frames if d["type"] == "token")
        assert "by dancing" in said
        assert (tmp_path / "data" / "workspaces").is_dir()
        assert f"http://127.0.0.1:{server.port}" in server.log


def test_reload_starts_again_when_a_file_changes(tmp_path: Path) -> None:
    agent = tmp_path / "bot.py"
    write = "async def bot(messages, ctx):\n    yield '{}'\n".format
    agent.write_text(write("one"))
    port = free_port()
    command = [sys.executable, "-m", "limelight", "serve", "bot.py:bot", "--port", str(port), "--reload"]
    with (tmp_path / "out.log").open("w") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    try:
        assert _answers(port, "one")
        agent.write_text(write("two"))
        assert _answers(port, "two")
    finally:
        process.terminate()
        assert process.wait(20) == 0
    assert "bot.py changed: starting again." in (tmp_path / "out.log").read_text()


def _answers(port: int, expected: str) -> bool:
    """Ask until the answer is this one. A server that shuts down refuses with 503 first, then the port is closed."""
    body = {"messages": [{"role": "user", "content": "?"}]}
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            answer = httpx.post(f"http://127.0.0.1:{port}/chat", json=body, trust_env=False, timeout=30)
            assert answer.status_code in (200, 503), answer.text
            if answer.is_success and answer.json()["message"]["content"] == expected:
                return True
        time.sleep(0.05)  # nothing tells when the next server listens
    return False


def test_a_path_for_a_proxy_needs_a_key(tmp_path: Path) -> None:
    line = refused("--root-path", "/limelight", "--port", str(free_port()), folder=tmp_path)
    assert "a key is needed" in line
    assert "limelight keys create --data .limelight" in line
    wrong = refused("--root-path", "/a b", folder=tmp_path, LIMELIGHT_API_KEY="sesame", LIMELIGHT_PORT=str(free_port()))
    assert "write it as /limelight" in wrong
