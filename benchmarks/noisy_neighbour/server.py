"""Limelight with keys for its users and its usual limits, and the processes of a neighbour who is at all of them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from websockets.sync.client import ClientConnection, connect

from benchmarks.noisy_neighbour.agents import MODES
from benchmarks.noisy_neighbour.protocol import Kind, Order, Report
from benchmarks.server import ROOT, Server, pin, python_path
from limelight.auth.key_file import Keyring
from limelight.config.schema import LimitSettings

AGENTS = ROOT / "benchmarks" / "noisy_neighbour" / "agents.py"


class House(Server):
    """Several users share it."""

    def __init__(self, limits: LimitSettings, core: int | None = None, tokens: int | None = None) -> None:
        super().__init__("noisy_neighbour", core, tokens)
        names = ("runs_per_user", "streams_per_user", "body_bytes", "result_bytes")
        self._environ |= {f"LIMELIGHT_{name.upper()}": str(getattr(limits, name)) for name in names}

    def __enter__(self) -> Self:
        self._data = tempfile.TemporaryDirectory(prefix="limelight-bench-")
        self._keyring = Keyring(Path(self._data.name))
        self.key("ben")  # a server without any key would be open
        try:
            return super().__enter__()
        except BaseException:
            self._data.cleanup()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        self._data.cleanup()

    def key(self, user: str) -> str:
        """A new key of this user."""
        return self._keyring.create(user, ("use",), 1)[1]

    def socket(self, key: str) -> ClientConnection:
        url = f"ws://127.0.0.1:{self.port}/api/v2/ws/pings?agent_type=short"
        return connect(url, proxy=None, max_size=None, additional_headers={"authorization": f"Bearer {key}"})

    def _command(self) -> list[str]:
        targets = [f"{AGENTS}:{mode}" for mode in MODES]
        port = ["--port", str(self.port), "--data", self._data.name]
        return [sys.executable, "-m", "limelight", "serve", *targets, *port]


class Process:
    """One of the neighbour's own, so that what it does costs neither the server's process nor the measuring one."""

    def __init__(self, house: House, kind: Kind, key: str, limits: LimitSettings, core: int | None) -> None:
        self._order = Order(
            kind=kind,
            port=house.port,
            key=key,
            runs=limits.runs_per_user,
            streams=limits.streams_per_user,
            body_bytes=limits.body_bytes,
        )
        self._core = core
        self.report = Report()
        """Of what came, once it is over."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.noisy_neighbour.load"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": python_path(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        pin(self._process.pid, self._core)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(self._order) + b"\n")
        self._process.stdin.flush()
        if not self._process.stdout.readline():
            self._process.wait()
            raise RuntimeError(f"the neighbour's {self._order.kind} could not begin")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        said, _ = self._process.communicate()
        if error is None:
            self.report = msgspec.json.decode(said, type=Report)
