"""Compares Limelight with other servers. The servers take turns, so that changes of the machine affect all of them."""

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple, TypeVar

import msgspec

from benchmarks.load_process import Client, Job, JobKind, JobResult
from benchmarks.server_process import LIMELIGHT, NAMES, Server, cores, workload_server
from benchmarks.workload import AGENTS, TOOLS, tokens_of

T = TypeVar("T")
Log = Callable[[str], None]
"""A function that shows a line of progress."""
OTHER_EVENTS = 3 + 2 * TOOLS + 2 * AGENTS
"""Events besides the tokens: two statuses, start and end of each tool and sub-agent, done."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How many repeats, runs, streams, requests and viewers the comparison of servers measures."""

    repeats: int = 8
    runs: int = 20
    """Number of runs for the rows with one stream at a time."""
    streams: int = 100
    requests: int = 200
    """Number of requests for the rows about the first event."""
    viewers: tuple[int, ...] = (1, 10, 100)
    idle: int = 200
    tokens: int | None = None


QUICK = Plan(repeats=2, runs=10, requests=100)


class Row(NamedTuple):
    """The key of a table row: what is measured, and its unit."""

    what: str
    unit: str


class FigureTable(msgspec.Struct):
    """Figures by row and column, one per repeat. Rows keep the order in which they were added."""

    rows: dict[Row, dict[str, list[float]]] = {}

    def add(self, what: str, unit: str, column: str, value: float) -> None:
        self.rows.setdefault(Row(what, unit), {}).setdefault(column, []).append(value)

    def ratio(self, row: Row, column: str, base: str) -> float | None:
        """Return how large a column is relative to `base`: the median over all repeats; None without figures."""
        by_column = self.rows[row]
        if column not in by_column or base not in by_column:
            return None
        return statistics.median(a / b for a, b in zip(by_column[column], by_column[base], strict=True))


class Figures(FigureTable):
    """The figures of the comparison, by server."""

    joined: float = 0.0
    """The share of Limelight's events that came joined with others, because the writer or the client was behind."""


def quantile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def measure(plan: Plan, log: Log) -> Figures:
    """Measure all servers and return their figures. All processes are ended, also after an error."""
    figures = Figures()
    server_core, client_core = cores()
    with ExitStack() as stack:
        client = stack.enter_context(Client(client_core))
        servers = [stack.enter_context(workload_server(name, server_core, plan.tokens)) for name in NAMES]
        benchmark = ServerBenchmark(plan, client, figures)
        for server in servers:
            benchmark.warm_up(server)
        for repeat in range(plan.repeats):
            began = time.monotonic()
            for measure_row in (
                benchmark.one_stream,
                benchmark.many_streams,
                benchmark.burst,
                benchmark.first_event,
            ):
                for server in _rotated(servers, repeat):
                    measure_row(server)
            benchmark.viewers(servers[NAMES.index(LIMELIGHT)])
            for name in _rotated(NAMES, repeat):
                with workload_server(name, server_core, plan.tokens) as fresh:
                    benchmark.memory(fresh)
            log(f"repeat {repeat + 1} of {plan.repeats}: {time.monotonic() - began:.0f} s")
        figures.joined = benchmark.joined
    return figures


def _rotated(items: Sequence[T], by: int) -> list[T]:
    by %= len(items)
    return [*items[by:], *items[:by]]


class ServerBenchmark:
    """Measures the rows of the table for one server at a time, and collects their figures."""

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
            self._client.run(self._job(server, mode, streams=4))

    def one_stream(self, server: Server) -> None:
        self._add_cpu(server, "CPU per event, 1 stream", self._job(server, "turn", runs=self._plan.runs))

    def many_streams(self, server: Server) -> None:
        count = self._plan.streams
        self._add_cpu(server, f"CPU per event, {count} streams", self._job(server, "turn", streams=count))

    def burst(self, server: Server) -> None:
        self._add_cpu(server, "CPU per event, 1 stream, burst", self._job(server, "burst", runs=self._plan.runs))

    def first_event(self, server: Server) -> None:
        latencies = self._client.run(self._job(server, "short", runs=self._plan.requests)).latencies
        self._figures.add("first event, median", "ms", server.name, quantile(latencies, 50) * 1e3)
        self._figures.add("first event, p99", "ms", server.name, quantile(latencies, 99) * 1e3)

    def viewers(self, server: Server) -> None:
        for count in self._plan.viewers:
            job = self._job(server, "watched", kind="viewers", streams=count)
            cost = second_stage_cpu(server, self._client, job)
            what = f"CPU per delivered event, {count} viewer{'s' if count > 1 else ''} of one run"
            self._figures.add(what, "µs", server.name, cost / event_count(job) * 1e6)

    def memory(self, server: Server) -> None:
        """Measure the memory per stream of a fresh server. Memory freed by earlier streams would hide the growth."""
        self._client.run(self._job(server, "short", streams=20))
        before = server.rss()
        self._client.run(self._job(server, "idle", kind="idle", streams=self._plan.idle))
        growth = server.rss() - before
        self._client.proceed()
        self._figures.add("memory per open stream", "kB", server.name, growth / self._plan.idle / 1024)

    def _add_cpu(self, server: Server, what: str, job: Job) -> None:
        cpu, result = job_cpu(server, self._client, job)
        events = event_count(job)
        if server.name == LIMELIGHT:
            self._events += events
            self._frames += result.frames
        elif result.frames != events:
            raise RuntimeError(f"{server.name}: {result.frames} frames instead of {events}")
        self._figures.add(what, "µs", server.name, cpu / events * 1e6)

    def _job(self, server: Server, mode: str, kind: JobKind = "streams", streams: int = 1, runs: int = 1) -> Job:
        is_fixed = mode in ("short", "idle") or self._plan.tokens is None
        tokens = tokens_of(mode) if is_fixed else self._plan.tokens
        return make_job(server, mode, tokens or 0, kind, streams, runs)


def make_job(server: Server, mode: str, tokens: int, kind: JobKind = "streams", streams: int = 1, runs: int = 1) -> Job:
    return Job(
        kind=kind, port=server.port, path=server.path(mode), mode=mode, tokens=tokens, streams=streams, runs=runs
    )


def event_count(job: Job) -> int:
    """Return the number of events that all streams of a job deliver together."""
    return job.streams * job.runs * (job.tokens + OTHER_EVENTS)


def job_cpu(server: Server, client: Client, job: Job) -> tuple[float, JobResult]:
    """Run a job. Returns the CPU seconds that the server used during the job, and the result of the job."""
    before = server.cpu()
    result = client.run(job)
    return server.cpu() - before, result


def second_stage_cpu(server: Server, client: Client, job: Job) -> float:
    """Run the second stage of a job. Returns the CPU seconds that the server used during it."""
    client.run(job)
    before = server.cpu()
    client.proceed()
    return server.cpu() - before
