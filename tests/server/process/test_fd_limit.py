"""Open files: a process that has none left says so, once, and one that may have more takes them."""

import logging
import resource
import socket
from pathlib import Path

import pytest

from limelight.runs.retention_guard import STATE
from limelight.server.process.fd_limit import ENOUGH, QUIET_SECONDS, Descriptors
from tests.system.processes.server_process import ServerProcess

FEW = 60
"""A server needs about forty for itself."""


def test_it_is_told_when_it_comes_and_when_it_has_passed(caplog: pytest.LogCaptureFixture) -> None:
    none = False
    descriptors = Descriptors(lambda: none)
    descriptors.look(0)
    assert caplog.messages == []
    none = True
    descriptors.look(1)
    descriptors.look(2)
    (line,) = caplog.messages
    assert "no file is left to open" in line and "LimitNOFILE" in line
    none = False
    descriptors.look(3)  # which may be for a moment only
    none = True
    descriptors.look(1 + QUIET_SECONDS)
    assert len(caplog.messages) == 1
    none = False
    descriptors.look(2 + QUIET_SECONDS)
    assert caplog.messages[1:] == ["files can be opened again"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]


def test_a_server_takes_what_it_may_have(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "hello") as server:
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    assert soft == (ENOUGH if hard == resource.RLIM_INFINITY else max(soft, min(hard, ENOUGH)))
    assert soft >= min(hard, ENOUGH) or hard == resource.RLIM_INFINITY


def test_a_server_without_a_file_to_open_says_so_and_goes_on(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "hello") as server:
        list(server.ask())
        server.until_file(tmp_path / "data" / STATE)  # the first housekeeping round is over, and has closed its files
        before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (FEW, before[1]))
        waiting = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(2 * FEW)]
        server.until_it_says("no file is left to open")
        for connection in waiting:
            connection.close()
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
        assert [data["type"] for _, data in server.ask()][-1] == "done"
