"""Cases of the store suite: a store's own implementations return what the defaults of `Store` return."""

from random import Random

from limelight.events import Record, ToolFinished, ToolStarted
from limelight.models import Cancel, NewSession, SessionRef
from limelight.stores.base import Store
from tests.stores.operations import FAR, RunWriter, begin, new_run, tokens

OWNERS = ("ann", "bob", "cleo")


async def fill(store: Store) -> list[RunWriter]:
    """Random sessions: some without a run, some with several runs, some live, some with a long log."""
    random = Random(1)
    runs: list[RunWriter] = []
    for number in range(24):
        ref = SessionRef(random.choice(OWNERS), f"s{number}")
        at = random.randrange(1000, 9000)
        if number % 4 == 0:
            await store.create(NewSession(ref=ref, agent="echo", at=at))
            continue
        for turn in range(random.randint(1, 3)):
            begun = await store.begin(new_run(f"r{number}-{turn}", ref, at=at + turn, request_id=f"q{turn}"))
            run = RunWriter(store, begun.run)
            for call_id in ("c1", "c2"):
                await run.write(ToolStarted(call_id=call_id, name="t", args={}), *tokens(random.choice((3, 300))))
                await run.write(ToolFinished(call_id=call_id, result="done"))
            await run.end()
            runs.append(run)
        if number % 3 == 0:
            runs.append(await begin(store, f"r{number}-live", ref, at=at + 10))
            await runs[-1].write(ToolStarted(call_id="c1", name="t", args={}), *tokens(200))
    return runs


class DefaultCases:
    async def test_defaults_for_runs_and_records_agree(self, store: Store) -> None:
        for writer in await fill(store):
            run = await store.run(writer.run_id)
            assert run is not None
            ref = run.ref
            for request_id in (run.request_id, "q2", "none", ""):
                assert await store.requested(ref, request_id) == await Store.requested(store, ref, request_id)
            for seq in (0, 1, run.first_seq, run.last_seq, run.last_seq + 1, 10**6):
                assert await store.run_covering(ref, seq) == await Store.run_covering(store, ref, seq)
            for call_id in ("c1", "c2", "none", ""):
                found: list[Record] = await store.records_naming(run, call_id)
                assert found == await Store.records_naming(store, run, call_id)
                assert bool(found) == (call_id == "c1" or (call_id == "c2" and not run.live))

    async def test_defaults_for_all_sessions_agree(self, store: Store) -> None:
        assert await store.newest_at() is await Store.newest_at(store) is None
        await fill(store)
        assert await store.newest_at() == await Store.newest_at(store)
        for at in (0, 1000, 3000, 5000, 9000, FAR):
            assert await store.active_sessions(at) == await Store.active_sessions(store, at)
            assert await store.retention_counts(at) == await Store.retention_counts(store, at)

    async def test_default_signals_stay_in_the_process(self, store: Store) -> None:
        await begin(store, "r1")
        sent = Cancel("r1", "stop")
        assert await Store.signal(store, sent, now=1000) == "sent"
        assert await Store.signal(store, sent, now=1000) == "duplicate"
        assert (await anext(Store.wakes(store)), await Store.signals(store, "r1")) == ("r1", [sent])
        assert await Store.signal(store, Cancel("none", "stop"), now=1000) == "ended"

    async def test_defaults_of_a_store_without_files_and_faults(self, store: Store) -> None:
        assert (await Store.ping(store), await Store.examine(store)) == (None, "not checked")
