"""A client of DeepSearchAgents, written only from that project's documents.

It knows `query`, `ping`, `metadata.component`, `stream_id` and how a run ends. It ignores cursors, states
and all message types that the old API did not have.
"""

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from websockets.asyncio.client import ClientConnection, connect

from limelight.agents.resolve import resolve_agents
from limelight.config import load_settings
from limelight.events import (
    AnyEvent,
    FinalAnswer,
    Plan,
    RunStarted,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
)
from limelight.models import LOCAL_OWNER, SessionRef
from tests.support import agents
from tests.support.server import Served, serving

QUESTIONS = ["What do bees do in winter?", "And lighthouses?"]
SECONDS = 60
KEEPALIVE = 10
"""Messages between two pings; the real client pings by time."""


class Entry(NamedTuple):
    """What a pane shows for one message."""

    kind: str
    content: str
    metadata: dict[str, Any]


class LegacyClient:
    """Routes by `metadata.component`, appends increments by `stream_id`, and replaces them by the final message."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._shown: dict[str, Entry] = {}
        self._received = 0
        self.pongs = 0
        self.errors: list[str] = []

    async def ask(self, query: str) -> None:
        """One turn, up to the answer or an error: the old API has no other sign of its end."""
        await self._connection.send(json.dumps({"type": "query", "query": query}))
        while not self._take(json.loads(await asyncio.wait_for(self._connection.recv(), SECONDS))):
            self._received += 1
            if self._received % KEEPALIVE == 0:
                await self._connection.send(json.dumps({"type": "ping"}))

    def pane(self, component: str) -> list[Entry]:
        return [entry for entry in self._shown.values() if entry.metadata.get("component", "chat") == component]

    def contents(self, component: str, *kinds: str) -> list[str]:
        return [entry.content for entry in self.pane(component) if entry.kind in kinds]

    def _take(self, message: dict[str, Any]) -> bool:
        """Show a message. True if the turn is over."""
        if "metadata" not in message:
            return self._reply(message)
        metadata = message["metadata"]
        kind, key = metadata.get("message_type", ""), metadata.get("stream_id") or message["message_id"]
        if metadata.get("is_delta"):
            self._shown[key] = Entry(kind, self._shown[key].content + message["content"], metadata)
            return False
        self._shown[key] = Entry(kind, message["content"], metadata)
        return kind in ("final_answer", "error")

    def _reply(self, reply: dict[str, Any]) -> bool:
        self.pongs += reply["type"] == "pong"
        if reply["type"] == "error":
            self.errors.append(reply["message"])
        return reply["type"] == "error"


async def converse(served: Served, agent: str) -> LegacyClient:
    url = f"{served.url.replace('http', 'ws', 1)}/api/v2/ws/my-session?agent_type={agent}"
    async with connect(url, proxy=None) as connection:
        client = LegacyClient(connection)
        for question in QUESTIONS:
            await client.ask(question)
    return client


async def log_events(served: Served) -> list[AnyEvent]:
    """The events of the session's log."""
    ref = SessionRef(LOCAL_OWNER, "my-session")
    return [record.event for record in await served.runtime.store.records(ref, after=0, limit=10_000)]


@pytest.mark.requirement("v2-legacy-client")
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("agent", ["codact", "react"])
async def test_legacy_client_shows_chat_code_and_terminal_correctly(
    agent: str, streaming: bool, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[agents.{agent}]\nenable_streaming = {json.dumps(streaming)}\n")
    served_agents = resolve_agents(load_settings(file, environ={}), [agent], environ={}).agents
    async with serving(agents=served_agents, data=tmp_path / "data") as served:
        client = await converse(served, agent)
        events = await log_events(served)
    assert client.errors == []
    assert client.pongs
    check_chat(client, events)
    check_code(client, events)
    check_terminal(client, events)
    assert not [e for pane in ("chat", "webide", "terminal") for e in client.pane(pane) if e.metadata.get("streaming")]


def check_chat(client: LegacyClient, events: list[AnyEvent]) -> None:
    assert client.contents("chat", "user") == QUESTIONS
    answers = [event.content for event in events if isinstance(event, FinalAnswer)]
    assert len(answers) == len(QUESTIONS)
    assert client.contents("chat", "final_answer") == answers
    plans = [event.text for event in events if isinstance(event, Plan)]
    assert client.contents("chat", "planning_content") == plans
    kinds = [entry.kind for entry in client.pane("chat")]
    assert kinds.count("action_header") == kinds.count("action_footer")
    assert kinds.count("planning_header") == kinds.count("planning_footer") == len(plans)
    badges = [entry.metadata["tool_name"] for entry in client.pane("chat") if entry.kind == "tool_call"]
    assert badges == [event.name for event in events if isinstance(event, ToolStarted)]


def check_code(client: LegacyClient, events: list[AnyEvent]) -> None:
    python = {e.call_id for e in events if isinstance(e, ToolStarted) and e.name == "python_interpreter"}
    ready = [e for e in events if isinstance(e, ToolStarted | ToolReady) and e.call_id in python]
    written = [event.args["code"] for event in ready if isinstance(event.args, dict)]
    assert [entry.metadata["code"] for entry in client.pane("webide")] == written
    assert client.contents("webide", "tool_invocation") == [f"```python\n{code}\n```" for code in written]


def check_terminal(client: LegacyClient, events: list[AnyEvent]) -> None:
    printed: dict[tuple[int, str], str] = {}
    turn = 0
    for event in events:
        turn += isinstance(event, RunStarted)
        if isinstance(event, ToolOutputDelta):
            printed[turn, event.call_id] = printed.get((turn, event.call_id), "") + event.text
    assert client.contents("terminal", "execution_logs") == list(printed.values())
    returned = [event for event in events if isinstance(event, ToolFinished)]
    shown = [entry for entry in client.pane("terminal") if entry.kind == "observation"]
    assert [entry.metadata["tool_id"] for entry in shown] == [event.call_id for event in returned]
    assert [e.content for e in shown] == [e.result if isinstance(e.result, str) else _text(e.result) for e in returned]


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.requirement("v2-legacy-client")
async def test_legacy_client_can_ask_again_after_an_error(tmp_path: Path) -> None:
    async with serving(agents.crasher, data=tmp_path) as served:
        client = await converse(served, "crasher")
    errors = [entry for entry in client.pane("chat") if entry.kind == "error"]
    assert [(entry.metadata["error"], entry.metadata["error_type"]) for entry in errors] == [(True, "ValueError")] * 2
    assert client.errors == []


async def test_query_right_after_the_answer_is_not_refused(tmp_path: Path) -> None:
    """The old client takes the answer for the end of the run, which ends a moment later."""
    async with serving(agents.talker, data=tmp_path) as served:
        url = f"{served.url.replace('http', 'ws', 1)}/api/v2/ws/my-session"
        async with connect(url, proxy=None) as connection:
            client = LegacyClient(connection)
            for number in range(30):
                await client.ask(f"{number}?")
    assert client.errors == []
    assert client.contents("chat", "final_answer") == ["".join(agents.WORDS)] * 30
