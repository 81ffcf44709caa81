"""What a server does, in numbers for Prometheus: what happens is counted when it happens, `gauges.py` has the rest.

No label has values that a caller can choose. So nothing in the numbers tells one user from another, and nobody can make
them grow.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from limelight.errors import LimelightError, RequestError, RunError, StoreError, StoreUnavailable, all_errors
from limelight.models import RunState

CODES = frozenset(error.code for error in all_errors())
LIMITS = frozenset(error.code for error in all_errors() if error.is_limit)
RUN_CODES = frozenset(error.code for error in all_errors() if issubclass(error, RunError))
OTHER = "other"
"""For codes that an agent has made up: there may be any number of them."""
COMMIT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
FIRST_EVENT_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
"""Where the histograms have their bounds: a commit takes milliseconds, the first word of a model seconds."""


class Metrics(Collector):
    """The numbers of one server. What can be counted begins at 0, so that the first time is seen as an increase."""

    def __init__(self, version: str, agents: Iterable[str]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        info = Gauge("limelight_info", "The version that runs; always 1", ["version"], registry=self.registry)
        info.labels(version).set(1)
        self._runs = self._counter("runs", "Runs that have ended", "agent", "outcome", "code")
        self._events = self._counter("events", "Events that were written to the log")
        self._limit_hits = self._counter("limit_hits", "How often somebody has met a limit", "code")
        self._store_errors = self._counter("store_errors", "What the store could not do", "during", "code")
        self._commit = Histogram(
            "limelight_commit_seconds",
            "How long it takes to write to the log what has come together",
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
        self._begin_at_nothing(agents)

    # What runs tell: `runs/metrics.py`

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

    # What the server tells

    def refused(self, error: BaseException) -> None:
        """Somebody is told so. That a run has failed was counted when it did."""
        if isinstance(error, RequestError) and error.is_limit:
            self._limit_hits.labels(error.code).inc()
        elif isinstance(error, StoreError):
            self._store_errors.labels("request", error.code).inc()

    def ended(self, work: "asyncio.Task[Any]") -> None:
        """The same, for work that went on after the answer had begun."""
        if not work.cancelled() and (error := work.exception()) is not None:
            self.refused(error)

    # What Prometheus gets

    def shown(self) -> bytes:
        """All of it, in the text format."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """Without the times at which counters were made, which are as many as the counters and which nobody reads."""
        for metric in self.registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"limelight_{name}", meaning, labels, registry=self.registry)

    def _begin_at_nothing(self, agents: Iterable[str]) -> None:
        for agent in agents:
            self._first_event.labels(agent)
            for outcome in ("finished", "cancelled"):
                self._runs.labels(agent, outcome, "")
            for code in sorted(RUN_CODES):
                self._runs.labels(agent, "failed", code)
        for code in sorted(LIMITS):
            self._limit_hits.labels(code)
        for during, code in (
            ("commit", StoreUnavailable.code),
            ("commit", LimelightError.code),
            ("request", StoreUnavailable.code),
        ):
            self._store_errors.labels(during, code)
