"""docs/quickstart.md, followed word by word: its commands in their order, in one shell, against `make run`."""

import os
import subprocess
from pathlib import Path

import httpx

from tests.support.markdown import blocks
from tests.support.wait import DEADLINE, wait_for
from tests.system.processes.server_process import free_port

ROOT = Path(__file__).parents[3]


def test_commands_of_the_quickstart_work(tmp_path: Path) -> None:
    port = str(free_port())
    start, *rest = [block.replace("8000", port) for block in blocks((ROOT / "docs/quickstart.md").read_text(), "sh")]
    assert start.strip() == "make run"
    environment = {**os.environ, "LIMELIGHT_DATA": str(tmp_path / "data"), "LIMELIGHT_URL": f"http://127.0.0.1:{port}"}
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(
            ["make", "run", f"PORT={port}"], cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait_until_it_answers(f"http://127.0.0.1:{port}/health")
        (tmp_path / ".venv").symlink_to(ROOT / ".venv")
        script = "set -eu\n" + "\n".join(rest)
        environment["LIMELIGHT_PORT"] = port
        ended = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=5 * DEADLINE,
            check=False,
        )
    finally:
        os.killpg(server.pid, 15)
        server.wait(DEADLINE)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    drawn = ("✓ read_file /bees.md", "▸ agent Calculator")
    for seen in ('{"type":"done"}', '"Which rivers are long?"', '"state":"finished"', *drawn):
        assert seen in ended.stdout, seen
    assert (tmp_path / "run.jsonl").read_text().count("\n") > 50


def _wait_until_it_answers(url: str) -> None:
    wait_for("the server", lambda: httpx.get(url, trust_env=False, timeout=5).status_code == 200)
