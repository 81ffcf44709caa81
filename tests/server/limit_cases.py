"""Ways to meet each limit of a server: over HTTP, on a stream and on a socket."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import httpx
import pytest

from limelight.events import AnyEvent, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.server import request_body
from limelight.sources.base import Context
from tests.server.keyed_server import Headers, House, handshake
from tests.server.v2.socket_client import Socket, socket
from tests.support.server import asking, collect
from tests.support.wait import eventually

ROOM = 50_000
TRIES = 9
"""More than the limit lets through in two minutes, as the minute may change in between, once."""
Meeting = AsyncIterator[list[str]]
"""Yields nothing when all is prepared, and then the codes that it was told when it met the limit."""


class Case(NamedTuple):
    """One way to meet a limit."""

    code: str
    meet: Callable[[House, Headers], Meeting]
    settings: dict[str, Any]


class Filler:
    """An agent that waits to be let, and then keeps more than there is room for."""

    may_go_on: asyncio.Event

    async def run(self, messages: list[Message], ctx: Context) -> AsyncIterator[AnyEvent]:
        yield ToolStarted(call_id="c", name="fetch", args={})
        await self.may_go_on.wait()
        yield ToolFinished(call_id="c", result=secrets.token_hex(8 * ROOM))
        await asyncio.sleep(3600)


FILLER = Filler()


async def silent(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Says nothing."""
    await asyncio.sleep(3600)
    yield ""


def refused(*replies: httpx.Response) -> list[str]:
    return [reply.json()["code"] for reply in replies if not reply.is_success]


async def post(house: House, headers: Headers, agent: str, session_id: str = "s", **body: Any) -> httpx.Response:
    return await house.served.http.post(
        "/chat", json=asking("go", agent=agent, session_id=session_id, **body), headers=headers
    )


async def live(house: House, headers: Headers, agent: str = "patient") -> "asyncio.Task[Any]":
    """A run that goes on in the session `s`."""
    count = house.served.runtime.sessions.count
    asked = asyncio.create_task(post(house, headers, agent))
    await eventually(lambda: house.served.runtime.sessions.count == count + 1)
    return asked


async def told(watching: Socket, count: int = 1) -> list[str]:
    return [(await watching.error())[1] for _ in range(count)]


async def requests(house: House, ann: Headers) -> Meeting:
    yield []
    yield refused(*[await house.served.http.get("/agents", headers=ann) for _ in range(TRIES)])


async def handshakes(house: House, ann: Headers) -> Meeting:
    yield []
    statuses = [await handshake(house.served, ann) for _ in range(TRIES)]
    yield ["too_many_requests"] * statuses.count(429)


async def messages(house: House, ann: Headers) -> Meeting:
    async with socket(house.served, headers=ann, agent_type="patient") as watching:
        await watching.hear()
        yield []
        for _ in range(TRIES):
            await watching.say("get_state")
        replies = [await watching.hear() for _ in range(TRIES)]
        yield [reply["error_code"] for reply in replies if reply["type"] == "error"]


async def runs(house: House, ann: Headers) -> Meeting:
    asked = await live(house, ann)
    yield []
    body = asking("go", agent="patient", session_id="t")
    yield refused(
        await post(house, ann, "patient", "t"),
        await house.served.http.post("/chat/stream", json=body, headers=ann),
    )
    asked.cancel()


async def runs_on_a_socket(house: House, ann: Headers) -> Meeting:
    asked = await live(house, ann)
    async with socket(house.served, "t", headers=ann, agent_type="patient") as watching:
        yield []
        await watching.say("query", query="go")
        yield await told(watching)
    asked.cancel()


async def sessions(house: House, ann: Headers) -> Meeting:
    await post(house, ann, "echo")
    yield []
    async with socket(house.served, "t", headers=ann) as watching:
        yield [*refused(await post(house, ann, "echo", "t")), *await told(watching)]


async def streams(house: House, ann: Headers) -> Meeting:
    async with socket(house.served, headers=ann, agent_type="echo") as watching:
        await watching.hear()
        yield []
        async with socket(house.served, headers=ann) as second:
            yield [
                *refused(await house.served.http.get("/sessions/s/stream", headers=ann)),
                *await told(second),
            ]


async def queue(house: House, ann: Headers) -> Meeting:
    waiting = [await live(house, ann)]
    waiting += [asyncio.create_task(post(house, ann, "echo", if_busy="wait")) for _ in range(5)]
    await eventually(lambda: house.served.runtime.sessions.queued == 5)
    yield []
    yield refused(await post(house, ann, "echo", if_busy="wait"))
    for asked in waiting:
        asked.cancel()


async def queue_of_a_socket(house: House, ann: Headers) -> Meeting:
    asked = await live(house, ann)
    async with socket(house.served, headers=ann) as watching:
        yield []
        for _ in range(7):
            await watching.say("query", query="go", if_busy="wait")
        yield await told(watching, 2)
    asked.cancel()


