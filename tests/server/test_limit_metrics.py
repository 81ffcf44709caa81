"""Every limit, exceeded over HTTP, on a stream and on a socket: each refusal is counted once in the metrics."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from limelight.errors import all_errors
from limelight.events import AnyEvent, ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.server import request_body
from limelight.sources.base import Context
from tests.server.keyed_server import Headers, KeyedServer, handshake, serving_keys
from tests.server.prometheus import MetricsReader
from tests.server.raw_connection import connected
from tests.server.v2.socket_client import Socket, socket
from tests.support import agents
from tests.support.server import asking, collect, offer
from tests.support.wait import eventually

SESSION_BYTES = 50_000
TRIES = 5
"""More requests than the limit of 3."""
Attempt = AsyncIterator[list[str]]
"""Yields an empty list when it is prepared, and then the codes of the refusals."""


class Case(NamedTuple):
    """One way to exceed a limit."""

    code: str
    attempt: Callable[[KeyedServer, Headers], Attempt]
    settings: dict[str, Any]


class Filler:
    """An agent that waits for `may_continue`, and then emits more than the session may hold."""

    may_continue: asyncio.Event

    async def run(self, messages: list[Message], ctx: Context) -> AsyncIterator[AnyEvent]:
        yield ToolStarted(call_id="c", name="fetch", args={})
        await self.may_continue.wait()
        yield ToolFinished(call_id="c", result=secrets.token_hex(8 * SESSION_BYTES))
        await asyncio.sleep(3600)


FILLER = Filler()


async def silent(messages: list[Message], ctx: Context) -> AsyncIterator[str]:
    """Emits nothing."""
    await asyncio.sleep(3600)
    yield ""


def refused(*replies: httpx.Response) -> list[str]:
    return [reply.json()["code"] for reply in replies if not reply.is_success]


async def post(keyed: KeyedServer, headers: Headers, agent: str, session_id: str = "s", **body: Any) -> httpx.Response:
    return await keyed.served.http.post(
        "/chat", json=asking("go", agent=agent, session_id=session_id, **body), headers=headers
    )


async def live(keyed: KeyedServer, headers: Headers, agent: str = "patient") -> "asyncio.Task[Any]":
    """Start a run in the session `s` that stays live."""
    count = keyed.served.runtime.sessions.count
    asked = asyncio.create_task(post(keyed, headers, agent))
    await eventually(lambda: keyed.served.runtime.sessions.count == count + 1)
    return asked


async def error_codes(ws: Socket, count: int = 1) -> list[str]:
    return [(await ws.error())[1] for _ in range(count)]


async def requests(keyed: KeyedServer, ann: Headers) -> Attempt:
    yield []
    yield refused(*[await keyed.served.http.get("/agents", headers=ann) for _ in range(TRIES)])


async def handshakes(keyed: KeyedServer, ann: Headers) -> Attempt:
    yield []
    statuses = [await handshake(keyed.served, ann) for _ in range(TRIES)]
    yield ["too_many_requests"] * statuses.count(429)


async def messages(keyed: KeyedServer, ann: Headers) -> Attempt:
    async with socket(keyed.served, headers=ann, agent_type="patient") as ws:
        await ws.receive()
        yield []
        for _ in range(TRIES):
            await ws.send("get_state")
        replies = [await ws.receive() for _ in range(TRIES)]
        yield [reply["error_code"] for reply in replies if reply["type"] == "error"]


async def runs(keyed: KeyedServer, ann: Headers) -> Attempt:
    asked = await live(keyed, ann)
    yield []
    body = asking("go", agent="patient", session_id="t")
    yield refused(
        await post(keyed, ann, "patient", "t"),
        await keyed.served.http.post("/chat/stream", json=body, headers=ann),
    )
    asked.cancel()


async def runs_on_a_socket(keyed: KeyedServer, ann: Headers) -> Attempt:
    asked = await live(keyed, ann)
    async with socket(keyed.served, "t", headers=ann, agent_type="patient") as ws:
        yield []
        await ws.send("query", query="go")
        yield await error_codes(ws)
    asked.cancel()


async def sessions(keyed: KeyedServer, ann: Headers) -> Attempt:
    await post(keyed, ann, "echo")
    yield []
    async with socket(keyed.served, "t", headers=ann) as ws:
        yield [*refused(await post(keyed, ann, "echo", "t")), *await error_codes(ws)]


async def streams(keyed: KeyedServer, ann: Headers) -> Attempt:
    async with socket(keyed.served, headers=ann, agent_type="echo") as ws:
        await ws.receive()
        yield []
        async with socket(keyed.served, headers=ann) as second:
            yield [
                *refused(await keyed.served.http.get("/sessions/s/stream", headers=ann)),
                *await error_codes(second),
            ]


async def connections(keyed: KeyedServer, ann: Headers) -> Attempt:
    asked = await live(keyed, ann)
    yield []
    yield refused(await keyed.served.http.get("/agents", headers=ann))
    asked.cancel()


async def queue(keyed: KeyedServer, ann: Headers) -> Attempt:
    waiting = [await live(keyed, ann)]
    waiting += [asyncio.create_task(post(keyed, ann, "echo", if_busy="wait")) for _ in range(5)]
    await eventually(lambda: len(keyed.served.runtime.queues) == 5)
    yield []
    yield refused(await post(keyed, ann, "echo", if_busy="wait"))
    for asked in waiting:
        asked.cancel()


async def queue_of_a_socket(keyed: KeyedServer, ann: Headers) -> Attempt:
    asked = await live(keyed, ann)
    async with socket(keyed.served, headers=ann) as ws:
        yield []
        for _ in range(7):
            await ws.send("query", query="go", if_busy="wait")
        yield await error_codes(ws, 2)
    asked.cancel()


async def full_session(keyed: KeyedServer, ann: Headers) -> Attempt:
    FILLER.may_continue = asyncio.Event()
    FILLER.may_continue.set()
    await post(keyed, ann, "filler")
    async with socket(keyed.served, headers=ann) as ws:
        yield []
        await ws.send("query", query="go")
        yield [*refused(await post(keyed, ann, "filler")), *await error_codes(ws)]


async def full_session_in_the_queue(keyed: KeyedServer, ann: Headers) -> Attempt:
    """The response of a queued request has begun, so the refusal is sent in its stream."""
    FILLER.may_continue = asyncio.Event()
    asked = await live(keyed, ann, "filler")
    body = asking("go", agent="filler", session_id="s", if_busy="wait")
    waits = keyed.served.stream("POST", "/chat/stream", json=body, headers=ann)
    stream = asyncio.create_task(collect(waits))
    await eventually(lambda: len(keyed.served.runtime.queues) == 1)
    yield []
    FILLER.may_continue.set()
    first = refused(await asked)
    frames = await stream
    assert [frame.type for frame in frames] == ["status", "token", "error", "done"]
    assert frames[-2].data["data"]["code"] == "session_full"
    assert "and its limit is" in frames[-2].data["data"]["message"]
    yield [*first, "session_full"]


async def large_bodies(keyed: KeyedServer, ann: Headers) -> Attempt:
    """Large bodies that are queued, over HTTP and on a socket, and one more of each kind."""
    asked = await live(keyed, ann)
    large, text = asking("x" * 6000, agent="patient", session_id="s", if_busy="wait"), "y" * 6000
    waits = asyncio.create_task(keyed.served.http.post("/chat", json=large, headers=ann))
    await eventually(lambda: len(keyed.served.runtime.queues) == 1)
    async with socket(keyed.served, headers=ann) as ws:
        yield []
        await ws.send("query", query=text, if_busy="wait")
        by_socket = await error_codes(ws)
        yield [
            *by_socket,
            *refused(
                await keyed.served.http.post("/chat", json=large, headers=ann),
                await keyed.served.http.post("/chat/stream", json=large, headers=ann),
            ),
        ]
    for task in (asked, waits):
        task.cancel()


async def large_body(keyed: KeyedServer, ann: Headers) -> Attempt:
    async with socket(keyed.served, headers=ann, agent_type="echo") as ws:
        yield []
        await ws.send("query", query="x" * 2000)
        yield [*refused(await post(keyed, ann, "echo", padding="x" * 2000)), *await error_codes(ws)]


async def many_messages(keyed: KeyedServer, ann: Headers) -> Attempt:
    yield []
    body = {"messages": [{"role": "user", "content": "hi"}] * 4}
    yield refused(await keyed.served.http.post("/chat", json=body, headers=ann))


async def body_that_stops(keyed: KeyedServer, ann: Headers) -> Attempt:
    """A body that is shorter than its content-length."""
    headers = {**ann, "content-type": "application/json", "content-length": "100"}
    lines = ["POST /chat HTTP/1.1", "host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    async with connected(keyed.served) as wire:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(request_body, "SILENCE_SECONDS", 0.1)
            yield []
            wire.writer.write("\r\n".join(lines).encode())
            assert (await wire.answer())[0] == 408
        yield ["body_timeout"]


def failing(agent: str) -> Callable[[KeyedServer, Headers], Attempt]:
    """A run that exceeds the limit, as a complete answer and as a stream. Each run is counted once."""

    async def attempt(keyed: KeyedServer, ann: Headers) -> Attempt:
        FILLER.may_continue = asyncio.Event()
        FILLER.may_continue.set()
        yield []
        whole = refused(await post(keyed, ann, agent, "one"))
        body = asking("go", agent=agent, session_id="two")
        frames = await collect(keyed.served.stream("POST", "/chat/stream", json=body, headers=ann))
        yield [*whole, *(frame.data["data"]["code"] for frame in frames if frame.type == "error")]

    return attempt


CASES = [
    Case("too_many_requests", requests, {"requests_per_minute": 3}),
    Case("too_many_requests", handshakes, {"requests_per_minute": 3}),
    Case("too_many_requests", messages, {"requests_per_minute": 3}),
    Case("too_many_runs", runs, {"runs_per_user": 1}),
    Case("too_many_runs", runs_on_a_socket, {"runs_per_user": 1}),
    Case("too_many_sessions", sessions, {"sessions_per_user": 1}),
    Case("too_many_streams", streams, {"streams_per_user": 1}),
    Case("too_many_connections", connections, {"connections_per_user": 1}),
    Case("queue_full", queue, {}),
    Case("queue_full", queue_of_a_socket, {}),
    Case("session_full", full_session, {"session_bytes": SESSION_BYTES}),
    Case("session_full", full_session_in_the_queue, {"session_bytes": SESSION_BYTES}),
    Case("body_too_large", large_body, {"body_bytes": 1000, "message_bytes": 1000}),
    Case("too_many_bytes", large_bodies, {"request_bytes_per_user": 10_000}),
    Case("body_timeout", body_that_stops, {}),
    Case("too_many_messages", many_messages, {"request_messages": 3}),
    Case("log_full", failing("filler"), {"session_bytes": SESSION_BYTES}),
    Case("run_timeout", failing("patient"), {"run_seconds": 0.1}),
    Case("silence_timeout", failing("silent"), {"silence_seconds": 0.1}),
]


@pytest.mark.requirement("limits")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}-{case.attempt.__name__}")
async def test_refusal_by_a_limit_is_counted_once(tmp_path: Path, case: Case) -> None:
    served_agents = [offer(FILLER.run, "filler")]
    settings = {f"limits__{name}": value for name, value in case.settings.items()}
    async with serving_keys(tmp_path, agents.echo, agents.patient, silent, agents=served_agents, **settings) as keyed:
        ann, metrics = keyed.headers("ann"), MetricsReader(keyed.served, keyed.headers("root", "admin"))
        attempt = case.attempt(keyed, ann)
        assert await anext(attempt) == []
        await metrics.read()
        codes = await anext(attempt)
        assert case.code in codes
        assert await metrics.changed("limelight_limit_hits_total") == {
            f"limelight_limit_hits_total{{code={code}}}": count for code, count in Counter(codes).items()
        }
        async for _ in attempt:
            raise AssertionError("an attempt yields twice")


def test_every_limit_has_a_case() -> None:
    assert {case.code for case in CASES} == {error.code for error in all_errors() if error.is_limit}
