"""HTTP connections: malformed requests are not logged, and silent clients lose their connection."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from limelight.errors import Unauthorized
from limelight.server.process import connection_limits
from tests.server.keyed_server import handshake
from tests.server.raw_connection import SECONDS, connected
from tests.support import agents
from tests.support.server import asking, serving


async def test_refused_handshake_is_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(agents.echo, data=tmp_path, auth__api_key="sesame") as served:
        assert await handshake(served, {}) == Unauthorized.status
        assert await handshake(served, {"authorization": "Bearer wrong"}) == Unauthorized.status
        assert await handshake(served, {"authorization": "Bearer sesame"}) == 101
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


REQUEST = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
HALF = b"GET /health HTTP/1.1\r\nho"


@pytest.mark.parametrize("sent", [b"", HALF, REQUEST + HALF], ids=["nothing", "a half", "a half after a whole"])
async def test_incomplete_headers_close_the_connection_after_a_time(
    tmp_path: Path, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(agents.echo, data=tmp_path) as served:
        monkeypatch.setattr(connection_limits, "HEADER_SECONDS", 0.2)
        async with connected(served) as wire:
            wire.writer.write(sent)
            assert (await wire.rest()).count(b"HTTP/1.1 200") == (REQUEST in sent)


async def test_answer_may_take_longer_than_the_header_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "HEADER_SECONDS", 0.2)
    async with serving(agents.sleeper, data=tmp_path) as served:
        assert (await served.http.post("/chat", json=asking("hi"))).status_code == 200


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
    monkeypatch.setattr(connection_limits, "UNREAD_SECONDS", 0.05)
    monkeypatch.setattr(connection_limits, "MIN_READ_BYTES", 50)
    transport: Any = SlowReader(10_000_000, rate)
    timer = connection_limits.UnreadTimer(asyncio.get_running_loop())
    timer.connection_made(transport)
    timer.start()
    with suppress(TimeoutError):
        await asyncio.wait_for(transport.aborted.wait(), 0.5 if rate > 1000 else 20)
    timer.stop()
    assert transport.aborted.is_set() == is_aborted
