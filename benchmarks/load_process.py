"""Starts and controls load generators, which are separate processes, and defines the JSON lines that they exchange."""

import os
import subprocess
import sys
from types import TracebackType
from typing import Literal, Self

import msgspec

from benchmarks.server_process import ROOT, pin, python_path

JobKind = Literal["streams", "viewers", "sockets", "idle", "reply"]


class LoadProcess:
    """Context manager: runs a Python module as a load generator, controlled by lines on its standard input."""

    def __init__(self, module: str, core: int | None = None) -> None:
        self._module = module
        self._core = core

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": python_path(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        pin(self._process.pid, self._core)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._process.terminate()
        self._process.communicate()

    def send(self, line: bytes) -> None:
        self._stdin.write(line + b"\n")
        self._stdin.flush()


class Job(msgspec.Struct, kw_only=True):
    """A job of a load generator: `streams` concurrent streams of `runs` runs each, or `streams` viewers of one run."""

    kind: JobKind
    port: int
    path: str
    mode: str
    tokens: int
    streams: int = 1
    runs: int = 1
    key: str = ""
    """The API key of a user, if the server requires one."""


class JobResult(msgspec.Struct, kw_only=True):
    """The result of a job. For each request, `latencies` has the seconds to its first frame, `durations` to its end."""

    frames: int = 0
    latencies: list[float] = []
    durations: list[float] = []
    ready: bool = False
    """Whether this is the result of only the first stage of a job: its streams are open, and it waits for `proceed`."""
    error: str = ""


class Client(LoadProcess):
    """The process of the load generator `benchmarks.load_generator`, which executes jobs one after another."""

    def __init__(self, core: int | None = None) -> None:
        super().__init__("benchmarks.load_generator", core)

    def run(self, job: Job) -> JobResult:
        """Start a job. Returns when it has ended, or when a job with two stages has opened its streams."""
        return self._exchange(msgspec.json.encode(job))

    def proceed(self) -> JobResult:
        """Let the load generator execute the second stage of its job, and return the result."""
        return self._exchange(b"proceed")

    def _exchange(self, line: bytes) -> JobResult:
        self.send(line)
        answer = self._stdout.readline()
        if not answer:
            raise RuntimeError("the load generator has exited")
        result = msgspec.json.decode(answer, type=JobResult)
        if result.error:
            raise RuntimeError(result.error)
        return result
