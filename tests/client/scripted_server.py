"""A server of one session's socket that follows a script, for what a real one does only when it is in trouble."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit
from weakref import WeakKeyDictionary

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

_SAID: WeakKeyDictionary[ServerConnection, list[dict[str, Any]]] = WeakKeyDictionary()
Play = Callable[[ServerConnection], Awaitable[None]]


class Scripted(NamedTuple):
    """Where it is, how it was called, and what it was told."""

    url: str
    queries: list[dict[str, str]]
    """The query parameters of each connection."""
    said: list[dict[str, Any]]


@asynccontextmanager
async def scripted(
    *plays: Play | int, state: dict[str, Any] | None = None, last: str = "0"
) -> AsyncGenerator[Scripted]:
    """One play for each connection; a number refuses the handshake. REST has one state and one last message."""
    queries: list[dict[str, str]] = []
    said: list[dict[str, Any]] = []

    def rest(connection: ServerConnection, request: Request) -> Response | None:
        path = urlsplit(request.path)
        if path.path.endswith("/messages"):
            return connection.respond(HTTPStatus.OK, json.dumps({"messages": [message(last)], "more": False}))
        if "/ws/" not in path.path:
            found = {"session_id": "s"} if state is None else state
            return connection.respond(HTTPStatus(found.get("status", 200)), json.dumps(found))
        queries.append({name: values[0] for name, values in parse_qs(path.query).items()})
        play = plays[min(len(queries), len(plays)) - 1]
        if isinstance(play, int):
            return connection.respond(HTTPStatus(play), json.dumps({"detail": "not now", "code": "c"}))
        return None

    async def connected(connection: ServerConnection) -> None:
        play = plays[min(len(queries), len(plays)) - 1]
        assert not isinstance(play, int)
        _SAID[connection] = said
        with suppress(ConnectionClosed):
            await play(connection)

    async with serve(connected, "127.0.0.1", 0, process_request=rest) as server:
        yield Scripted(f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}", queries, said)


def message(cursor: str, content: str = "") -> dict[str, Any]:
    metadata = {"component": "chat", "message_type": "status", "status": "done"}
    known = {"role": "assistant", "content": content or f"at {cursor}", "metadata": metadata, "timestamp": ""}
    return {"session_id": "s", "cursor": cursor, "message_id": f"m{cursor}", "step_number": None, **known}


def told(state: str = "idle", run_id: str | None = None, cursor: str = "0") -> dict[str, Any]:
    return {"type": "state", "state": {"session_id": "s", "state": state, "run_id": run_id, "cursor": cursor}}


def sends(*frames: dict[str, Any], close: int = 0) -> Play:
    """Say these things; then close with a code, cut the connection (1006), or stay."""

    async def play(connection: ServerConnection) -> None:
        for frame in frames:
            await connection.send(json.dumps(frame))
        if close == 1006:
            connection.transport.abort()
        elif close:
            await connection.close(close)
        await hear(connection, lambda _: False)

    return play


async def hear(connection: ServerConnection, seen: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """What the client says, up to the first that fits. Pings are answered."""
    while True:
        said = json.loads(await connection.recv())
        _SAID[connection].append(said)
        if seen(said):
            return said
        if said["type"] == "ping":
            await connection.send('{"type":"pong"}')
