"""The built-in agents from the command line: one run loads one agent, and what is left out is said."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from limelight.builtin import catalogue
from limelight.cli import app, serve
from limelight.server.process.uvicorn_server import LimelightServer
from tests.system.processes.server_process import free_port


def run(*arguments: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "limelight", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_run_without_a_server_loads_no_other_agent(tmp_path: Path) -> None:
    (tmp_path / "bots.py").write_text("async def bot(messages, ctx):\n    yield 'hello'\n")
    (tmp_path / "config.toml").write_text(
        '[agents.good]\ntarget = "bots.py:bot"\n[agents.broken]\ntarget = "nowhere:agent"\n'
    )
    port = str(free_port())
    ended = run("run", "hi", "--plain", folder=tmp_path, LIMELIGHT_PORT=port)
    assert ended.stdout.startswith("● good: hi\n\nhello\n"), ended.stderr
    broken = run("run", "hi", "--plain", "--agent", "broken", folder=tmp_path)
    assert (broken.returncode, "there is no module 'nowhere'" in broken.stderr) == (2, True)
    nobody = run("run", "hi", "--plain", "--agent", "nobody", folder=tmp_path)
    assert nobody.stderr == "limelight: there is no agent 'nobody'; there are: good, broken\n"


def test_a_run_of_the_default_agent(tmp_path: Path) -> None:
    ended = run("run", "What do bees do in winter?", "--plain", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("● deep: ")
    assert "▸ agent researcher" in ended.stdout
    assert "https://library.example/bees" in ended.stdout


def test_what_frameworks_log_is_in_the_log_and_not_in_the_view(tmp_path: Path) -> None:
    model = {"LIMELIGHT_MODEL": "m", "OPENAI_BASE_URL": f"http://127.0.0.1:{free_port()}/v1", "OPENAI_API_KEY": "k"}
    ended = run("run", "hi", "--plain", "--agent", "agno", folder=tmp_path, **model)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert all(line[0] in "●·F" for line in ended.stdout.splitlines()), ended.stdout
    assert "API connection error" in (tmp_path / ".limelight" / "run.log").read_text()


def test_serve_says_what_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, served = catalogue.find_spec, list[str]()

    def find(name: str) -> Any:
        return None if name == "agno" else real(name)

    def note(server: LimelightServer) -> None:
        served.extend(agent.name for agent in server.parts.agents)

    def bound(host: str, port: int) -> None:
        """No port is needed."""

    def no_log(*_: object) -> None:
        """Logging is the process's."""

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "find_spec", find)
    monkeypatch.setattr(serve, "bind", bound)
    monkeypatch.setattr(serve, "log_to", no_log)
    monkeypatch.setattr(LimelightServer, "run", note)
    said = CliRunner().invoke(app, ["serve"])
    assert said.output == (
        "Left out, as their extras are not installed: agno, agno-team  (pip install 'limelight[agno]')\n"
    )
    assert served == ["deep", "react", "codact", "demo"]
