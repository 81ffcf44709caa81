"""What tests do with a session's socket: listen to one turn, put texts that grow together."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from limelight.client import Gap, Message, Socket, State

T = TypeVar("T")
SECONDS = 30


async def until(socket: Socket[T], seen: Callable[[T | State | Gap], object]) -> list[T | State | Gap]:
    """Items up to and with the first that fits."""
    found: list[T | State | Gap] = []
    async with asyncio.timeout(SECONDS):
        async for item in socket:
            found.append(item)
            if seen(item):
                break
    return found


def over(item: object) -> bool:
    return isinstance(item, State) and not item.live


async def turn(socket: Socket[T], run_id: str = "") -> list[T | State | Gap]:
    """Items up to the state behind a run."""
    return await until(socket, lambda item: over(item) and run_id in ("", getattr(item, "run_id", "")))


def messages(items: list[Any]) -> list[Message]:
    return [item for item in items if isinstance(item, Message)]


def states(items: list[Any]) -> list[str]:
    return [item.state for item in items if isinstance(item, State)]


def whole(items: list[Any]) -> list[Message]:
    return [message for message in messages(items) if message.whole]


def check_texts(items: list[Any]) -> int:
    """Increments must add up to the whole that follows them; returns how many texts grew."""
    growing: dict[str, str] = {}
    grown = 0
    for message in messages(items):
        metadata, name = message.metadata, message.message_id
        if metadata.get("is_initial_stream"):
            assert name not in growing, f"{name} began twice"
            growing[name] = ""
        elif metadata.get("is_delta"):
            growing[name] += message.content
        elif name in growing:
            assert growing.pop(name) == message.content
            grown += 1
    assert not growing
    return grown
