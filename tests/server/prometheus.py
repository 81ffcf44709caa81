"""Reads the metrics of a server as Prometheus does."""

from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from tests.support.server import Served

Samples = dict[str, float]
"""The value of each series, by its name with labels: `limelight_viewers{format=typed,kind=stream}`."""


class MetricsReader:
    """Reads the metrics, and the changes since the last read."""

    def __init__(self, served: Served, headers: dict[str, str] | None = None) -> None:
        self._served = served
        self._headers = headers or {}
        self._last: Samples = {}

    @classmethod
    async def of(cls, served: Served, headers: dict[str, str] | None = None) -> Self:
        """A reader that has read the metrics once."""
        metrics = cls(served, headers)
        await metrics.read()
        return metrics

    async def read(self) -> Samples:
        reply = await self._served.http.get("/metrics", headers=self._headers)
        assert reply.status_code == 200, reply.text
        self._last = parsed(reply.text)
        return self._last

    async def changed(self, *names: str) -> Samples:
        """The changes of these metrics; without names, of all but durations and open connections."""
        before, now = self._last, await self.read()
        changes = {series: value - before.get(series, 0) for series, value in now.items()}
        return {series: by for series, by in changes.items() if by and _is_asked_for(series, names)}


def _is_asked_for(series: str, names: tuple[str, ...]) -> bool:
    name = series.partition("{")[0]
    if names:
        return name in names
    if name == "limelight_connections":
        return False
    return name.startswith("limelight_") and not name.endswith(("_seconds_sum", "_seconds_bucket"))


def parsed(text: str) -> Samples:
    """The samples by series. Prometheus ignores labels without a value."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {_series(sample.name, sample.labels): sample.value for sample in samples}


def _series(name: str, labels: dict[str, str]) -> str:
    shown = ",".join(f"{label}={value}" for label, value in sorted(labels.items()) if value)
    return f"{name}{{{shown}}}" if shown else name
