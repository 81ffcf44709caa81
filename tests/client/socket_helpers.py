"""Reads items of a socket up to a condition or the end of a run, and checks streamed texts."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from limelight.client import Gap, Message, Socket, State

T = TypeVar("T")
SECONDS = 30


async def read_until(socket: Socket[T], condition: Callable[[T | State | Gap], object]) -> list[T | State | Gap]:
    """Read items up to and including the first that meets the condition."""
    found: list[T | State | Gap] = []
    async with asyncio.timeout(SECONDS):
        async for item in socket:
            found.append(item)
            if condition(item):
                break
    return found


def is_end(item: object) -> bool:
    return isinstance(item, State) and not item.live


async def read_run(socket: Socket[T], run_id: str = "") -> list[T | State | Gap]:
    """Read items up to the state at the end of a run."""
    return await read_until(socket, lambda item: is_end(item) and run_id in ("", getattr(item, "run_id", "")))


def messages(items: list[Any]) -> list[Message]:
    return [item for item in items if isinstance(item, Message)]


def states(items: list[Any]) -> list[str]:
    return [item.state for item in items if isinstance(item, State)]


def complete(items: list[Any]) -> list[Message]:
    return [message for message in messages(items) if message.whole]


def assert_deltas_complete(items: list[Any]) -> int:
    """Assert that the deltas of each text add up to its complete message; return the number of streamed texts."""
    streaming: dict[str, str] = {}
    count = 0
    for message in messages(items):
        metadata, message_id = message.metadata, message.message_id
        if metadata.get("is_initial_stream"):
            assert message_id not in streaming, f"{message_id} began twice"
            streaming[message_id] = ""
        elif metadata.get("is_delta"):
            streaming[message_id] += message.content
        elif message_id in streaming:
            assert streaming.pop(message_id) == message.content
            count += 1
    assert not streaming
    return count
