"""`execute` of `deep`: off unless it is asked for, it asks before each command, and nothing of it stays behind."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from limelight.agents.resolve import offered
from limelight.config import load_settings
from limelight.errors import SetupError
from limelight.events import ApprovalRequested, RunCancelled, RunFinished
from tests.builtin.test_agents import stage
from tests.sources.live_turn import FinishedRun, checked_run
from tests.support.server import Frame, Served
from tests.support.wait import eventually

ON = "[agents.deep]\nexecute = true\n"


async def run(served: Served, decision: dict[str, Any] | None = None, stop_when: Path | None = None) -> FinishedRun:
    """A run that wants to execute something; the decision may put another command in its place."""
    frames: list[Frame] = []
    async for frame in served.ask("Please use execute", format="records", session_id="s"):
        frames.append(frame)
        run_id = frame.data["run_id"]
        if frame.data["event"]["kind"] == "approval_requested":
            place = f"/runs/{run_id}/approvals/{frame.data['event']['approval_id']}"
            assert (await served.http.post(place, json=decision)).status_code == 200
            if stop_when is not None:
                await eventually(stop_when.exists)
                await served.http.post(f"/runs/{run_id}/cancel", json={})
    return checked_run(frames)


def editing(command: str, **args: Any) -> dict[str, Any]:
    return {"decision": "edit", "args": {"command": command, **args}}


async def test_it_asks_before_each_command_and_shows_what_came_out(tmp_path: Path) -> None:
    async with stage(tmp_path / "data", "deep", ON) as served:
        made = await run(served, {"decision": "approve"})
        refused = await run(served, {"decision": "reject"})
    assert made.one(ApprovalRequested).name == "execute"
    assert "the understudy was here" in made.call("execute").result
    assert made.call("execute").error is None
    assert isinstance(refused.terminal, RunFinished) and refused.call("execute").error


async def test_an_empty_list_asks_for_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path / "data", "deep", f"{ON}approve = []\n") as served:
        made = await run(served)
    assert not made.all(ApprovalRequested)
    assert "the understudy was here" in made.call("execute").result


async def test_a_command_begins_in_the_workspace_and_knows_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-server")
    async with stage(tmp_path / "data", "deep", ON) as served:
        made = await run(served, editing("pwd; ls; env; echo trouble >&2; exit 3"))
    printed = str(made.call("execute").result)
    assert str((tmp_path / "data" / "workspaces" / "s").resolve()) in printed
    assert "bees.md" in printed and "trouble" in printed and "exit code 3" in printed
    assert "sk-secret" not in printed


async def test_time_and_output_have_bounds(tmp_path: Path) -> None:
    async with stage(tmp_path / "data", "deep", ON) as served:
        slow = await run(served, editing("echo begun; sleep 600", timeout=1))
        loud = await run(served, editing("head -c 3000000 /dev/zero | tr '\\0' x"))
    assert "begun" in slow.call("execute").result and "cut off after 1 seconds" in slow.call("execute").result
    assert loud.call("execute").error is None
    assert len(loud.call("execute").result) < 200_000


@pytest.mark.parametrize("ends", ["by itself", "by Stop"])
async def test_nothing_that_a_command_has_started_stays_behind(tmp_path: Path, ends: str) -> None:
    noted = tmp_path / "data" / "workspaces" / "s" / "pid"
    waits = "; wait" if ends == "by Stop" else ""
    async with stage(tmp_path / "data", "deep", ON) as served:
        decision = editing(f"sleep 600 & echo $! > pid.new; mv pid.new pid{waits}")
        made = await run(served, decision, noted if waits else None)
        assert isinstance(made.terminal, RunCancelled if waits else RunFinished)
        pid = int(noted.read_text())
        await eventually(lambda: not _lives(pid))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:1]


def test_what_can_be_set(tmp_path: Path) -> None:
    def made(config: str) -> str:
        file = tmp_path / "config.toml"
        file.write_text(config)
        try:
            offered(load_settings(file, environ={}), environ={})
        except SetupError as error:
            return error.detail
        return ""

    assert made('[agents.deep]\napprove = ["write_file", "execute"]') == ""
    assert made(ON) == ""
    assert "expected true or false" in made('[agents.deep]\nexecute = "yes"')
    assert "execute makes no difference for this agent: it is for deep" in made("[agents.agno]\nexecute = true")


async def test_a_list_that_names_it_does_not_turn_it_on(tmp_path: Path) -> None:
    async with stage(tmp_path / "data", "deep", '[agents.deep]\napprove = ["execute"]\n') as served:
        made = await asyncio.wait_for(run(served), 60)
    assert not made.all(ApprovalRequested)
