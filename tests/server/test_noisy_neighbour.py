"""One user at all her limits at once: she is refused, and runs of another user are not affected.

`make bench` measures how fast that is; the time limits here allow for a busy machine.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from limelight.events import ToolFinished, ToolStarted
from limelight.messages import Message
from limelight.sources.base import Context, Item
from limelight.stores.sqlite import queries
from tests.server.keyed_server import Users, serving_users
from tests.server.v2.socket_client import socket
from tests.support.agents import WORDS, talker
from tests.support.server import Frame, asking, collect, text_of
from tests.support.wait import eventually

RUNS, STREAMS, REQUESTS = 3, 6, 40
RESULT = 4 * 1024 * 1024
SOON = 10
"""A time limit for a short run."""


async def flooder(messages: list[Message], ctx: Context) -> AsyncIterator[str | Item]:
    """Emits text without end, and a large result for every thousand words."""
    for number in range(1_000_000):
        yield ToolStarted(call_id=f"c{number}", name="dump", args={})
        yield ToolFinished(call_id=f"c{number}", result="x" * RESULT)
        for _ in range(1000):
            yield "word "
            await asyncio.sleep(0.001)


async def exceed_limits(users: Users) -> None:
    """Ann requests a run and a stream beyond her limits, which are refused."""
    run = await users.ask(users.ann, "new", "talker")
    async with users.served.http.stream("GET", "/sessions/s0/stream", headers=users.ann) as last:
        assert last.status_code == 200
        stream = await users.served.http.get("/sessions/s0/stream", headers=users.ann)
    assert [refusal(run), refusal(stream)] == ["too_many_runs", "too_many_streams"]


async def run_of_ben(users: Users) -> list[Frame]:
    """The frames of a complete run of ben."""
    async with asyncio.timeout(SOON):
        return await collect(users.stream(users.ben, "mine", "talker"))


def refusal(reply: httpx.Response) -> str:
    """The code of a refusal, which has a `retry_after`."""
    assert reply.status_code == 429, reply.text
    assert reply.json()["retry_after"] == int(reply.headers["retry-after"]) >= 1
    return reply.json()["code"]


@asynccontextmanager
async def at_limits(data: Path) -> AsyncGenerator[Users]:
    """Ann has all of her runs, and all but one of her streams and sockets, and reads none of them."""
    limits = {"runs_per_user": RUNS, "streams_per_user": STREAMS + 1, "requests_per_minute": REQUESTS}
    async with serving_users(data, talker, flooder, **limits) as users, AsyncExitStack() as stack:
        served = users.served
        for number in range(RUNS):
            body = asking("hi", session_id=f"s{number}", agent="flooder")
            asked = served.http.stream("POST", "/chat/stream", json=body, headers=users.ann)
            assert (await stack.enter_async_context(asked)).status_code == 200
        for number in range(STREAMS - RUNS):
            deaf = await stack.enter_async_context(socket(served, f"s{number}", headers=users.ann))
            stack.callback(deaf.connection.transport.abort)  # it would not read a close frame
        await eventually(lambda: served.runtime.hub.viewers_of("ann") == STREAMS)
        yield users


def check_complete(frames: list[Frame]) -> None:
    """Check that the frames are a complete run of the talker, in order."""
    assert text_of(frames) == "".join(WORDS)
    seqs = [int(frame.id.partition(".")[0]) for frame in frames if frame.id]
    assert seqs == sorted(set(seqs))
    assert frames[-1].type == "done"


@pytest.mark.requirement("limits")
async def test_user_at_her_limits_is_refused_and_others_are_not_affected(tmp_path: Path) -> None:
    async with at_limits(tmp_path) as users:
        await exceed_limits(users)
        check_complete(await run_of_ben(users))
        asking_on = [users.served.http.get("/sessions", headers=users.ann) for _ in range(2 * REQUESTS + 1)]
        replies, frames = await asyncio.gather(asyncio.gather(*asking_on), run_of_ben(users))
        check_complete(frames)
        refused = [reply for reply in replies if reply.status_code != 200]
        assert refused
        assert {refusal(reply) for reply in refused} == {"too_many_requests"}
        check_complete(await run_of_ben(users))


@pytest.mark.parametrize("how", ["tools", "approvals", "sockets", "streams"])
async def test_long_reads_of_one_user_occupy_one_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Reads of ann's log are blocked by the test. The store has two readers, and she occupies one."""
    async with serving_users(tmp_path, talker) as users:
        served = users.served
        begun = await collect(users.stream(users.ann, "s", "talker"))
        run_id = (await served.http.get("/sessions/s", headers=users.ann)).json()["run_id"]
        paths = {"tools": f"/runs/{run_id}/tools/no{{}}", "approvals": f"/runs/{run_id}/approvals/no{{}}"}
        paths["streams"] = f"/runs/{run_id}/stream?after=0&n={{}}"
        async with AsyncExitStack() as stack:
            sockets = [await stack.enter_async_context(socket(served, "s", headers=users.ann)) for _ in range(4)]
            for ws in sockets:
                await ws.receive()
            reads = BlockedReads(monkeypatch, "ann", run_id)
            asked: list[asyncio.Task[httpx.Response]] = []
            if how == "sockets":
                for ws in sockets:
                    await ws.send("approve", approval_id="no")
            else:
                get = served.http.get
                asked += [asyncio.create_task(get(paths[how].format(n), headers=users.ann)) for n in range(12)]
                stack.push_async_callback(asyncio.wait, asked)
            stack.callback(reads.end.set)
            await eventually(lambda: reads.reading)
            for _ in range(2):
                check_complete(await run_of_ben(users))
            assert (reads.reading, reads.most) == (1, 1)
            reads.end.set()
            if how == "sockets":
                assert {(await ws.error())[1] for ws in sockets} == {"not_processing"}
            else:
                replies = await asyncio.gather(*asked)
                assert {reply.status_code for reply in replies} == {200 if how == "streams" else 404}
                if how == "streams":
                    assert all(begun[-2].id in reply.text for reply in replies)


class BlockedReads:
    """Blocks reads of one user's log until `end` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: str, run_id: str) -> None:
        self.end = threading.Event()
        self.reading = self.most = 0
        self._counting = threading.Lock()
        for name in ("records", "records_naming"):
            monkeypatch.setattr(queries, name, partial(self._read, getattr(queries, name), (owner, run_id)))

    def _read(self, read: Callable[..., Any], of: tuple[str, str], *args: Any, **named: Any) -> Any:
        owner, run_id = of
        if named.get("run_id") != run_id and not any(getattr(one, "owner", "") == owner for one in args):
            return read(*args, **named)
        with self._counting:
            self.reading += 1
            self.most = max(self.most, self.reading)
        assert self.end.wait(30)
        with self._counting:
            self.reading -= 1
        return read(*args, **named)
