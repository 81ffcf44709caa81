"""Limelight with the agents whose work the page shows, and the page as it is built."""

import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import httpx

from benchmarks.page.agents import STEPS_OF_A_TURN
from benchmarks.server import ROOT, Server

AGENTS = ROOT / "benchmarks" / "page" / "agents.py"
NAMES = ("turn", "long_run", "talker", "writer", "printer")
PAGE = ROOT / "src" / "limelight" / "page"
MESSAGES_OF_A_TURN = 2 * STEPS_OF_A_TURN + 2
"""What is said and the tools, the question and the answer."""


def build(say: Callable[[str], None]) -> Path:
    """The page, built anew if its sources have changed."""
    done = subprocess.run([ROOT / "tools" / "page.sh"], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        say(f"page: {line}")
    if done.returncode:
        raise RuntimeError(f"the page could not be built:\n{done.stdout}{done.stderr}")
    return PAGE


class Stage(Server):
    """Sessions are made over HTTP and looked at in a browser."""

    def __init__(self, core: int | None = None) -> None:
        super().__init__("page", core)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _command(self) -> list[str]:
        targets = [f"{AGENTS}:{name}" for name in NAMES]
        port = ["--port", str(self.port), "--data", self._folder.name]
        return [sys.executable, "-m", "limelight", "serve", *targets, *port]

    def one_run(self, messages: int) -> str:
        """A session whose only run has so many messages; gives its address."""
        with self._client() as http:
            return self._ask(http, "long_run", str(messages), _new())

    def many_runs(self, messages: int) -> str:
        """A session of many turns that have so many messages together; gives its address."""
        session_id = _new()
        with self._client() as http:
            for number in range(messages // MESSAGES_OF_A_TURN):
                self._ask(http, "turn", f"How was quarter {number}?", session_id)
        return self._address(session_id)

    def begin(self, agent: str, text: str, address: str = "") -> str:
        """A run that goes on, in a session of its own or at that address; gives the address."""
        session_id = address.rpartition("/")[2] or _new()
        body = _asking(agent, text, session_id)
        with self._client() as http, http.stream("POST", "/chat/stream", json=body) as reply:
            reply.raise_for_status()
            next(reply.iter_raw())  # it has begun, and goes on without us
        return self._address(session_id)

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, trust_env=False, timeout=300)

    def _ask(self, http: httpx.Client, agent: str, text: str, session_id: str) -> str:
        http.post("/chat", json=_asking(agent, text, session_id)).raise_for_status()
        return self._address(session_id)

    def _address(self, session_id: str) -> str:
        return f"{self.url}/#/s/{session_id}"


def _new() -> str:
    return uuid.uuid4().hex


def _asking(agent: str, text: str, session_id: str) -> dict[str, object]:
    return {"agent": agent, "session_id": session_id, "messages": [{"role": "user", "content": text}]}
