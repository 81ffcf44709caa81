"""The limit of file descriptors: it is raised, and its exhaustion is logged once."""

import logging
import resource
import socket
from pathlib import Path

import pytest

from limelight.runs.retention_guard import STATE
from limelight.server.process.fd_limit import MAX_DESCRIPTORS, QUIET_SECONDS, FdMonitor
from tests.system.processes.server_process import ServerProcess

FEW = 60
"""A server needs about forty descriptors."""


@pytest.mark.requirement("fd-limit")
def test_exhausted_descriptors_are_logged_once_and_their_return_too(caplog: pytest.LogCaptureFixture) -> None:
    is_exhausted = False
    monitor = FdMonitor(lambda: is_exhausted)
    monitor.check(0)
    assert caplog.messages == []
    is_exhausted = True
    monitor.check(1)
    monitor.check(2)
    (line,) = caplog.messages
    assert "no file descriptor is left" in line and "LimitNOFILE" in line
    is_exhausted = False
    monitor.check(3)  # too soon after the last line
    is_exhausted = True
    monitor.check(1 + QUIET_SECONDS)
    assert len(caplog.messages) == 1
    is_exhausted = False
    monitor.check(2 + QUIET_SECONDS)
    assert caplog.messages[1:] == ["file descriptors are available again"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]


def test_server_raises_its_descriptor_limit(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "hello") as server:
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    assert soft == (MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else max(soft, min(hard, MAX_DESCRIPTORS)))
    assert soft >= min(hard, MAX_DESCRIPTORS) or hard == resource.RLIM_INFINITY


@pytest.mark.requirement("fd-limit")
def test_server_without_descriptors_logs_it_and_recovers(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "hello", "quiet", LIMELIGHT_HEARTBEAT_SECONDS="0.2") as server:
        list(server.ask())
        connected = server.ask(agent="quiet")
        next(iter(connected))
        server.until_file(tmp_path / "data" / STATE)  # maintenance has run once and closed its files
        before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (FEW, before[1]))
        waiting = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(2 * FEW)]
        server.until_it_says("no file descriptor is left")
        heartbeats = 0
        while heartbeats < 3:
            heartbeats += connected.connection.recv(4096).count(b": ping")
        for connection in waiting:
            connection.close()
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
        assert [data["type"] for _, data in server.ask()][-1] == "done"
