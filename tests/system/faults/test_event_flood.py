"""An agent that emits 100,000 events at once, for viewers in several formats, one of which does not read."""

import socket
import time
from pathlib import Path

import pytest

from tests.system.faults import agents
from tests.system.faults.invariants import nothing_is_left, settled
from tests.system.faults.threaded_viewers import Listener, Reader
from tests.system.processes.server_process import ServerProcess

AGENTS_FILE = agents.__file__
AGENTS = {"flood": agents.FLOOD, "thread_flood": agents.SMALL_FLOOD, "talk_flood": agents.SMALL_FLOOD}


@pytest.mark.requirement("event-flood")
@pytest.mark.parametrize("agent", AGENTS)
def test_flood_of_events_arrives_completely_and_others_are_served(tmp_path: Path, agent: str) -> None:
    with ServerProcess(tmp_path / "data", f"{AGENTS_FILE}:{agent}", "hello") as server:
        other = {"messages": [{"role": "user", "content": "hi"}], "agent": "hello"}
        server.post("/chat", other)
        before = settled(server)
        listener = Listener(server, "s", agent).begin()
        asking = Reader(server, "records", session_id="s", agent=agent).begin()
        asking.until_something_came()
        deaf = server.follow(asking.run_id)
        deaf.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        watchers = [listener, asking]
        answered = 0
        while not asking.whole:
            assert server.post("/chat", other)[1]["message"]["content"] == "hello"
            answered += 1
            time.sleep(0.05)  # the pace of another user
        for watcher in watchers:
            watcher.until_over()
        assert answered and all(watcher.whole for watcher in watchers)
        assert said(asking.seen) == [str(number) for number in range(AGENTS[agent])]
        deaf.close()
        nothing_is_left(server, before, watchers, memory=150 * 1024 * 1024)


def said(frames: list[tuple[str, dict[str, dict[str, str]]]]) -> list[str]:
    """The numbers in the events of the agent."""
    events = [data["event"] for _, data in frames]
    lines = [event["text"] for event in events if event["kind"] == "status"]
    texts = "".join(event["text"] for event in events if event["kind"] in ("text_delta", "reasoning_delta")).split()
    return lines or sorted(texts, key=int)
