"""Cases of the store suite: artifacts, leases, signals, retention and ping."""

import asyncio

import pytest

from limelight.errors import LeaseLost
from limelight.events import RunFailed, RunStarted
from limelight.models import Artifact, Cancel, Decide, NewSession, Result, RetentionCounts, SessionRef, Signal
from limelight.stores.base import Store
from tests.stores.operations import FAR, S1, MakeStore, RunWriter, begin, complete_run, opened, read_all, tokens

S2 = SessionRef("ann", "s2")


class MaintenanceCases:
    async def test_ping_of_an_open_store_returns(self, store: Store) -> None:
        assert await store.ping() is None

    # Artifacts

    async def test_artifact_is_read_back_with_its_session(self, store: Store) -> None:
        await begin(store, "r1")
        artifact = Artifact(artifact_id="a1", ref=S1, name="é.png", media_type="image/png", body=bytes(range(256)))
        await store.put_artifact(artifact, "r1")
        assert await store.artifact("a1") == artifact
        assert await store.artifact("none") is None

    # Leases. A store object stands for a process.

    async def test_held_run_is_not_an_orphan(self, store: Store) -> None:
        await begin(store, "r1")
        await store.renew(FAR)
        assert await store.orphans(FAR - 1) == []
        assert not await store.take_over("r1", until=FAR, now=FAR - 1)

    async def test_run_of_a_closed_store_is_an_orphan_that_one_process_takes_over(self, make_store: MakeStore) -> None:
        async with opened(make_store) as store:
            await complete_run(store, "r0", S2)
            run = await begin(store, "r1")
            await run.write(RunStarted(agent="echo"), *tokens(5))
        async with opened(make_store) as store:
            assert await store.orphans(FAR + 1) == [await store.run("r1")]
            with pytest.raises(LeaseLost):
                await store.append([run.part(*tokens(1))])
            assert await store.take_over("r1", until=2 * FAR, now=FAR + 1)
            assert not await store.take_over("r1", until=2 * FAR, now=FAR + 1)
            assert not await store.take_over("r0", until=2 * FAR, now=FAR + 1)
            assert not await store.take_over("none", until=2 * FAR, now=FAR + 1)
            assert await store.orphans(FAR + 2) == []
            found = await store.run("r1")
            assert found is not None
            writer = RunWriter(store, found)
            await writer.end(RunFailed(code="interrupted", message="gone"), "failed")
            assert await read_all(store) == [*run.acknowledged, *writer.acknowledged]
            assert await store.orphans(FAR + 2) == []
            await begin(store, "r2")

    # Signals

    async def test_signal_is_stored_and_wakes_the_owner(self, store: Store) -> None:
        await begin(store, "r1")
        await begin(store, "r2", S2)
        decide = Decide("r1", "ap1", "edit", {"x": [1, None]}, "because", "ann")
        signals: list[Signal] = [decide, Cancel("r2", "stop", "ann"), Cancel("r1", "stop")]
        assert [await store.signal(signal, now=1000) for signal in signals] == ["sent"] * 3
        wakes = store.wakes()
        assert [await anext(wakes) for _ in signals] == ["r1", "r2", "r1"]
        assert await store.signals("r1") == [decide, Cancel("r1", "stop")]
        assert await store.signals("r2") == [Cancel("r2", "stop", "ann")]

    async def test_second_signal_for_the_same_thing_is_a_duplicate_and_the_first_stays(self, store: Store) -> None:
        await begin(store, "r1")
        first = Decide("r1", "ap1", "approve", by="ann")
        assert await store.signal(first, now=1000) == "sent"
        for again in (first, Decide("r1", "ap1", "reject", by="bob")):
            assert await store.signal(again, now=1000) == "duplicate"
        assert await store.signal(Decide("r1", "ap2", "reject"), now=1000) == "sent"
        assert await store.signals("r1") == [first, Decide("r1", "ap2", "reject")]

    async def test_of_many_deciders_at_once_exactly_one_wins(self, store: Store) -> None:
        await begin(store, "r1")
        deciders = [store.signal(Decide("r1", "ap1", "approve", by=f"user {n}"), now=1000) for n in range(20)]
        assert sorted(await asyncio.gather(*deciders)) == ["duplicate"] * 19 + ["sent"]
        assert len(await store.signals("r1")) == 1

    async def test_signal_to_a_run_that_has_ended_is_not_stored(self, store: Store) -> None:
        run = await begin(store, "r1")
        assert await store.signal(Cancel("r1", "stop"), now=1000) == "sent"
        await run.end()
        assert await store.signals("r1") == []
        for run_id in ("r1", "none"):
            assert await store.signal(Cancel(run_id, "stop"), now=1000) == "ended"
            assert await store.signals(run_id) == []

    async def test_signal_to_a_run_whose_process_is_gone_is_unowned(self, make_store: MakeStore) -> None:
        async with opened(make_store) as store:
            await begin(store, "r1")
        async with opened(make_store) as store:
            assert await store.signal(Cancel("r1", "stop"), now=FAR + 1) == "unowned"
            assert await store.signals("r1") == []
            assert await store.take_over("r1", until=2 * FAR, now=FAR + 1)
            assert await store.signal(Cancel("r1", "stop"), now=FAR + 1) == "sent"

    # Retention

    async def test_sweep_deletes_runs_that_ended_before_the_given_time(self, store: Store) -> None:
        old = await complete_run(store, "r1", at=1000, words=200)
        new = await complete_run(store, "r2", at=50_000)
        await complete_run(store, "r3", S2, at=1000)
        assert (await store.sweep(before=40_000)).runs == 2
        assert (await store.run("r1"), await store.run("r3"), await store.session(S2)) == (None, None, None)
        session = await store.session(S1)
        assert session is not None and (session.turns, session.last_seq) == (2, new.acknowledged[-1].seq)
        # A reader sees the gap at the front by the seq of the first record.
        assert await read_all(store) == new.acknowledged
        assert await read_all(store, after=5) == new.acknowledged
        assert await store.run_covering(S1, 1) == await store.run("r2")
        following = await begin(store, "r4", at=60_000)
        assert (following.run.turn, following.run.first_seq) == (3, new.acknowledged[-1].seq + 1)
        assert len(old.acknowledged) == new.run.first_seq - 1

    async def test_sweep_deletes_results_and_artifacts_of_deleted_runs(self, store: Store) -> None:
        for run_id, at in (("r1", 1000), ("r2", 50_000)):
            run = await begin(store, run_id, at=at)
            await run.write(results=[Result(key="k", media_type="text/plain", body=b"x" * 3_000_000)])
            artifact = Artifact(artifact_id=f"a-{run_id}", ref=S1, name="f", media_type="text/plain", body=b"x")
            await store.put_artifact(artifact, run_id)
            await run.end()
        assert (await store.sweep(before=40_000)).runs == 1
        assert (await store.result("r1", "k"), await store.artifact("a-r1")) == (None, None)
        assert await store.result("r2", "k") is not None
        assert await store.artifact("a-r2") is not None

    async def test_sweep_keeps_live_runs(self, store: Store) -> None:
        live = await begin(store, "r1", at=1000)
        await live.write(*tokens(5))
        assert (await store.sweep(before=FAR)).runs == 0
        await live.end()
        assert await read_all(store) == live.acknowledged
        assert (await store.sweep(before=FAR)).runs == 1
        assert await store.session(S1) is None

    async def test_sweep_deletes_at_most_limit_runs(self, store: Store) -> None:
        refs = [SessionRef("ann", f"s{number}") for number in range(3)]
        for number in range(9):
            await complete_run(store, f"r{number}", refs[number % 3], at=1000 + 100 * number)
        runs: list[int] = []
        sessions: list[SessionRef] = []
        while (swept := await store.sweep(before=FAR, limit=4)).runs:
            runs.append(swept.runs)
            sessions += swept.sessions
        assert (runs, sorted(sessions)) == ([4, 4, 1], refs)
        assert await store.sessions("ann") == []

    async def test_newest_at_is_the_time_of_the_last_activity(self, make_store: MakeStore) -> None:
        assert await make_store().newest_at() is None, "an empty store"
        async with opened(make_store) as store:
            assert await store.newest_at() is None
            await store.create(NewSession(ref=S2, agent="echo", at=500))
            assert await store.newest_at() == 500
            run = await complete_run(store, "r1", at=1000)
            assert await store.newest_at() == run.acknowledged[-1].at
            await begin(store, "r2", at=700)
            assert await store.newest_at() == run.acknowledged[-1].at, "the clock was set back"
            await begin(store, "r3", S2, at=9000)
            assert await store.newest_at() == await make_store().newest_at() == 9000, "a second store object"
        assert await make_store().newest_at() == 9000, "no store object is open"

    async def test_retention_counts_equal_what_a_sweep_then_deletes(self, make_store: MakeStore) -> None:
        async with opened(make_store) as store:
            refs = [SessionRef("ann", f"s{number}") for number in range(5)]
            await complete_run(store, "old", refs[0], at=1000)
            await complete_run(store, "old-1", refs[1], at=1000)
            await complete_run(store, "new-1", refs[1], at=50_000)
            await complete_run(store, "old-2", refs[2], at=1000)
            await begin(store, "live", refs[2], at=2000)
            await store.create(NewSession(ref=refs[3], agent="echo", at=1000))
            await store.create(NewSession(ref=refs[4], agent="echo", at=50_000))
            expected = RetentionCounts(sessions=5, runs=5, sessions_to_delete=2, runs_to_delete=3)
            assert await store.retention_counts(40_000) == await make_store().retention_counts(40_000) == expected
            swept = await store.sweep(before=40_000)
            assert (swept.runs, set(swept.sessions)) == (3, {refs[0], refs[3]})
        left = RetentionCounts(sessions=3, runs=2, sessions_to_delete=0, runs_to_delete=0)
        assert await make_store().retention_counts(40_000) == left
