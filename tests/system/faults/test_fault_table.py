"""Faults of the table in `docs/faults.md` that no other file tests."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.server import collect
from tests.support.wait import DEADLINE, eventually
from tests.system.faults import agents
from tests.system.faults.in_process_server import ending, misbehaving
from tests.system.faults.invariants import MB, nothing_is_left, settled, whole
from tests.system.processes.endless_provider import Provider, talking_provider
from tests.system.processes.server_process import ServerProcess

SOON = 20.0
"""Seconds, for a busy machine; an idle one needs less than a second."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with talking_provider() as provider:
        yield provider


@pytest.mark.requirement("stop-closes-provider-stream")
async def test_stop_closes_the_stream_of_the_provider(tmp_path: Path, provider: Provider) -> None:
    async def agent(messages: object, ctx: object) -> AsyncIterator[str]:
        async with httpx.AsyncClient(trust_env=False) as http, http.stream("GET", provider.url) as reply:
            async for text in reply.aiter_text():
                yield text

    async with misbehaving(agent, data=tmp_path / "data") as served:
        watching = asyncio.create_task(collect(served.ask("go", agent="agent", session_id="s")))
        await eventually(provider.asked.is_set)
        run_id = (await served.http.get("/sessions/s")).json()["run_id"]
        began = time.monotonic()
        assert (await served.http.post(f"/runs/{run_id}/cancel")).json()["state"] == "cancelled"
        await eventually(provider.left.is_set)
        assert time.monotonic() - began < SOON
        assert ending(await watching)[0] == "cancelled"


@pytest.mark.requirement("kill")
def test_killed_run_is_sealed_and_never_repeated(tmp_path: Path) -> None:
    plays = tmp_path / "plays"
    data = tmp_path / "data"
    agent = f"{agents.__file__}:played"
    with ServerProcess(data, agent, "hello", PLAYS=str(plays)) as server:
        stream = server.ask(agent="played", session_id="s")
        next(data for _, data in stream if data["type"] == "token")
        server.kill()
    for _ in range(2):
        with ServerProcess(data, agent, "hello", PLAYS=str(plays)) as server:
            assert server.get(f"/runs/{stream.run_id}")[1]["error"]["code"] == "interrupted"
            kept = [data["event"] for _, data in whole(server, stream.run_id, "records")]
            assert [event["text"] for event in kept if event["kind"] == "text_delta"] == ["played"]
            nothing_is_left(server)
            list(server.ask(agent="hello", session_id="s"))
    assert plays.read_text() == "1"


@pytest.mark.requirement("large-body")
def test_body_of_50_megabytes_is_refused_and_not_kept(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "hello") as server:
        list(server.ask())
        before = settled(server)
        body = json.dumps({"messages": [{"role": "user", "content": "x" * 50_000_000}]}).encode()
        for declared in (f"content-length: {len(body)}", "transfer-encoding: chunked"):
            with socket.create_connection(("127.0.0.1", server.port), DEADLINE) as connection:
                head = f"POST /chat HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\ncontent-type: application/json\r\n"
                connection.sendall(f"{head}{declared}\r\n\r\n".encode())
                assert answer_to(connection, body, chunked="chunked" in declared).startswith(b"HTTP/1.1 413")
        nothing_is_left(server, before, memory=40 * MB)


def answer_to(connection: socket.socket, body: bytes, *, chunked: bool) -> bytes:
    """The beginning of the response; sends the body until it arrives."""
    connection.settimeout(0.001)
    for start in range(0, len(body), 65536):
        piece = body[start : start + 65536]
        try:
            connection.settimeout(DEADLINE)
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            connection.settimeout(0.001)
            return connection.recv(4096)
        except TimeoutError:
            continue
        except (BrokenPipeError, ConnectionResetError):
            break
    connection.settimeout(DEADLINE)
    return connection.recv(4096)
