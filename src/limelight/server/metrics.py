"""What a server does, in numbers for Prometheus. Nothing in them tells one user from another.

What happens is counted when it happens; what there is at the moment is looked up when somebody asks.
"""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from limelight.stores.base import RunState

FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Bounds of what should take milliseconds, in seconds."""
LIMITS = frozenset(
    {
        "body_too_large",
        "log_full",
        "queue_full",
        "run_timeout",
        "session_full",
        "silence_timeout",
        "too_many_messages",
        "too_many_requests",
        "too_many_runs",
        "too_many_sessions",
        "too_many_streams",
    }
)
"""Codes of errors that mean that somebody has met a limit."""
Level = tuple[str, str, Callable[[], float]]
"""A name, what it means, and how much it is now."""


class Metrics:
    """The numbers of one server. `levels` are looked up whenever somebody asks."""

    def __init__(self, version: str, *levels: Level) -> None:
        self.registry = CollectorRegistry()
        self._runs = self._counter("limelight_runs", "Runs that have ended", "agent", "outcome", "code")
        self._events = self._counter("limelight_events", "Events that are in the log")
        self._failures = self._counter("limelight_commit_failures", "Commits that failed and were tried again")
        self._limits = self._counter("limelight_limits", "Limits that somebody has met", "code")
        self._append = self._histogram("limelight_commit_seconds", "Time that a commit of the log takes")
        self._first = self._histogram("limelight_first_event_seconds", "Time from a request to its run's first event")
        self._levels = levels
        self._version = version
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """For the registry: what there is now."""
        for name, meaning, look in self._levels:
            yield GaugeMetricFamily(name, meaning, value=look())
        info = GaugeMetricFamily("limelight_info", "The version of the server", labels=["version"])
        info.add_metric([self._version], 1)
        yield info

    def committed(self, records: int, seconds: float) -> None:
        self._events.inc(records)
        self._append.observe(seconds)

    def not_committed(self) -> None:
        self._failures.inc()

    def first_event(self, seconds: float) -> None:
        self._first.observe(seconds)

    def run_ended(self, agent: str, outcome: RunState, code: str) -> None:
        self._runs.labels(agent, outcome, code).inc()
        self.refused(code)

    def refused(self, code: str) -> None:
        """Somebody was told so, or a run was ended with it."""
        if code in LIMITS:
            self._limits.labels(code).inc()

    def shown(self) -> bytes:
        """In the text format of Prometheus."""
        return generate_latest(self.registry)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str) -> Histogram:
        return Histogram(name, meaning, buckets=FAST, registry=self.registry)
