"""Cases of the store suite: acknowledged records and results are read back in order and unchanged."""

import asyncio
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from limelight.events import (
    AnyEvent,
    ApprovalRequested,
    Record,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from limelight.models import Result, SessionRef
from limelight.stores.base import Store
from tests.stores.operations import S1, MakeStore, RunWriter, begin, complete_run, opened, read_all, tokens
from tests.support.strategies import events

S2 = SessionRef("ann", "s2")
_numbers = count()


class RecordCases:
    async def test_records_of_a_live_run_are_read_after_each_append(self, store: Store) -> None:
        run = await begin(store, "r1")
        assert await read_all(store) == []
        await run.write(RunStarted(agent="echo"))
        for size in (1, 2, 1, 5):
            await run.write(*tokens(size))
            assert await read_all(store) == run.acknowledged
        found = await store.run("r1")
        assert found is not None and found.last_seq == run.acknowledged[-1].seq

    async def test_records_returns_the_slice_of_after_and_limit(self, store: Store) -> None:
        first, second = await complete_run(store, "r1", words=10), await begin(store, "r2")
        await second.write(*tokens(10))
        log = [*first.acknowledged, *second.acknowledged]
        for after in range(len(log) + 2):
            for limit in (1, 5, 100):
                assert await store.records(S1, after=after, limit=limit) == log[after : after + limit]
        assert await store.records(S1, after=10**30, limit=5) == []
        assert await store.records(S2, after=0, limit=5) == []

    @pytest.mark.parametrize("batch", [1, 7, 128, 300, 1500])
    async def test_records_of_a_long_run_are_the_same_live_and_ended(self, store: Store, batch: int) -> None:
        before = await complete_run(store, "r0", words=150)
        run = await begin(store, "r1")
        left = [RunStarted(agent="echo"), *tokens(1499)]
        while left:
            await run.write(*left[:batch])
            left = left[batch:]
        live = await read_all(store)
        assert live == [*before.acknowledged, *run.acknowledged]
        await run.end()
        ended = await read_all(store)
        assert ended == [*live, run.acknowledged[-1]]
        for after in (127, 128, 129, 400, 1400, 1640):
            assert await read_all(store, after=after, page=97) == ended[after:]

    async def test_records_naming_finds_calls_and_approvals_anywhere_in_a_run(self, store: Store) -> None:
        await complete_run(store, "r0", words=3)
        run = await begin(store, "r1")
        calls = [f'c"{number}' for number in range(40)]
        for call_id in calls:
            outputs = [ToolOutputDelta(call_id=call_id, text=text) for text in ("a", "b")]
            await run.write(ToolStarted(call_id=call_id, name="t", args={}), *tokens(60), *outputs)
            await run.write(*tokens(1), ToolFinished(call_id=call_id, result=calls))
        await run.write(ApprovalRequested(approval_id="a1", name="t", args={"a": "a2"}))
        for _ in range(2):  # while it is live, and when it has ended
            found = await store.run("r1")
            assert found is not None
            for call_id in (calls[0], calls[17], calls[-1]):
                named = [r for r in run.acknowledged if getattr(r.event, "call_id", None) == call_id]
                assert len(named) == 4 and await store.records_naming(found, call_id) == named
            assert [r.event for r in await store.records_naming(found, "a1")] == [
                r.event for r in run.acknowledged if isinstance(r.event, ApprovalRequested)
            ]
            for unknown in ("", "c", "a2", "c1", "m", "\x00é"):
                assert await store.records_naming(found, unknown) == []
            if found.live:
                await run.end()

    async def test_empty_append_changes_nothing(self, store: Store) -> None:
        run = await begin(store, "r1")
        await store.append([])
        await run.write()
        await run.write(RunStarted(agent="echo"))
        await run.write()
        assert await read_all(store) == run.acknowledged
        await run.end()
        assert await read_all(store) == run.acknowledged

    async def test_batch_appends_to_many_runs_and_ends_some(self, store: Store) -> None:
        runs = [await begin(store, f"r{n}", SessionRef("ann", f"s{n}")) for n in range(6)]
        written: list[Record] = []
        for turn in range(200):
            ending = [runs.pop()] if turn % 40 == 39 else []
            parts = [run.part(*tokens(1)) for run in runs]
            parts += [run.part(*tokens(2), RunFinished(), state="finished") for run in ending]
            await store.append(parts)
            written += [record for part in parts for record in part.records]
        for number in range(6):
            mine = [record for record in written if record.run_id == f"r{number}"]
            assert await read_all(store, SessionRef("ann", f"s{number}")) == mine

    async def test_concurrent_appends_keep_their_order(self, store: Store) -> None:
        runs = [await begin(store, f"r{n}", SessionRef("ann", f"s{n}")) for n in range(8)]
        parts = [run.part(*tokens(3)) for _ in range(40) for run in runs]
        parts += [run.part(RunFinished(), state="finished") for run in runs[:4]]
        await asyncio.gather(*(store.append([part]) for part in parts))
        for run in runs:
            written = [record for part in parts if part.run_id == run.run_id for record in part.records]
            assert await read_all(store, run.run.ref) == written

    async def test_concurrent_reads_never_skip_a_record(self, store: Store) -> None:
        """Each read during writes returns consecutive records, with everything acknowledged before the read."""
        run = await begin(store, "r1")
        done = False

        async def read() -> int:
            reads = 0
            while not done:
                known, after = len(run.acknowledged), max(0, len(run.acknowledged) - 150)
                found = await store.records(S1, after=after, limit=10_000)
                assert [record.seq for record in found] == list(range(after + 1, after + 1 + len(found)))
                assert after + len(found) >= known
                session = await store.session(S1)
                assert session is not None and session.last_seq >= known
                reads += 1
            return reads

        readers = [asyncio.create_task(read()) for _ in range(3)]
        for _ in range(500):
            await run.write(*tokens(2))
        await run.end()
        done = True
        assert min(await asyncio.gather(*readers)) > 0
        assert await read_all(store) == run.acknowledged

    async def test_concurrent_reads_never_see_an_older_state_of_a_run(self, store: Store) -> None:
        """A read while a run ends returns the state before or after its end, never an older one."""
        for number in range(60):
            run = await begin(store, f"r{number}")
            await run.write(*tokens(3))
            last = run.acknowledged[-1].seq
            ending = asyncio.create_task(run.end())
            while not ending.done():
                found, session = await asyncio.gather(store.run(run.run_id), store.session(S1))
                assert found is not None and session is not None
                assert (found.state, found.last_seq, found.ended_at is None) in (
                    ("running", last, True),
                    ("finished", last + 1, False),
                )
                assert (session.run_state, session.last_seq) in (("running", last), ("finished", last + 1))
            await ending

    @settings(
        max_examples=40,
        deadline=None,
        # All examples share one store, and several stores run this suite.
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
            HealthCheck.too_slow,
        ],
    )
    @given(st.lists(events(), min_size=1, max_size=12))
    async def test_any_event_is_read_back_unchanged(self, store: Store, found: list[AnyEvent]) -> None:
        number = next(_numbers)
        ref = SessionRef("ann", f"any-{number}")
        run = await begin(store, f"any-{number}", ref)
        await run.write(*found)
        assert await read_all(store, ref) == run.acknowledged
        await run.end()
        assert await read_all(store, ref) == run.acknowledged

    async def test_reopened_store_has_everything(self, make_store: MakeStore) -> None:
        async with opened(make_store) as store:
            ended = await complete_run(store, "r1", words=200)
            live = await begin(store, "r2", S2)
            await live.write(RunStarted(agent="echo"), *tokens(170), state="waiting")
            await live.write(*tokens(1), results=[Result(key="k", media_type="text/plain", body=b"whole")])
            before = [await store.run("r1"), await store.run("r2"), await store.session(S1), await store.session(S2)]
        async with opened(make_store) as store:
            after = [await store.run("r1"), await store.run("r2"), await store.session(S1), await store.session(S2)]
            assert after == before
            assert await read_all(store) == ended.acknowledged
            assert await read_all(store, S2) == live.acknowledged
            assert await store.result("r2", "k") == Result(key="k", media_type="text/plain", body=b"whole")

    async def test_results_are_read_back_live_and_ended(self, store: Store) -> None:
        run = await begin(store, "r1")
        large = Result(key="result:c1", media_type="text/plain", body=b"x" * 3_000_000)
        other = Result(key="args:c1", media_type="application/json", body=b"{}")
        await run.write(results=[large])
        await run.write(*tokens(1), results=[other])
        for _ in range(2):
            assert await store.result("r1", "result:c1") == large
            assert await store.result("r1", "args:c1") == other
            assert (await store.result("r1", "none"), await store.result("r2", "args:c1")) == (None, None)
            if run.acknowledged[-1].event != RunFinished():
                await run.end()

    async def test_result_replaces_a_larger_one(self, store: Store) -> None:
        run = await begin(store, "r1")
        for size in (3_000_000, 2_000_000, 10, 2**18, 2**18 + 1, 0):
            body = bytes(range(250)) * (size // 250) + b"x" * (size % 250)
            result = Result(key="k", media_type="text/plain", body=body)
            await run.write(*tokens(1), results=[result])
            assert await store.result("r1", "k") == result

    async def test_last_of_several_results_with_one_key_in_a_commit_is_read_back(self, store: Store) -> None:
        run = await begin(store, "r1")
        for first, last in ((10, 3_000_000), (3_000_000, 10), (2_000_000, 3_000_000)):
            results = [Result(key="k", media_type="text/plain", body=b"x" * size) for size in (first, last)]
            await run.write(*tokens(1), results=results)
            assert await store.result("r1", "k") == results[1]

    async def test_append_of_the_end_stores_results(self, store: Store) -> None:
        run = await begin(store, "r1")
        kept = Result(key="content:", media_type="text/plain", body=b"whole")
        await store.append([run.part(RunFinished(), state="finished", results=[kept])])
        assert await store.result("r1", "content:") == kept

    async def test_run_with_only_a_terminal_record_is_read_back(self, store: Store) -> None:
        run = RunWriter(store, (await begin(store, "r1")).run)
        await run.end()
        assert await read_all(store) == run.acknowledged
