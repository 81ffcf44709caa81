"""A client that attacks the server does not take it from others: memory stays bounded, and others are answered soon.

A separate process attacks a server with keys, once with a key and once without. Meanwhile another user starts runs and
stops them.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from e2e.faults import cast
from e2e.faults.attacker import ATTACKS
from limelight.access.keyring import Keyring
from tests.faults.process import ServerProcess

MB = 1024 * 1024
ATTACK_SECONDS = 6.0
MAX_GROWTH = 100 * MB
STOP_SECONDS = FIRST_EVENT_SECONDS = 1.0
HEALTH_SECONDS = 0.2
HTTP_ATTACKS = [name for name, attack in ATTACKS.items() if not attack.is_socket]
SOCKET_ATTACKS = [name for name, attack in ATTACKS.items() if attack.is_socket]


class Seen(NamedTuple):
    """What the other user measured: seconds, each the longest."""

    first_event: list[float]
    stop: list[float]
    health: list[float]
    growth: int

    def __str__(self) -> str:
        longest = ", ".join(f"{name} {max(getattr(self, name)):.3f} s" for name in ("first_event", "stop", "health"))
        return f"{longest}, memory {self.growth / MB:+.0f} MB, {len(self.stop)} rounds"


class House:
    """A server with keys, and the user whom the attack must not touch."""

    def __init__(self, server: ServerProcess, keyring: Keyring) -> None:
        self.server = server
        self._attacker = keyring.create("mallory", ("use",), 1)[1]
        self._headers = {"authorization": f"Bearer {keyring.create('ann', ('use',), 1)[1]}"}

    def key(self, has_key: bool) -> str:
        return self._attacker if has_key else ""

    def health(self) -> float:
        began = time.monotonic()
        assert self.server.get("/health")[0] == 200
        return time.monotonic() - began

    def run_and_stop(self, number: int) -> tuple[float, float]:
        """The seconds until the first event of a new run, and until it has stopped."""
        began = time.monotonic()
        body = {"messages": [{"role": "user", "content": "go"}], "session_id": f"s{number}"}
        stream = self.server.stream("POST", "/chat/stream?format=records", body, self._headers)
        assert stream.status == 200
        frames = iter(stream)
        next(frames)
        first_event = time.monotonic() - began
        began = time.monotonic()
        stopping = self.server.request("POST", f"/runs/{stream.run_id}/cancel", headers=self._headers)
        kinds = [data["event"]["kind"] for _, data in frames]
        stopped = time.monotonic() - began
        assert self.server.answer(stopping)[1]["state"] == "cancelled"
        assert kinds[-1] == "run_cancelled"
        return first_event, stopped


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    data = tmp_path / "data"
    data.mkdir()
    keyring = Keyring(data)
    keyring.create("mallory", ("use",), 1)
    with ServerProcess(data, f"{cast.__file__}:endless") as server:
        yield House(server, keyring)


@contextmanager
def attacked(house: House, kind: str, connections: int, key: str) -> Generator[None]:
    command = [sys.executable, "-m", "e2e.faults.attacker", kind, "--port", str(house.server.port)]
    command += ["--connections", str(connections), "--seconds", str(ATTACK_SECONDS)]
    command += ["--key", key] if key else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "open\n"
            yield
            assert process.stdout.readline().startswith("sent ")
        finally:
            process.kill()


class Memory:
    """The highest memory of a process while the block runs."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.before = self.highest = self._process.memory_info().rss

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self.highest = max(self.highest, self._process.memory_info().rss)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def measured(house: House, kind: str, connections: int, key: str) -> Seen:
    for warm_up in range(3):
        house.run_and_stop(-warm_up)
    first_event: list[float] = []
    stop: list[float] = []
    health: list[float] = []
    with Memory(house.server.pid) as memory, attacked(house, kind, connections, key):
        until = time.monotonic() + ATTACK_SECONDS * 0.9
        while time.monotonic() < until:
            started, stopped = house.run_and_stop(len(stop) + 1)
            first_event.append(started)
            stop.append(stopped)
            health.append(house.health())
            time.sleep(0.1)  # one user is not at the limit of requests
    return Seen(first_event, stop, health, memory.highest - memory.before)


def check(seen: Seen) -> None:
    sys.stdout.write(f"{seen}\n")
    assert seen.growth < MAX_GROWTH, seen
    assert max(seen.stop) < STOP_SECONDS, seen
    assert max(seen.first_event) < FIRST_EVENT_SECONDS, seen
    assert max(seen.health) < HEALTH_SECONDS, seen


@pytest.mark.parametrize("has_key", [True, False], ids=["key", "no-key"])
@pytest.mark.parametrize("connections", [1, 500])
@pytest.mark.parametrize("kind", HTTP_ATTACKS)
def test_connections_that_flood_the_server_leave_others_alone(
    house: House, kind: str, connections: int, has_key: bool
) -> None:
    check(measured(house, kind, connections, house.key(has_key)))


@pytest.mark.parametrize("connections", [1, 20])
@pytest.mark.parametrize("kind", SOCKET_ATTACKS)
def test_sockets_that_flood_the_server_leave_others_alone(house: House, kind: str, connections: int) -> None:
    check(measured(house, kind, connections, house.key(True)))


def test_handshakes_without_a_key_leave_others_alone(house: House) -> None:
    check(measured(house, "socket-ping", 100, ""))
