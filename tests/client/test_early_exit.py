"""Streams and sockets that are left early: no task and no connection stays, and the run continues."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from limelight.client import Client
from tests.support.server import Served
from tests.support.wait import eventually


@pytest.fixture
async def waiting_run(served: Served) -> str:
    async with Client(served.url) as client:
        run = await client.start("go", agent="patient", session_id="s")
        await anext(run)
        return run.run_id


OpenStream = Callable[[Client, str], AsyncIterator[Any]]
STREAMS: list[OpenStream] = [
    lambda client, run_id: client.follow(run_id),
    lambda client, _: client.watch("s"),
    lambda client, run_id: client.export(run_id),
]


@pytest.mark.requirement("client-leaving")
@pytest.mark.parametrize("open_stream", STREAMS, ids=["follow", "watch", "export"])
async def test_cancelled_reader_closes_its_stream_and_not_the_run(
    served: Served, waiting_run: str, open_stream: OpenStream
) -> None:
    async with Client(served.url) as client:
        before = asyncio.all_tasks()
        seen: list[Any] = []

        async def read() -> None:
            async for item in open_stream(client, waiting_run):
                seen.append(item)

        reader = asyncio.create_task(read())
        await eventually(lambda: len(seen) > 2 and served.runtime.open_streams.count == 1)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        await eventually(lambda: served.runtime.open_streams.count == 0)
        await eventually(lambda: asyncio.all_tasks() <= before)
        assert (await client.run(waiting_run)).state == "running"


async def test_leaving_the_loop_closes_the_stream_on_collection(served: Served, waiting_run: str) -> None:
    async with Client(served.url) as client:
        async for _ in client.follow(waiting_run):
            break
        gc.collect()
        await eventually(lambda: served.runtime.open_streams.count == 0)


async def test_unread_run_closes_its_stream(served: Served) -> None:
    async with Client(served.url) as client:
        run_id = (await client.start("go", agent="patient")).run_id
        gc.collect()
        await eventually(lambda: served.runtime.open_streams.count == 0)
        assert (await client.run(run_id)).state == "running"
        run = await client.start("go", agent="patient")
        await run.aclose()
        await eventually(lambda: served.runtime.open_streams.count == 0)


async def test_reader_can_be_cancelled_while_it_reconnects() -> None:
    async with Client("http://127.0.0.1:9", give_up_seconds=60) as client:
        before = asyncio.all_tasks()
        reader = asyncio.create_task(anext(client.follow("r")))  # pyright: ignore[reportArgumentType]
        await asyncio.wait({reader}, timeout=0.1)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        assert asyncio.all_tasks() <= before


async def test_sender_can_be_cancelled_while_the_socket_reconnects(served: Served) -> None:
    async with Client(served.url, give_up_seconds=60) as client:
        before = asyncio.all_tasks()
        async with client.connect("s") as socket:
            client._transport.url = "http://127.0.0.1:9"  # pyright: ignore[reportPrivateUsage]
            assert socket._connection is not None  # pyright: ignore[reportPrivateUsage]
            socket._connection.abort()  # pyright: ignore[reportPrivateUsage]
            sending = asyncio.create_task(socket.send("hello?"))
            await asyncio.wait({sending}, timeout=0.1)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
        await eventually(lambda: asyncio.all_tasks() <= before)


async def test_client_opens_many_streams_at_once(served: Served, waiting_run: str) -> None:
    async with Client(served.url) as client:
        streams = [client.follow(waiting_run) for _ in range(150)]
        first = await asyncio.gather(*(anext(stream) for stream in streams))
        assert all(item == first[0] for item in first)
        assert (await client.run(waiting_run)).state == "running"
        for stream in streams:
            await stream.aclose()
