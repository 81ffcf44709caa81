"""A server under measurement: a process of its own, with its CPU time and its memory."""

import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

START_SECONDS = 120
STOP_SECONDS = 10
ROOT = Path(__file__).parent.parent
AGENTS = Path("benchmarks") / "servers" / "limelight_agent.py"
MODES = ("turn", "burst", "short", "watched", "idle")

LIMELIGHT, BARE, SSE_STARLETTE = "limelight", "bare", "sse-starlette"
NAMES = (LIMELIGHT, BARE, SSE_STARLETTE)


class Server:
    """Use as `with`: started, pinned to a core and ready inside, gone afterwards."""

    def __init__(
        self, name: str, core: int | None = None, tokens: int | None = None, checkout: Path | None = None
    ) -> None:
        """`checkout` is the folder of another version of Limelight, to be measured instead of this one."""
        self.name = name
        self._checkout = checkout or ROOT
        self.port = _free_port()
        self._core = core
        self._environ = {k: v for k, v in os.environ.items() if not k.startswith("LIMELIGHT_")}
        self._environ |= {
            "PYTHONPATH": python_path(self._checkout),
            "LIMELIGHT_LOG": "ERROR",
            "LIMELIGHT_UNDERSTUDY_PACE_MS": "0",
        }
        if tokens is not None:
            self._environ["BENCH_TOKENS"] = str(tokens)

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="limelight-bench-")
        self._process = subprocess.Popen(
            self._command(), cwd=self._folder.name, env=self._environ, stdout=subprocess.DEVNULL
        )
        pin(self._process.pid, self._core)
        try:
            self._until_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop()

    def _command(self) -> list[str]:
        if self.name == LIMELIGHT:
            targets = [f"{self._checkout / AGENTS}:{mode}" for mode in MODES]
            port = ["--port", str(self.port), "--data", self._folder.name]
            return [sys.executable, "-m", "limelight", "serve", *targets, *port]
        module = {BARE: "bare", SSE_STARLETTE: "sse_starlette_server"}[self.name]
        return [sys.executable, "-m", f"benchmarks.servers.{module}", str(self.port)]

    def path(self, mode: str) -> str:
        """Where a stream of this mode is asked for."""
        return "/chat/stream" if self.name == LIMELIGHT else f"/{mode}"

    def cpu(self) -> float:
        """CPU seconds so far, user and system, of all its threads."""
        if sys.platform == "linux":
            return time.clock_gettime(~self._process.pid << 3 | 2)  # the kernel's clock of that process, exact to 1 ns
        times = psutil.Process(self._process.pid).cpu_times()
        return times.user + times.system

    def rss(self) -> int:
        """Bytes of memory that it has now."""
        return psutil.Process(self._process.pid).memory_info().rss

    def _until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.name} ended at its start")
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} does not answer")

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


def python_path(checkout: Path) -> str:
    """The module path for a process that uses the code of this folder, even if another version is installed."""
    return os.pathsep.join([str(checkout), str(checkout / "src")])


def cores() -> tuple[int | None, int | None]:
    """One core for the server and another one for the client, if there are two."""
    if not hasattr(os, "sched_getaffinity"):
        return None, None
    ours = sorted(os.sched_getaffinity(0))
    return (ours[0], ours[-1]) if len(ours) > 1 else (None, None)


def pin(pid: int, core: int | None) -> None:
    """Keep a process that has just begun, and the threads that it will have, on one core."""
    if core is not None:
        os.sched_setaffinity(pid, {core})


def _free_port() -> int:
    """Below those that the system hands out: a free one of these could be somebody else's before it is used."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
