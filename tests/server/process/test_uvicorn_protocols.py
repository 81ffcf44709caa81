"""HTTP connections: malformed requests are not logged, and silent clients lose their connection."""

import asyncio
import gc
import itertools
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState
from websockets.exceptions import InvalidMessage

from limelight.errors import Unauthorized
from limelight.server.process import uvicorn_protocols
from limelight.server.rate_limit import Throttle
from tests.server.keyed_server import handshake
from tests.server.raw_connection import SECONDS, connected
from tests.support import agents
from tests.support.server import asking, serving
from tests.support.wait import eventually


async def test_refused_handshake_is_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        assert await handshake(served, {}) == Unauthorized.status
        assert await handshake(served, {"authorization": "Bearer wrong"}) == Unauthorized.status
        assert await handshake(served, {"authorization": "Bearer sesame"}) == 101
    assert not warnings(caplog)


async def test_refused_handshake_whose_client_has_left_is_not_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def leave(self: Throttle, client: str, *, is_refusal: bool, is_gone: Callable[[], bool]) -> bool:
        ends = [end for end in gc.get_objects() if type(end) is uvicorn_protocols.WebSocketConnection]
        (left,) = [end for end in ends if not end.transport.is_closing()]  # others are garbage of earlier tests
        left.transport.abort()
        assert is_gone()
        return False

    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        monkeypatch.setattr(Throttle, "wait", leave)
        with pytest.raises(InvalidMessage):
            await handshake(served, {"authorization": "Bearer wrong"})
    assert not warnings(caplog)


NO_HTTP = b"\x16\x03\x01 what is this\r\n\r\n"
OTHER_UPGRADE = b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"


@pytest.mark.parametrize("sent", [NO_HTTP, OTHER_UPGRADE], ids=["no HTTP", "another upgrade"])
async def test_malformed_request_is_not_logged(tmp_path: Path, sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(agents.echo, data=tmp_path) as served, connected(served) as wire:
        wire.writer.write(sent)
        async with asyncio.timeout(SECONDS):
            assert (await wire.reader.readline()).startswith(b"HTTP/1.1 ")
    assert not warnings(caplog)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_unread_body_of_a_closed_connection_is_freed(tmp_path: Path) -> None:
    """The request is in a reference cycle with its connection, so it stays in memory until a garbage collection."""
    async with serving(agents.echo, data=tmp_path) as served:
        async with connected(served) as wire:
            head = b"GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n"
            wire.writer.write(head + b"x" * 50_000)
            await wire.answer()
            cycle = wire.server_side.cycle
            cycle.body += b"x"  # whether or not the request was faster than its body
        await eventually(lambda: not cycle.body)


REQUEST = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
HALF = b"GET /health HTTP/1.1\r\nho"


@pytest.mark.parametrize("sent", [b"", HALF, REQUEST + HALF], ids=["nothing", "a half", "a half after a whole"])
async def test_incomplete_headers_close_the_connection_after_a_time(
    tmp_path: Path, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        monkeypatch.setattr(uvicorn_protocols, "HEADER_SECONDS", 0.2)
        async with connected(served) as wire:
            wire.writer.write(sent)
            assert (await wire.rest()).count(b"HTTP/1.1 200") == (REQUEST in sent)


async def test_answer_may_take_longer_than_the_header_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_protocols, "HEADER_SECONDS", 0.2)
    async with serving(agents.sleeper, data=tmp_path) as served:
        assert (await served.http.post("/chat", json=asking("hi"))).status_code == 200


class Recorder(asyncio.Transport):
    """A transport that keeps what the server writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = asyncio.Event()
        self.protocol: asyncio.BaseProtocol | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def get_protocol(self) -> asyncio.BaseProtocol | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.protocol

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def close(self) -> None:
        self.closed.set()

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def count_headers(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"%d headers" % len(scope["headers"])})


def request_with(headers: int) -> bytes:
    lines = [b"GET / HTTP/1.1", b"connection: close", *(b"x-%d: %b" % (n, b"y" * 200) for n in range(headers - 1))]
    return b"\r\n".join([*lines, b"", b""])


async def answer_to(pieces: list[bytes], config: Config) -> bytes:
    """The answer of a connection that receives these pieces one after the other."""
    transport = Recorder()
    connection = transport.protocol = uvicorn_protocols.HttpConnection(config, ServerState(), {})
    connection.connection_made(transport)
    for piece in pieces:
        connection.data_received(piece)
        await asyncio.sleep(0)
    await transport.closed.wait()
    connection.connection_lost(None)
    return transport.written


@pytest.mark.parametrize("yields", [False, True], ids=["at once", "with pauses"])
@pytest.mark.parametrize(("headers", "step"), [(4, 7), (uvicorn_protocols.MAX_HEADERS, 1357)], ids=["few", "many"])
async def test_headers_are_read_alike_however_their_bytes_arrive(
    headers: int, step: int, yields: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two pieces, or in many of one size; and also if SLICE_SECONDS pass before every second piece is parsed."""
    config = Config(count_headers, lifespan="off", log_config=None)
    config.load()
    if yields:
        ticks = itertools.count()
        tick = 0.6 * uvicorn_protocols.SLICE_SECONDS
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: tick * next(ticks))
    sent = request_with(headers)
    assert len(sent) < uvicorn_protocols.MAX_HEADER_BYTES
    arrivals = [[sent[:cut], sent[cut:]] for cut in range(1, len(sent), step)]
    arrivals += [[sent[at : at + size] for at in range(0, len(sent), size)] for size in range(step, 9 * step, step)]
    for pieces in arrivals:
        answer = await answer_to(pieces, config)
        assert answer.startswith(b"HTTP/1.1 200 "), pieces
        assert b"\r\n%d headers\r\n" % headers in answer, pieces


@pytest.mark.requirement("connections-bounded")
async def test_request_with_too_many_headers_is_refused() -> None:
    config = Config(count_headers, lifespan="off", log_config=None)
    config.load()
    answer = await answer_to([request_with(uvicorn_protocols.MAX_HEADERS + 1)], config)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.endswith(uvicorn_protocols.TOO_MANY_HEADERS.encode())


class SlowReader:
    """A transport whose client reads at a steady rate."""

    def __init__(self, size: int, bytes_per_second: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._size = size
        self._bytes_per_second = bytes_per_second
        self.aborted = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        return max(0, self._size - round((self._loop.time() - self._began) * self._bytes_per_second))

    def get_extra_info(self, name: str) -> None: ...

    def abort(self) -> None:
        self.aborted.set()


@pytest.mark.parametrize(("rate", "is_aborted"), [(0, True), (10, True), (10_000, False)])
async def test_client_that_does_not_read_loses_its_connection(
    rate: int, is_aborted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn_protocols, "UNREAD_SECONDS", 0.05)
    monkeypatch.setattr(uvicorn_protocols, "MIN_READ_BYTES", 50)
    transport: Any = SlowReader(10_000_000, rate)
    timer = uvicorn_protocols.UnreadTimer(asyncio.get_running_loop())
    timer.connection_made(transport)
    timer.start()
    with suppress(TimeoutError):
        await asyncio.wait_for(transport.aborted.wait(), 0.5 if rate > 1000 else 20)
    timer.stop()
    assert transport.aborted.is_set() == is_aborted
