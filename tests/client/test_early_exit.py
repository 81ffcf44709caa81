"""Leaving in the middle, by any way, leaves nothing behind: no task, no connection, no warning, and the run goes on."""

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from limelight.client import Client
from tests.client.conftest import serving_elsewhere
from tests.support import agents
from tests.support.server import Served
from tests.support.wait import eventually


@pytest.fixture
async def waiting_run(served: Served) -> str:
    async with Client(served.url) as client:
        run = await client.start("go", agent="patient", session_id="s")
        await anext(run)
        return run.run_id


Opening = Callable[[Client, str], AsyncIterator[Any]]
OPENINGS: list[Opening] = [
    lambda client, run_id: client.follow(run_id),
    lambda client, _: client.watch("s"),
    lambda client, run_id: client.export(run_id),
]


@pytest.mark.parametrize("opening", OPENINGS, ids=["follow", "watch", "export"])
async def test_cancelling_a_listener(served: Served, waiting_run: str, opening: Opening) -> None:
    async with Client(served.url) as client:
        before = asyncio.all_tasks()
        seen: list[Any] = []

        async def listen() -> None:
            async for item in opening(client, waiting_run):
                seen.append(item)

        listener = asyncio.create_task(listen())
        await eventually(lambda: len(seen) > 2 and served.parts.pulse.streams == 1)
        listener.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listener
        await eventually(lambda: served.parts.pulse.streams == 0)
        await eventually(lambda: asyncio.all_tasks() <= before)
        assert (await client.run(waiting_run)).state == "running"


async def test_leaving_the_loop_closes_the_stream(served: Served, waiting_run: str) -> None:
    async with Client(served.url) as client:
        async for _ in client.follow(waiting_run):
            break
        gc.collect()
        await eventually(lambda: served.parts.pulse.streams == 0)


async def test_a_run_that_nobody_listens_to_is_let_go(served: Served) -> None:
    async with Client(served.url) as client:
        run_id = (await client.start("go", agent="patient")).run_id
        gc.collect()
        await eventually(lambda: served.parts.pulse.streams == 0)
        assert (await client.run(run_id)).state == "running"
        run = await client.start("go", agent="patient")
        await run.aclose()
        await eventually(lambda: served.parts.pulse.streams == 0)


async def test_cancelling_while_it_tries_to_come_back() -> None:
    async with Client("http://127.0.0.1:9", give_up_seconds=60) as client:
        before = asyncio.all_tasks()
        listener = asyncio.create_task(anext(client.follow("r")))  # pyright: ignore[reportArgumentType]
        await asyncio.wait({listener}, timeout=0.1)
        listener.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listener
        assert asyncio.all_tasks() <= before


async def test_cancelling_one_who_waits_for_a_socket_to_come_back(served: Served) -> None:
    async with Client(served.url, give_up_seconds=60) as client:
        before = asyncio.all_tasks()
        async with client.connect("s") as socket:
            client._transport.url = "http://127.0.0.1:9"  # pyright: ignore[reportPrivateUsage]
            assert socket._connection is not None  # pyright: ignore[reportPrivateUsage]
            socket._connection.abort()  # pyright: ignore[reportPrivateUsage]
            asking = asyncio.create_task(socket.send("hello?"))
            await asyncio.wait({asking}, timeout=0.1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        await eventually(lambda: asyncio.all_tasks() <= before)


async def test_many_streams_at_once(served: Served, waiting_run: str) -> None:
    async with Client(served.url) as client:
        streams = [client.follow(waiting_run) for _ in range(150)]
        first = await asyncio.gather(*(anext(stream) for stream in streams))
        assert all(item == first[0] for item in first)
        assert (await client.run(waiting_run)).state == "running"
        for stream in streams:
            await stream.aclose()


LEFT_OPEN = """
import asyncio
from limelight import Client

async def main() -> None:
    client = Client()
    unheard, run = await client.start("go", session_id="a"), await client.start("go", session_id="b")
    socket = await client.connect("b").__aenter__()
    streams = [run, client.follow(run.run_id), client.watch("b"), client.export(run.run_id), socket]
    for stream in streams:
        await anext(stream)
    CLOSE
    globals().update(kept=[unheard, *streams])

asyncio.run(main())
"""


@pytest.mark.parametrize("closing", ["await client.aclose()", "del client"])
def test_a_loop_that_ends_under_open_streams_is_quiet(tmp_path: Path, closing: str) -> None:
    with serving_elsewhere(agents.patient, data=tmp_path / "data") as url:
        code = LEFT_OPEN.replace("CLOSE", closing)
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            env={**os.environ, "LIMELIGHT_URL": url},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (0, "")
