"""What another user notices while a client attacks the server.

A separate process attacks a server with keys. At the same time another user starts runs and stops them.
`test_attacks.py` measures for a short time. `python -m tests.system.faults.attacks` measures at length and writes
`docs/attacks.md`.
"""

import datetime
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from benchmarks.report import aligned, machine
from benchmarks.server import ROOT
from limelight.auth.key_file import Keyring
from tests.system.faults import agents
from tests.system.faults.attacker import ATTACKS
from tests.system.processes.server_process import ServerProcess

MB = 1024 * 1024
DOCUMENT = ROOT / "docs" / "attacks.md"
TITLE = "## Result"
SECONDS = 8.0
PAUSE_SECONDS = 0.1
"""Between two runs: the other user stays far below the limit of requests."""
MAX_GROWTH = 100 * MB
MAX_STOP = MAX_FIRST_EVENT = 1.0
MAX_HEALTH = 0.2
"""Bounds in seconds, on a machine that does nothing else."""
CROWD = 500
SOCKETS = 20


class Case(NamedTuple):
    """One attack."""

    kind: str
    connections: int
    has_key: bool

    def __str__(self) -> str:
        return f"{self.kind}-{self.connections}-{'key' if self.has_key else 'no-key'}"


HTTP_CASES = [
    Case(name, connections, has_key)
    for name, attack in ATTACKS.items()
    if not attack.is_socket
    for connections in (1, CROWD)
    for has_key in (True, False)
]
SOCKET_CASES = [
    *(Case(name, n, True) for name, attack in ATTACKS.items() if attack.is_socket for n in (1, SOCKETS)),
    Case("socket-ping", SOCKETS, False),
]


class Seen(NamedTuple):
    """What the other user measured, in seconds, and by how many bytes the server grew."""

    first_event: list[float]
    stop: list[float]
    health: list[float]
    growth: int

    def faults(self, patience: float = 1) -> list[str]:
        """The bounds that did not hold; those of time are multiplied by `patience`."""
        found = [
            f"{name} took {max(times):.3f} s"
            for name, times, most in (
                ("the first event", self.first_event, MAX_FIRST_EVENT),
                ("Stop", self.stop, MAX_STOP),
                ("/health", self.health, MAX_HEALTH),
            )
            if max(times) > most * patience
        ]
        return found + ([f"memory grew by {self.growth / MB:.0f} MB"] if self.growth > MAX_GROWTH else [])


class House:
    """A server with keys, and the user whom the attack must not touch."""

    def __init__(self, server: ServerProcess, keyring: Keyring) -> None:
        self.server = server
        self.attackers_key = keyring.create("mallory", ("use",), 1)[1]
        self._headers = {"authorization": f"Bearer {keyring.create('ann', ('use',), 1)[1]}"}

    def health(self) -> float:
        began = time.monotonic()
        assert self.server.get("/health")[0] == 200
        return time.monotonic() - began

    def run_and_stop(self, session_id: str) -> tuple[float, float]:
        """The seconds until the first event of a new run, and until it has stopped."""
        began = time.monotonic()
        body = {"messages": [{"role": "user", "content": "go"}], "session_id": session_id}
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


@contextmanager
def open_house(data: Path) -> Generator[House]:
    data.mkdir()
    keyring = Keyring(data)
    keyring.create("mallory", ("use",), 1)  # before the start: a server without any key is open
    with ServerProcess(data, f"{agents.__file__}:endless") as server:
        yield House(server, keyring)


@contextmanager
def attack(house: House, case: Case, seconds: float) -> Generator[None]:
    command = [sys.executable, "-m", "tests.system.faults.attacker", case.kind, "--port", str(house.server.port)]
    command += ["--connections", str(case.connections), "--seconds", str(seconds)]
    command += ["--key", house.attackers_key] if case.has_key else []
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


def measure(house: House, case: Case, seconds: float = SECONDS) -> Seen:
    for number in range(3):
        house.run_and_stop(f"warm-{number}")
    first_event: list[float] = []
    stop: list[float] = []
    health: list[float] = []
    with Memory(house.server.pid) as memory, attack(house, case, seconds):
        until = time.monotonic() + seconds * 0.9
        while time.monotonic() < until:
            started, stopped = house.run_and_stop(f"s{len(stop)}")
            first_event.append(started)
            stop.append(stopped)
            health.append(house.health())
            time.sleep(PAUSE_SECONDS)
    return Seen(first_event, stop, health, memory.highest - memory.before)


def row(case: Case, seen: Seen) -> list[str]:
    longest = [f"{1000 * max(times):.0f}" for times in (seen.first_event, seen.stop, seen.health)]
    key = "yes" if case.has_key else "no"
    return [case.kind, str(case.connections), key, *longest, f"{seen.growth / MB:.0f}", ", ".join(seen.faults()) or "–"]


def main() -> None:
    """Measure every case, and write the document."""
    columns = ["attack", "connections", "key", "first event (ms)", "Stop (ms)", "/health (ms)", "memory (MB)", "over"]
    rows = [columns, ["---"] * len(columns)]
    failed = False
    for case in (*HTTP_CASES, *SOCKET_CASES):
        with TemporaryDirectory() as folder, open_house(Path(folder) / "data") as house:
            seen = measure(house, case)
        rows.append(row(case, seen))
        failed = failed or bool(seen.faults())
        sys.stdout.write(f"{case}: {', '.join(seen.faults()) or 'ok'}\n")
        sys.stdout.flush()
    text = DOCUMENT.read_text().partition(TITLE)[0]
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    DOCUMENT.write_text(f"{text}{TITLE}\n\n{date}, {machine()}\n\n{aligned(rows)}\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
