"""Heartbeats: no stream is silent for longer than `server.heartbeat_seconds`, also before its first frame."""

import asyncio
import selectors
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.config import Settings
from limelight.server.open_streams import Kind, OpenStreams
from limelight.server.routes import chat
from tests.support import agents
from tests.support.server import Served, asking, serving

LONG = 20 * Settings().server.heartbeat_seconds


class SimulatedTime(selectors.DefaultSelector):
    """A selector that does not wait: it moves the clock of its loop instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0.0
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._simulated = SimulatedTime()
        super().__init__(self._simulated)

    def time(self) -> float:
        return self._simulated.now


async def _is_authorized() -> bool:
    return True


class SilentStream:
    """Sends nothing but heartbeats, and keeps the longest silence."""

    kind: Kind = "stream"
    format = "typed"

    def __init__(self, last_sent: float) -> None:
        self.last_sent = last_sent
        self.is_still_authorized: Callable[[], Awaitable[bool]] = _is_authorized
        self.longest = 0.0
        self.beats = 0
        self.revoked = 0

    def ping(self) -> None:
        now = asyncio.get_running_loop().time()
        self.longest = max(self.longest, now - self.last_sent)
        self.last_sent = now
        self.beats += 1

    def revoke(self) -> None:
        self.revoked += 1

    def close(self) -> None:
        raise AssertionError


def test_silent_stream_gets_heartbeats_within_the_interval() -> None:
    seconds = Settings().server.heartbeat_seconds

    async def watch() -> list[SilentStream]:
        open_streams = OpenStreams(seconds)
        open_streams.start()
        streams: list[SilentStream] = []
        for _ in range(97):  # at all phases of the timer
            await asyncio.sleep(seconds / 37)
            streams.append(SilentStream(asyncio.get_running_loop().time()))
            open_streams.add(streams[-1])
        await asyncio.sleep(LONG)
        await open_streams.stop()
        return streams

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        streams = runner.run(watch())
    assert max(stream.longest for stream in streams) <= seconds
    assert min(stream.beats for stream in streams) >= LONG / seconds - 1
    assert max(stream.beats for stream in streams) <= 2 * LONG / seconds
    assert sum(stream.revoked for stream in streams) == 0


# Authorization checks


async def _is_unauthorized() -> bool:
    return False


async def _fails() -> bool:
    raise RuntimeError("the check is broken")


async def _never_ends() -> bool:
    await asyncio.Event().wait()
    return True


def streams_after(rounds: int, *checks: Callable[[], Awaitable[bool]]) -> list[SilentStream]:
    """Return streams with these authorization checks after some rounds of checks, in simulated time."""

    async def watch() -> list[SilentStream]:
        open_streams = OpenStreams(1)
        streams = [SilentStream(0.0) for _ in checks]
        for stream, check in zip(streams, checks, strict=True):
            stream.is_still_authorized = check
            open_streams.add(stream)
        open_streams.start()
        await asyncio.sleep(rounds + 0.5)
        await open_streams.stop()
        return streams

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(watch())


@pytest.mark.requirement("revocation")
def test_streams_are_checked_while_the_check_of_another_stream_waits() -> None:
    *waiting, revoked = streams_after(1, *[_never_ends] * 3, _is_unauthorized)
    assert revoked.revoked == 1
    assert [stream.revoked for stream in waiting] == [0, 0, 0]


@pytest.mark.requirement("revocation")
def test_checks_continue_after_an_unexpected_error_and_log_it_once(caplog: pytest.LogCaptureFixture) -> None:
    broken, good, revoked = streams_after(3, _fails, _is_authorized, _is_unauthorized)
    assert (broken.revoked, good.revoked, revoked.revoked) == (3, 0, 3)
    assert [record.exc_info is not None for record in caplog.records] == [True]
    assert "the check is broken" in caplog.text


def test_error_of_a_check_is_logged_again_after_a_round_without_it(caplog: pytest.LogCaptureFixture) -> None:
    outcomes = iter([RuntimeError("first"), True, RuntimeError("first"), True])

    async def check() -> bool:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return True

    streams_after(4, check)
    assert len(caplog.records) == 2


# Before the first frame


def delay(served: Served, method: str, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Make a method of the store wait for an event, which is returned."""
    gate, call = asyncio.Event(), getattr(served.runtime.store, method)

    async def delayed(*args: Any, **named: Any) -> Any:
        await gate.wait()
        return await call(*args, **named)

    monkeypatch.setattr(served.runtime.store, method, delayed)
    return gate


async def comments(lines: AsyncIterator[str], count: int) -> None:
    """Read until so many heartbeats have come, and no frame."""
    while count:
        line = await anext(lines)
        assert not line.startswith("data:")
        count -= line == ": ping"


@pytest.mark.requirement("heartbeat", "stream-starts-early")
@pytest.mark.parametrize("format_", ["typed", "tool_calls", "v2", "records"])
async def test_stream_gets_heartbeats_before_its_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    monkeypatch.setattr(chat, "START_SECONDS", 1)  # enough to find the id of the run on a busy machine
    async with serving(agents.echo, data=tmp_path, server__heartbeat_seconds=0.1) as served:
        gate = delay(served, "begin", monkeypatch)
        body, params = asking("hi", request_id="r"), {"format": format_}
        async with served.http.stream("POST", "/chat/stream", json=body, params=params) as response:
            run_id = response.headers["x-run-id"]
            lines = response.aiter_lines()
            await comments(lines, 3)
            gate.set()
            rest = [line async for line in lines]
        assert any("user:hi" in line for line in rest)
        assert (await served.http.get(f"/runs/{run_id}")).json()["state"] == "finished"


async def test_stream_gets_heartbeats_while_the_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(agents.echo, data=tmp_path, server__heartbeat_seconds=0.1) as served:
        run_id = (await served.http.post("/chat", json=asking("hi", session_id="s"))).json()["run_id"]
        gate = delay(served, "records", monkeypatch)
        for path in (f"/runs/{run_id}/stream", "/sessions/s/stream"):
            gate.clear()
            async with served.http.stream("GET", path) as response:
                lines = response.aiter_lines()
                await comments(lines, 3)
                gate.set()
                while "user:hi" not in await anext(lines):
                    pass
