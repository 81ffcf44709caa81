"""Sockets whose client leaves, does not read, or loses its server: nothing is lost, and others are not delayed."""

import json
import signal
import socket as sockets
import struct
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.support.wait import DEADLINE
from tests.system.faults.invariants import nothing_is_left, settled
from tests.system.processes.server_process import ServerProcess

MB = 1024 * 1024
Json = dict[str, Any]


@contextmanager
def open_socket(server: ServerProcess, session_id: str, query: str = "") -> Generator[ClientConnection]:
    url = f"ws://127.0.0.1:{server.port}/api/v2/ws/{session_id}?{query}"
    with connect(url, max_size=None, proxy=None, open_timeout=DEADLINE) as connection:
        yield connection


def say(socket: ClientConnection, kind: str, **fields: Any) -> None:
    socket.send(json.dumps({"type": kind, **fields}))


def heard(socket: ClientConnection) -> Iterator[Json]:
    while True:
        yield json.loads(socket.recv(DEADLINE))


def until(frames: Iterator[Json], kind: str, state: str = "") -> list[Json]:
    """Frames up to the first reply or message of this type."""
    found: list[Json] = []
    for frame in frames:
        found.append(frame)
        is_kind = kind == (frame.get("type") or frame.get("metadata", {}).get("message_type"))
        if is_kind and (not state or frame["state"]["state"] == state):
            break
    return found


def messages(frames: list[Json]) -> list[Json]:
    return [frame for frame in frames if "message_id" in frame]


def folded(frames: list[Json]) -> list[tuple[str, str, str]]:
    """The complete messages in order; each must be the concatenation of its increments."""
    growing: dict[str, str] = {}
    whole: list[tuple[str, str, str]] = []
    for frame in messages(frames):
        about, key = frame["metadata"], frame["message_id"]
        if about.get("streaming"):
            assert about.get("is_initial_stream") or key in growing
            growing[key] = "" if about.get("is_initial_stream") else growing[key] + frame["content"]
            continue
        if "stream_id" in about:
            assert growing.pop(key) == frame["content"]
        whole.append((key, about["message_type"], frame["content"]))
    assert not growing
    return whole


def listed(server: ServerProcess, session_id: str) -> list[tuple[str, str, str]]:
    status, page = server.get(f"/api/v2/sessions/{session_id}/messages?limit=10000")
    assert (status, page["total"], page["more"]) == (200, len(page["messages"]), False)
    return [(m["message_id"], m["metadata"]["message_type"], m["content"]) for m in page["messages"]]


@pytest.mark.requirement("socket-resume")
def test_socket_that_reconnects_misses_and_repeats_nothing(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "steady", "hello") as server:
        list(server.ask(agent="hello"))
        before = settled(server)
        seen: list[Json] = []
        for leaves_after in (1, 30, 7, 200, 45):
            after = f"after={messages(seen)[-1]['cursor']}" if messages(seen) else ""
            with open_socket(server, "s", after) as socket:
                if leaves_after == 1:
                    say(socket, "query", query="one")
                frames = heard(socket)
                seen += [next(frames) for _ in range(leaves_after)]
        with open_socket(server, "s", f"after={messages(seen)[-1]['cursor']}") as socket:
            frames = heard(socket)
            say(socket, "query", query="two", if_busy="wait")
            while seen[-1].get("content") != "two":
                seen.append(next(frames))
            seen += until(frames, "state", "completed")
        whole = folded(seen)
        assert whole == listed(server, "s")
        assert [content for _, kind, content in whole if kind == "user"] == ["one", "two"]
        assert server.get("/api/v2/sessions/s")[1]["state"] == "completed"
        nothing_is_left(server, before)


@pytest.mark.requirement("socket-many-watchers")
def test_socket_that_breaks_leaves_no_stuck_session(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "endless", "hello") as server:
        list(server.ask(agent="hello"))
        before = settled(server)
        with suppress(ConnectionClosed, OSError), open_socket(server, "s", "agent_type=endless") as broken:
            say(broken, "query", query="go")
            until(heard(broken), "action_thought")
            no_farewell = struct.pack("ii", 1, 0)
            broken.socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, no_farewell)
            broken.socket.close()
        with open_socket(server, "s") as again:
            frames = heard(again)
            assert next(frames)["state"]["state"] == "processing"
            say(again, "query", query="and now?")
            assert until(frames, "error")[-1]["message"] == "Session is already processing a query"
            say(again, "query", query="and now?", if_busy="cancel")
            while until(frames, "user")[-1]["content"] != "and now?":
                pass
        run_id = server.get("/sessions/s")[1]["run_id"]
        assert server.post(f"/runs/{run_id}/cancel")[1]["state"] == "cancelled"
        nothing_is_left(server, before)


