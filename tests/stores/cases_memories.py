"""Which state of an agent belongs to which session."""

from limelight.models import Memory, MemoryTurn, SessionRef
from limelight.stores.base import Store
from tests.stores.operations import FAR, S1, MakeStore, begin, opened, whole_run

S2 = SessionRef("ann", "s2")
OTHERS = SessionRef("bob", "s1")
FIRST = Memory(key="m1", agent="deep", turns=(MemoryTurn("hash1", "r1"),))


class MemoryCases:
    async def test_what_is_remembered_is_there_after_a_restart(self, make_store: MakeStore) -> None:
        async with opened(make_store) as store:
            await whole_run(store, "r1")
            assert await store.memory(S1, "deep") is None
            await store.remember(S1, FIRST)
            assert await store.memory(S1, "deep") == FIRST
        async with opened(make_store) as store:
            assert await store.memory(S1, "deep") == FIRST

    async def test_it_belongs_to_one_session_and_one_agent(self, store: Store) -> None:
        await whole_run(store, "r1")
        await store.remember(S1, FIRST)
        assert await store.memory(S2, "deep") is None
        assert await store.memory(OTHERS, "deep") is None
        assert await store.memory(S1, "agno") is None

    async def test_a_memory_grows_under_its_key(self, store: Store) -> None:
        await whole_run(store, "r1")
        await store.remember(S1, FIRST)
        grown = Memory(key="m1", agent="deep", turns=(*FIRST.turns, MemoryTurn("hash2", "r2")))
        await store.remember(S1, grown)
        assert await store.memory(S1, "deep") == grown
        assert await store.stale_memories(["deep", "agno"]) == []

    async def test_another_key_makes_the_one_before_it_stale(self, store: Store) -> None:
        await whole_run(store, "r1")
        other_agent = Memory(key="m2", agent="agno")
        await store.remember(S1, FIRST)
        await store.remember(S1, other_agent)
        fresh = Memory(key="m3", agent="deep")
        await store.remember(S1, fresh)
        assert await store.memory(S1, "deep") == fresh
        assert await store.memory(S1, "agno") == other_agent
        assert await store.stale_memories(["deep", "agno"]) == [FIRST]
        await store.drop_memory("m1")
        assert await store.stale_memories(["deep", "agno"]) == []

    async def test_a_deleted_session_leaves_its_memories_to_be_forgotten(self, store: Store) -> None:
        for run_id, ref, key in (("r1", S1, "m1"), ("r2", S2, "m2")):
            await whole_run(store, run_id, ref)
            await store.remember(ref, Memory(key=key, agent="deep"))
        await store.delete(S1)
        assert [memory.key for memory in await store.stale_memories(["deep", "agno"])] == ["m1"]
        await begin(store, "r3", S1)
        assert await store.memory(S1, "deep") is None

    async def test_so_does_one_past_its_retention(self, store: Store) -> None:
        await whole_run(store, "r1", at=1000)
        await store.remember(S1, FIRST)
        await store.sweep(before=FAR)
        assert await store.stale_memories(["deep"], limit=1) == [FIRST]

    async def test_those_of_other_agents_wait(self, store: Store) -> None:
        await whole_run(store, "r1")
        await store.remember(S1, FIRST)
        await store.delete(S1)
        assert await store.stale_memories(["agno"]) == []
        assert await store.stale_memories([]) == []
        assert await store.stale_memories(["agno", "deep"]) == [FIRST]
