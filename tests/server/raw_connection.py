"""A raw connection to a server, for bytes that an HTTP client would not send."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from limelight.server.process.uvicorn_protocols import HttpConnection
from tests.support.server import Served

SECONDS = 20


class Wire:
    """A raw connection to the server, and the server's end of it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @property
    def server_side(self) -> HttpConnection:
        port = self.writer.get_extra_info("sockname")[1]
        ends: list[HttpConnection] = [end for end in gc.get_objects() if type(end) is HttpConnection]
        (found,) = [end for end in ends if end.client == ("127.0.0.1", port)]
        return found

    async def answer(self) -> tuple[int, bytes]:
        """The status and the body of the next answer."""
        async with asyncio.timeout(SECONDS):
            status = int((await self.reader.readline()).split()[1])
            size = 0
            while (line := await self.reader.readline()) != b"\r\n":
                name, _, value = line.partition(b":")
                size = int(value) if name.lower() == b"content-length" else size
            return status, await self.reader.readexactly(size)

    async def rest(self) -> bytes:
        """All bytes until the server closes the connection."""
        async with asyncio.timeout(SECONDS):
            return await self.reader.read()


async def disconnect(writer: asyncio.StreamWriter) -> None:
    """Close a connection and drop what was not sent: the loop of a test may end before it could be."""
    writer.transport.abort()
    with suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def connected(served: Served) -> AsyncGenerator[Wire]:
    reader, writer = await asyncio.open_connection(*served.url.removeprefix("http://").split(":"), limit=2**20)
    try:
        yield Wire(reader, writer)
    finally:
        await disconnect(writer)
