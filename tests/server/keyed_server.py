"""A server with keys, and requests that tests send to it."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from limelight.auth.identity import Scope
from limelight.auth.key_file import NAME as KEYS_FILE
from limelight.auth.key_file import Keyring
from limelight.events import AnyEvent, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.server.auth.middleware import LOGIN_PATHS, PROBE_PATHS
from limelight.server.endpoint import Endpoint
from limelight.server.routes import ENDPOINTS
from limelight.sources.base import Context, FileMade
from tests.support import agents
from tests.support.server import Frame, Served, asking, frames, serving

Headers = dict[str, str]


class KeyedServer(NamedTuple):
    """A server whose users have keys."""

    served: Served
    keyring: Keyring
    keyring_file: Path

    def key(self, user: str, *scopes: Scope) -> str:
        return self.keyring.create(user, scopes or ("use",), 1)[1]

    def headers(self, user: str, *scopes: Scope) -> Headers:
        return bearer(self.key(user, *scopes))


async def maker(messages: list[Message], ctx: Context) -> AsyncIterator[str | AnyEvent | FileMade]:
    """Calls a tool, makes a file, and requests an approval."""
    yield ToolStarted(call_id="c", name="make", args={})
    yield ToolFinished(call_id="c", result="made")
    yield FileMade(name="note.txt", data=b"a note", media_type="text/plain")
    await ctx.approve("send", {})
    yield "sent"


def user_of(served: Served) -> str:
    """The user for whom the HTTP client of the shared server speaks."""
    return served.http.headers["x-limelight-user-id"]


def bearer(key: str) -> Headers:
    return {"authorization": f"Bearer {key}"}


def guarded_endpoints() -> list[Endpoint]:
    return [endpoint for endpoint in ENDPOINTS if endpoint.path not in PROBE_PATHS | LOGIN_PATHS]


def fill_path(path: str, session_id: str = "s", run_id: str = "run_0") -> str:
    names = {"session_id": session_id, "run_id": run_id}
    for part in ("call_id:text", "call_id", "approval_id", "artifact_id", "name", "part"):
        path = path.replace(f"{{{part}}}", "x")
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, path
    return path


async def handshake(served: Served, headers: Headers, session_id: str = "s") -> int:
    """The HTTP status of a WebSocket handshake."""
    url = f"{served.url.replace('http', 'ws', 1)}/api/v2/ws/{session_id}"
    try:
        async with connect(url, additional_headers=headers, proxy=None):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


async def start_waiting_run(
    served: Served, headers: Headers, session_id: str = "s", *, agent: str = "maker", text: str = "go"
) -> dict[str, str]:
    """Start a run that waits for an approval; returns the ids of its session, call, file and approval."""
    names = {"session_id": session_id}
    body = asking(text, agent=agent, session_id=session_id)
    async with served.http.stream("POST", "/chat/stream?format=records", json=body, headers=headers) as response:
        async for frame in frames(response):
            event = frame.data["event"]
            names["run_id"] = frame.data["run_id"]
            names |= {key: event[key] for key in ("call_id", "artifact_id", "approval_id") if event.get(key)}
            if event["kind"] == "approval_requested":
                return names
    raise AssertionError("no approval was requested")


def fill_names(path: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value).replace(f"{{{name}:text}}", value)
    assert "{" not in path, path
    return path


class Users:
    """A server on which ann and ben have keys."""

    def __init__(self, keyed: KeyedServer) -> None:
        self.served = keyed.served
        self.ann, self.ben = keyed.headers("ann"), keyed.headers("ben")

    async def ask(self, headers: Headers, session_id: str, agent: str = "echo") -> httpx.Response:
        body = asking("hi", session_id=session_id, agent=agent)
        return await self.served.http.post("/chat", json=body, headers=headers)

    def stream(self, headers: Headers, session_id: str, agent: str = "patient") -> AsyncIterator[Frame]:
        body = asking("hi", session_id=session_id, agent=agent)
        return self.served.stream("POST", "/chat/stream", json=body, headers=headers)


@asynccontextmanager
async def serving_users(data: Path, *functions: Callable[..., Any], **limits: float) -> AsyncGenerator[Users]:
    """Serve these agents, or an echo and a patient one, with these limits."""
    settings: dict[str, Any] = {f"limits__{name}": value for name, value in limits.items()}
    async with serving_keys(data, *(functions or (agents.echo, agents.patient)), **settings) as keyed:
        yield Users(keyed)


@asynccontextmanager
async def serving_keys(data: Path, *functions: Callable[..., Any], **settings: Any) -> AsyncGenerator[KeyedServer]:
    """Serve these agents. The server is open until the test creates a key."""
    async with serving(*functions, data=data, **settings) as served:
        yield KeyedServer(served, Keyring(data), data / KEYS_FILE)
