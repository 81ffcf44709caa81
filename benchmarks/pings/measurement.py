"""Measures the latency of pings on a socket: on an idle server, and while a CodeAgent loops and an agent streams."""

import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
from websockets.sync.client import ClientConnection

from benchmarks.measurement import Log
from benchmarks.pings.agents import CODE
from benchmarks.server_process import ROOT, LimelightServer, Server, cores, pinned

AGENTS = ROOT / "benchmarks" / "pings" / "agents.py"
PING_INTERVAL_SECONDS = 0.02
LOOP_START_SECONDS = 5
"""Seconds by which the loop of the CodeAgent is longer than the pings, because it starts before them."""


class PingsPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How long pings are measured on the idle and on the busy server."""

    seconds: float = 15


QUICK = PingsPlan(seconds=5)


class Pings(NamedTuple):
    """Latencies of pings on the idle and on the busy server: milliseconds from a ping to its pong."""

    idle: list[float]
    busy: list[float]


class UnderstudyServer(Server):
    """The process of the offline model, which answers the CodeAgent from a script."""

    def __init__(self, script: Path) -> None:
        super().__init__("understudy")
        self._script = script

    def _command(self) -> list[str]:
        options = ["--port", str(self.port), "--key", "bench", "--script", str(self._script)]
        return [sys.executable, "-m", "limelight", "understudy", *options]


def measure_pings(plan: PingsPlan, log: Log) -> Pings:
    log(f"pings: {2 * plan.seconds:.0f} s")
    server_core, client_core = cores()
    with ExitStack() as stack:
        stack.enter_context(pinned(client_core))
        script = Path(stack.enter_context(TemporaryDirectory())) / "script.yaml"
        script.write_bytes(msgspec.yaml.encode([{"steps": [{"text": CODE}]}]))
        model = stack.enter_context(UnderstudyServer(script))
        environ = {
            "OPENAI_BASE_URL": f"http://127.0.0.1:{model.port}/v1",
            "OPENAI_API_KEY": "bench",
            "BENCH_SECONDS": str(plan.seconds + LOOP_START_SECONDS),
        }
        server = stack.enter_context(LimelightServer(AGENTS, ("grinder", "talker"), server_core, environ))
        pinged = stack.enter_context(server.socket("pings", "talker"))
        _receive_until(pinged, "state")
        idle = _pings(pinged, plan.seconds)
        for session_id, agent in (("t", "talker"), ("g", "grinder")):
            working = stack.enter_context(server.socket(session_id, agent))
            working.send(json.dumps({"type": "query", "query": "go"}))
            _receive_until(working, "action_thought" if agent == "talker" else "execution_logs")
        return Pings(idle, _pings(pinged, plan.seconds))


def _receive_until(socket: ClientConnection, kind: str) -> None:
    """Read messages up to the first one with this type or message type."""
    while True:
        frame = json.loads(socket.recv(30))
        if kind in (frame.get("type"), frame.get("metadata", {}).get("message_type")):
            return


def ping_ms(socket: ClientConnection) -> float:
    """Send a ping and return the milliseconds to its pong."""
    sent_at = time.perf_counter()
    socket.send('{"type": "ping"}')
    _receive_until(socket, "pong")
    return (time.perf_counter() - sent_at) * 1000


def _pings(socket: ClientConnection, seconds: float) -> list[float]:
    latencies: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        latencies.append(ping_ms(socket))
        time.sleep(PING_INTERVAL_SECONDS)
    return latencies
