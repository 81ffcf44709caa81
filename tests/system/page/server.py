"""The server of these tests: a process that can be killed, with gates for its agents."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from limelight.server.web_page import FOLDER
from tests.support.wait import DEADLINE, wait_for
from tests.system.processes.server_process import free_port

AGENTS_FILE = Path(__file__).parent / "agents.py"
HOSTILE = Path(__file__).parent / "hostile_agent.py"


class Stage:
    """`limelight serve` with one port and one folder, which can be started several times."""

    def __init__(self, folder: Path, *targets: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._gates = folder / "gates"
        self._gates.mkdir(parents=True)
        self._log = folder / "server.log"
        self._command = [sys.executable, "-m", "limelight", "serve", "--port", str(self.port)]
        self._command += ["--data", str(folder / "data"), *targets]
        self._environment = {**os.environ, "LIMELIGHT_GATES": str(self._gates)}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=self._environment)
        wait_for("the server to answer", self._answers)

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"the server has ended: {self._log.read_text()[-2000:]}")
        return httpx.get(f"{self.url}/health", timeout=5).status_code == 200

    def kill(self) -> None:
        """Send SIGKILL."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(DEADLINE)

    def open_gate(self, *names: str) -> None:
        for name in names:
            (self._gates / name).touch()

    def close_gates(self) -> None:
        for gate in self._gates.iterdir():
            gate.unlink()

    def get(self, path: str) -> Any:
        reply = httpx.get(self.url + path, timeout=DEADLINE)
        reply.raise_for_status()
        return reply.json()

    def post(self, path: str, body: Any) -> Any:
        reply = httpx.post(self.url + path, json=body, timeout=DEADLINE)
        reply.raise_for_status()
        return reply.json()

    def run_of(self, session_id: str) -> dict[str, Any]:
        """The newest run of a session."""
        return self.get(f"/runs/{self.get(f'/sessions/{session_id}')['run_id']}")

    def wait_for_run(self, session_id: str, state: str) -> dict[str, Any]:
        def is_there() -> dict[str, Any] | None:
            run = self.run_of(session_id)
            return run if run["state"] == state else None

        run = wait_for(f"a run that is {state}", is_there)
        assert run is not None
        return run


@contextmanager
def staged(folder: Path, *targets: str) -> Generator[Stage]:
    """A server that runs until the block ends."""
    assert (FOLDER / "index.html").is_file(), f"there is no page in {FOLDER}: run `make page` first"
    stage = Stage(folder, *targets)
    try:
        stage.start()
        yield stage
    finally:
        stage.kill()
