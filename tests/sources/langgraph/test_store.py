# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
"""The store that graphs get: durable, shared, private, and usable from sync and async code."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from limelight.errors import SetupError
from limelight.private_files import OTHERS
from limelight.sources.langgraph.store import FILE, SqliteGraphStore, open_store, release_store
from tests.sources.langgraph import input_graphs
from tests.sources.live_turn import serve_agent
from tests.support.server import offer, serving


@pytest.mark.requirement("graph-store")
async def test_store_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    answers: list[Any] = []
    for session in ("a", "b"):
        async with serve_agent(lambda _: input_graphs.counting_store(), "", tmp_path) as server:
            answers += [(await server.run(session_id=session)).answer for _ in range(2)]
    assert answers == [f"run {number} of local" for number in (1, 2, 3, 4)]
    assert not (tmp_path / FILE).stat().st_mode & OTHERS


async def test_deleting_a_session_keeps_the_store(tmp_path: Path) -> None:
    async with serve_agent(lambda _: input_graphs.counting_store(), "", tmp_path) as server:
        await server.run(session_id="a")
        assert (await server.served.http.delete("/sessions/a")).status_code == 204
        assert (await server.run(session_id="b")).answer == "run 2 of local"


async def test_store_works_asynchronously_and_on_the_event_loop(tmp_path: Path) -> None:
    async with serve_agent(lambda _: input_graphs.searching_store(), "", tmp_path) as server:
        assert (await server.run("one")).answer == "one; 1"
        assert (await server.run("two")).answer == "one, two; 2"


async def test_function_gets_the_store(tmp_path: Path) -> None:
    async with serve_agent(lambda _: input_graphs.function_store, "", tmp_path) as server:
        assert (await server.run("one")).answer == "one"


async def test_graphs_of_a_server_share_one_store(tmp_path: Path) -> None:
    agents = [offer(input_graphs.counting_store(), name) for name in ("first", "second")]
    async with serving(agents=agents, data=tmp_path) as served:
        for name, number in (("first", 1), ("second", 2)):
            body = {"messages": [{"role": "user", "content": "go"}], "agent": name}
            answer = (await served.http.post("/chat", json=body)).json()
            assert answer["message"]["content"] == f"run {number} of local"


async def test_own_store_of_a_graph_is_used(tmp_path: Path) -> None:
    store = InMemoryStore()
    graph = input_graphs.counting_store().compile(store=store)
    async with serve_agent(lambda _: graph, "", tmp_path) as server:
        await server.run()
    assert store.get(("counts", "local"), "runs") is not None
    assert not (tmp_path / FILE).exists()


async def test_graph_that_uses_no_store_leaves_no_file(tmp_path: Path) -> None:
    async with serve_agent(lambda _: input_graphs.with_old_config(), "", tmp_path) as server:
        await server.run()
    assert not (tmp_path / FILE).exists()


async def test_concurrent_writes_from_threads_and_tasks_are_all_kept(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    try:
        writes = [store.aput(("a",), str(n), {"n": n}) for n in range(50)]
        threads = [asyncio.to_thread(store.put, ("b",), str(n), {"n": n}) for n in range(50)]
        await asyncio.gather(*writes, *threads)
        assert len(await store.asearch(("a",), limit=100)) == len(store.search(("b",), limit=100)) == 50
        assert sorted(await store.alist_namespaces()) == [("a",), ("b",)]
    finally:
        await release_store(tmp_path)


async def test_items_expire_after_their_time_to_live(tmp_path: Path) -> None:
    first = SqliteGraphStore(tmp_path / FILE)
    await first.aput(("a",), "old", {"n": 1}, ttl=0.0001)
    await first.aput(("a",), "kept", {"n": 2})
    await first.close()
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.execute("UPDATE store SET expires_at = '2000-01-01 00:00:00' WHERE expires_at IS NOT NULL")
    second = SqliteGraphStore(tmp_path / FILE)
    assert [item.key for item in await second.asearch(("a",))] == ["kept"]
    await second.close()


async def test_failed_operation_leaves_the_store_usable(tmp_path: Path) -> None:
    store = SqliteGraphStore(tmp_path / FILE)
    with pytest.raises(TypeError):
        await store.aput(("a",), "x", {"x": object()})
    await store.aput(("a",), "x", {"x": 1})
    item = await store.aget(("a",), "x")
    assert item is not None and item.value == {"x": 1}
    await store.close()


async def test_file_that_is_not_a_database_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("this is not a database, whatever it is" * 100)
    store = SqliteGraphStore(tmp_path / FILE)
    with pytest.raises(SetupError, match=FILE):
        await store.aget(("a",), "x")
    await store.close()


async def test_last_user_closes_the_store(tmp_path: Path) -> None:
    first, second = open_store(tmp_path), open_store(tmp_path)
    assert first is second
    await release_store(tmp_path)
    await first.aput(("a",), "x", {"x": 1})
    await release_store(tmp_path)
    with pytest.raises(RuntimeError, match="closed"):
        await first.aput(("a",), "x", {"x": 1})
