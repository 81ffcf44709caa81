"""The processes of the soak test, the server and the load generator, and the messages of the load generator."""

import threading
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import Self

import msgspec
import psutil

from benchmarks.load_process import LoadProcess
from benchmarks.server_process import ROOT, LimelightServer

AGENTS = ROOT / "benchmarks" / "soak" / "agents.py"
SILENCE_SECONDS = 90
"""Time without a report after which the load generator counts as broken."""


class LoadOrder(msgspec.Struct, kw_only=True):
    """The streams that the load generator opens, and keeps open until its standard input ends."""

    port: int
    sessions: int
    viewers: int
    """Viewers of each session, besides the client that starts its runs."""
    stay_seconds: float
    """The mean time until a viewer disconnects and reconnects."""
    seed: int = 1


class LoadReport(msgspec.Struct, kw_only=True):
    """What the load generator has counted in about one second: received numbers, latencies, streams and errors."""

    numbers: int = 0
    latencies: list[float] = []
    """A sample of latencies: milliseconds from the time when a number was due to its arrival."""
    streams: int = 0
    """Open streams at the end of the second."""
    resumes: int = 0
    lost: int = 0
    doubled: int = 0
    broken: int = 0
    """Streams that the server ended, and requests that it refused."""
    last: bool = False
    """Whether this is the last report: all clients have received everything."""


class SoakServer(LimelightServer):
    """A server with an agent whose rate can be set."""

    def __init__(self, runs: int, core: int | None = None) -> None:
        environ = {"LIMELIGHT_RUNS": str(runs), "LIMELIGHT_RUN_SECONDS": "86400", "SOAK_RATE": "rate"}
        super().__init__(AGENTS, ("counter",), core, environ)
        self._rate_file = Path(self._folder.name) / "rate"
        self.set_rate(1)

    def set_rate(self, rate: float) -> None:
        """Set the numbers that each run emits in a second; the agent reads them within half a second."""
        new = self._rate_file.with_suffix(".new")
        new.write_text(str(rate))
        new.replace(self._rate_file)  # atomic: the agent never reads an incomplete file

    def open_files(self) -> int:
        return psutil.Process(self._process.pid).num_fds()

    def connections(self) -> int:
        found = psutil.Process(self._process.pid).net_connections("tcp")
        return sum(connection.status != psutil.CONN_LISTEN for connection in found)


class SoakLoad(LoadProcess):
    """The load generator `benchmarks.soak.load_generator`, which reports once a second."""

    def __init__(self, order: LoadOrder, core: int | None = None) -> None:
        super().__init__("benchmarks.soak.load_generator", core)
        self._order = order
        self._reports: Queue[LoadReport] = Queue()

    def __enter__(self) -> Self:
        super().__enter__()
        self.send(msgspec.json.encode(self._order))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._stdin.close()
        self._stdout.close()

    def _read(self) -> None:
        for line in self._stdout:
            self._reports.put(msgspec.json.decode(line, type=LoadReport))

    def next_report(self) -> LoadReport:
        try:
            return self._reports.get(timeout=SILENCE_SECONDS)
        except Empty:
            raise RuntimeError(f"no report of the load generator for {SILENCE_SECONDS} s") from None

    def end(self) -> None:
        """Let the load generator start no more runs. It sends its last report when the current runs have ended."""
        self._stdin.close()
