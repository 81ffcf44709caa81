"""The processes of the flood benchmark: a server with API keys, the flooding client, and the measured user."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec
import psutil

from benchmarks.floods.agents import MODES
from benchmarks.load_process import LoadProcess
from benchmarks.server_process import ROOT, LimelightServer, pin
from limelight.auth.key_file import Keyring

FAILED = "failed"
"""The line that the flooding client writes when an order has failed."""
AGENTS = ROOT / "benchmarks" / "floods" / "agents.py"
USER_ADDRESS = "127.0.0.1"
FLOOD_ADDRESS = "127.0.0.2" if sys.platform == "linux" else USER_ADDRESS
"""The addresses from which the measured user and the flooding client connect. No proxy has the second one, so the
server limits its new connections."""


class FloodOrder(msgspec.Struct, kw_only=True):
    """An order for the flooding client: which flood to execute, and against which server."""

    flood: str
    port: int
    key: str
    """The key with which the client creates the objects that the flood needs."""
    has_key: bool
    """Whether the flood itself has this key."""


class FloodReport(msgspec.Struct, kw_only=True):
    """What the flooding client has sent, received and opened during one flood."""

    sent: int = 0
    received: int = 0
    """Bytes in both directions."""
    opened: int = 0
    closed: int = 0
    """Connections that were opened, and of these, connections that the server closed."""
    answers: dict[str, int] = {}
    """Responses by status."""

    def count(self, answer: str) -> None:
        self.answers[answer] = self.answers.get(answer, 0) + 1


class UserOrder(msgspec.Struct, kw_only=True):
    """An order for the measured user: which server to use, and for how long. With 0 seconds it only warms up."""

    port: int
    key: str
    seconds: float
    stop_address: str = USER_ADDRESS
    """The address from which the user sends each Stop. All other requests come from USER_ADDRESS."""


class UserReport(msgspec.Struct, kw_only=True):
    """Latencies of the measured user in milliseconds, by what was measured, and its failed requests."""

    latencies: dict[str, list[float]] = {}
    failures: list[str] = []


class FloodServer(LimelightServer):
    """A server with the default limits, and keys for two users."""

    def __init__(self, core: int | None = None) -> None:
        super().__init__(AGENTS, MODES)
        self._pinned_core = core
        self._keyring = Keyring(Path(self._folder.name))
        self.keys = {user: self._keyring.create(user, ("use",), 1)[1] for user in ("ann", "ben")}

    def __enter__(self) -> Self:
        """Start the process on any core, which is faster on a busy machine, and then bind all its threads to one."""
        super().__enter__()
        for thread in psutil.Process(self._process.pid).threads():
            with suppress(ProcessLookupError):  # a thread that has ended since
                pin(thread.id, self._pinned_core)
        return self

    def _stop(self) -> None:
        """Kill the process: an orderly shutdown would wait for the runs and the requests of the flood."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def waited(self) -> float:
        """Return the seconds for which the server's main thread was ready to run but had no core; 0 if unknown."""
        if sys.platform != "linux":
            return 0.0
        return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[1]) / 1e9


class FloodProcess(LoadProcess):
    """The flooding client, `benchmarks.floods.load_generator`. It executes orders one after another."""

    def __init__(self, core: int | None = None) -> None:
        super().__init__("benchmarks.floods.load_generator", core)

    def prepare(self, order: FloodOrder) -> None:
        """Create the objects of an order. Raises RuntimeError if this or the flood fails, as the next methods do."""
        self.send(msgspec.json.encode(order))
        self._read()

    def begin(self) -> None:
        """Start the flood. Returns when its connections have been opened, or after some seconds."""
        self.send(b"")
        self._read()

    def end(self) -> FloodReport:
        """End the flood, and drop its connections."""
        self.send(b"")
        return msgspec.json.decode(self._read(), type=FloodReport)

    def _read(self) -> bytes:
        line = self._stdout.readline()
        if not line or line.strip() == FAILED.encode():
            raise RuntimeError("the flooding client has failed")
        return line


class UserProcess(LoadProcess):
    """The measured user, `benchmarks.floods.measured_user`. It executes orders one after another."""

    def __init__(self, core: int | None = None) -> None:
        super().__init__("benchmarks.floods.measured_user", core)

    def measure(self, order: UserOrder) -> UserReport:
        self.send(msgspec.json.encode(order))
        line = self._stdout.readline()
        if not line:
            raise RuntimeError("the process of the measured user has ended")
        return msgspec.json.decode(line, type=UserReport)
