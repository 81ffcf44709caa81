"""Connections that send requests faster than they read answers: all are answered, and memory is bounded."""

import asyncio
import json
import logging
from pathlib import Path

import pytest
from websockets.frames import Frame, Opcode

from limelight.server.process import uvicorn_protocols
from limelight.server.process.uvicorn_protocols import MAX_PIPELINED_BYTES, HttpConnection
from limelight.server.rate_limit import Throttle
from tests.server.raw_connection import SECONDS, connected
from tests.support import agents
from tests.support.server import asking, serving
from tests.support.wait import eventually

HEALTH = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
UPGRADE = (
    b"GET /api/v2/ws/other HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


def post(path: str, body: bytes, *, chunks: int = 0) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n".encode()
    if not chunks:
        return head + b"content-length: %d\r\n\r\n" % len(body) + body
    size = len(body) // chunks + 1
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    sent = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return head + b"transfer-encoding: chunked\r\n\r\n" + sent + b"0\r\n\r\n"


async def test_pipelined_requests_are_answered_in_their_order(tmp_path: Path) -> None:
    paths = ["/health", "/agents", "/sessions", "/runs/no", "/agents", "/health"]
    async with serving(agents.echo, data=tmp_path) as served, connected(served) as wire:
        wanted = [(await served.http.get(path)).content for path in paths]
        for path in paths:
            wire.writer.write(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
        assert [(await wire.answer())[1] for _ in paths] == wanted


@pytest.mark.parametrize("split", [1, 2, 3, 7, 50, 1000])
@pytest.mark.parametrize("chunks", [0, 3])
async def test_pipelined_bodies_arrive_whole_however_they_are_cut(tmp_path: Path, split: int, chunks: int) -> None:
    """Bodies may contain the bytes that end headers."""
    texts = ["one", "two\r\n\r\n" * 5, "three"]
    bodies = [json.dumps(asking(text)).encode() + b"\r\n\r\n" for text in texts]
    sent = b"".join(post("/chat", body, chunks=chunks) + HEALTH for body in bodies)
    async with serving(agents.echo, data=tmp_path) as served, connected(served) as wire:
        for start in range(0, len(sent), max(1, len(sent) // split)):
            wire.writer.write(sent[start : start + max(1, len(sent) // split)])
            await wire.writer.drain()
        for text in texts:
            status, body = await wire.answer()
            assert status == 200
            assert json.loads(body)["message"]["content"].startswith(f"user:{text} for")
            assert (await wire.answer())[0] == 200


async def test_large_body_is_read_whole_and_the_connection_can_be_used_again(tmp_path: Path) -> None:
    text = "0123456789abcdef" * 300_000
    async with serving(agents.talker, data=tmp_path) as served, connected(served) as wire:
        wire.writer.write(post("/chat", json.dumps(asking(text)).encode()))
        assert (await wire.answer())[0] == 200
        wire.writer.write(HEALTH)
        assert (await wire.answer())[0] == 200


async def test_server_stops_reading_a_connection_whose_answer_is_outstanding(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served, connected(served) as wire:
        wire.writer.write(post("/chat/stream", json.dumps(asking("go")).encode()))
        async with asyncio.timeout(SECONDS):
            await wire.reader.readuntil(b"Working")
        server_side = wire.server_side
        wire.writer.write(HEALTH * 100)
        await eventually(lambda: server_side.has_unparsed)
        assert server_side.flow.read_paused
        assert not server_side.pipeline
        assert len(server_side._unparsed) <= MAX_PIPELINED_BYTES  # pyright: ignore[reportPrivateUsage]


async def test_too_many_pipelined_bytes_close_the_connection_after_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn_protocols, "LINGER_SECONDS", 0.1)
    async with serving(agents.sleeper, data=tmp_path) as served, connected(served) as wire:
        wire.writer.write(post("/chat", json.dumps(asking("go")).encode()))
        wire.writer.write(HEALTH * (MAX_PIPELINED_BYTES // len(HEALTH) + 10))
        assert (await wire.answer())[0] == 200
        rest = await wire.rest()
        assert rest.count(b"HTTP/1.1 200") <= 1  # the parser may have had the next request with the end of the body


async def test_client_that_reads_no_answers_is_read_no_further_and_then_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn_protocols, "UNREAD_SECONDS", 0.5)
    large = post("/chat", json.dumps(asking("x" * 200_000)).encode())
    async with serving(agents.echo, data=tmp_path) as served, connected(served) as wire:
        wire.reader._transport.pause_reading()  # pyright: ignore  # asyncio's client would read ahead
        server_side: HttpConnection | None = None
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(SECONDS):
                while True:
                    wire.writer.write(large)
                    await wire.writer.drain()
                    server_side = server_side or wire.server_side
        assert server_side is not None
        await eventually(lambda: server_side.transport.is_closing())
        assert not server_side.pipeline
        assert not server_side.has_unparsed


async def test_rest_of_a_refused_body_has_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_protocols, "HEADER_SECONDS", 0.3)
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served, connected(served) as wire:
        wire.writer.write(post("/chat", b" " * 1_000_000)[:1000])
        assert (await wire.answer())[0] == 401
        async with asyncio.timeout(SECONDS):
            with pytest.raises(ConnectionError):
                while not wire.reader.at_eof():
                    wire.writer.write(b" ")
                    await wire.writer.drain()
                    await asyncio.sleep(0.02)  # single bytes must not extend the time limit
                raise ConnectionResetError


async def test_leaving_viewer_is_noticed_while_its_stream_is_open(tmp_path: Path) -> None:
    async with serving(agents.patient, data=tmp_path) as served:
        async with connected(served) as wire:
            wire.writer.write(post("/chat/stream", json.dumps(asking("go")).encode()))
            async with asyncio.timeout(SECONDS):
                await wire.reader.readuntil(b"Working")
            assert served.runtime.hub.viewers == 1
        await eventually(lambda: served.runtime.hub.viewers == 0)


async def test_headers_that_end_with_bare_line_feeds_are_refused(tmp_path: Path) -> None:
    """The server splits pipelined requests at CRLF CRLF, so the parser must accept no other end of headers."""
    async with serving(agents.echo, data=tmp_path) as served, connected(served) as wire:
        wire.writer.write(b"GET /health HTTP/1.1\nhost: 127.0.0.1\n\n" * 3)
        assert (await wire.answer())[0] == 400
        assert await wire.rest() == b""


@pytest.mark.parametrize("cut", range(1, 5))
async def test_end_of_headers_may_be_split_between_two_reads(tmp_path: Path, cut: int) -> None:
    async with serving(agents.patient, data=tmp_path) as served, connected(served) as wire:
        head = b"GET /sessions/s/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
        body = json.dumps(asking("go", session_id="s")).encode()
        async with connected(served) as asker:
            asker.writer.write(post("/chat/stream", body))
            async with asyncio.timeout(SECONDS):
                await asker.reader.readuntil(b"Working")
            wire.writer.write(head[:-cut])
            server_side = wire.server_side
            await eventually(lambda: server_side._header_bytes == len(head) - cut)  # pyright: ignore[reportPrivateUsage]
            wire.writer.write(head[-cut:] + HEALTH * 3)
            async with asyncio.timeout(SECONDS):
                await wire.reader.readuntil(b"\r\n\r\n")
            await eventually(lambda: server_side.has_unparsed)
            assert not server_side.pipeline


async def test_upgrade_behind_an_unfinished_answer_closes_the_connection(tmp_path: Path) -> None:
    """A chunked body, whose end only the parser knows, with a handshake in the same piece."""
    body = json.dumps(asking("go", session_id="s")).encode()
    async with serving(agents.patient, data=tmp_path) as served, connected(served) as wire:
        wire.writer.write(post("/chat/stream", body, chunks=1) + UPGRADE)
        assert b"101 Switching" not in await wire.rest()
        await eventually(lambda: served.runtime.hub.viewers == 0)


async def test_websocket_whose_handshake_was_pipelined_is_read(tmp_path: Path) -> None:
    """Reading is paused while the handshake waits for the answer before it, and resumed for the socket."""
    async with serving(agents.talker, data=tmp_path) as served, connected(served) as wire:
        wire.writer.write(HEALTH + UPGRADE)
        assert (await wire.answer())[0] == 200
        handshake = await asyncio.wait_for(wire.reader.readuntil(b"\r\n\r\n"), SECONDS)
        assert b" 101 " in handshake
        ping = Frame(Opcode.TEXT, b'{"type": "ping"}').serialize(mask=True)
        wire.writer.write(ping)
        async with asyncio.timeout(SECONDS):
            while b'"pong"' not in await wire.reader.read(2**16):
                pass


async def test_stream_behind_which_a_request_waits_notices_that_its_viewer_has_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    body = json.dumps(asking("go", session_id="s")).encode()
    async with serving(agents.patient, data=tmp_path) as served:
        async with connected(served) as wire:
            wire.writer.write(post("/chat/stream", body, chunks=1) + HEALTH)
            async with asyncio.timeout(SECONDS):
                await wire.reader.readuntil(b"Working")
            server_side = wire.server_side
        server_side.transport.abort()
        await eventually(lambda: served.runtime.hub.viewers == 0)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_refused_body_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_protocols, "MAX_DISCARDED_BYTES", 100_000)
    monkeypatch.setattr(uvicorn_protocols, "LINGER_SECONDS", 0.1)
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served, connected(served) as wire:
        wire.writer.write(post("/chat", b"")[:-5] + b"900000000\r\n\r\n")
        assert (await wire.answer())[0] == 401
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(SECONDS):
                while True:
                    wire.writer.write(b"\r\n" * 30_000)
                    await wire.writer.drain()


async def test_request_of_a_disconnected_client_leaves_the_throttle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle = Throttle(per_second=0.001, burst=1)
    monkeypatch.setattr("limelight.server.runtime.Throttle", lambda: throttle)
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        assert (await served.http.get("/sessions")).status_code == 401
        async with connected(served) as wire:
            wire.writer.write(b"GET /sessions HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            await eventually(lambda: throttle.waiting == 1)
        await eventually(lambda: throttle.waiting == 0)
