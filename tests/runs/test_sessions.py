"""Sessions: one live run per session, queues, duplicates, quotas and shutdown."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from limelight.errors import Draining, QueueFull, SessionBusy, TooManyRuns
from limelight.events import RunCancelled, RunFailed
from limelight.models import Begun, SessionRef, User
from limelight.runs.committer import INTERVAL
from limelight.runs.limits import MAX_QUEUED, Quota
from limelight.runs.queue import StoppedInQueue
from limelight.runs.workspace import Workspaces
from tests.runs.process import Process, started
from tests.support.clock import Clock

pytestmark = pytest.mark.usefixtures("loop_clock")
SHUT_DOWN = RunFailed(code="interrupted", message="the server was shut down")


@pytest.fixture
async def process(tmp_path: Path) -> AsyncGenerator[Process]:
    async with started(Process(tmp_path)) as process:
        yield process


async def test_request_for_a_busy_session_is_refused(process: Process) -> None:
    live = await process.begin()
    with pytest.raises(SessionBusy) as busy:
        await process.begin()
    assert busy.value.run_id == live.run.run_id
    assert (await process.begin("another session")).created


async def test_request_waits_for_the_end_of_a_run_that_has_answered(process: Process, loop_clock: Clock) -> None:
    await process.begin()
    process.source.end_gate.clear()
    process.source.gate.set()
    await loop_clock.settle()
    second = asyncio.create_task(process.begin())
    await loop_clock.settle()
    assert not second.done()
    process.source.end_gate.set()
    await loop_clock.settle()
    assert second.result().created


async def test_request_does_not_wait_long_for_a_run_that_has_answered(process: Process, loop_clock: Clock) -> None:
    await process.begin()
    process.source.end_gate.clear()
    process.source.gate.set()
    await loop_clock.settle()
    second = asyncio.create_task(process.begin())
    await loop_clock.settle()
    await loop_clock.advance(1.1)
    assert isinstance(second.exception(), SessionBusy)


async def test_request_that_cancels_ends_the_live_run_and_begins(process: Process, loop_clock: Clock) -> None:
    first = (await process.begin()).run.run_id
    second = await process.begin(if_busy="cancel")
    assert second.created
    assert (await process.log(first))[-1].event == RunCancelled(reason="another request took its place")
    assert (await process.run(second.run.run_id)).turn == 2


async def test_waiting_requests_begin_in_order(process: Process, loop_clock: Clock) -> None:
    await process.begin()
    began: list[str] = []

    async def wait_and_begin(text: str) -> Begun:
        begun = await process.begin(text=text, if_busy="wait")
        began.append(text)
        return begun

    tasks = [asyncio.create_task(wait_and_begin(str(number))) for number in range(3)]
    await loop_clock.settle()
    assert (len(process.queues), began) == (3, [])
    process.source.gate.set()
    for _ in range(5):
        await loop_clock.advance(INTERVAL)
    assert began == ["0", "1", "2"]
    assert [task.result().run.turn for task in tasks] == [2, 3, 4]


async def test_queue_has_a_limit(process: Process, loop_clock: Clock) -> None:
    await process.begin()
    waiting = [asyncio.create_task(process.begin(if_busy="wait")) for _ in range(MAX_QUEUED)]
    await loop_clock.settle()
    with pytest.raises(QueueFull):
        await process.begin(if_busy="wait")
    await _cancel(waiting)


async def test_request_id_that_was_sent_before_gets_its_run(process: Process) -> None:
    first = await process.begin(request_id="q1")
    again = await process.begin(request_id="q1")
    assert (again.run.run_id, again.created) == (first.run.run_id, False)


async def test_duplicate_of_a_waiting_request_waits_for_the_same_run(process: Process, loop_clock: Clock) -> None:
    live = (await process.begin()).run.run_id
    tasks: list[asyncio.Task[Begun]] = []
    for _ in range(2):
        tasks.append(asyncio.create_task(process.begin(request_id="q1", if_busy="wait")))
        await loop_clock.settle()
    assert len(process.queues) == 1
    await process.control.end(live, "enough")
    await loop_clock.settle()
    first, second = (task.result() for task in tasks)
    assert first.run.run_id == second.run.run_id
    assert (first.created, second.created) == (True, False)


async def test_duplicate_of_a_request_that_is_stopped_in_the_queue_is_stopped_too(
    process: Process, loop_clock: Clock
) -> None:
    await process.begin()
    tasks = [asyncio.create_task(process.begin(request_id="q1", if_busy="wait")) for _ in range(2)]
    await loop_clock.settle()
    process.queues.stop_all(SessionRef("ann", "s"), "not needed")
    await loop_clock.settle()
    assert [type(task.exception()) for task in tasks] == [StoppedInQueue, StoppedInQueue]


@pytest.mark.parametrize(
    ("quota", "refused", "accepted"),
    [
        (Quota(runs=2), User("bob"), None),
        (Quota(runs_per_user=2), User("ann"), User("bob")),
        (Quota(runs_per_user=2), User("ann"), User("local")),
    ],
    ids=["all users", "one user", "local user"],
)
async def test_quota_of_live_runs(tmp_path: Path, quota: Quota, refused: User, accepted: User | None) -> None:
    async with started(Process(tmp_path, quota=quota)) as process:
        for number in range(2):
            await process.begin(f"s{number}")
        with pytest.raises(TooManyRuns):
            await process.begin("s2", user=refused)
        if accepted is not None:
            assert (await process.begin("s2", user=accepted)).created


async def test_quota_counts_runs_that_are_being_created(tmp_path: Path) -> None:
    async with started(Process(tmp_path, quota=Quota(runs_per_user=2))) as process:
        beginning = [process.begin(f"s{number}") for number in range(5)]
        outcomes = await asyncio.gather(*beginning, return_exceptions=True)
        assert sum(isinstance(outcome, Begun) for outcome in outcomes) == 2
        assert sum(isinstance(outcome, TooManyRuns) for outcome in outcomes) == 3


async def test_suspended_runs_have_a_quota_of_their_own(tmp_path: Path, loop_clock: Clock) -> None:
    async with started(Process(tmp_path, quota=Quota(runs_per_user=1, waiting_per_user=2))) as process:
        process.source.approvals = 1
        for number in range(2):
            await process.begin(f"s{number}")
            await loop_clock.settle()
        assert (process.sessions.count, process.sessions.working_count) == (2, 0)
        with pytest.raises(TooManyRuns, match="wait for a person"):
            await process.begin("s2")


async def test_delete_stops_the_live_run_and_the_queue(process: Process, loop_clock: Clock) -> None:
    live = (await process.begin()).run.run_id
    waiting = asyncio.create_task(process.begin(if_busy="wait"))
    await loop_clock.settle()
    await process.sessions.delete(SessionRef("ann", "s"))
    await loop_clock.settle()
    assert isinstance(waiting.exception(), StoppedInQueue)
    assert process.control.live_run(live) is None
    assert await process.store.session(SessionRef("ann", "s")) is None


@pytest.mark.requirement("workspace-removal")
async def test_delete_ends_the_processes_of_the_agent_before_it_removes_the_files(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = SessionRef("ann", "s")
    workspace = Workspaces(tmp_path).ensure_folder(ref)
    existed: list[bool] = []

    async def forget(memory_key: str) -> None:
        existed.append(workspace.exists())

    monkeypatch.setattr(process.source, "forget", forget)
    live = process.live((await process.begin()).run.run_id)
    process.source.gate.set()
    await live.task
    await process.sessions.delete(ref)
    assert existed == [True]
    assert not workspace.exists()


async def test_shutdown_ends_live_runs_and_refuses_waiting_requests(process: Process, loop_clock: Clock) -> None:
    live = (await process.begin()).run.run_id
    waiting = asyncio.create_task(process.begin(if_busy="wait"))
    await loop_clock.settle()
    process.sessions.close()
    drained = await process.sessions.drain(SHUT_DOWN)
    await loop_clock.settle()
    assert isinstance(waiting.exception(), Draining)
    assert [run.run_id for run in drained.ended] == [live]
    assert (await process.log(live))[-1].event == SHUT_DOWN
    with pytest.raises(Draining):
        await process.begin("another session")


async def test_shutdown_leaves_a_run_that_waits_for_a_decision(process: Process, loop_clock: Clock) -> None:
    process.source.approvals = 1
    run_id = (await process.begin()).run.run_id
    await loop_clock.settle()
    await loop_clock.advance(INTERVAL)
    process.sessions.close()
    drained = await process.sessions.drain(SHUT_DOWN)
    assert (drained.ended, drained.left) == ([], [])
    assert ((await process.run(run_id)).state, process.sessions.count) == ("waiting", 0)


async def _cancel(tasks: "list[asyncio.Task[Begun]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
