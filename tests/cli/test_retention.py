"""`limelight retention` as a shell sees it: beside a server whose clock jumped, and without a server."""

import json
import time
from pathlib import Path
from typing import Any

from tests.cli import short_maintenance_agents
from tests.cli.test_commands import limelight
from tests.system.processes.server_process import ServerProcess, free_port

SHIFTED_CLOCK = Path(__file__).parent / "shifted_clock"


class Machine:
    """A data folder and a wall clock that the test sets, for servers and commands alike."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._clock = folder / "clock"
        self.set_ahead(0)

    def set_ahead(self, days: int) -> None:
        self._clock.write_text(str(days))

    def server(self) -> ServerProcess:
        agent = f"{short_maintenance_agents.__file__}:hello"
        return ServerProcess(self.data, agent, CLOCK=str(self._clock), PYTHONPATH=str(SHIFTED_CLOCK))

    def run(self, *arguments: str, max_gap_days: int = 7) -> str:
        ended = limelight(
            *arguments,
            folder=self.folder,
            CLOCK=str(self._clock),
            PYTHONPATH=str(SHIFTED_CLOCK),
            LIMELIGHT_DATA=str(self.data),
            LIMELIGHT_PORT=str(free_port()),
            LIMELIGHT_RETENTION_MAX_GAP_DAYS=str(max_gap_days),
        )
        return ended.stdout.decode()

    def status(self, max_gap_days: int = 7) -> dict[str, Any]:
        return json.loads(self.run("retention", "status", "--json", max_gap_days=max_gap_days))

    def doctor(self) -> dict[str, Any]:
        found = map(json.loads, self.run("doctor", "--json").splitlines())
        return next(finding for finding in found if finding["what"] == "retention")


def ask(server: ServerProcess, session_id: str) -> None:
    assert list(server.ask(session_id=session_id))[-1][1] == {"type": "done"}


def sessions(server: ServerProcess) -> set[str]:
    return {session["session_id"] for session in server.get("/sessions")[1]["sessions"]}


def until(server: ServerProcess, left: set[str]) -> None:
    deadline = time.monotonic() + 30
    while sessions(server) != left:
        assert time.monotonic() < deadline, server.log
        time.sleep(0.02)  # another process deletes them: there is no event to wait for


def test_retention_waits_for_a_confirmation_beside_a_running_server(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    with machine.server() as server:
        ask(server, "old")
        server.terminate(30)
    machine.set_ahead(400)
    with machine.server() as server:
        server.until_it_says("retention is paused")
        ask(server, "new")
        assert machine.status()["sessions_to_delete"] == 1
        shown = machine.run("retention")
        assert "paused, nothing is deleted" in shown and "400.0 days ahead" in shown
        assert "What to do: if the clock is right, run: limelight retention confirm" in shown
        finding = machine.doctor()
        assert (finding["state"], "limelight retention confirm" in finding["fix"]) == ("note", True)
        status, ready = server.get("/ready")
        assert (status, ready["checks"]["retention"][:7]) == (200, "paused:")
        assert sessions(server) == {"old", "new"}
        confirmed = machine.run("retention", "confirm")
        assert "Confirmed that it is" in confirmed and "1 sessions and 1 runs" in confirmed
        until(server, {"new"})
        assert machine.status()["pause"] is None
        assert "retention" not in server.get("/ready")[1]["checks"]
        assert server.log.count("retention is paused") == 1
        machine.set_ahead(1000)
        server.until_it_says("600.0 days ahead")
        assert sessions(server) == {"new"}, "a second jump needs a second confirmation"


def test_retention_is_confirmed_without_a_server(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert machine.run("retention", "confirm") == "Retention is not paused: there is nothing to confirm.\n"
    assert machine.doctor()["state"] == "ok"
    with machine.server() as server:
        ask(server, "old")
        server.terminate(30)
    machine.set_ahead(365)
    assert machine.status()["pause"] is not None
    assert machine.status(max_gap_days=0)["pause"] is None
    assert "Confirmed that it is" in machine.run("retention", "confirm")
    assert "nothing to confirm" in machine.run("retention", "confirm")
    machine.set_ahead(367)
    assert (machine.doctor()["state"], machine.status()["pause"]) == ("ok", None)
    with machine.server() as server:
        until(server, set())
        assert "retention is paused" not in server.log


def test_retention_of_a_folder_without_a_database_keeps_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    shown = machine.run("retention", "status").splitlines()
    assert shown[1:3] == ["kept now   0 sessions, 0 runs", "past that  0 sessions, 0 runs"]
    assert shown[-1] == "state      active"
    assert not machine.data.exists()
