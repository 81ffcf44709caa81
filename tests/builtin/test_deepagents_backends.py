"""`execute` of `deep`: off by default, needs approval, and leaves no processes behind."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from limelight.agents.resolve import resolve_agents
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.events import ApprovalRequested, RunCancelled, RunFinished
from tests.builtin.agent_runs import ask, ask_and_decide, decide, serve_agent
from tests.sources.live_turn import FinishedRun, checked_run
from tests.support.server import Frame, Served
from tests.support.wait import eventually

EXECUTE_ON = "[agents.deep]\nexecute = true\n"


COMMAND = "Please use execute"


def edited(command: str, **args: Any) -> dict[str, Any]:
    """A decision that replaces the command."""
    return {"decision": "edit", "args": {"command": command, **args}}


async def stopped_run(served: Served, decision: dict[str, Any], started: Path) -> FinishedRun:
    """A run that is stopped when the file exists."""
    frames: list[Frame] = []
    async for frame in served.ask(COMMAND, format="records", session_id="s"):
        frames.append(frame)
        if frame.data["event"]["kind"] == "approval_requested":
            await decide(served, frame, **decision)
            await eventually(started.exists)
            await served.http.post(f"/runs/{frame.data['run_id']}/cancel", json={})
    return checked_run(frames)


@pytest.mark.requirement("commands-off")
async def test_execute_asks_before_each_command_and_returns_its_output(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "deep", EXECUTE_ON) as served:
        made = await ask_and_decide(served, COMMAND, decision="approve")
        refused = await ask_and_decide(served, COMMAND, decision="reject")
    assert made.one(ApprovalRequested).name == "execute"
    assert "the understudy was here" in made.call("execute").result
    assert made.call("execute").error is None
    assert isinstance(refused.terminal, RunFinished) and refused.call("execute").error


async def test_empty_list_disables_the_approval_of_execute(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "deep", f"{EXECUTE_ON}approve = []\n") as served:
        made = await ask(served, COMMAND)
    assert not made.all(ApprovalRequested)
    assert "the understudy was here" in made.call("execute").result


async def test_command_starts_in_the_workspace_without_the_environment_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-server")
    async with serve_agent(tmp_path / "data", "deep", EXECUTE_ON) as served:
        made = await ask_and_decide(served, COMMAND, **edited("pwd; ls; env; echo trouble >&2; exit 3"))
    printed = str(made.call("execute").result)
    assert str((tmp_path / "data" / "workspaces" / "s").resolve()) in printed
    assert "bees.md" in printed and "trouble" in printed and "exit code 3" in printed
    assert "sk-secret" not in printed


async def test_time_and_output_of_a_command_are_limited(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "deep", EXECUTE_ON) as served:
        slow = await ask_and_decide(served, COMMAND, **edited("echo begun; sleep 600", timeout=1))
        loud = await ask_and_decide(served, COMMAND, **edited("head -c 3000000 /dev/zero | tr '\\0' x"))
    assert "begun" in slow.call("execute").result and "cut off after 1 seconds" in slow.call("execute").result
    assert loud.call("execute").error is None
    assert len(loud.call("execute").result) < 200_000


@pytest.mark.parametrize("ends", ["by itself", "by Stop"])
async def test_processes_of_a_command_are_killed_at_its_end(tmp_path: Path, ends: str) -> None:
    started = tmp_path / "data" / "workspaces" / "s" / "started"
    seconds = f"600.{uuid4().int % 10**9}"  # names the process: its pid in the sandbox is not the pid here
    waits = "; wait" if ends == "by Stop" else ""
    async with serve_agent(tmp_path / "data", "deep", EXECUTE_ON) as served:
        decision = edited(f"sleep {seconds} & touch started{waits}")
        if waits:
            made = await stopped_run(served, decision, started)
        else:
            made = await ask_and_decide(served, COMMAND, **decision)
        assert isinstance(made.terminal, RunCancelled if waits else RunFinished)
        await eventually(lambda: not _is_running("sleep", seconds))


def _is_running(*command: str) -> bool:
    wanted = b"".join(word.encode() + b"\0" for word in command)
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has ended
            if entry.read_bytes() == wanted:
                return True
    return False


def test_execute_is_validated(tmp_path: Path) -> None:
    def error_of(config: str) -> str:
        file = tmp_path / "config.toml"
        file.write_text(config)
        try:
            resolve_agents(load_settings(file, environ={}), environ={})
        except SetupError as error:
            return error.detail
        return ""

    assert error_of('[agents.deep]\napprove = ["write_file", "execute"]') == ""
    assert error_of(EXECUTE_ON) == ""
    assert "expected true or false" in error_of('[agents.deep]\nexecute = "yes"')
    assert "execute has no effect on this agent: it is for deep" in error_of("[agents.agno]\nexecute = true")


async def test_approve_list_with_execute_does_not_enable_it(tmp_path: Path) -> None:
    async with serve_agent(tmp_path / "data", "deep", '[agents.deep]\napprove = ["execute"]\n') as served:
        made = await asyncio.wait_for(ask(served, COMMAND), 60)
    assert not made.all(ApprovalRequested)
