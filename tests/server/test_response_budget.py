"""Large responses in memory: those that a user does not read are bounded, and other users are not affected."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from limelight.errors import TooManyBytes
from limelight.events import AnyEvent, FinalAnswer, TextDelta, ToolFinished, ToolOutputDelta, ToolStarted
from limelight.messages import Message
from limelight.models import LOCAL_OWNER
from limelight.server import response_budget
from limelight.server.response_budget import MAX_UNREAD_BYTES, ResponseBudget
from limelight.sources.base import Context
from tests.server.keyed_server import serving_users
from tests.server.raw_connection import Wire, connected
from tests.server.v2.socket_client import socket
from tests.support.wait import eventually

LINE = "x" * 50_000
LINES = 240


async def printer(messages: list[Message], ctx: Context) -> AsyncIterator[AnyEvent]:
    """Print much, speak much, and give a large structured answer."""
    yield ToolStarted(call_id="c", name="print", args={})
    for _ in range(LINES):
        yield ToolOutputDelta(call_id="c", text=LINE)
    yield ToolFinished(call_id="c", result="done")
    for number in range(LINES):
        yield TextDelta(message_id=f"m{number}", text=LINE)
    yield FinalAnswer(content={"title": "t", "content": LINE * LINES, "sources": []})


async def test_user_with_unread_responses_gets_no_further_one() -> None:
    budget = ResponseBudget()
    with budget.counted("ann", MAX_UNREAD_BYTES - 1):
        async with budget.one_at_a_time("ann"):
            pass
        with budget.counted("ann", 1):
            with pytest.raises(TooManyBytes):
                await budget.one_at_a_time("ann").__aenter__()
            async with budget.one_at_a_time("ben"):
                pass
        async with budget.one_at_a_time("ann"):
            pass
    assert budget.unread("ann") == 0


async def test_users_without_a_key_have_a_limit_of_their_own() -> None:
    budget = ResponseBudget()
    with budget.counted(LOCAL_OWNER, MAX_UNREAD_BYTES):
        async with budget.one_at_a_time(LOCAL_OWNER):
            pass
        with budget.counted(LOCAL_OWNER, 3 * MAX_UNREAD_BYTES), pytest.raises(TooManyBytes):
            await budget.one_at_a_time(LOCAL_OWNER).__aenter__()


async def test_responses_of_a_user_are_built_one_after_another() -> None:
    budget = ResponseBudget()
    order: list[str] = []
    is_free = asyncio.Event()

    async def build(owner: str, name: str) -> None:
        async with budget.one_at_a_time(owner):
            order.append(name)
            await is_free.wait()

    tasks = [asyncio.create_task(build(*who)) for who in (("ann", "a1"), ("ann", "a2"), ("ben", "b"))]
    await eventually(lambda: len(order) == 2)
    assert order == ["a1", "b"]
    is_free.set()
    await asyncio.gather(*tasks)
    assert order == ["a1", "b", "a2"]


async def ask(wire: Wire, path: str, headers: dict[str, str]) -> int:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    wire.writer.write(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{lines}\r\n".encode())
    return int((await wire.reader.readline()).split()[1])


@pytest.mark.requirement("unread-responses")
@pytest.mark.parametrize(
    "path", ["/runs/{run}/tools/c", "/runs/{run}/answer?text=1", "/api/v2/sessions/s/messages?limit=1000"]
)
async def test_unread_large_responses_are_refused_and_can_be_read_later(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_budget, "MAX_UNREAD_BYTES", 10_000_000)
    async with serving_users(tmp_path, printer) as users:
        run_id = (await users.ask(users.ann, "s", "printer")).json()["run_id"]
        path, budget = path.format(run=run_id), users.served.runtime.response_budget
        expected = await users.served.http.get(path, headers=users.ann)
        assert len(expected.content) == int(expected.headers["content-length"]) > 10_000_000
        assert budget.unread("ann") == 0
        async with AsyncExitStack() as stack:
            wire = await stack.enter_async_context(connected(users.served))
            assert await ask(wire, path, users.ann) == 200
            assert budget.unread("ann") == len(expected.content)
            refused = await users.served.http.get(path, headers=users.ann)
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_bytes")
            assert "retry-after" in refused.headers
            assert (await users.served.http.get(f"/runs/{run_id}", headers=users.ann)).status_code == 200
            assert (await users.ask(users.ben, "s", "printer")).status_code == 200
        await eventually(lambda: budget.unread("ann") == 0)
        assert (await users.served.http.get(path, headers=users.ann)).content == expected.content


@pytest.mark.requirement("unread-responses")
async def test_messages_of_a_socket_count_while_they_are_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_budget, "MAX_UNREAD_BYTES", 10_000_000)
    async with serving_users(tmp_path, printer) as users:
        await users.ask(users.ann, "s", "printer")
        budget = users.served.runtime.response_budget
        with budget.counted("ann", 10_000_000):
            async with socket(users.served, "s", headers=users.ann) as ws:
                await ws.send("get_messages", limit=1)
                _, code = await ws.error()
                assert code == "too_many_bytes"
