"""Invalid values and events of an agent are converted, or the run fails with `bad_event`; it ends once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from limelight import events
from limelight.sources.base import FileMade
from tests.support.server import collect
from tests.system.faults.in_process_server import ending, misbehaving

Json = Any
FINE, REFUSED = "", "error"
MANY = 2_000_000


def recursive() -> Json:
    found: list[Any] = [1]
    found.append({"again": found})
    return found


def deep() -> Json:
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return found


class Stubborn:
    """Raises in `repr`."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


VALUES: dict[str, Callable[[], Json]] = {
    "not a number": lambda: {"a": float("nan"), "b": [float("inf"), -float("inf")]},
    "surrogates": lambda: {"half \ud83d": "\udc00 text", "list": ["\ud800"]},
    "bytes": lambda: b"\xff\xfe\x00",
    "recursive": recursive,
    "deep": deep,
    "keys": lambda: {1: "a", None: "b", (1, 2): "c", b"\xff": "d"},
    "sets and types": lambda: {"set": {1}, "type": int, "more": ..., "function": len},
    "without words": Stubborn,
    "huge number": lambda: 10**5000,
    "huge text": lambda: "ä" * MANY,
    "huge list": lambda: list(range(300_000)),
    "nothing but control": lambda: "\x00\r\n\n\x1b[2J data: x\n\n",
}
"""Results, arguments and answers that JSON cannot express."""


@pytest.mark.requirement("invalid-events")
@pytest.mark.parametrize("name", VALUES)
async def test_value_that_json_cannot_express_is_converted(tmp_path: Path, name: str) -> None:
    value = VALUES[name]

    async def values(messages: object, ctx: object) -> AsyncIterator[object]:
        yield events.ToolStarted(call_id="c", name="odd", args={"value": value()})
        yield events.ToolFinished(call_id="c", result=value())
        yield events.FinalAnswer(content=value())

    async def answers(messages: object, ctx: object) -> object:
        return value()

    def threads(messages: object, ctx: object) -> Iterator[object]:
        yield events.ToolStarted(call_id="c", name="odd", args={"value": value()})
        yield events.ToolFinished(call_id="c", result=value())

    async with misbehaving(values, answers, threads, data=tmp_path / "data") as served:
        for agent in ("values", "answers", "threads"):
            found = await collect(served.ask("go", agent=agent))
            assert ending(found) == (FINE, ""), (agent, found[-2])


def tool(call_id: Any = "c", **fields: Any) -> Any:
    return events.ToolStarted(call_id=call_id, name=fields.pop("name", "t"), args=fields.pop("args", {}), **fields)


