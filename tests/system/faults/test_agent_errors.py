"""Agents that raise any exception, anywhere: their run fails once, with a code, and others are not affected."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from limelight.events import ToolStarted
from tests.support.server import collect, text_of
from tests.system.faults.in_process_server import ending, misbehaving

Raise = Callable[[], BaseException]


class OfItsOwn(BaseException):
    """An exception that is not an Exception."""


class Unspeakable(Exception):
    """Raises in `str` and `repr`."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


KINDS: dict[str, Raise] = {
    "exception": lambda: ValueError("no"),
    "without words": ValueError,
    "many words": lambda: ValueError("x" * 5_000_000),
    "surrogates": lambda: ValueError("\ud800 half"),
    "unspeakable": Unspeakable,
    "exit": lambda: SystemExit(3),
    "interrupt": KeyboardInterrupt,
    "cancelled": asyncio.CancelledError,
    "generator exit": GeneratorExit,
    "stop": StopIteration,
    "stop async": StopAsyncIteration,
    "memory": MemoryError,
    "recursion": RecursionError,
    "timeout": TimeoutError,
    "of its own": OfItsOwn,
    "group": lambda: ExceptionGroup("two", [ValueError("a"), TypeError("b")]),
    "base group": lambda: BaseExceptionGroup("two", [SystemExit(1), OfItsOwn()]),
}


def raising(error: Raise) -> list[Callable[..., Any]]:
    """Agents that raise this error, each in another place."""

    async def at_once(messages: object, ctx: object) -> AsyncIterator[str]:
        raise error()
        yield "never"

    async def in_the_middle(messages: object, ctx: object) -> AsyncIterator[object]:
        yield "So far"
        yield ToolStarted(call_id="c", name="crash", args={})
        raise error()

    async def in_finally(messages: object, ctx: object) -> AsyncIterator[object]:
        try:
            yield "So far"
            yield object()  # is refused, so that the generator is closed
        finally:
            raise error()

    def in_a_thread(messages: object, ctx: object) -> Iterator[str]:
        yield "So far"
        raise error()

    async def in_a_coroutine(messages: object, ctx: object) -> str:
        raise error()

    async def in_a_task(messages: object, ctx: object) -> AsyncIterator[str]:
        yield "So far"
        await asyncio.create_task(fail())

    async def fail() -> None:
        raise error()

    return [at_once, in_the_middle, in_finally, in_a_thread, in_a_coroutine, in_a_task]


@pytest.mark.requirement("agent-error")
@pytest.mark.parametrize("kind", KINDS)
async def test_exception_of_an_agent_fails_its_run_only(tmp_path: Path, kind: str) -> None:
    ways = raising(KINDS[kind])
    if kind in ("exit", "interrupt"):
        ways.pop()  # it would stop the loop of the test; test_agent_exit.py does this in a process
    async with misbehaving(*ways, data=tmp_path / "data") as served:
        for agent in (way.__name__ for way in ways):
            for _ in range(2):
                found = await collect(served.ask("go", agent=agent, session_id=agent))
                assert ending(found)[0] == "error", agent
                assert ending(found)[1] in ("agent_error", "bad_event"), agent
                assert text_of(found) == ("" if agent in ("at_once", "in_a_coroutine") else "So far"), agent
