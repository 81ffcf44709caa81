"""A server with the agents of the page benchmark, and the build of the page."""

import subprocess
import uuid
from pathlib import Path

import httpx

from benchmarks.http_stream import chat_body
from benchmarks.measurement import Log
from benchmarks.page.agents import STEPS_PER_TURN
from benchmarks.server_process import ROOT, LimelightServer

AGENTS = ROOT / "benchmarks" / "page" / "agents.py"
NAMES = ("turn", "long_run", "talker", "writer", "printer")
PAGE = ROOT / "src" / "limelight" / "page"
MESSAGES_PER_TURN = 2 * STEPS_PER_TURN + 2
"""Number of messages in a turn: a text and a tool call in each step, the question and the answer."""


def build(log: Log) -> Path:
    """Build the page if its sources have changed. Returns its folder."""
    done = subprocess.run([ROOT / "tools" / "build_page.sh"], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        log(f"page: {line}")
    if done.returncode:
        raise RuntimeError(f"the page could not be built:\n{done.stdout}{done.stderr}")
    return PAGE


class Stage(LimelightServer):
    """A server for the browser. Its methods create the sessions that the browser opens."""

    def __init__(self, core: int | None = None) -> None:
        super().__init__(AGENTS, NAMES, core)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def one_run(self, messages: int) -> str:
        """Create a session whose only run has this many messages. Returns its address."""
        with self._client() as http:
            return self._ask(http, "long_run", str(messages), _new_id())

    def many_runs(self, messages: int) -> str:
        """Create a session of many runs with this many messages together. Returns its address."""
        session_id = _new_id()
        with self._client() as http:
            for number in range(messages // MESSAGES_PER_TURN):
                self._ask(http, "turn", f"How was quarter {number}?", session_id)
        return self._address(session_id)

    def begin(self, agent: str, text: str, address: str = "") -> str:
        """Start a run, in a new session or in that at `address`. Returns the session's address without waiting."""
        session_id = address.rpartition("/")[2] or _new_id()
        body = chat_body(agent, text, session_id)
        with self._client() as http, http.stream("POST", "/chat/stream", json=body) as response:
            response.raise_for_status()
            next(response.iter_raw())  # waits until the run has started
        return self._address(session_id)

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, trust_env=False, timeout=300)

    def _ask(self, http: httpx.Client, agent: str, text: str, session_id: str) -> str:
        http.post("/chat", json=chat_body(agent, text, session_id)).raise_for_status()
        return self._address(session_id)

    def _address(self, session_id: str) -> str:
        return f"{self.url}/#/s/{session_id}"


def _new_id() -> str:
    return uuid.uuid4().hex