STREAMS: dict[str, tuple[str, list[Any]]] = {
    "a number": (REFUSED, [1]),
    "bytes": (REFUSED, [b"\xff"]),
    "a dict": (REFUSED, [{"type": "token"}]),
    "a class": (REFUSED, [events.TextDelta]),
    "a coroutine function": (REFUSED, [asyncio.sleep]),
    "a list of events": (REFUSED, [[events.Status(text="x")]]),
    "nothing": (FINE, [None, "", None]),
    "a text that is a number": (REFUSED, [events.TextDelta(message_id="m", text=5)]),  # pyright: ignore[reportArgumentType]
    "a text of None": (REFUSED, [events.TextDelta(message_id="m", text=None)]),  # pyright: ignore[reportArgumentType]
    "an id that is a list": (REFUSED, [events.TextDelta(message_id=["m"], text="x")]),  # pyright: ignore[reportArgumentType]
    "a name that is a number": (REFUSED, [tool(name=7)]),
    "a call whose id is a number": (REFUSED, [tool(7)]),
    "surrogates in texts": (FINE, ["\ud800", "x", events.Status(text="\udfff"), "\udc00"]),
    "surrogates in ids": (FINE, [tool("\ud800"), events.ToolFinished(call_id="\ud800", result="x")]),
    "an end without a start": (REFUSED, [events.ToolFinished(call_id="nobody", result="x")]),
    "an output without a start": (REFUSED, [events.ToolOutputDelta(call_id="nobody", text="x")]),
    "an agent that never began": (REFUSED, [events.AgentFinished(agent_id="nobody")]),
    "a text of an agent that never began": (REFUSED, [events.TextDelta(agent_id="nobody", message_id="m", text="x")]),
    "a call that ends twice": (REFUSED, [tool(), *[events.ToolFinished(call_id="c", result="x")] * 2]),
    "a text that ends twice": (
        REFUSED,
        [events.TextDelta(message_id="m", text="x"), *[events.TextFinished(message_id="m")] * 2],
    ),
    "a run in the run": (REFUSED, [events.RunStarted(agent="x")]),
    "a decision without a request": (REFUSED, [events.ApprovalResolved(approval_id="a", decision="approve")]),
    "an agent inside itself": (REFUSED, [events.AgentStarted(agent_id="a", name="a", parent_id="a")]),
    "more behind the end": (FINE, ["x", events.RunFinished(), "y", 5, tool()]),
    "two ends": (FINE, ["x", events.RunFinished(), events.RunFinished(), events.RunFailed(code="x", message="y")]),
    "calls that stay open": (FINE, [tool("a"), tool("b"), events.AgentStarted(agent_id="s", name="s", call_id="a")]),
    "a file of nothing": (FINE, [FileMade(name="", data=b"", media_type="")]),
    "a file with a bad name": (FINE, [FileMade(name="../../\ud800\x00\n", data=b"x", media_type="text/plain")]),
    "a huge text": (FINE, ["ä" * MANY]),
    "a huge name": (REFUSED, [tool(name="n" * MANY)]),
    "a file with a huge name": (REFUSED, [FileMade(name="n" * MANY, data=b"x")]),
    "a file that is text": (FINE, [FileMade(name="x", data=lambda: "text")]),  # pyright: ignore[reportArgumentType]
    "a file that is nothing": (FINE, [FileMade(name="x", data=lambda: None)]),  # pyright: ignore[reportArgumentType]
    "a file that cannot be read": (FINE, [FileMade(name="x", data=lambda: b"" + bytes([1 // 0]))]),
}
"""The expected end of the run, and the items that the agent yields."""


@pytest.mark.requirement("invalid-events")
@pytest.mark.parametrize("name", STREAMS)
async def test_invalid_events_are_converted_or_fail_the_run(tmp_path: Path, name: str) -> None:
    expected, items = STREAMS[name]

    async def garbage(messages: object, ctx: object) -> AsyncIterator[object]:
        for item in items:
            yield item

    def threads(messages: object, ctx: object) -> Iterator[object]:
        yield from items

    async with misbehaving(garbage, threads, data=tmp_path / "data") as served:
        for agent in ("garbage", "threads"):
            found = await collect(served.ask("go", agent=agent))
            assert ending(found) == (expected, "bad_event" if expected else ""), (agent, found[-2])


async def returns_a_generator(messages: object, ctx: object) -> object:
    async def inner() -> AsyncIterator[str]:
        yield "x"

    return inner()


async def returns_a_future(messages: object, ctx: object) -> object:
    return asyncio.get_running_loop().create_future()


async def returns_nothing(messages: object, ctx: object) -> None:
    return None


async def yields_nothing(messages: object, ctx: object) -> AsyncIterator[str]:
    return
    yield "never"


def returns_at_once(messages: object, ctx: object) -> Iterator[str]:
    return iter(())
    yield "never"


@pytest.mark.requirement("invalid-events")
@pytest.mark.parametrize(
    "agent", [returns_a_generator, returns_a_future, returns_nothing, yields_nothing, returns_at_once]
)
async def test_agent_that_yields_nothing_finishes(tmp_path: Path, agent: Callable[..., Any]) -> None:
    async with misbehaving(agent, data=tmp_path / "data") as served:
        found = await collect(served.ask("go", agent=agent.__name__))
        assert ending(found) == (FINE, "")
