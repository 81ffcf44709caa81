"""Cases of the store suite: sessions are created, listed, searched, renamed, deleted and limited, per owner."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from limelight.errors import SessionBusy, TooManySessions
from limelight.events import RunStarted
from limelight.models import Artifact, NewSession, Owner, Result, Session, SessionRef
from limelight.stores.base import Store
from tests.stores.operations import S1, begin, complete_run, new_run, read_all


async def listed(store: Store, owner: str = "ann", q: str = "") -> list[str]:
    return [session.ref.session_id for session in await store.sessions(owner, q=q)]


class SessionCases:
    async def test_first_run_creates_its_session(self, store: Store) -> None:
        assert await store.session(S1) is None
        await begin(store, "r1", at=1000, title="hello")
        assert await store.session(S1) == Session(
            ref=S1,
            agent="echo",
            title="hello",
            created_at=1000,
            active_at=1000,
            turns=1,
            last_seq=0,
            run_id="r1",
            run_state="running",
        )

    async def test_create_makes_a_session_without_a_run_once(self, store: Store) -> None:
        assert await store.create(NewSession(ref=S1, agent="echo", at=1000, max_steps=7))
        made = Session(
            ref=S1,
            agent="echo",
            title="",
            created_at=1000,
            active_at=1000,
            turns=0,
            last_seq=0,
            run_id=None,
            run_state=None,
            max_steps=7,
        )
        assert (await store.session(S1), await listed(store), await store.runs(S1)) == (made, ["s1"], [])
        assert not await store.create(NewSession(ref=S1, agent="other", at=2000))
        assert await store.session(S1) == made

    async def test_first_run_sets_the_title_of_a_created_session(self, store: Store) -> None:
        await store.create(NewSession(ref=S1, agent="echo", at=1000, max_steps=7))
        await complete_run(store, "r1", at=2000, title="hello")
        await complete_run(store, "r2", at=3000, title="another title")
        session = await store.session(S1)
        assert session is not None
        assert (session.title, session.created_at, session.turns, session.max_steps) == ("hello", 1000, 2, 7)

    async def test_active_sessions_counts_live_runs_and_recent_activity(self, store: Store) -> None:
        await complete_run(store, "r1", at=1000)
        await store.create(NewSession(ref=SessionRef("bob", "s1"), agent="echo", at=5000))
        assert (await store.active_sessions(500), await store.active_sessions(5000)) == (2, 1)
        await begin(store, "r2", at=2000)
        assert (await store.active_sessions(5000), await store.active_sessions(9000)) == (2, 1)

    async def test_session_reflects_its_newest_run(self, store: Store) -> None:
        await complete_run(store, "r1", at=1000, words=3)
        second = await begin(store, "r2", at=5000, title="another title")
        await second.write(RunStarted(agent="echo"))
        session = await store.session(S1)
        assert session is not None
        assert (session.title, session.created_at, session.active_at) == ("a title", 1000, 5000)
        assert (session.turns, session.last_seq, session.run_id, session.run_state) == (2, 6, "r2", "running")
        await second.end()
        session = await store.session(S1)
        assert session is not None
        assert (session.active_at, session.last_seq, session.run_state) == (second.acknowledged[-1].at, 7, "finished")

    async def test_rename_changes_the_title_of_one_session(self, store: Store) -> None:
        other = SessionRef("bob", "s1")
        await complete_run(store, "r1")
        await complete_run(store, "r2", other)
        before = await store.session(S1)
        assert await store.rename(S1, "new")
        after, untouched = await store.session(S1), await store.session(other)
        assert before is not None and after is not None and untouched is not None
        assert (after.title, after.active_at, untouched.title) == ("new", before.active_at, "a title")
        assert not await store.rename(SessionRef("ann", "none"), "new")

    async def test_delete_removes_runs_results_and_artifacts(self, store: Store) -> None:
        run = await begin(store, "r1")
        await run.write(RunStarted(agent="echo"), results=[Result(key="k", media_type="text/plain", body=b"x")])
        artifact = Artifact(artifact_id="a1", ref=S1, name="f", media_type="text/plain", body=b"x")
        await store.put_artifact(artifact, "r1")
        await run.end()
        assert await store.delete(S1)
        assert (await store.session(S1), await store.run("r1"), await read_all(store)) == (None, None, [])
        assert (await store.result("r1", "k"), await store.artifact("a1")) == (None, None)
        assert not await store.delete(S1)

    async def test_delete_is_refused_while_a_run_is_live(self, store: Store) -> None:
        run = await begin(store, "r1")
        await run.write(RunStarted(agent="echo"))
        with pytest.raises(SessionBusy) as busy:
            await store.delete(S1)
        assert busy.value.run_id == "r1"
        await run.end()
        assert await read_all(store) == run.acknowledged

    async def test_run_in_a_deleted_session_starts_at_seq_1(self, store: Store) -> None:
        await complete_run(store, "r1")
        await complete_run(store, "r2", SessionRef("bob", "s1"))
        await store.delete(S1)
        again = await complete_run(store, "r3")
        assert (again.run.turn, again.run.first_seq) == (1, 1)
        assert await read_all(store) == again.acknowledged

    async def test_sessions_with_the_same_id_are_separate_per_owner(self, store: Store) -> None:
        bobs = SessionRef("bob", "s1")
        mine, theirs = await complete_run(store, "r1"), await complete_run(store, "r2", bobs, words=5)
        assert await read_all(store) == mine.acknowledged
        assert await read_all(store, bobs) == theirs.acknowledged
        assert (await listed(store), await listed(store, "bob"), await listed(store, "eve")) == (["s1"], ["s1"], [])
        await store.delete(S1)
        assert await read_all(store, bobs) == theirs.acknowledged

    async def test_sessions_are_listed_last_active_first(self, store: Store) -> None:
        for number, at in enumerate((3000, 1000, 2000), start=1):
            await complete_run(store, f"r{number}", SessionRef("ann", f"s{number}"), at=at)
        assert await listed(store) == ["s1", "s3", "s2"]
        await begin(store, "r4", SessionRef("ann", "s2"), at=9000)
        assert await listed(store) == ["s2", "s1", "s3"]

    async def test_sessions_list_reflects_live_runs(self, store: Store) -> None:
        run = await begin(store, "r1")
        await run.write(RunStarted(agent="echo"), state="waiting")
        assert await store.sessions("ann") == [await store.session(S1)]

    @pytest.mark.parametrize(
        ("q", "found"),
        [
            ("", ["s1", "s2", "s3", "s4"]),
            ("plan", ["s1"]),
            ("PLAN", ["s1"]),
            ("%", ["s2"]),
            ("_", ["s3"]),
            ("\\", ["s4"]),
            ("a%b", []),
            ("none of them", []),
            ("x" * 60_000, []),
        ],
        ids=lambda value: str(value)[:10],
    )
    async def test_sessions_are_searched_by_title(self, store: Store, q: str, found: list[str]) -> None:
        for number, title in enumerate(("a Plan", "100 % sure", "snake_case", "back\\slash"), start=1):
            await complete_run(store, f"r{number}", SessionRef("ann", f"s{number}"), title=title)
        assert await listed(store, q=q) == found

    @pytest.mark.parametrize("size", [1, 3, 10])
    async def test_pages_of_sessions_neither_overlap_nor_skip(self, store: Store, size: int) -> None:
        for number in range(10):
            await store.begin(new_run(f"r{number}", SessionRef("ann", f"s{number}"), at=1000 + number // 7))
        pages: list[Session] = []
        before: tuple[int, str] | None = None
        while page := await store.sessions("ann", before=before, limit=size):
            assert len(page) <= size
            pages += page
            before = (page[-1].active_at, page[-1].ref.session_id)
        expected = [f"s{n}" for n in (7, 8, 9, 0, 1, 2, 3, 4, 5, 6)]
        assert [session.ref.session_id for session in pages] == expected

    async def test_owners_are_listed_by_name_in_pages(self, store: Store) -> None:
        for owner, session_id, at in (("cleo", "s1", 3), ("ann", "s1", 1), ("ann", "s2", 2), ("ben", "s1", 9)):
            await store.create(NewSession(ref=SessionRef(owner, session_id), agent="echo", at=at))
        ann, ben, cleo = await store.owners()
        assert (ann, ben.owner, cleo.owner) == (Owner(owner="ann", sessions=2, active_at=2), "ben", "cleo")
        assert await store.owners(limit=2) == [ann, ben]
        assert await store.owners(after="ben") == [cleo]
        assert await store.owners(after="cleo") == []

    async def test_concurrent_creates_do_not_exceed_the_session_limit(self, store: Store) -> None:
        await complete_run(store, "r0", SessionRef("ben", "s0"))

        def made(number: int) -> Coroutine[Any, Any, object]:
            ref = SessionRef("ann", f"s{number}")
            if number % 2:
                return store.create(NewSession(ref=ref, agent="echo", at=1000, max_sessions=3))
            return store.begin(new_run(f"r{number}", ref, max_sessions=3))

        ends = await asyncio.gather(*(made(number) for number in range(1, 21)), return_exceptions=True)
        refused = [end for end in ends if isinstance(end, BaseException)]
        assert [type(error) for error in refused] == [TooManySessions] * 17
        kept = await listed(store)
        assert len(kept) == 3

    async def test_existing_session_is_not_refused_at_the_session_limit(self, store: Store) -> None:
        await complete_run(store, "r1")
        assert not await store.create(NewSession(ref=S1, agent="echo", at=2000, max_sessions=1))
        assert (await store.begin(new_run("r2", at=2000, max_sessions=1))).created
        with pytest.raises(TooManySessions):
            await store.begin(new_run("r3", SessionRef("ann", "s2"), max_sessions=1))
        assert (await store.run("r3"), await listed(store)) == (None, ["s1"])
