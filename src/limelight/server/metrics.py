"""The Prometheus metrics of a server: counters and histograms of events, and gauges of the current state.

No label has values that a client can choose. So the metrics identify no user, and clients cannot add series.
"""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from limelight.errors import LimelightError, RequestError, RunError, StoreError, StoreUnavailable, all_errors
from limelight.models import RunState
from limelight.runs.queue import SessionQueues
from limelight.runs.retention_guard import RetentionGuard
from limelight.runs.stop_and_approvals import Control
from limelight.server.open_streams import Kind, OpenStreams
from limelight.server.process.connection_table import ConnectionTable, Reason
from limelight.stores.base import Store

CODES = frozenset(error.code for error in all_errors())
LIMITS = frozenset(error.code for error in all_errors() if error.is_limit)
RUN_CODES = frozenset(error.code for error in all_errors() if issubclass(error, RunError))
OTHER = "other"
"""The value of the label `code` for all error codes that agents define, because their number is unlimited."""
COMMIT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Bucket bounds of the histogram of commit durations."""
FIRST_EVENT_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
"""Bucket bounds of the histogram of the time until the first event of a run."""


class Metrics(Collector):
    """The metrics of one server. All known series start at 0, so that Prometheus sees their first increase."""

    def __init__(self, version: str, agents: Iterable[str]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        info = Gauge("limelight_info", "The version that runs; always 1", ["version"], registry=self.registry)
        info.labels(version).set(1)
        self._runs = self._counter("runs", "Runs that have ended", "agent", "outcome", "code")
        self._events = self._counter("events", "Events that were written to the log")
        self._limit_hits = self._counter("limit_hits", "Refusals because of a limit", "code")
        self._closed_connections = self._counter(
            "connections_closed", "Connections that were closed to keep a limit", "reason"
        )
        self._store_errors = self._counter("store_errors", "Operations of the store that failed", "during", "code")
        self._commit = Histogram(
            "limelight_commit_seconds",
            "Duration of a commit to the log",
            buckets=COMMIT_SECONDS,
            registry=self.registry,
        )
        self._first_event = Histogram(
            "limelight_first_event_seconds",
            "From a request to the first event of its agent that is in the log",
            ["agent"],
            buckets=FIRST_EVENT_SECONDS,
            registry=self.registry,
        )
        self._initialize_series(agents)

    # Methods that `runs/` calls, see `runs/metrics.py`

    def committed(self, records: int, seconds: float) -> None:
        self._events.inc(records)
        self._commit.observe(seconds)

    def not_committed(self, error: Exception) -> None:
        code = error.code if isinstance(error, StoreError) else LimelightError.code
        self._store_errors.labels("commit", code).inc()

    def first_event(self, agent: str, seconds: float) -> None:
        self._first_event.labels(agent).observe(seconds)

    def run_ended(self, agent: str, outcome: RunState, code: str) -> None:
        self._runs.labels(agent, outcome, code if code in CODES or not code else OTHER).inc()
        if code in LIMITS:
            self._limit_hits.labels(code).inc()

    # Methods that the server calls

    def count_refusal(self, error: BaseException) -> None:
        """Count a refused request, if the reason is a reached limit or an error of the store."""
        if isinstance(error, RequestError) and error.is_limit:
            self._limit_hits.labels(error.code).inc()
        elif isinstance(error, StoreError):
            self._store_errors.labels("request", error.code).inc()

    def count_closed_connection(self, reason: Reason) -> None:
        self._closed_connections.labels(reason).inc()

    def count_task_error(self, task: "asyncio.Task[Any]") -> None:
        """Count a run that could not begin, if `task`, which begins it while its response is being sent, has failed."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.count_refusal(error)

    # Output for Prometheus

    def render(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the registry without their `_created` samples, which would double the output."""
        for metric in self.registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric

    def _counter(self, name: str, help_: str, *labels: str) -> Counter:
        return Counter(f"limelight_{name}", help_, labels, registry=self.registry)

    def _initialize_series(self, agents: Iterable[str]) -> None:
        for agent in agents:
            self._first_event.labels(agent)
            for outcome in ("finished", "cancelled"):
                self._runs.labels(agent, outcome, "")
            for code in sorted(RUN_CODES):
                self._runs.labels(agent, "failed", code)
        for code in sorted(LIMITS):
            self._limit_hits.labels(code)
        for reason in get_args(Reason):
            self._closed_connections.labels(reason)
        for during, code in (
            ("commit", StoreUnavailable.code),
            ("commit", LimelightError.code),
            ("request", StoreUnavailable.code),
        ):
            self._store_errors.labels(during, code)


class RunGauges(Collector):
    """The gauges of runs, queues and the store. Their values are determined when Prometheus collects them."""

    def __init__(self, store: Store, control: Control, queues: SessionQueues, retention: RetentionGuard) -> None:
        self._store = store
        self._control = control
        self._queues = queues
        self._retention = retention

    def collect(self) -> Iterator[Metric]:
        grammars = [live.execution.grammar for live in self._control.live_runs]
        waiting = [grammar for grammar in grammars if grammar.waiting]
        approvals = sum(len(grammar.approvals) for grammar in waiting)
        yield GaugeMetricFamily("limelight_runs_live", "Live runs, waiting ones too", len(grammars))
        yield GaugeMetricFamily("limelight_runs_waiting", "Of these, runs that wait for a person", len(waiting))
        yield GaugeMetricFamily("limelight_approvals_waiting", "Approvals that wait for a person", approvals)
        yield GaugeMetricFamily(
            "limelight_requests_queued", "Requests that wait until their session is free", len(self._queues)
        )
        yield GaugeMetricFamily(
            "limelight_store_failing", "1 while the store cannot be written or read, else 0", self._store.is_failing
        )
        yield GaugeMetricFamily(
            "limelight_retention_paused",
            "1 while retention deletes nothing until the clock is confirmed or corrected, else 0",
            self._retention.pause is not None,
        )


class ConnectionGauges(Collector):
    """The gauges of connections and viewers. Their values are determined when Prometheus collects them."""

    def __init__(self, connections: ConnectionTable, open_streams: OpenStreams, formats: Iterable[str]) -> None:
        self._connections = connections
        self._open_streams = open_streams
        self._viewers: dict[tuple[Kind, str], float] = dict.fromkeys(product(get_args(Kind), formats), 0)
        """Open streams by kind and format. A pair is never removed, because a series that ends looks like a fault."""

    def collect(self) -> Iterator[Metric]:
        connections = GaugeMetricFamily("limelight_connections", "Open connections", labels=["kind"])
        for kind, count in self._connections.counts().items():
            connections.add_metric([kind], count)
        yield connections
        yield self._collect_viewers()

    def _collect_viewers(self) -> Metric:
        self._viewers = {**dict.fromkeys(self._viewers, 0), **self._open_streams.count_by_kind()}
        viewers = GaugeMetricFamily("limelight_viewers", "Streams and sockets that are open", labels=["kind", "format"])
        for kind_and_format, count in self._viewers.items():
            viewers.add_metric(kind_and_format, count)
        return viewers
