"""A run that waits for an approval, on a server without its agent: it stays open, and can be stopped."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from limelight.auth.key_file import Keyring
from tests.support.server import Frame, Served, asking, collect, offer, serving, text_of
from tests.support.wait import eventually
from tests.system.processes.agents import asks, hello


class Left(NamedTuple):
    """A run whose server stopped while it waited for an approval."""

    run_id: str
    approval_id: str

    @property
    def decision(self) -> str:
        return f"/runs/{self.run_id}/approvals/{self.approval_id}"


@pytest.fixture
async def left(tmp_path: Path) -> Left:
    async with serving_agent(tmp_path) as served:
        asked = (await collect(served.ask("go", session_id="s"), until=lambda f: f.type == "approval"))[-1]
        session = (await served.http.get("/sessions/s")).json()
        return Left(session["run_id"], asked.data["data"]["approval_id"])


@pytest.fixture
async def other(tmp_path: Path, left: Left) -> AsyncGenerator[Served]:
    """The next server on the same data, with another agent."""
    async with serving(hello, data=tmp_path) as served:
        yield served


@asynccontextmanager
async def serving_agent(data: Path) -> AsyncGenerator[Served]:
    async with serving(data=data, agents=[offer(asks(), "asks")]) as served:
        yield served


async def watch(served: Served, run_id: str) -> "asyncio.Task[list[Frame]]":
    """Follow a run to its end in a task; returns once the approval is seen."""
    found: list[Frame] = []

    async def follow() -> list[Frame]:
        async for frame in served.stream("GET", f"/runs/{run_id}/stream"):
            found.append(frame)
        return found

    task = asyncio.create_task(follow())
    await eventually(lambda: any(frame.type == "approval" for frame in found))
    return task


async def test_waiting_run_without_its_agent_is_readable_with_its_approval(other: Served, left: Left) -> None:
    run = (await other.http.get(f"/runs/{left.run_id}")).json()
    assert (run["state"], run["agent"]) == ("waiting", "asks")
    assert [approval["approval_id"] for approval in run["approvals"]] == [left.approval_id]


async def test_decision_without_the_agent_is_refused_and_the_approval_stays_open(tmp_path: Path, left: Left) -> None:
    async with serving(hello, data=tmp_path) as other:
        problem = await other.problem("POST", left.decision, json={"decision": "approve"})
        assert (problem["status"], problem["code"], problem["run_id"]) == (409, "agent_not_served", left.run_id)
        assert "'asks'" in problem["detail"]
        assert (await other.http.get(left.decision)).json()["state"] == "requested"
    async with serving_agent(tmp_path) as served:
        assert (await served.http.post(left.decision, json={"decision": "approve"})).status_code == 200
        assert text_of(await collect(served.stream("GET", f"/runs/{left.run_id}/stream"))) == "decided: True"


async def test_decision_and_stop_are_not_refused_for_rate_after_a_restart(tmp_path: Path) -> None:
    """After a restart the run waits in the store and is live in no process."""
    headers = {"authorization": f"Bearer {Keyring(tmp_path).create('ann', ('use',), 1)[1]}"}
    async with serving_agent(tmp_path) as served:
        body = asking("go", session_id="s")
        frames = served.stream("POST", "/chat/stream", json=body, headers=headers)
        asked = (await collect(frames, until=lambda f: f.type == "approval"))[-1]
        session = (await served.http.get("/sessions/s", headers=headers)).json()
    left = Left(session["run_id"], asked.data["data"]["approval_id"])
    async with serving(hello, data=tmp_path, limits__requests_per_minute=3) as other:
        while (await other.http.get("/agents", headers=headers)).status_code != 429:
            pass
        decided = await other.http.post(left.decision, json={"decision": "approve"}, headers=headers)
        assert decided.json()["code"] == "agent_not_served"
        stopped = await other.http.post(f"/runs/{left.run_id}/cancel", headers=headers)
        assert (stopped.status_code, stopped.json()["state"]) == (200, "cancelled")


async def test_stop_ends_the_run_for_all_viewers(other: Served, left: Left) -> None:
    viewer = await watch(other, left.run_id)
    stopped = await other.http.post(f"/runs/{left.run_id}/cancel", json={"reason": "never mind"})
    assert stopped.json() == {"run_id": left.run_id, "state": "cancelled"}
    seen = await asyncio.wait_for(viewer, 10)
    resolved, cancelled, done = [frame for frame in seen if frame.type in ("approval", "cancelled", "done")][1:]
    assert (resolved.data["data"]["state"], resolved.data["data"]["by"]) == ("reject", "system")
    assert (cancelled.data["data"]["reason"], done.type) == ("never mind", "done")
    assert text_of(await collect(other.ask("hi", session_id="s"))) == "hello"


async def test_new_request_with_if_busy_cancel_replaces_the_run(other: Served, left: Left) -> None:
    async with asyncio.timeout(10):
        assert text_of(await collect(other.ask("hi", session_id="s", if_busy="cancel"))) == "hello"
    assert (await other.http.get(f"/runs/{left.run_id}")).json()["state"] == "cancelled"


async def test_queued_request_begins_when_the_run_is_stopped(other: Served, left: Left) -> None:
    waiting = asyncio.create_task(collect(other.ask("hi", session_id="s", if_busy="wait")))
    await eventually(lambda: other.runtime.queues)
    await other.http.post(f"/runs/{left.run_id}/cancel")
    assert text_of(await asyncio.wait_for(waiting, 10)) == "hello"


async def test_session_with_the_run_can_be_deleted(other: Served, left: Left) -> None:
    async with asyncio.timeout(10):
        assert (await other.http.delete("/sessions/s")).status_code == 204
    assert (await other.http.get(f"/runs/{left.run_id}")).status_code == 404


async def test_run_is_interrupted_when_its_approval_expires(
    tmp_path: Path, left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.runs.maintenance.LEASE_MS", 30)
    async with serving(hello, data=tmp_path) as other:
        viewer = await watch(other, left.run_id)
        monkeypatch.setattr("limelight.runs.recovery.now_ms", lambda: 10**14)
        seen = await asyncio.wait_for(viewer, 10)
        error = next(frame for frame in seen if frame.type == "error")
        assert error.data["data"]["code"] == "interrupted"
