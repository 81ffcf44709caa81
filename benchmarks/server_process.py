"""Starts and stops the measured server processes, and reads their CPU time and memory."""

import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from websockets.sync.client import ClientConnection, connect

START_SECONDS = 120
STOP_SECONDS = 10
OPEN_FILES = 8192
"""Number of open files that a benchmark process may need: one for each of a thousand streams, and a reserve."""
ROOT = Path(__file__).parent.parent
AGENTS = Path("benchmarks") / "servers" / "limelight_agent.py"
MODES = ("turn", "burst", "short", "watched", "idle")

LIMELIGHT, BARE, SSE_STARLETTE = "limelight", "bare", "sse-starlette"
MODULES = {BARE: "benchmarks.servers.bare_starlette_server", SSE_STARLETTE: "benchmarks.servers.sse_starlette_server"}
NAMES = (LIMELIGHT, *MODULES)


class Server:
    """A server process, as a context manager: inside of the block it is pinned to a core and accepts connections.

    Subclasses define the command. The process runs the code of `checkout` in a temporary folder.
    """

    def __init__(
        self, name: str, core: int | None = None, environ: Mapping[str, str] | None = None, checkout: Path = ROOT
    ) -> None:
        self.name = name
        self.port = _free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="limelight-bench-")
        self._core = core
        self._python = _python_of(checkout)
        self._environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LIMELIGHT_")},
            "PYTHONPATH": python_path(checkout),
            "LIMELIGHT_LOG": "ERROR",
            "LIMELIGHT_UNDERSTUDY_PACE_MS": "0",
            **(environ or {}),
        }

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command(), cwd=self._folder.name, env=self._environ, stdout=subprocess.DEVNULL
        )
        pin(self._process.pid, self._core)
        try:
            self._wait_until_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop()

    def _command(self) -> list[str]:
        raise NotImplementedError

    def path(self, mode: str) -> str:
        """Return the path to which a request for a stream of this mode is sent."""
        return f"/{mode}"

    def cpu(self) -> float:
        """Return the CPU seconds that the process has used: user and system time of all threads."""
        if sys.platform == "linux":
            return time.clock_gettime(~self._process.pid << 3 | 2)  # the CPU clock of that process, exact to 1 ns
        times = psutil.Process(self._process.pid).cpu_times()
        return times.user + times.system

    def rss(self) -> int:
        """Return the resident memory of the process in bytes."""
        return psutil.Process(self._process.pid).memory_info().rss

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.name} exited at its start")
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} does not accept connections")

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


class ModuleServer(Server):
    """A Python module that serves on the port in its first argument."""

    def __init__(
        self,
        name: str,
        module: str,
        *arguments: str,
        core: int | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, core, environ)
        self._module = module
        self._arguments = arguments

    def _command(self) -> list[str]:
        return [self._python, "-m", self._module, str(self.port), *self._arguments]


class LimelightServer(Server):
    """A process of `limelight serve` with the agents of one file."""

    def __init__(
        self,
        agents: Path,
        names: Sequence[str],
        core: int | None = None,
        environ: Mapping[str, str] | None = None,
        checkout: Path = ROOT,
    ) -> None:
        super().__init__(LIMELIGHT, core, environ, checkout)
        self._targets = [f"{agents}:{name}" for name in names]

    def _command(self) -> list[str]:
        options = ["--port", str(self.port), "--data", self._folder.name]
        return [self._python, "-m", "limelight", "serve", *self._targets, *options]

    def path(self, mode: str) -> str:
        return "/chat/stream"

    def socket(self, session_id: str, agent: str, key: str = "") -> ClientConnection:
        """Open a WebSocket of a session."""
        url = f"ws://127.0.0.1:{self.port}/api/v2/ws/{session_id}?agent_type={agent}"
        headers = {"authorization": f"Bearer {key}"} if key else None
        return connect(url, proxy=None, max_size=None, additional_headers=headers)


def workload_server(
    name: str, core: int | None = None, tokens: int | None = None, checkout: Path = ROOT
) -> ModuleServer | LimelightServer:
    """Return one of the compared servers by its name. `checkout` may be the folder of another Limelight version."""
    environ = {} if tokens is None else {"BENCH_TOKENS": str(tokens)}
    if name == LIMELIGHT:
        return LimelightServer(checkout / AGENTS, MODES, core, environ, checkout)
    return ModuleServer(name, MODULES[name], core=core, environ=environ)


def python_path(checkout: Path) -> str:
    """Return the module path of a process that runs the code of this folder, even if another version is installed."""
    return os.pathsep.join([str(checkout), str(checkout / "src")])


def _python_of(checkout: Path) -> str:
    """Return the interpreter of another checkout's `.venv`, because versions need different packages, or this one."""
    own = checkout / ".venv" / "bin" / "python"
    return str(own) if checkout != ROOT and own.exists() else sys.executable


def cores() -> tuple[int | None, int | None]:
    """Return a core for the server and another one for the clients; None for both if there is only one."""
    if not hasattr(os, "sched_getaffinity"):
        return None, None
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[0], allowed[-1]) if len(allowed) > 1 else (None, None)


def pin(pid: int, core: int | None) -> None:
    """Bind a process that has just started, and the threads that it will start, to one core."""
    if core is not None:
        os.sched_setaffinity(pid, {core})


@contextmanager
def pinned(core: int | None) -> Generator[None]:
    """Context manager: binds the current process to one core."""
    if core is None:
        yield
        return
    allowed = os.sched_getaffinity(0)
    pin(0, core)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def raise_fd_limit() -> None:
    """Raise the limit of open files of this process and its future children, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _free_port() -> int:
    """Return a free port below the ephemeral range, because the system gives ports of that range to other processes."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
