"""The server dies under a stream and comes back on the same port: nothing is lost, nothing doubled."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from limelight.client import Client, SyncClient
from limelight.events import Record, RunFailed, kind_of
from tests.client.cutting_proxy import records, same
from tests.system.processes.server_process import ServerProcess


async def restarted(stack: AsyncExitStack, server: ServerProcess, data: Path, *, kill: bool) -> ServerProcess:
    """Ended in the one way or the other, and begun again, while the loop goes on."""

    def swap() -> ServerProcess:
        if kill:
            server.kill()
        else:
            server.terminate(15)
        return ServerProcess(data, "endless", "hello", port=server.port).__enter__()

    new = await asyncio.to_thread(swap)
    stack.callback(new.__exit__)
    return new


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "terminated"])
async def test_follow_and_watch_outlive_the_server(tmp_path: Path, kill: bool) -> None:
    data = tmp_path / "data"
    async with AsyncExitStack() as stack:
        server = await asyncio.to_thread(ServerProcess(data, "endless", "hello").__enter__)
        stack.callback(server.__exit__)
        client = await stack.enter_async_context(Client(f"http://127.0.0.1:{server.port}"))
        run = await client.start("go", session_id="s")
        started = [await anext(run) for _ in range(50)]
        followed, watched = list[Record](), list[Record]()

        async def watch() -> None:
            watching = client.watch("s")
            async for item in watching:
                assert isinstance(item, Record)
                watched.append(item)
                if kind_of(item.event) == "run_finished":
                    break
            await watching.aclose()

        async def follow() -> None:
            followed.extend(await records(client.follow(run.run_id)))

        both = asyncio.gather(watch(), follow())
        started += [await anext(run) for _ in range(50)]
        await restarted(stack, server, data, kill=kill)
        started += [record async for record in run]
        assert (await client.ask("hi", agent="hello", session_id="s")).content == "hello"
        await both

        whole = [record async for record in client.export(run.run_id)]
        assert isinstance(whole[-1].event, RunFailed)
        assert whole[-1].event.code == "interrupted"
        assert same(started, whole)
        assert same(followed, whole)
        assert same([record for record in watched if record.run_id == run.run_id], whole)
        assert [record.seq for record in watched] == sorted({record.seq for record in watched})
        assert (await client.session("s")).turns == 2


def test_the_same_without_asyncio(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "endless") as server, SyncClient(f"http://127.0.0.1:{server.port}") as client:
        run = client.start("go", session_id="s")
        seen = [next(run) for _ in range(50)]
        server.kill()
        with ServerProcess(data, "endless", port=server.port):
            seen += list(run)
            assert same(seen, list(client.export(run.run_id)))
