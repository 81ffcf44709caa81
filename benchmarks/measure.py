"""What is measured: a figure per cell, server and repeat. The servers take turns, so that drift hits all alike."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple, TypeVar

import msgspec

from benchmarks.client import Client, Job
from benchmarks.server import BARE, LIMELIGHT, NAMES, Server, cores
from benchmarks.workload import AGENTS, TOOLS, tokens_of

T = TypeVar("T")
OTHER_EVENTS = 3 + 2 * TOOLS + 2 * AGENTS
"""Beside the tokens: two statuses, tools and sub-agents with start and end, done."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done in one repeat."""

    repeats: int = 8
    runs: int = 20
    """At one stream at a time."""
    streams: int = 100
    requests: int = 200
    """For the first event."""
    viewers: tuple[int, ...] = (1, 10, 100)
    idle: int = 200
    tokens: int | None = None


QUICK = Plan(repeats=2, runs=10, requests=100)


class Row(NamedTuple):
    """A line of the table: what, in which unit."""

    what: str
    unit: str


class Figures(msgspec.Struct):
    """All figures: by row and server, one per repeat. Rows keep the order in which they came."""

    rows: dict[Row, dict[str, list[float]]] = {}
    joined: float = 0.0
    """The share of Limelight's events that came joined with others, as the writer or the client lagged behind."""

    def add(self, what: str, unit: str, server: str, value: float) -> None:
        self.rows.setdefault(Row(what, unit), {}).setdefault(server, []).append(value)

    def ratio(self, row: Row, server: str, floor: str = BARE) -> float | None:
        """The median of the ratios within each repeat."""
        if server == floor or floor not in self.rows[row]:
            return None
        pairs = zip(self.rows[row][server], self.rows[row][floor], strict=True)
        return statistics.median(a / b for a, b in pairs)


def measure(plan: Plan, say: Callable[[str], None]) -> Figures:
    """Everything. Ends whatever it has started, also when something fails."""
    figures = Figures()
    server_core, client_core = cores()
    with ExitStack() as stack:
        client = stack.enter_context(Client(client_core))
        servers = [stack.enter_context(Server(name, server_core, plan.tokens)) for name in NAMES]
        bench = Bench(plan, client, figures)
        for server in servers:
            bench.warm_up(server)
        for repeat in range(plan.repeats):
            began = time.monotonic()
            for cell in (bench.one_stream, bench.many_streams, bench.burst, bench.first_event):
                for server in _rotated(servers, repeat):
                    cell(server)
            for server in servers:
                if server.name == LIMELIGHT:
                    bench.viewers(server)
            for name in _rotated(list(NAMES), repeat):
                with Server(name, server_core, plan.tokens) as fresh:
                    bench.memory(fresh)
            say(f"repeat {repeat + 1} of {plan.repeats}: {time.monotonic() - began:.0f} s")
        figures.joined = bench.joined
    return figures


def _rotated(things: list[T], by: int) -> Iterator[T]:
    by %= len(things)
    yield from things[by:] + things[:by]


class Bench:
    """The cells. Each puts its figures into `figures`."""

    def __init__(self, plan: Plan, client: Client, figures: Figures) -> None:
        self._plan = plan
        self._client = client
        self._figures = figures
        self._events = 0
        self._frames = 0

    @property
    def joined(self) -> float:
        return 1 - self._frames / self._events if self._events else 0.0

    def warm_up(self, server: Server) -> None:
        for mode in ("turn", "burst", "short"):
            self._client.do(self._job(server, mode, streams=4))

    def one_stream(self, server: Server) -> None:
        self._cpu(server, "CPU per event, 1 stream", self._job(server, "turn", runs=self._plan.runs))

    def many_streams(self, server: Server) -> None:
        count = self._plan.streams
        self._cpu(server, f"CPU per event, {count} streams", self._job(server, "turn", streams=count))

    def burst(self, server: Server) -> None:
        self._cpu(server, "CPU per event, 1 stream, burst", self._job(server, "burst", runs=self._plan.runs))

    def first_event(self, server: Server) -> None:
        outcome = self._client.do(self._job(server, "short", runs=self._plan.requests))
        cuts = statistics.quantiles(outcome.latencies, n=100, method="inclusive")
        self._figures.add("first event, median", "ms", server.name, cuts[49] * 1e3)
        self._figures.add("first event, p99", "ms", server.name, cuts[98] * 1e3)

    def viewers(self, server: Server) -> None:
        for count in self._plan.viewers:
            job = self._job(server, "watched", kind="viewers", streams=count)
            self._client.do(job)
            before = server.cpu()
            self._client.go()
            cpu = server.cpu() - before
            what = f"CPU per delivered event, {count} viewer{'s' if count > 1 else ''} of one run"
            self._figures.add(what, "µs", server.name, cpu / (count * _events(job)) * 1e6)

    def memory(self, server: Server) -> None:
        """Of a server that has done nothing but a few streams, or else freed memory would hide the growth."""
        self._client.do(self._job(server, "short", streams=20))
        before = server.rss()
        self._client.do(self._job(server, "idle", kind="idle", streams=self._plan.idle))
        grown = server.rss() - before
        self._client.go()
        self._figures.add("memory per open stream", "kB", server.name, grown / self._plan.idle / 1024)

    def _cpu(self, server: Server, what: str, job: Job) -> None:
        before = server.cpu()
        outcome = self._client.do(job)
        cpu = server.cpu() - before
        events = job.streams * job.runs * _events(job)
        if server.name == LIMELIGHT:
            self._events += events
            self._frames += outcome.frames
        elif outcome.frames != events:
            raise RuntimeError(f"{server.name}: {outcome.frames} frames instead of {events}")
        self._figures.add(what, "µs", server.name, cpu / events * 1e6)

    def _job(self, server: Server, mode: str, kind: str = "streams", streams: int = 1, runs: int = 1) -> Job:
        short = mode in ("short", "idle")
        tokens = tokens_of(mode) if short or self._plan.tokens is None else self._plan.tokens
        return msgspec.convert(
            {
                "kind": kind,
                "port": server.port,
                "path": server.path(mode),
                "mode": mode,
                "tokens": tokens,
                "streams": streams,
                "runs": runs,
            },
            Job,
        )


def _events(job: Job) -> int:
    return job.tokens + OTHER_EVENTS
