"""A clock that jumps back an hour: runs go on, a restart seals what was cut off, and numbers keep the order."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.runs import maintenance
from tests.stores.sqlite.files import copy_as_it_is
from tests.support import agents
from tests.support.server import Frame, Served, asking, collect, serving

HOUR_NS = 3600 * 10**9


async def slow(messages: object, ctx: object) -> AsyncIterator[str]:
    """Says a word now and then, for as long as it may."""
    while True:
        yield "word "
        await asyncio.sleep(0.01)


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> "Jump":
    return Jump(monkeypatch)


class Jump:
    """Sets the wall clock back, again for more; what measures durations is another clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._real = time.time_ns
        self._back = 0

    def __call__(self) -> None:
        self._back += HOUR_NS
        real, back = self._real, self._back
        self._monkeypatch.setattr(time, "time_ns", lambda: real() - back)


async def records(served: Served, run_id: str) -> list[dict[str, Any]]:
    frames = await collect(served.stream("GET", f"/runs/{run_id}/stream", params={"format": "records"}))
    return [frame.data for frame in frames]


async def test_in_the_middle_of_a_run(tmp_path: Path, jump: Jump, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "LEASE_MS", 60)  # leases are renewed all the time
    async with serving(slow, data=tmp_path) as served:
        seen, run_id = 0, ""
        async for frame in served.ask("go", session_id="s", format="records"):
            seen += 1
            run_id = frame.data["run_id"]
            if seen == 10:
                jump()
            if seen == 40:
                await served.http.post(f"/runs/{run_id}/cancel")
        log = await records(served, run_id)
    assert log[-1]["event"]["kind"] == "run_cancelled"
    assert [record["seq"] for record in log] == sorted({record["seq"] for record in log})
    assert [record["at"] for record in log] == sorted(record["at"] for record in log)


async def test_before_a_restart(tmp_path: Path, jump: Jump) -> None:
    """The run was cut off an hour after the new server's time: it is sealed at the start, not in an hour."""
    async with serving(slow, agents.talker, data=tmp_path / "first") as served:
        run_id = ""
        async for frame in served.ask("go", session_id="s", format="records"):
            run_id = frame.data["run_id"]
            if frame.data["seq"] > 5:
                break
        copy_as_it_is(tmp_path / "first" / "limelight.db", tmp_path / "second")
    jump()
    async with serving(slow, agents.talker, data=tmp_path / "second") as served:
        run = (await served.http.get(f"/runs/{run_id}")).json()
        assert (run["state"], run["error"]["code"]) == ("failed", "interrupted")
        assert run["ended_at"] >= run["started_at"]
        answer = await served.http.post("/chat", json=asking("hi", session_id="s", agent="talker"))
        assert answer.status_code == 200
        second = answer.json()["run_id"]
        log = await collect(served.stream("GET", "/sessions/s/stream", params={"format": "records"}), is_end_of(second))
        assert [int(frame.id) for frame in log] == sorted(int(frame.id) for frame in log)
        runs = list(dict.fromkeys(frame.data["run_id"] for frame in log))
        assert runs == [run_id, second]
        resumed = await collect(served.stream("GET", f"/runs/{second}/stream", headers={"last-event-id": log[-2].id}))
        assert [frame.id for frame in resumed] == [log[-1].id]


def is_end_of(run_id: str) -> Callable[[Frame], bool]:
    return lambda frame: frame.data["run_id"] == run_id and frame.data["event"]["kind"].startswith("run_fin")
