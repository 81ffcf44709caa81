"""`limelight serve` in a process: built-in agents, a closed stdout, --reload."""

import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import httpx

from tests.support.wait import DEADLINE
from tests.system.commands.command_process import command
from tests.system.processes.server_process import AGENTS_FILE, ServerProcess, free_port


def test_serve_with_a_closed_stdout_exits_with_0(tmp_path: Path) -> None:
    arguments = command("serve", "--port", "0", f"{AGENTS_FILE}:hello")
    with subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            assert b"Limelight serves hello" in server.stdout.readline()
            server.stdout.close()
            server.send_signal(signal.SIGINT)
            assert server.wait(DEADLINE) == 0
        finally:
            server.kill()


def test_serve_without_a_target_serves_the_built_in_agents(tmp_path: Path) -> None:
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


def test_serve_reload_restarts_when_a_file_changes(tmp_path: Path) -> None:
    agent = tmp_path / "bot.py"
    write = "async def bot(messages, ctx):\n    yield '{}'\n".format
    agent.write_text(write("one"))
    port = free_port()
    arguments = command("serve", "bot.py:bot", "--port", str(port), "--reload")
    with (tmp_path / "out.log").open("w") as log:
        process = subprocess.Popen(arguments, cwd=tmp_path, stdout=log, stderr=log)
    try:
        assert answers(port, "one")
        agent.write_text(write("two"))
        assert answers(port, "two")
    finally:
        process.terminate()
        assert process.wait(DEADLINE) == 0
    assert "bot.py changed: restarting." in (tmp_path / "out.log").read_text()


def answers(port: int, expected: str) -> bool:
    """Ask until the answer is as expected. A server that shuts down interrupts runs (502), and begins no more (503)."""
    body = {"messages": [{"role": "user", "content": "?"}]}
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            answer = httpx.post(f"http://127.0.0.1:{port}/chat", json=body, trust_env=False, timeout=DEADLINE)
            assert answer.is_success or answer.json()["code"] in ("interrupted", "shutting_down"), answer.text
            if answer.is_success and answer.json()["message"]["content"] == expected:
                return True
        time.sleep(0.05)  # the next server has no event to wait for
    return False