async def full_session(house: House, ann: Headers) -> Meeting:
    FILLER.may_go_on = asyncio.Event()
    FILLER.may_go_on.set()
    await post(house, ann, "filler")
    async with socket(house.served, headers=ann) as watching:
        yield []
        await watching.say("query", query="go")
        yield [*refused(await post(house, ann, "filler")), *await told(watching)]


async def full_session_in_the_queue(house: House, ann: Headers) -> Meeting:
    """The answer of a request that waits has begun, so that its stream has to tell."""
    FILLER.may_go_on = asyncio.Event()
    asked = await live(house, ann, "filler")
    body = asking("go", agent="filler", session_id="s", if_busy="wait")
    waits = house.served.stream("POST", "/chat/stream", json=body, headers=ann)
    stream = asyncio.create_task(collect(waits))
    await eventually(lambda: house.served.runtime.sessions.queued == 1)
    yield []
    FILLER.may_go_on.set()
    first = refused(await asked)
    frames = await stream
    assert [frame.type for frame in frames] == ["status", "token", "error", "done"]
    assert frames[-2].data["data"]["code"] == "session_full"
    assert "which is the limit" in frames[-2].data["data"]["message"]
    yield [*first, "session_full"]


async def large_bodies(house: House, ann: Headers) -> Meeting:
    """Bodies that wait for their session, one of which is on a socket, and one more of each kind."""
    asked = await live(house, ann)
    large, text = asking("x" * 6000, agent="patient", session_id="s", if_busy="wait"), "y" * 6000
    waits = asyncio.create_task(house.served.http.post("/chat", json=large, headers=ann))
    await eventually(lambda: house.served.runtime.sessions.queued == 1)
    async with socket(house.served, headers=ann) as watching:
        yield []
        await watching.say("query", query=text, if_busy="wait")
        by_socket = await told(watching)
        yield [
            *by_socket,
            *refused(
                await house.served.http.post("/chat", json=large, headers=ann),
                await house.served.http.post("/chat/stream", json=large, headers=ann),
            ),
        ]
    for task in (asked, waits):
        task.cancel()


async def large_body(house: House, ann: Headers) -> Meeting:
    async with socket(house.served, headers=ann, agent_type="echo") as watching:
        yield []
        await watching.say("query", query="x" * 2000)
        yield [*refused(await post(house, ann, "echo", padding="x" * 2000)), *await told(watching)]


async def many_messages(house: House, ann: Headers) -> Meeting:
    yield []
    body = {"messages": [{"role": "user", "content": "hi"}] * 4}
    yield refused(await house.served.http.post("/chat", json=body, headers=ann))


async def body_that_stops(house: House, ann: Headers) -> Meeting:
    """One that was announced to be longer than it is."""
    headers = {**ann, "content-type": "application/json", "content-length": "100"}
    lines = ["POST /chat HTTP/1.1", "host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    host, port = house.served.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_body, "SILENCE_SECONDS", 0.1)
        yield []
        writer.write("\r\n".join(lines).encode())
        async with asyncio.timeout(20):
            answer = await reader.readuntil(b'"code":"body_timeout"')
        assert answer.startswith(b"HTTP/1.1 408 ")
        yield ["body_timeout"]
    writer.close()


def failing(agent: str) -> Callable[[House, Headers], Meeting]:
    """A run that meets the limit, as a whole answer and as a stream. Each is counted once, however many are told."""

    async def meet(house: House, ann: Headers) -> Meeting:
        FILLER.may_go_on = asyncio.Event()
        FILLER.may_go_on.set()
        yield []
        whole = refused(await post(house, ann, agent, "one"))
        body = asking("go", agent=agent, session_id="two")
        frames = await collect(house.served.stream("POST", "/chat/stream", json=body, headers=ann))
        yield [*whole, *(frame.data["data"]["code"] for frame in frames if frame.type == "error")]

    return meet


CASES = [
    Case("too_many_requests", requests, {"requests_per_minute": 3}),
    Case("too_many_requests", handshakes, {"requests_per_minute": 3}),
    Case("too_many_requests", messages, {"requests_per_minute": 3}),
    Case("too_many_runs", runs, {"runs_per_user": 1}),
    Case("too_many_runs", runs_on_a_socket, {"runs_per_user": 1}),
    Case("too_many_sessions", sessions, {"sessions_per_user": 1}),
    Case("too_many_streams", streams, {"streams_per_user": 1}),
    Case("queue_full", queue, {}),
    Case("queue_full", queue_of_a_socket, {}),
    Case("session_full", full_session, {"session_bytes": ROOM}),
    Case("session_full", full_session_in_the_queue, {"session_bytes": ROOM}),
    Case("body_too_large", large_body, {"body_bytes": 1000, "message_bytes": 1000}),
    Case("too_many_bytes", large_bodies, {"request_bytes_per_user": 10_000}),
    Case("body_timeout", body_that_stops, {}),
    Case("too_many_messages", many_messages, {"request_messages": 3}),
    Case("log_full", failing("filler"), {"session_bytes": ROOM}),
    Case("run_timeout", failing("patient"), {"run_seconds": 0.1}),
    Case("silence_timeout", failing("silent"), {"silence_seconds": 0.1}),
]
