"""A running server when the wall clock jumps: runs keep their order, and retention pauses until a confirmation."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from limelight.runs import maintenance
from limelight.runs.retention_guard import Confirmation, RetentionFiles
from tests.server.prometheus import MetricsReader
from tests.stores.sqlite.files import copy_live_files
from tests.support import agents
from tests.support.server import Served, asking, collect, serving
from tests.support.wait import eventually

DAY_NS = 24 * 3600 * 10**9


class ShiftedClock:
    """The wall clock of this process, moved by the test. The monotonic clock is not touched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._real = time.time_ns
        self._shift = 0
        monkeypatch.setattr(time, "time_ns", lambda: self._real() + self._shift)

    def set_ahead(self, days: float) -> None:
        """Relative to the real time; negative values set it back."""
        self._shift = round(days * DAY_NS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ShiftedClock:
    return ShiftedClock(monkeypatch)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maintenance every 20 ms instead of every 10 s."""
    monkeypatch.setattr(maintenance, "LEASE_MS", 60)


async def ask(served: Served, session_id: str) -> None:
    assert (await served.http.post("/chat", json=asking("hi", session_id=session_id))).status_code == 200


async def has_session(served: Served, session_id: str) -> bool:
    return (await served.http.get(f"/sessions/{session_id}")).status_code == 200


async def paused_gauge(served: Served) -> float:
    return (await MetricsReader(served).read())["limelight_retention_paused"]


async def until_gone(served: Served, session_id: str) -> None:
    deadline = time.monotonic() + 10
    while await has_session(served, session_id):
        assert time.monotonic() < deadline, f"{session_id} is still there"


@pytest.mark.requirement("retention-clock")
async def test_start_with_clock_400_days_ahead_deletes_no_session(
    tmp_path: Path, clock: ShiftedClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "limelight")
    async with serving(agents.talker, data=tmp_path) as served:
        await ask(served, "s")
    clock.set_ahead(400)
    async with serving(agents.talker, data=tmp_path) as served:
        await eventually(lambda: "retention" in caplog.text.lower())
        assert await has_session(served, "s")


@pytest.mark.usefixtures("often")
async def test_pause_is_reported_once_and_a_confirmation_ends_it(
    tmp_path: Path, clock: ShiftedClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(agents.talker, data=tmp_path) as served:
        await ask(served, "s")
        assert "retention" not in (await served.http.get("/ready")).json()["checks"]
        assert await paused_gauge(served) == 0
        clock.set_ahead(400)
        await eventually(lambda: served.runtime.retention.pause is not None)
        await ask(served, "later")  # dated by the wrong clock, so it is not evidence
        ready = await served.http.get("/ready")
        assert (ready.status_code, ready.json()["status"]) == (200, "ready")
        assert "paused: the clock read" in ready.json()["checks"]["retention"]
        assert "400.0 days ahead" in ready.json()["checks"]["retention"]
        assert await paused_gauge(served) == 1
        assert await has_session(served, "s")
        pause = served.runtime.retention.pause
        assert pause is not None
        RetentionFiles(tmp_path).confirm(Confirmation(pause.clock_at, pause))
        await eventually(lambda: "no longer paused" in caplog.text)
        await until_gone(served, "s")
        assert await has_session(served, "later")
        assert "retention" not in (await served.http.get("/ready")).json()["checks"]
    assert caplog.text.count("retention is paused") == 1


async def test_recovery_with_a_wrong_clock_is_not_evidence_of_the_time(
    tmp_path: Path, clock: ShiftedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Without saved state the newest record before recovery counts."""
    async with serving(agents.talker, agents.patient, data=tmp_path / "first") as served:
        await ask(served, "s")
        await anext(aiter(served.ask("go", session_id="cut", agent="patient")))
        copy_live_files(tmp_path / "first" / "limelight.db", tmp_path / "second")
    assert not RetentionFiles(tmp_path / "second").load()
    clock.set_ahead(400)
    async with serving(agents.talker, agents.patient, data=tmp_path / "second") as served:
        await eventually(lambda: "retention is paused" in caplog.text)
        assert (await served.http.get("/sessions/cut")).json()["run_state"] == "failed"
        assert await has_session(served, "s")


async def endless(messages: object, ctx: object) -> AsyncIterator[str]:
    """Emits a word every 10 ms until it is stopped."""
    while True:
        yield "word "
        await asyncio.sleep(0.01)


@pytest.mark.usefixtures("often")
async def test_clock_set_back_during_a_run_keeps_seqs_and_times_in_order(tmp_path: Path, clock: ShiftedClock) -> None:
    async with serving(endless, data=tmp_path) as served:
        seen, run_id = 0, ""
        async for frame in served.ask("go", session_id="s", format="records"):
            seen += 1
            run_id = frame.data["run_id"]
            if seen == 10:
                clock.set_ahead(-1 / 24)
            if seen == 40:
                await served.http.post(f"/runs/{run_id}/cancel")
        frames = await collect(served.stream("GET", f"/runs/{run_id}/stream", params={"format": "records"}))
    records = [frame.data for frame in frames]
    assert records[-1]["event"]["kind"] == "run_cancelled"
    assert [record["seq"] for record in records] == sorted({record["seq"] for record in records})
    assert [record["at"] for record in records] == sorted(record["at"] for record in records)
