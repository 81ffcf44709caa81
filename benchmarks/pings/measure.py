"""Pings on a session of its own: with nothing else going on, and while a CodeAgent loops and another agent talks."""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
from websockets.sync.client import ClientConnection, connect

from benchmarks.pings.agents import CODE
from benchmarks.server import ROOT, Server, cores

AGENTS = ROOT / "benchmarks" / "pings" / "agents.py"
PAUSE = 0.02
"""Seconds between two pings."""
SOON = 5
"""Seconds within which the loop has to begin."""


class PingsPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How long is measured, each way."""

    seconds: float = 15


QUICK = PingsPlan(seconds=5)


class Pings(NamedTuple):
    """Milliseconds between a ping and its pong."""

    quiet: list[float]
    busy: list[float]


class Understudy(Server):
    """The model of the CodeAgent: it writes one program."""

    def __init__(self, script: Path) -> None:
        super().__init__("understudy")
        self._script = script

    def _command(self) -> list[str]:
        port = ["--port", str(self.port), "--key", "bench"]
        return [sys.executable, "-m", "limelight", "understudy", *port, "--script", str(self._script)]


class Stage(Server):
    """Limelight with both agents."""

    def __init__(self, core: int | None, model: Understudy, seconds: float) -> None:
        super().__init__("stage", core)
        self._environ |= {
            "OPENAI_BASE_URL": f"http://127.0.0.1:{model.port}/v1",
            "OPENAI_API_KEY": "bench",
            "BENCH_SECONDS": str(seconds),
        }

    def _command(self) -> list[str]:
        targets = [f"{AGENTS}:{name}" for name in ("grinder", "talker")]
        port = ["--port", str(self.port), "--data", self._folder.name]
        return [sys.executable, "-m", "limelight", "serve", *targets, *port]

    def socket(self, session_id: str, agent: str) -> ClientConnection:
        url = f"ws://127.0.0.1:{self.port}/api/v2/ws/{session_id}?agent_type={agent}"
        return connect(url, proxy=None, max_size=None)


def measure_pings(plan: PingsPlan, say: Callable[[str], None]) -> Pings:
    """The client shares no core with the server, if there are two."""
    say(f"pings: {2 * plan.seconds:.0f} s")
    server_core, client_core = cores()
    with ExitStack() as stack:
        if client_core is not None:
            stack.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
            os.sched_setaffinity(0, {client_core})
        script = Path(stack.enter_context(TemporaryDirectory())) / "script.yaml"
        script.write_bytes(msgspec.yaml.encode([{"steps": [{"text": CODE}]}]))
        model = stack.enter_context(Understudy(script))
        stage = stack.enter_context(Stage(server_core, model, plan.seconds + SOON))
        pinging = stack.enter_context(stage.socket("pings", "talker"))
        _until(pinging, "state")
        quiet = _pings(pinging, plan.seconds)
        for session_id, agent in (("t", "talker"), ("g", "grinder")):
            working = stack.enter_context(stage.socket(session_id, agent))
            working.send(json.dumps({"type": "query", "query": "go"}))
            _until(working, "action_thought" if agent == "talker" else "execution_logs")
        return Pings(quiet, _pings(pinging, plan.seconds))


def _until(socket: ClientConnection, kind: str) -> None:
    while True:
        frame = json.loads(socket.recv(30))
        if kind in (frame.get("type"), frame.get("metadata", {}).get("message_type")):
            return


def _pings(socket: ClientConnection, seconds: float) -> list[float]:
    found: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sent = time.perf_counter()
        socket.send('{"type": "ping"}')
        _until(socket, "pong")
        found.append((time.perf_counter() - sent) * 1000)
        time.sleep(PAUSE)
    return found


def quantile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]
