"""The load process as the measuring process sees it, and the words that they exchange: one JSON line each."""

import os
import subprocess
import sys
from types import TracebackType
from typing import Literal, Self

import msgspec

from benchmarks.server import ROOT, pin, python_path


class Job(msgspec.Struct, kw_only=True):
    """What to do: `runs` requests at `path`, `streams` at a time (or `streams` viewers of one run)."""

    kind: Literal["streams", "viewers", "sockets", "idle", "reply"]
    port: int
    path: str
    mode: str
    tokens: int
    streams: int = 1
    runs: int = 1
    key: str = ""
    """Of a user, for a server that wants one."""


class Outcome(msgspec.Struct, kw_only=True):
    """What came. `latencies` are seconds from each request to its first frame, `durations` those to its end."""

    frames: int = 0
    latencies: list[float] = []
    durations: list[float] = []
    ready: bool = False
    error: str = ""


class Client:
    """The load process, as the measuring process sees it. Use as `with`."""

    def __init__(self, core: int | None = None) -> None:
        self._core = core

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": python_path(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        pin(self._process.pid, self._core)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._process.terminate()
        self._process.communicate()

    def do(self, job: Job) -> Outcome:
        """Begin a job; returns when it is done, or ready for its second stage."""
        return self._send(msgspec.json.encode(job))

    def go(self) -> Outcome:
        """The second stage of the job before."""
        return self._send(b"go")

    def _send(self, line: bytes) -> Outcome:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the load process has ended")
        outcome = msgspec.json.decode(answer, type=Outcome)
        if outcome.error:
            raise RuntimeError(outcome.error)
        return outcome
