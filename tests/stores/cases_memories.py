"""Cases of the store suite: agent memories."""

from limelight.models import Memory, MemoryTurn, SessionRef
from limelight.stores.base import Store
from tests.stores.operations import FAR, S1, MakeStore, begin, complete_run, opened

S2 = SessionRef("ann", "s2")
BOBS = SessionRef("bob", "s1")
FIRST = Memory(key="m1", agent="deep", turns=(MemoryTurn("hash1", "r1"),), ref=S1)


class MemoryCases:
    async def test_memory_is_read_back_after_a_restart(self, make_store: MakeStore) -> None:
        async with opened(make_store) as store:
            await complete_run(store, "r1")
            assert await store.memory(S1, "deep") is None
            await store.remember(S1, FIRST)
            assert await store.memory(S1, "deep") == FIRST
        async with opened(make_store) as store:
            assert await store.memory(S1, "deep") == FIRST

    async def test_memory_belongs_to_one_session_and_one_agent(self, store: Store) -> None:
        await complete_run(store, "r1")
        await store.remember(S1, FIRST)
        assert await store.memory(S2, "deep") is None
        assert await store.memory(BOBS, "deep") is None
        assert await store.memory(S1, "agno") is None

    async def test_memory_written_again_under_its_key_is_replaced(self, store: Store) -> None:
        await complete_run(store, "r1")
        await store.remember(S1, FIRST)
        grown = Memory(key="m1", agent="deep", turns=(*FIRST.turns, MemoryTurn("hash2", "r2")), ref=S1)
        await store.remember(S1, grown)
        assert await store.memory(S1, "deep") == grown
        assert await store.stale_memories(["deep", "agno"]) == []

    async def test_memory_with_another_key_makes_the_previous_one_stale(self, store: Store) -> None:
        await complete_run(store, "r1")
        other_agent = Memory(key="m2", agent="agno", ref=S1)
        await store.remember(S1, FIRST)
        await store.remember(S1, other_agent)
        fresh = Memory(key="m3", agent="deep", ref=S1)
        await store.remember(S1, fresh)
        assert await store.memory(S1, "deep") == fresh
        assert await store.memory(S1, "agno") == other_agent
        assert await store.stale_memories(["deep", "agno"]) == [FIRST]
        await store.drop_memory("m1")
        assert await store.stale_memories(["deep", "agno"]) == []

    async def test_delete_makes_the_memories_of_a_session_stale(self, store: Store) -> None:
        for run_id, ref, key in (("r1", S1, "m1"), ("r2", S2, "m2")):
            await complete_run(store, run_id, ref)
            await store.remember(ref, Memory(key=key, agent="deep"))
        await store.delete(S1)
        stale = await store.stale_memories(["deep", "agno"])
        assert [(memory.key, memory.ref) for memory in stale] == [("m1", S1)]
        await begin(store, "r3", S1)
        assert await store.memory(S1, "deep") is None

    async def test_sweep_makes_the_memories_of_a_session_stale(self, store: Store) -> None:
        await complete_run(store, "r1", at=1000)
        await store.remember(S1, FIRST)
        await store.sweep(before=FAR)
        assert await store.stale_memories(["deep"], limit=1) == [FIRST]

    async def test_stale_memories_are_those_of_the_given_agents(self, store: Store) -> None:
        await complete_run(store, "r1")
        await store.remember(S1, FIRST)
        await store.delete(S1)
        assert await store.stale_memories(["agno"]) == []
        assert await store.stale_memories([]) == []
        assert await store.stale_memories(["agno", "deep"]) == [FIRST]
