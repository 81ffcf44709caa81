"""The server of the soak, and the process that loads it."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import Self

import msgspec
import psutil

from benchmarks.server import ROOT, Server, pin, python_path
from benchmarks.soak.protocol import Order, Second

AGENT = ROOT / "benchmarks" / "soak" / "agents.py"
SILENCE_SECONDS = 90
"""A load that says nothing for so long is broken."""


class SoakServer(Server):
    """One Limelight with an agent whose rate can be set."""

    def __init__(self, runs: int, core: int | None = None) -> None:
        super().__init__("soak", core)
        self._environ |= {"LIMELIGHT_RUNS": str(runs), "LIMELIGHT_RUN_SECONDS": "86400"}

    def __enter__(self) -> Self:
        self._rates = tempfile.TemporaryDirectory(prefix="limelight-soak-")
        self._rate_file = Path(self._rates.name) / "rate"
        self.set_rate(1)
        self._environ["SOAK_RATE"] = str(self._rate_file)
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        self._rates.cleanup()

    def _command(self) -> list[str]:
        port = ["--port", str(self.port), "--data", self._folder.name]
        return [sys.executable, "-m", "limelight", "serve", f"{AGENT}:counter", *port]

    def set_rate(self, rate: float) -> None:
        """Numbers that each run says in a second, from soon on."""
        new = self._rate_file.with_suffix(".new")
        new.write_text(str(rate))
        new.replace(self._rate_file)  # nobody ever reads half of it

    def files(self) -> int:
        return psutil.Process(self._process.pid).num_fds()

    def connections(self) -> int:
        found = psutil.Process(self._process.pid).net_connections("tcp")
        return sum(connection.status != psutil.CONN_LISTEN for connection in found)


class LoadProcess:
    """The load, as the measuring process sees it. Use as `with`."""

    def __init__(self, order: Order, core: int | None = None) -> None:
        self._order = order
        self._core = core
        self._seconds: Queue[Second] = Queue()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.soak.load"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": python_path(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        pin(self._process.pid, self._core)
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(self._order) + b"\n")
        self._process.stdin.flush()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        self._reading.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._seconds.put(msgspec.json.decode(line, type=Second))

    def second(self) -> Second:
        """The next one that is over."""
        try:
            return self._seconds.get(timeout=SILENCE_SECONDS)
        except Empty:
            raise RuntimeError("the load process says nothing any more") from None

    def end(self) -> None:
        """It asks for no more runs, and says the last when those that there are have ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
