"""What there is at the moment, for Prometheus: looked up whenever somebody asks, so that nobody has to keep count."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import get_args

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from limelight.runs.control import Control
from limelight.runs.queue import SessionQueues
from limelight.runs.retention_guard import RetentionGuard
from limelight.server.heartbeat import Kind, Pulse
from limelight.stores.base import Store


class Levels(Collector):
    """The gauges of one server."""

    def __init__(
        self,
        store: Store,
        control: Control,
        queues: SessionQueues,
        pulse: Pulse,
        retention: RetentionGuard,
        formats: Iterable[str],
    ) -> None:
        self._store = store
        self._control = control
        self._queues = queues
        self._pulse = pulse
        self._retention = retention
        self._known: dict[tuple[Kind, str], float] = dict.fromkeys(product(get_args(Kind), formats), 0)
        """Kinds and formats of viewers; those that were seen once stay, as a line that ends looks like a fault."""

    def collect(self) -> Iterator[Metric]:
        grammars = [live.execution.grammar for live in self._control.live_runs]
        waiting = [grammar for grammar in grammars if grammar.waiting]
        asked = sum(len(grammar.approvals) for grammar in waiting)
        yield GaugeMetricFamily("limelight_runs_live", "Runs that go on now, waiting ones too", len(grammars))
        yield GaugeMetricFamily("limelight_runs_waiting", "Of these, runs that wait for a person", len(waiting))
        yield GaugeMetricFamily("limelight_approvals_waiting", "Questions that wait for a person", asked)
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
        yield self._viewers()

    def _viewers(self) -> Metric:
        counted = self._pulse.by_kind()
        self._known = {**dict.fromkeys(self._known, 0), **counted}
        shown = GaugeMetricFamily("limelight_viewers", "Streams and sockets that are open", labels=["kind", "format"])
        for pair, count in self._known.items():
            shown.add_metric(pair, count)
        return shown
