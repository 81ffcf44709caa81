"""A server of one session's socket that follows a script, for failures that a real server rarely has."""

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

_RECEIVED: WeakKeyDictionary[ServerConnection, list[dict[str, Any]]] = WeakKeyDictionary()
Script = Callable[[ServerConnection], Awaitable[None]]


class ScriptedServer(NamedTuple):
    """The address of the server, and what it received."""

    url: str
    queries: list[dict[str, str]]
    """The query parameters of each connection."""
    received: list[dict[str, Any]]
    """The commands of all connections."""


@asynccontextmanager
async def scripted_server(
    *scripts: Script | int, state: dict[str, Any] | None = None, last: str = "0"
) -> AsyncGenerator[ScriptedServer]:
    """Run one script for each connection; a number refuses it. REST returns `state` and the message `last`."""
    queries: list[dict[str, str]] = []
    received: list[dict[str, Any]] = []

    def rest(connection: ServerConnection, request: Request) -> Response | None:
        path = urlsplit(request.path)
        if path.path.endswith("/messages"):
            return connection.respond(HTTPStatus.OK, json.dumps({"messages": [message(last)], "more": False}))
        if "/ws/" not in path.path:
            found = {"session_id": "s"} if state is None else state
            return connection.respond(HTTPStatus(found.get("status", 200)), json.dumps(found))
        queries.append({name: values[0] for name, values in parse_qs(path.query).items()})
        script = scripts[min(len(queries), len(scripts)) - 1]
        if isinstance(script, int):
            return connection.respond(HTTPStatus(script), json.dumps({"detail": "not now", "code": "c"}))
        return None

    async def handle(connection: ServerConnection) -> None:
        script = scripts[min(len(queries), len(scripts)) - 1]
        assert not isinstance(script, int)
        _RECEIVED[connection] = received
        with suppress(ConnectionClosed):
            await script(connection)

    async with serve(handle, "127.0.0.1", 0, process_request=rest) as server:
        yield ScriptedServer(f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}", queries, received)


def message(cursor: str, content: str = "") -> dict[str, Any]:
    metadata = {"component": "chat", "message_type": "status", "status": "done"}
    known = {"role": "assistant", "content": content or f"at {cursor}", "metadata": metadata, "timestamp": ""}
    return {"session_id": "s", "cursor": cursor, "message_id": f"m{cursor}", "step_number": None, **known}


def state_frame(state: str = "idle", run_id: str | None = None, cursor: str = "0") -> dict[str, Any]:
    return {"type": "state", "state": {"session_id": "s", "state": state, "run_id": run_id, "cursor": cursor}}


def sends(*frames: dict[str, Any], close: int = 0) -> Script:
    """Send frames; then close with a code, abort the connection (1006), or stay open."""

    async def script(connection: ServerConnection) -> None:
        for frame in frames:
            await connection.send(json.dumps(frame))
        if close == 1006:
            connection.transport.abort()
        elif close:
            await connection.close(close)
        await receive(connection, lambda _: False)

    return script


async def receive(connection: ServerConnection, condition: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Receive commands up to the first that meets the condition, and answer pings."""
    while True:
        command = json.loads(await connection.recv())
        _RECEIVED[connection].append(command)
        if condition(command):
            return command
        if command["type"] == "ping":
            await connection.send('{"type":"pong"}')
