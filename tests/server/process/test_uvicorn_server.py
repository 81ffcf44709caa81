"""The socket that the server listens on."""

import asyncio
import socket

from limelight.server.process.uvicorn_server import bind


async def test_what_is_sent_leaves_at_once() -> None:
    """Nagle's algorithm would keep a token back until the one before it is acknowledged, 40 ms later."""
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
