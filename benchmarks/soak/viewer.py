"""One client of the soak test: reads numbers from the raw bytes of its streams, and counts missing and doubled ones."""

import asyncio
import random
import re
import time
from typing import cast

from benchmarks.soak.server import LoadReport

NUMBER = re.compile(rb"~(\d+):(\d+)~")
ID = re.compile(rb"(?:^|\n)id: (\S+)")
MAX_SAMPLES = 2000
"""Maximum number of latencies in one report."""


class Sequence:
    """The numbers that one client receives over all its connections. Counts missing and repeated ones."""

    def __init__(self) -> None:
        self.next = 0
        self.last_id = "0"

    def feed(self, frames: bytes, connected_at: int, report: LoadReport) -> None:
        """Count the numbers of complete frames. Numbers due before `connected_at` do not count for the latency."""
        now = time.monotonic_ns()
        for found, due_at in NUMBER.findall(frames):
            number = int(found)
            if number > self.next:
                report.lost += number - self.next
            if number < self.next:
                report.doubled += 1
                continue
            self.next = number + 1
            report.numbers += 1
            if int(due_at) >= connected_at:
                add_sample(report.latencies, (now - int(due_at)) / 1e6)
        if ids := ID.findall(frames):
            self.last_id = ids[-1].decode()


def add_sample(samples: list[float], value: float) -> None:
    """Add a value to the samples. Beyond MAX_SAMPLES, a tenth of the values replace random samples."""
    if len(samples) < MAX_SAMPLES:
        samples.append(value)
    elif random.random() < 0.1:
        samples[random.randrange(MAX_SAMPLES)] = value


class Reporter:
    """Collects the counts of all connections in the report of the current second."""

    def __init__(self) -> None:
        self.report = LoadReport()

    def take(self) -> LoadReport:
        """Return the current report and begin a new one."""
        taken, self.report = self.report, LoadReport()
        return taken


class Connection(asyncio.Protocol):
    """One connection of a client, from its request until either side closes it."""

    def __init__(self, request: bytes, sequence: Sequence, reporter: Reporter) -> None:
        self._request = request
        self._sequence = sequence
        self._reporter = reporter
        self._connected_at = time.monotonic_ns()
        self._incomplete = b""
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.answered.done():
            self.answered.set_result(None)
        frames, end, self._incomplete = (self._incomplete + data).rpartition(b"\n\n")
        if end:
            self._sequence.feed(frames, self._connected_at, self._reporter.report)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
