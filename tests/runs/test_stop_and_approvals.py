"""Control: Stop and decisions reach a run in this process and in another one, and exactly one decision counts."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from limelight.errors import AgentNotServed, AlreadyDecided, ApprovalExpired, InvalidBody
from limelight.events import ApprovalResolved, RunCancelled, RunFailed
from limelight.ids import now_ms
from limelight.models import Decide, Signal, SignalOutcome
from limelight.runs.committer import INTERVAL
from limelight.runs.limits import RunLimits
from limelight.runs.recovery import LEASE_MS
from limelight.stores.memory import MemoryDatabase
from tests.runs.process import Process, started
from tests.support.clock import Clock

pytestmark = pytest.mark.usefixtures("loop_clock")


@pytest.fixture
def database() -> MemoryDatabase:
    return MemoryDatabase()


@pytest.fixture
async def process(tmp_path: Path, database: MemoryDatabase) -> AsyncGenerator[Process]:
    async with started(Process(tmp_path, database)) as process:
        yield process


@pytest.fixture
async def other(tmp_path: Path, database: MemoryDatabase) -> AsyncGenerator[Process]:
    """Another process that serves the same agent from the same database."""
    async with started(Process(tmp_path, database)) as process:
        yield process


async def begin(process: Process, clock: Clock, *, approvals: int = 0) -> str:
    """Begin a run; it waits for approvals, or for the gate of its source."""
    process.source.approvals = approvals
    run_id = (await process.begin()).run.run_id
    await clock.settle()
    await clock.advance(INTERVAL)  # everything that the run has emitted is committed
    return run_id


async def terminal(process: Process, run_id: str) -> object:
    return (await process.log(run_id))[-1].event


@pytest.mark.parametrize("from_other", [False, True], ids=["same process", "another process"])
async def test_stop_ends_a_run(process: Process, other: Process, loop_clock: Clock, from_other: bool) -> None:
    run_id = await begin(process, loop_clock)
    await (other if from_other else process).control.cancel(run_id, "enough", "bob")
    await loop_clock.settle()
    assert await terminal(process, run_id) == RunCancelled(reason="enough")
    assert (await process.run(run_id)).state == "cancelled"


@pytest.mark.parametrize("from_other", [False, True], ids=["same process", "another process"])
async def test_decision_reaches_the_run(process: Process, other: Process, loop_clock: Clock, from_other: bool) -> None:
    run_id = await begin(process, loop_clock, approvals=1)
    (approval_id,) = process.approval_ids(run_id)
    decider = other if from_other else process
    await decider.control.decide(await decider.run(run_id), Decide(run_id, approval_id, "approve", by="bob"))
    await loop_clock.settle()
    assert process.source.decisions == ["approve by bob"]
    assert (await process.run(run_id)).state == "finished"


@pytest.mark.requirement("first-decision-counts")
async def test_of_deciders_in_two_processes_exactly_one_counts(
    process: Process, other: Process, loop_clock: Clock
) -> None:
    run_id = await begin(process, loop_clock, approvals=1)
    (approval_id,) = process.approval_ids(run_id)

    async def decide(decider: Process, by: str) -> str:
        try:
            run = await decider.run(run_id)
            await decider.control.decide(run, Decide(run_id, approval_id, "approve", by=by))
        except AlreadyDecided:
            return "already decided"
        return by

    deciders = [decide(decider, f"user {n}") for n, decider in enumerate([process, other] * 5)]
    outcomes = await asyncio.gather(*deciders)
    await loop_clock.settle()
    (winner,) = [outcome for outcome in outcomes if outcome != "already decided"]
    resolved = [record.event for record in await process.log(run_id) if isinstance(record.event, ApprovalResolved)]
    assert [event.by for event in resolved] == [winner]


async def test_stop_of_a_queued_request_removes_it_from_the_queue(process: Process, loop_clock: Clock) -> None:
    await begin(process, loop_clock)
    queued = process.queued(if_busy="wait")
    waiting = asyncio.create_task(process.sessions.begin(queued))
    await loop_clock.settle()
    assert len(process.queues) == 1
    await process.control.cancel(queued.run_id, "not needed")
    await loop_clock.settle()
    assert (len(process.queues), waiting.done()) == (0, True)
    assert "not needed" in str(waiting.exception())


async def test_stop_that_comes_while_the_run_is_being_created_is_applied(process: Process, loop_clock: Clock) -> None:
    queued = process.queued()
    beginning = asyncio.create_task(process.sessions.begin(queued))
    while await process.store.run(queued.run_id) is None:  # which lets the other task run
        pass
    await process.control.cancel(queued.run_id, "at once")
    await beginning
    await loop_clock.settle()
    assert await terminal(process, queued.run_id) == RunCancelled(reason="at once")


async def test_stop_of_an_ended_run_changes_nothing(process: Process, loop_clock: Clock) -> None:
    run_id = await begin(process, loop_clock)
    process.source.gate.set()
    await loop_clock.settle()
    before = await process.log(run_id)
    await process.control.cancel(run_id, "too late")
    await loop_clock.settle()
    assert await process.log(run_id) == before


async def test_expired_approval_is_rejected_and_later_decisions_are_refused(tmp_path: Path, loop_clock: Clock) -> None:
    async with started(Process(tmp_path, limits=RunLimits(approval_seconds=60))) as process:
        run_id = await begin(process, loop_clock, approvals=1)
        (approval_id,) = process.approval_ids(run_id)
        await loop_clock.advance(61)
        assert process.source.decisions == ["reject by system"]
        with pytest.raises(ApprovalExpired):
            run = await process.run(run_id)
            await process.control.decide(run, Decide(run_id, approval_id, "approve"))


async def test_decision_that_was_stored_before_the_expiry_counts(tmp_path: Path, loop_clock: Clock) -> None:
    """The decider wins the compare-and-set; the timer fires before the decision is applied."""
    async with started(Process(tmp_path, limits=RunLimits(approval_seconds=60))) as process:
        run_id = await begin(process, loop_clock, approvals=1)
        (approval_id,) = process.approval_ids(run_id)
        await process.control.stop()
        decision = Decide(run_id, approval_id, "approve", by="bob")
        assert await process.store.signal(decision, now=now_ms()) == "sent"
        await loop_clock.advance(61)
        assert process.source.decisions == ["approve by bob"]


async def test_edit_that_changes_a_text_with_a_placeholder_is_refused(process: Process, loop_clock: Clock) -> None:
    run_id = await begin(process, loop_clock, approvals=1)
    (approval_id,) = process.approval_ids(run_id)
    run = await process.run(run_id)
    with pytest.raises(InvalidBody):
        await process.control.decide(run, Decide(run_id, approval_id, "edit", {"n": "key [redacted]"}))
    assert process.approval_ids(run_id) == [approval_id]


async def test_decision_on_an_orphan_is_taken_by_the_process_that_recovers_it(
    process: Process, other: Process, loop_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await begin(process, loop_clock, approvals=1)
    (approval_id,) = process.approval_ids(run_id)
    await process.crash()
    _expire_leases(monkeypatch)
    other.source.approvals = 1
    await other.control.decide(await other.run(run_id), Decide(run_id, approval_id, "approve", by="bob"))
    await loop_clock.settle()
    assert other.source.decisions == ["approve by bob"]
    assert (await other.run(run_id)).state == "finished"


async def test_decision_that_no_process_can_take_is_refused(
    process: Process, tmp_path: Path, database: MemoryDatabase, loop_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await begin(process, loop_clock, approvals=1)
    (approval_id,) = process.approval_ids(run_id)
    await process.crash()
    _expire_leases(monkeypatch)
    async with started(Process(tmp_path, database, agent="another")) as stranger:
        with pytest.raises(AgentNotServed):
            run = await stranger.run(run_id)
            await stranger.control.decide(run, Decide(run_id, approval_id, "approve"))
        assert (await stranger.run(run_id)).state == "waiting"
        await stranger.control.cancel(run_id, "never mind")
        assert await terminal(stranger, run_id) == RunCancelled(reason="never mind")


@pytest.mark.requirement("stop")
async def test_stop_reaches_a_run_that_another_process_takes_over_at_the_same_moment(
    process: Process,
    other: Process,
    tmp_path: Path,
    database: MemoryDatabase,
    loop_clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_id = await begin(process, loop_clock, approvals=1)
    await process.crash()
    _expire_leases(monkeypatch)
    other.source.approvals = 1
    async with started(Process(tmp_path, database)) as third:
        signal = third.store.signal

        async def signal_late(sent: Signal, *, now: int) -> SignalOutcome:
            outcome = await signal(sent, now=now)
            if outcome == "unowned":
                await other.recovery.recover()
            return outcome

        monkeypatch.setattr(third.store, "signal", signal_late)
        await third.control.cancel(run_id, "enough", "bob")
        await loop_clock.settle()
        assert await terminal(third, run_id) == RunCancelled(reason="enough")


async def test_recovery_seals_a_run_that_cannot_be_resumed(
    process: Process, other: Process, loop_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await begin(process, loop_clock)
    await process.crash()
    assert await other.recovery.recover() == 0, "the lease has not expired"
    _expire_leases(monkeypatch)
    assert await other.recovery.recover() == 1
    failed = await terminal(other, run_id)
    assert isinstance(failed, RunFailed) and failed.code == "interrupted"
    assert await other.recovery.recover() == 0


def _expire_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move the clock of leases past the lease of a process that has crashed."""
    later = now_ms() + LEASE_MS + 1
    for module in ("stop_and_approvals", "recovery"):
        monkeypatch.setattr(f"limelight.runs.{module}.now_ms", lambda: later)