@pytest.mark.requirement("slow-viewers")
def test_sockets_that_never_read_do_not_delay_the_run(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "dump", "hello") as server, ExitStack() as open_ones:
        process = psutil.Process(server.pid)
        list(server.ask(agent="hello"))
        before = settled(server)
        for _ in range(5):
            open_ones.enter_context(_deaf(server))
        with open_socket(server, "s", "format=records") as reader:
            say(reader, "query", query="print")
            found = until(heard(reader), "state", "completed")
        printed = sum(len(f["event"]["text"]) for f in found if f.get("event", {}).get("kind") == "tool_output_delta")
        assert printed == 50_000_000
        grown = process.memory_info().rss - before.rss
        assert grown < 100 * MB, f"{grown / MB:.0f} MB for 50 MB of output and five sockets that do not read"
        open_ones.close()
        nothing_is_left(server, before, memory=100 * MB)


def _deaf(server: ServerProcess) -> sockets.socket:
    """A socket whose client reads nothing after the handshake."""
    headers = {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-version": "13",
        "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    lines = ["GET /api/v2/ws/s HTTP/1.1", f"host: 127.0.0.1:{server.port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    connection = sockets.create_connection(("127.0.0.1", server.port), DEADLINE)
    connection.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    assert connection.recv(12) == b"HTTP/1.1 101"
    return connection


@pytest.mark.requirement("socket-resume")
def test_socket_resumes_after_kill_and_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "steady", "hello") as server:
        with open_socket(server, "done", "agent_type=hello") as socket:
            say(socket, "query", query="hi")
            until(heard(socket), "state", "completed")
        status, made = server.post("/api/v2/sessions", {"agent_type": "steady", "max_steps": 9})
        assert status == 200
        seen: list[Json] = []
        with suppress(ConnectionClosed, OSError), open_socket(server, "cut", "agent_type=steady") as cut:
            say(cut, "query", query="go")
            frames = heard(cut)
            seen += [next(frames) for _ in range(120)]
            server.kill()
            seen.extend(frames)
    with ServerProcess(data, "steady", "hello") as server:
        sessions = {session["session_id"]: session for session in server.get("/api/v2/sessions")[1]}
        assert {name: sessions[name]["state"] for name in ("done", "cut")} == {"done": "completed", "cut": "error"}
        assert (sessions[made["session_id"]]["state"], sessions[made["session_id"]]["max_steps"]) == ("idle", 9)
        cursor = messages(seen)[-1]["cursor"]
        with open_socket(server, "cut", f"after={cursor}") as socket:
            frames = heard(socket)
            assert next(frames)["state"]["state"] == "error"
            seen += until(frames, "error")
            assert folded(seen) == listed(server, "cut")
            assert seen[-1]["metadata"]["code"] == "interrupted"
            say(socket, "query", query="again")
            answered = until(frames, "state", "completed")
        assert messages(answered)[0]["content"] == "again"
        assert sessions["cut"]["message_count"] == len(folded(seen))
        assert server.get("/api/v2/sessions/cut")[1]["message_count"] == len(folded(seen)) + len(folded(answered))


@pytest.mark.requirement("socket-close-codes")
def test_sigterm_sends_the_end_of_the_run_and_closes_with_1012(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "endless") as server, open_socket(server, "s") as socket:
        say(socket, "query", query="go")
        frames = heard(socket)
        until(frames, "action_thought")
        assert server.terminate() == -signal.SIGTERM
        seen: list[Json] = []
        with suppress(ConnectionClosed):
            seen.extend(frames)
        assert seen[-1]["state"]["state"] == "error"
        assert messages(seen)[-1]["metadata"]["code"] == "interrupted"
        assert socket.close_code == 1012 and socket.close_reason == "the server is shutting down"
