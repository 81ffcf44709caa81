"""One stream of the soak: reads numbers out of the raw bytes, and notices when one is missing or comes again."""

import asyncio
import random
import re
import time
from typing import cast

from benchmarks.soak.protocol import Second

NUMBER = re.compile(rb"~(\d+):(\d+)~")
ID = re.compile(rb"(?:^|\n)id: (\S+)")
SAMPLES = 2000
"""Latencies that are kept of a second."""


class Sequence:
    """What somebody has got so far, over all its connections: the next number that it expects, and its last id."""

    def __init__(self) -> None:
        self.next = 0
        self.last_id = "0"

    def take(self, frames: bytes, since: int, second: Second) -> None:
        """Whole frames. Numbers from before `since` are what was missed meanwhile, and say nothing about latency."""
        now = time.monotonic_ns()
        for found, due_at in NUMBER.findall(frames):
            number = int(found)
            if number > self.next:
                second.lost += number - self.next
            if number < self.next:
                second.doubled += 1
                continue
            self.next = number + 1
            second.numbers += 1
            if int(due_at) >= since:
                sample(second.latencies, (now - int(due_at)) / 1e6)
        if ids := ID.findall(frames):
            self.last_id = ids[-1].decode()


def sample(latencies: list[float], latency: float) -> None:
    """Keep some of many, each with about the same chance."""
    if len(latencies) < SAMPLES:
        latencies.append(latency)
    elif random.random() < 0.1:
        latencies[random.randrange(SAMPLES)] = latency


class Connection(asyncio.Protocol):
    """One connection of a viewer, from its request until somebody ends it."""

    def __init__(self, asked: bytes, sequence: Sequence, second: "Clock") -> None:
        self._asked = asked
        self._sequence = sequence
        self._clock = second
        self._since = time.monotonic_ns()
        self._rest = b""
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._asked)

    def data_received(self, data: bytes) -> None:
        if not self.answered.done():
            self.answered.set_result(None)
        whole, end, rest = (self._rest + data).rpartition(b"\n\n")
        self._rest = rest
        if end:
            self._sequence.take(whole, self._since, self._clock.second)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)


class Clock:
    """The second that counts now, for all viewers."""

    def __init__(self) -> None:
        self.second = Second()

    def turn(self) -> Second:
        """The one that is over."""
        over, self.second = self.second, Second()
        return over
