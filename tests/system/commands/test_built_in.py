"""Built-in agents from the command line, in a process: frameworks set up logging and warnings when they are loaded."""

from pathlib import Path
from typing import Any

from tests.system.commands.command_process import limelight
from tests.system.processes.server_process import free_port


def test_run_uses_the_default_agent(tmp_path: Path) -> None:
    stdout = limelight("run", "What do bees do in winter?", "--plain", folder=tmp_path).stdout.decode()
    assert stdout.startswith("● deep: ")
    assert "▸ agent researcher" in stdout
    assert "https://library.example/bees" in stdout


def test_run_writes_logs_of_frameworks_to_its_log_file_only(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    model: dict[str, Any] = {"LIMELIGHT_MODEL": "m", "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"}
    ended = limelight("run", "hi", "--plain", "--agent", "agno", folder=tmp_path, code=1, **model)
    assert ended.stderr == b""
    assert all(line[0] in "●·F" for line in ended.stdout.decode().splitlines()), ended.stdout
    assert "API connection error" in (tmp_path / ".limelight" / "run.log").read_text()
