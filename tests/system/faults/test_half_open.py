"""Clients that vanish without closing their connections, or hardly read: the server closes them, others do not wait.

A process that is stopped (SIGSTOP) is such a client: its machine still buffers some data, but nothing answers.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.wait import DEADLINE, wait_for
from tests.system.faults import short_timeout_agents, stoppable_client
from tests.system.faults.invariants import nothing_is_left, settled, traces
from tests.system.faults.threaded_viewers import Reader
from tests.system.processes.server_process import ServerProcess

AGENTS = [f"{short_timeout_agents.__file__}:{name}" for name in ("endless", "quiet", "hello", "chatty")]


@contextmanager
def client(server: ServerProcess, *paths: str) -> Generator["subprocess.Popen[bytes]"]:
    """A client process with these streams open."""
    command = [sys.executable, "-m", stoppable_client.__name__, str(server.port), *paths]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"open\n"
            yield process
        finally:
            process.kill()


def until_connections(server: ServerProcess, count: int) -> None:
    wait_for("the end of connections without a client", lambda: traces(server).connections <= count)


@pytest.mark.requirement("dead-connections-close")
def test_connections_of_a_stopped_client_are_closed(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", *AGENTS, LIMELIGHT_HEARTBEAT_SECONDS="0.5") as server:
        list(server.ask(agent="hello"))
        before = settled(server)
        asking = Reader(server, "typed", session_id="s", agent="chatty").begin()
        asking.until_something_came()
        paths = [f"/runs/{asking.run_id}/stream", f"/runs/{asking.run_id}/stream?format=records", "/api/v2/ws/s"]
        with client(server, *paths, "/api/v2/ws/quiet?agent_type=quiet") as vanished:
            vanished.send_signal(signal.SIGSTOP)
            asking.until_over()
            until_connections(server, 0)
            assert psutil.pid_exists(vanished.pid), "the client has ended by itself"
        assert asking.whole
        nothing_is_left(server, before, [asking])


def test_silent_stream_that_accepts_heartbeats_stays_open(tmp_path: Path) -> None:
    """A client that accepts what is sent stays connected, however little that is."""
    with ServerProcess(tmp_path / "data", *AGENTS, LIMELIGHT_HEARTBEAT_SECONDS="0.2") as server:
        stream = server.ask(agent="quiet", session_id="q")
        deadline = time.monotonic() + 2 * short_timeout_agents.uvicorn_protocols.UNREAD_SECONDS
        frames = iter(stream)
        next(frames)
        while time.monotonic() < deadline:  # that nothing happens can only be seen by waiting
            assert stream.connection.recv(1024)
        server.post(f"/runs/{stream.run_id}/cancel")
        stream.close()
        nothing_is_left(server)


@pytest.mark.requirement("slow-viewers")
def test_client_that_reads_a_byte_per_second_does_not_delay_others(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "chatty", "hello") as server:
        list(server.ask(agent="hello"))
        before = settled(server)
        asking = Reader(server, "records", session_id="s", agent="chatty").begin()
        asking.until_something_came()
        slow = server.request("GET", f"/runs/{asking.run_id}/stream")
        read = 0
        began = time.monotonic()
        while not asking.whole and time.monotonic() - began < DEADLINE:
            read += len(slow.recv(1))
            time.sleep(1)
        asking.until_over()
        assert asking.whole and read >= 1
        assert server.get(f"/runs/{asking.run_id}")[1]["state"] == "finished"
        slow.close()
        nothing_is_left(server, before, [asking])
