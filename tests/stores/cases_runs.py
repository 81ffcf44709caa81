"""Cases of the store suite: runs, their states, limits and request ids, and which process may append."""

import asyncio

import msgspec
import pytest

from limelight.errors import LeaseLost, SessionBusy, SessionFull, SessionNotFound
from limelight.events import RunCancelled, RunFailed, RunStarted
from limelight.models import Append, Artifact, Result, Run, RunFault, SessionRef
from limelight.stores.base import Store
from tests.stores.operations import S1, RunWriter, begin, complete_run, new_run, read_all, tokens

S2 = SessionRef("ann", "s2")


class RunCases:
    async def test_begin_creates_a_running_run(self, store: Store) -> None:
        begun = await store.begin(new_run("r1", at=1000, request_id="q"))
        expected = Run(
            run_id="r1",
            ref=S1,
            agent="echo",
            turn=1,
            state="running",
            started_at=1000,
            ended_at=None,
            first_seq=1,
            last_seq=0,
            request_id="q",
        )
        assert (begun.created, begun.run) == (True, expected)
        assert await store.run("r1") == expected
        assert await store.run("none") is None

    async def test_begin_in_a_session_over_its_size_limit_is_refused(self, store: Store) -> None:
        begun = await store.begin(new_run("r1", max_session_bytes=1))  # nothing is kept yet
        assert begun.session_bytes == 0
        writing = RunWriter(store, begun.run)
        large = Result(key="result:c", media_type="text/plain", body=b"x" * 5000)
        await writing.write(RunStarted(agent="a"), results=[large])
        await store.put_artifact(Artifact(artifact_id="a", ref=S1, name="f", media_type="x/y", body=b"y" * 3000), "r1")
        await writing.end()
        with pytest.raises(SessionFull):
            await store.begin(new_run("r2", max_session_bytes=8000))
        elsewhere = await store.begin(new_run("r3", ref=S2, max_session_bytes=8000))
        assert elsewhere.session_bytes == 0
        second = await store.begin(new_run("r2", max_session_bytes=10_000))
        assert 8000 < second.session_bytes < 10_000

    async def test_seq_and_turn_continue_from_run_to_run(self, store: Store) -> None:
        first = await complete_run(store, "r1", words=200)
        second = await complete_run(store, "r2")
        assert (first.run.turn, second.run.turn) == (1, 2)
        assert second.run.first_seq == first.acknowledged[-1].seq + 1
        run = await store.run("r1")
        assert run is not None and (run.first_seq, run.last_seq) == (1, first.acknowledged[-1].seq)

    async def test_begin_without_create_session_needs_an_existing_session(self, store: Store) -> None:
        new = msgspec.structs.replace(new_run("r1"), create_session=False)
        with pytest.raises(SessionNotFound):
            await store.begin(new)
        assert (await store.session(S1), await store.run("r1")) == (None, None)
        await complete_run(store, "r0")
        assert (await store.begin(new)).created

    async def test_runs_returns_the_runs_of_one_session_oldest_first(self, store: Store) -> None:
        await complete_run(store, "r1")
        await complete_run(store, "other", S2)
        live = await begin(store, "r2")
        await live.write(RunStarted(agent="echo"), *tokens(5))
        assert await store.runs(S1) == [await store.run("r1"), await store.run("r2")]
        assert [run.last_seq for run in await store.runs(S1)] == [5, 11]
        assert await store.runs(SessionRef("bob", "s1")) == []

    async def test_note_messages_applies_to_ended_runs_only(self, store: Store) -> None:
        ended, live = await complete_run(store, "r1"), await begin(store, "r2")
        await store.note_messages(ended.run_id, 12)
        await store.note_messages(live.run_id, 3)
        noted = [run.messages for run in await store.runs(S1)]
        assert noted in ([12, None], [None, None]), "the count is a cache: a store may discard it"

    async def test_begin_in_a_busy_session_is_refused(self, store: Store) -> None:
        run = await begin(store, "r1")
        with pytest.raises(SessionBusy) as busy:
            await store.begin(new_run("r2"))
        assert busy.value.run_id == "r1"
        assert await store.run("r2") is None
        await begin(store, "r3", S2)
        await run.end()
        assert (await begin(store, "r2")).run.turn == 2

    async def test_concurrent_begins_start_one_run(self, store: Store) -> None:
        answers = await asyncio.gather(*(store.begin(new_run(f"r{n}")) for n in range(8)), return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, SessionBusy)]
        assert len(refused) == 7
        session = await store.session(S1)
        assert session is not None and session.turns == 1

    async def test_begin_of_the_same_request_returns_its_run(self, store: Store) -> None:
        answers = await asyncio.gather(*(store.begin(new_run(f"r{n}", request_id="q")) for n in range(4)))
        first = next(answer.run for answer in answers if answer.created)
        assert sorted(answer.created for answer in answers) == [False, False, False, True]
        assert {answer.run.run_id for answer in answers} == {first.run_id}
        await RunWriter(store, first).end()
        late = await store.begin(new_run("late", request_id="q"))
        assert (late.created, late.run.run_id, late.run.state) == (False, first.run_id, "finished")

    async def test_request_ids_are_separate_per_session(self, store: Store) -> None:
        for run_id, ref, request_id in (
            ("r1", S1, "q"),
            ("r2", S2, "q"),
            ("r3", S1, "p"),
            ("r4", S1, ""),
            ("r5", S1, ""),
        ):
            begun = await store.begin(new_run(run_id, ref, request_id=request_id))
            assert (begun.created, begun.run.run_id, begun.run.request_id) == (True, run_id, request_id)
            await RunWriter(store, begun.run).end()

    async def test_state_changes_are_seen_in_run_and_session(self, store: Store) -> None:
        run = await begin(store, "r1")
        await run.write(RunStarted(agent="echo"))
        for state in ("waiting", "running", "waiting"):
            await run.write(*tokens(1), state=state)
            found, session = await store.run("r1"), await store.session(S1)
            assert found is not None and session is not None
            assert (found.state, session.run_state, found.live, found.ended_at) == (state, state, True, None)
            with pytest.raises(SessionBusy):
                await store.begin(new_run("r2"))

    async def test_state_changes_without_records(self, store: Store) -> None:
        run = await begin(store, "r1")
        await run.write(state="waiting")
        found = await store.run("r1")
        assert found is not None and (found.state, found.last_seq) == ("waiting", 0)

    @pytest.mark.parametrize(
        ("event", "state", "fault"),
        [
            (None, "finished", None),
            (RunCancelled(reason="stop"), "cancelled", None),
            (
                RunFailed(code="agent_error", message="broke", error_id="err_1"),
                "failed",
                ("agent_error", "broke", "err_1"),
            ),
        ],
        ids=["finished", "cancelled", "failed"],
    )
    async def test_end_of_a_run_frees_its_session(
        self, store: Store, event: RunFailed, state: str, fault: tuple[str, str, str]
    ) -> None:
        run = await begin(store, "r1")
        await run.end(event, state)  # pyright: ignore[reportArgumentType]
        found, session = await store.run("r1"), await store.session(S1)
        assert found is not None and session is not None
        assert (found.state, found.ended_at, found.live) == (state, run.acknowledged[-1].at, False)
        assert found.error == (RunFault(*fault) if fault else None)
        assert session.run_state == state
        await begin(store, "r2")

    async def test_append_to_an_ended_run_is_refused(self, store: Store) -> None:
        run = await complete_run(store, "r1")
        with pytest.raises(LeaseLost):
            await store.append([run.part(*tokens(1))])
        assert await read_all(store) == run.acknowledged

    async def test_append_to_an_unknown_run_is_refused(self, store: Store) -> None:
        with pytest.raises(LeaseLost):
            await store.append([Append(run_id="none", records=())])

    async def test_batch_with_a_run_that_is_not_held_leaves_no_trace(self, store: Store) -> None:
        lost, good = await complete_run(store, "r1"), await begin(store, "r2", S2)
        part = good.part(RunStarted(agent="echo"), state="waiting")
        with pytest.raises(LeaseLost):
            await store.append([part, lost.part(*tokens(1))])
        run = await store.run("r2")
        assert run is not None and (run.state, run.last_seq) == ("running", 0)
        await store.append([part])
        assert await read_all(store, S2) == part.records

    async def test_run_covering_returns_the_first_run_that_reaches_a_seq(self, store: Store) -> None:
        first, second = await complete_run(store, "r1"), await complete_run(store, "r2")
        live = await begin(store, "r3")
        await live.write(*tokens(200))
        for run in (first, second, live):
            for record in (run.acknowledged[0], run.acknowledged[-1]):
                assert await store.run_covering(S1, record.seq) == await store.run(run.run_id)
        last = live.acknowledged[-1].seq
        assert await store.run_covering(S1, last + 1) == await store.run("r3")
        assert await store.run_covering(S1, 0) == await store.run("r1")
        await live.end()
        assert await store.run_covering(S1, last + 2) is None
        assert await store.run_covering(S1, 10**30) is None
        assert await store.run_covering(S2, 1) is None
