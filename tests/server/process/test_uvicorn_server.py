"""The server process: its listening socket, and its forced exit."""

import asyncio
import socket
import subprocess
import sys

from limelight.server.process.uvicorn_server import bind

HELD = """
import time
from limelight.server.process.uvicorn_server import force_exit_after
from limelight.stores.base import EXIT_LOCK
with EXIT_LOCK:
    force_exit_after(0.1)
    time.sleep(1)
    print("written", flush=True)
time.sleep(60)
"""


async def test_bound_listener_accepts_connections_without_nagle() -> None:
    """Nagle's algorithm would delay a token until the one before it is acknowledged, by 40 ms."""
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        accepted.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listener = bind("127.0.0.1", 0)
    async with await asyncio.start_server(look, sock=listener):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        assert await asyncio.wait_for(accepted, 10)
        writer.close()
        await writer.wait_closed()


def test_forced_exit_waits_for_the_exit_lock() -> None:
    ended = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (1, "written\n")
