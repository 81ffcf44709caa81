"""`limelight retention`: beside a server whose clock jumped, and without a server."""

import json
import logging
import time
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from limelight.client import SyncClient
from limelight.runs import maintenance
from tests.cli.runner import limelight
from tests.client.server_thread import serve_in_thread, wait_until
from tests.support.server import Served
from tests.system.processes.agents import hello
from tests.system.processes.server_process import free_port

DAY_NS = 24 * 3600 * 10**9


class Machine:
    """A data folder and a wall clock that the test moves, for servers and commands."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.days_ahead = 0
        real_ns = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: real_ns() + self.days_ahead * DAY_NS)
        monkeypatch.setattr(time, "time", lambda: time.time_ns() / 1e9)

    def server(self) -> AbstractContextManager[Served]:
        return serve_in_thread(hello, data=self.data)

    def run(self, *arguments: str, max_gap_days: int = 7) -> str:
        return limelight(
            *arguments,
            folder=self.folder,
            LIMELIGHT_DATA=str(self.data),
            LIMELIGHT_PORT=str(free_port()),
            LIMELIGHT_RETENTION_MAX_GAP_DAYS=str(max_gap_days),
        ).stdout

    def status(self, max_gap_days: int = 7) -> dict[str, Any]:
        return json.loads(self.run("retention", "status", "--json", max_gap_days=max_gap_days))

    def doctor(self) -> dict[str, Any]:
        found = map(json.loads, self.run("doctor", "--json").splitlines())
        return next(finding for finding in found if finding["what"] == "retention")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(maintenance, "LEASE_MS", 600)  # a maintenance round every 0.2 s
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def log() -> Generator[list[str]]:
    """The log lines of servers in this process. The root handlers of pytest are replaced while a command runs."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = logging.getLogger("limelight")
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


def sessions(client: SyncClient) -> set[str]:
    return {session.session_id for session in client.sessions()}


@pytest.mark.requirement("retention-clock")
def test_retention_waits_for_a_confirmation_beside_a_running_server(machine: Machine, log: list[str]) -> None:
    with machine.server() as served, SyncClient(served.url) as client:
        client.ask("go", session_id="old")
    machine.days_ahead = 400
    with machine.server() as served, SyncClient(served.url) as client:
        wait_until(lambda: any("retention is paused" in line for line in log))
        client.ask("go", session_id="new")
        assert machine.status()["sessions_to_delete"] == 1
        shown = machine.run("retention")
        assert "paused, nothing is deleted" in shown and "400.0 days ahead" in shown
        assert "What to do: if the clock is right, run: limelight retention confirm" in shown
        finding = machine.doctor()
        assert (finding["state"], "limelight retention confirm" in finding["fix"]) == ("note", True)
        ready = httpx.get(f"{served.url}/ready")
        assert (ready.status_code, ready.json()["checks"]["retention"][:7]) == (200, "paused:")
        assert sessions(client) == {"old", "new"}
        confirmed = machine.run("retention", "confirm")
        assert "Confirmed that it is" in confirmed and "1 sessions and 1 runs" in confirmed
        wait_until(lambda: sessions(client) == {"new"})
        assert machine.status()["pause"] is None
        assert "retention" not in httpx.get(f"{served.url}/ready").json()["checks"]
        assert sum("retention is paused" in line for line in log) == 1
        machine.days_ahead = 1000
        wait_until(lambda: any("600.0 days ahead" in line for line in log))
        assert sessions(client) == {"new"}, "a second jump needs a second confirmation"


def test_retention_is_confirmed_without_a_server(machine: Machine, log: list[str]) -> None:
    assert machine.run("retention", "confirm") == "Retention is not paused: there is nothing to confirm.\n"
    assert machine.doctor()["state"] == "ok"
    with machine.server() as served, SyncClient(served.url) as client:
        client.ask("go", session_id="old")
    machine.days_ahead = 365
    assert machine.status()["pause"] is not None
    assert machine.status(max_gap_days=0)["pause"] is None
    assert "Confirmed that it is" in machine.run("retention", "confirm")
    assert "nothing to confirm" in machine.run("retention", "confirm")
    machine.days_ahead = 367
    assert (machine.doctor()["state"], machine.status()["pause"]) == ("ok", None)
    with machine.server() as served, SyncClient(served.url) as client:
        wait_until(lambda: sessions(client) == set())
        assert not [line for line in log if "retention is paused" in line]


def test_retention_of_a_folder_without_a_database_keeps_nothing(machine: Machine) -> None:
    shown = machine.run("retention", "status").splitlines()
    assert shown[1:3] == ["kept now   0 sessions, 0 runs", "past that  0 sessions, 0 runs"]
    assert shown[-1] == "state      active"
    assert not machine.data.exists()
