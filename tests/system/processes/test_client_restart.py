"""Clients continue after a restart of the server on the same port, and lose and repeat nothing."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from limelight.client import Client, Message, State, SyncClient
from limelight.events import Record, RunFailed, kind_of
from tests.client.cutting_proxy import assert_complete, collect_records
from tests.client.socket_helpers import assert_deltas_complete, complete, messages, read_run, read_until, states
from tests.system.processes.server_process import ServerProcess


async def start_server(stack: AsyncExitStack, data: Path) -> ServerProcess:
    server = await asyncio.to_thread(ServerProcess(data, "endless", "hello").__enter__)
    stack.callback(server.__exit__)
    return server


async def restart(stack: AsyncExitStack, server: ServerProcess, data: Path, *, kill: bool) -> None:
    """End the server by SIGKILL or SIGTERM and start another one on its port, without blocking the event loop."""

    def swap() -> ServerProcess:
        if kill:
            server.kill()
        else:
            server.terminate()
        return ServerProcess(data, "endless", "hello", port=server.port).__enter__()

    new = await asyncio.to_thread(swap)
    stack.callback(new.__exit__)


@pytest.mark.requirement("client-complete")
@pytest.mark.parametrize("kill", [True, False], ids=["killed", "terminated"])
async def test_follow_and_watch_continue_after_the_server_restarts(tmp_path: Path, kill: bool) -> None:
    data = tmp_path / "data"
    async with AsyncExitStack() as stack:
        server = await start_server(stack, data)
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
            followed.extend(await collect_records(client.follow(run.run_id)))

        both = asyncio.gather(watch(), follow())
        started += [await anext(run) for _ in range(50)]
        await restart(stack, server, data, kill=kill)
        started += [record async for record in run]
        assert (await client.ask("hi", agent="hello", session_id="s")).content == "hello"
        await both

        exported = [record async for record in client.export(run.run_id)]
        assert isinstance(exported[-1].event, RunFailed)
        assert exported[-1].event.code == "interrupted"
        assert_complete(started, exported)
        assert_complete(followed, exported)
        assert_complete([record for record in watched if record.run_id == run.run_id], exported)
        assert [record.seq for record in watched] == sorted({record.seq for record in watched})
        assert (await client.session("s")).turns == 2


def test_sync_run_continues_after_the_server_restarts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, "endless") as server, SyncClient(f"http://127.0.0.1:{server.port}") as client:
        run = client.start("go", session_id="s")
        received = [next(run) for _ in range(50)]
        server.kill()
        with ServerProcess(data, "endless", port=server.port):
            received += list(run)
            assert_complete(received, list(client.export(run.run_id)))


@pytest.mark.requirement("client-socket")
@pytest.mark.parametrize("kill", [True, False], ids=["killed", "terminated"])
async def test_sockets_continue_after_the_server_restarts(tmp_path: Path, kill: bool) -> None:
    data = tmp_path / "data"
    async with AsyncExitStack() as stack:
        server = await start_server(stack, data)
        client = await stack.enter_async_context(Client(f"http://127.0.0.1:{server.port}"))
        socket = await stack.enter_async_context(client.connect("s", agent="endless"))
        other = await stack.enter_async_context(client.connect("t", agent="hello"))
        run_id = await socket.send("go")
        items = await read_until(socket, lambda item: isinstance(item, Message) and item.message_type == "observation")
        restarting = asyncio.create_task(restart(stack, server, data, kill=kill))
        items += await read_run(socket, run_id)
        await restarting
        assert states(items) == ["processing", "error"]
        assert messages(items)[-1].metadata["code"] == "interrupted"
        assert_deltas_complete(items)
        assert complete(items) == [message async for message in client.messages("s")]
        await other.send("hi")
        assert messages(await read_run(other))[-1].content == "hello"


def test_sync_socket_continues_after_the_server_restarts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with (
        ServerProcess(data, "endless") as server,
        SyncClient(f"http://127.0.0.1:{server.port}") as client,
        client.connect("s", format="records") as socket,
    ):
        run_id = socket.send("go")
        received = [item for _, item in zip(range(50), socket, strict=False) if isinstance(item, Record)]
        server.kill()
        with ServerProcess(data, "endless", port=server.port):
            for item in socket:
                if isinstance(item, State) and not item.live:
                    break
                received += [item] if isinstance(item, Record) else []
            assert_complete(received, list(client.export(run_id)))
