"""Recovery closes what a crash has cut off, ends the run as interrupted, and never repeats it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from pathlib import Path

import pytest

from limelight.errors import StoreUnavailable
from limelight.events import (
    AgentFinished,
    AgentStarted,
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    ReasoningDelta,
    Record,
    RunFailed,
    RunStarted,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolArgsDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolReady,
    ToolStarted,
    kind_of,
)
from limelight.grammar import Grammar
from limelight.models import Append, Run, SessionRef
from limelight.runs.truncation import result_key
from limelight.stores.base import Store
from limelight.stores.sqlite import SqliteStore
from tests.runs.recover import recover
from tests.stores.operations import S1, RunWriter, begin, complete_run, new_run, opened, read_all, tokens

BUSY: tuple[AnyEvent, ...] = (
    RunStarted(agent="echo", input="do it"),
    StepStarted(number=1),
    TextDelta(message_id="m1", text="I will ask "),
    ToolStarted(call_id="c1", name="task", args={"to": "research"}),
    AgentStarted(agent_id="a1", name="research", call_id="c1"),
    ReasoningDelta(agent_id="a1", message_id="m2", text="hmm"),
    ToolStarted(agent_id="a1", call_id="c2", name="search", args={}),
    ToolOutputDelta(agent_id="a1", call_id="c2", text="found"),
    AgentStarted(agent_id="a2", parent_id="a1", name="reader", call_id="c2"),
    ToolStarted(agent_id="a2", call_id="c3", name="write"),
    ToolArgsDelta(agent_id="a2", call_id="c3", text='{"path": "/x'),
    ToolStarted(agent_id="a1", call_id="c4", name="rm", args={"all": True}),
    ApprovalRequested(agent_id="a1", approval_id="p1", call_id="c4", name="rm", args={"all": True}),
)
"""A run with everything open at once."""


OpenStore = Callable[[], AbstractAsyncContextManager[Store]]
"""The store of one process. Its runs do not end with it; the next one stands for the next start of the server."""


@pytest.fixture
def open_store(tmp_path: Path) -> OpenStore:
    return lambda: opened(lambda: SqliteStore(tmp_path / "limelight.db"))


async def run_of(store: Store, run_id: str) -> Run:
    run = await store.run(run_id)
    assert run is not None
    return run


def check(log: Sequence[Record]) -> Grammar:
    """Assert that the log of one run is legal and complete."""
    grammar = Grammar()
    for record in log:
        grammar.check(record.event)
    assert grammar.terminal is not None
    assert [record.seq for record in log] == list(range(log[0].seq, log[0].seq + len(log)))
    assert all(a.at <= b.at for a, b in pairwise(log))
    return grammar


async def test_recovery_closes_everything_that_was_open(open_store: OpenStore) -> None:
    async with open_store() as store:
        run = await begin(store, "r1")
        await run.write(*BUSY, state="waiting")
    async with open_store() as store:
        assert await recover(store) == 1
        log = await read_all(store)
        assert log[: len(BUSY)] == run.acknowledged
        check(log)
        sealing = [record.event for record in log[len(BUSY) :]]
        assert sorted(kind_of(event) for event in sealing) == [
            "agent_finished",
            "agent_finished",
            "approval_resolved",
            "reasoning_finished",
            "run_failed",
            "step_finished",
            "text_finished",
            *["tool_finished"] * 4,
            "tool_ready",
        ]
        why = "the server stopped during the run"
        closed = [event for event in sealing if isinstance(event, ToolFinished | AgentFinished | StepFinished)]
        assert {(event.error, event.outcome) for event in closed} == {(why, "stopped")}
        assert [event.decision for event in sealing if isinstance(event, ApprovalResolved)] == ["reject"]
        assert [event.args for event in sealing if isinstance(event, ToolReady)] == ['{"path": "/x']
        failed = sealing[-1]
        assert isinstance(failed, RunFailed) and (failed.code, failed.message) == ("interrupted", why)
        assert failed.error_id.startswith("err_")


async def test_recovered_session_is_free_and_its_run_is_not_repeated(open_store: OpenStore) -> None:
    async with open_store() as store:
        run = await begin(store, "r1")
        await run.write(*BUSY[:4])
    async with open_store() as store:
        await recover(store)
        sealed = await run_of(store, "r1")
        assert (sealed.state, sealed.live, sealed.error and sealed.error.code) == ("failed", False, "interrupted")
        session = await store.session(S1)
        assert session is not None and (session.turns, session.run_id, session.run_state) == (1, "r1", "failed")
        assert await recover(store) == 0
        following = await complete_run(store, "r2", at=sealed.ended_at or 0)
        assert (following.run.turn, following.run.first_seq) == (2, sealed.last_seq + 1)
    async with open_store() as store:
        assert await recover(store) == 0


async def test_log_that_was_cut_at_any_event_is_legal_after_recovery(open_store: OpenStore) -> None:
    refs = [SessionRef("ann", f"cut-{cut}") for cut in range(len(BUSY) + 1)]
    async with open_store() as store:
        for cut, ref in enumerate(refs):
            await complete_run(store, f"old-{cut}", ref)
            run = await begin(store, f"r-{cut}", ref, at=2000)
            await run.write(*BUSY[:cut])
    async with open_store() as store:
        assert await recover(store) == len(refs)
        for cut, ref in enumerate(refs):
            run = await run_of(store, f"r-{cut}")
            log = [record for record in await read_all(store, ref) if record.run_id == run.run_id]
            check(log)
            assert [record.event for record in log[:cut]] == list(BUSY[:cut])
            assert (log[0].seq, log[-1].seq) == (run.first_seq, run.last_seq)


async def test_run_without_records_gets_a_start_and_an_end(open_store: OpenStore) -> None:
    async with open_store() as store:
        await begin(store, "r1")
    async with open_store() as store:
        await recover(store)
        started, failed = [record.event for record in await read_all(store)]
        assert started == RunStarted(agent="echo", turn=1)
        assert isinstance(failed, RunFailed)


async def test_times_of_the_log_do_not_decrease_if_the_clock_was_set_back(open_store: OpenStore) -> None:
    async with open_store() as store:
        run = await begin(store, "r1", at=10**14)
        await run.write(*BUSY[:3])
    async with open_store() as store:
        await recover(store)
        check(await read_all(store))
        assert (await run_of(store, "r1")).ended_at == run.acknowledged[-1].at


async def test_long_arguments_that_were_cut_are_stored_completely(open_store: OpenStore) -> None:
    piece = "x" * 16_000
    async with open_store() as store:
        run = await begin(store, "r1")
        pieces = [ToolArgsDelta(call_id="c1", text=piece) for _ in range(5)]
        await run.write(BUSY[0], ToolStarted(call_id="c1", name="write"), *pieces)
    async with open_store() as store:
        await recover(store)
        ready = next(r.event for r in await read_all(store) if isinstance(r.event, ToolReady))
        assert (ready.truncated, ready.size) == (True, 5 * len(piece))
        kept = await store.result("r1", result_key("args", "c1"))
        assert kept is not None and kept.body == (piece * 5).encode()


async def test_log_that_breaks_the_grammar_is_sealed(open_store: OpenStore) -> None:
    async with open_store() as store:
        run = await begin(store, "r1")
        await run.write(BUSY[0], ToolFinished(call_id="never started"), *tokens(3), BUSY[0])
        other = await begin(store, "r2", SessionRef("ann", "s2"))
        await other.write(*BUSY)
    async with open_store() as store:
        assert await recover(store) == 2
        assert isinstance((await read_all(store))[-1].event, RunFailed)
        check(await read_all(store, SessionRef("ann", "s2")))


async def test_runs_of_this_process_are_not_recovered(open_store: OpenStore) -> None:
    async with open_store() as store:
        run = await begin(store, "r1")
        await run.write(*BUSY)
        await store.renew(0)
        assert await recover(store) == 0
        await run.write(*tokens(1))
        assert await read_all(store) == run.acknowledged


async def test_recovery_is_retried_while_the_store_fails(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limelight.runs.store_retry.RETRY_SECONDS", (0.0,))
    async with open_store() as store:
        run = RunWriter(store, (await store.begin(new_run("r1"))).run)
        await run.write(*BUSY)
    async with open_store() as store:
        append, refusals = store.append, [StoreUnavailable("disk full"), StoreUnavailable("disk full")]

        async def flaky(batch: Sequence[Append]) -> None:
            if refusals:
                raise refusals.pop()
            await append(batch)

        monkeypatch.setattr(store, "append", flaky)
        assert await recover(store) == 1
        check(await read_all(store))
