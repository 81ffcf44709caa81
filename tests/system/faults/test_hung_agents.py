"""Agents that hang: Stop and the time limits end their runs, and other runs continue."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from limelight.events import ToolStarted
from tests.support.server import Served, collect, serving
from tests.support.wait import eventually
from tests.system.faults.in_process_server import ending, misbehaving, others_are_well

may_end = threading.Event()
LONGEST = 60
"""Seconds after which a hanging agent gives up, so that a test that fails does not hang too."""


async def ignores_cancel(messages: object, ctx: object) -> AsyncIterator[str]:
    yield "So far"
    while not may_end.is_set():
        try:
            await asyncio.to_thread(may_end.wait, 0.05)
        except asyncio.CancelledError:
            continue


async def never_yields(messages: object, ctx: object) -> AsyncIterator[str]:
    await asyncio.Event().wait()
    yield "never"


async def never_returns(messages: object, ctx: object) -> str:
    await asyncio.Event().wait()
    return "never"


async def hangs_in_finally(messages: object, ctx: object) -> AsyncIterator[str]:
    try:
        yield "So far"
        await asyncio.Event().wait()
    finally:
        await asyncio.to_thread(may_end.wait, LONGEST)


async def waits_for_a_thread(messages: object, ctx: object) -> AsyncIterator[object]:
    yield ToolStarted(call_id="c", name="block", args={})
    await asyncio.to_thread(may_end.wait, LONGEST)


def blocks_its_thread(messages: object, ctx: object) -> Iterator[str]:
    yield "So far"
    may_end.wait(LONGEST)


def blocks_at_once(messages: object, ctx: object) -> Iterator[str]:
    may_end.wait(LONGEST)
    yield "late"


def blocks_in_finally(messages: object, ctx: object) -> Iterator[str]:
    try:
        while True:
            yield "on "
    finally:
        may_end.wait(LONGEST)


HANGING: tuple[Callable[..., Any], ...] = (
    ignores_cancel,
    never_yields,
    never_returns,
    hangs_in_finally,
    waits_for_a_thread,
    blocks_its_thread,
    blocks_at_once,
    blocks_in_finally,
)


@pytest.fixture(autouse=True)
def hung() -> Iterator[None]:
    may_end.clear()
    yield
    may_end.set()


async def begin(served: Served, agent: str) -> "tuple[str, asyncio.Task[Any]]":
    watching = asyncio.create_task(collect(served.ask("go", agent=agent, session_id=agent)))
    await eventually(lambda: served.runtime.sessions.count == 1)
    (live,) = served.runtime.control.live_runs
    return live.run.run_id, watching


@pytest.mark.requirement("hung-agents")
@pytest.mark.parametrize("agent", HANGING)
async def test_stop_ends_the_run_of_a_hung_agent_only(tmp_path: Path, agent: Callable[..., Any]) -> None:
    async with misbehaving(agent, data=tmp_path / "data") as served:
        run_id, watching = await begin(served, agent.__name__)
        await others_are_well(served)
        stopped = await served.http.post(f"/runs/{run_id}/cancel")
        assert stopped.json()["state"] == "cancelled"
        assert ending(await watching)[0] == "cancelled"
        await others_are_well(served)
        may_end.set()


@pytest.mark.requirement("time-limits")
@pytest.mark.parametrize("agent", HANGING)
async def test_time_limit_ends_the_run_of_a_hung_agent(tmp_path: Path, agent: Callable[..., Any]) -> None:
    limits = {"limits__silence_seconds": 0.5, "limits__run_seconds": 1.5}
    async with misbehaving(agent, data=tmp_path / "data", **limits) as served:
        _, watching = await begin(served, agent.__name__)
        kind, code = ending(await watching)
        assert (kind, code) in [("error", "silence_timeout"), ("error", "run_timeout")]
        may_end.set()


@pytest.mark.requirement("hung-agents")
@pytest.mark.parametrize("agent", HANGING)
async def test_server_shuts_down_while_an_agent_hangs(tmp_path: Path, agent: Callable[..., Any]) -> None:
    """`serving` shuts the server down at its end and waits for it, while the agent still hangs."""
    async with serving(agent, data=tmp_path / "data") as served:
        _, watching = await begin(served, agent.__name__)
        draining = asyncio.create_task(served.runtime.drain())
        assert ending(await watching) == ("error", "interrupted")
        await draining
    may_end.set()
