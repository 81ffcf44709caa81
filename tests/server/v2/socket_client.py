"""A WebSocket client for tests: sends commands, and collects frames until a condition holds."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.support.server import Served
from tests.support.wait import DEADLINE

Json = dict[str, Any]
SECONDS = DEADLINE


class Socket:
    """One connection."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def send(self, kind: str, **fields: Any) -> None:
        await self.connection.send(json.dumps({"type": kind, **fields}))

    async def receive(self) -> Json:
        return json.loads(await asyncio.wait_for(self.connection.recv(), SECONDS))

    async def until(self, seen: Callable[[Json], bool]) -> list[Json]:
        """Frames up to and including the first that fits."""
        found: list[Json] = []
        while not found or not seen(found[-1]):
            found.append(await self.receive())
        return found

    async def until_type(self, kind: str) -> list[Json]:
        return await self.until(lambda frame: frame.get("type") == kind)

    async def until_state(self, *states: str) -> list[Json]:
        return await self.until(lambda frame: frame.get("type") == "state" and frame["state"]["state"] in states)

    async def ask(self, query: str, **fields: Any) -> list[Json]:
        """One turn: all frames from the state before the run to the state after it."""
        await self.send("query", query=query, **fields)
        begun = (await self.until_state("processing"))[-1]
        return [begun, *await self.until_state("completed", "error", "idle")]

    async def error(self) -> tuple[str, str]:
        """The next error's text and code."""
        frame = (await self.until_type("error"))[-1]
        return frame["message"], frame["error_code"]

    async def closed(self) -> tuple[int, str]:
        """The code and the reason of the server's close frame. Frames before it are skipped."""
        try:
            while True:
                await self.receive()
        except ConnectionClosed as closed:
            assert closed.rcvd is not None
            return closed.rcvd.code, closed.rcvd.reason


def credentials(served: Served) -> dict[str, str]:
    """The headers by which the server's HTTP client is authenticated."""
    names = ("authorization", "x-limelight-user-id")
    return {name: served.http.headers[name] for name in names if name in served.http.headers}


@asynccontextmanager
async def socket(
    served: Served, session_id: str = "s", *, headers: dict[str, str] | None = None, **query: str
) -> AsyncGenerator[Socket]:
    """Connect, by default as the user of the server's HTTP client. The first frame is the state of the session."""
    headers = credentials(served) if headers is None else headers
    params = "&".join(f"{name}={value}" for name, value in query.items())
    url = f"{served.url.replace('http', 'ws', 1)}/api/v2/ws/{session_id}?{params}"
    async with connect(url, additional_headers=headers, proxy=None, max_size=None) as connection:
        yield Socket(connection)


def messages(frames: list[Json]) -> list[Json]:
    """The messages of the log, without replies."""
    return [frame for frame in frames if "message_id" in frame]


def whole(frames: list[Json]) -> list[Json]:
    """Complete messages, without increments."""
    return [frame for frame in messages(frames) if not frame["metadata"].get("streaming")]


def types(frames: list[Json]) -> list[str]:
    return [frame.get("type") or frame["metadata"]["message_type"] for frame in frames]


def states(frames: list[Json]) -> list[str]:
    return [frame["state"]["state"] for frame in frames if frame.get("type") == "state"]
