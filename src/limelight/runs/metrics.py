"""Measurements of runs and commits. `server/metrics.py` turns them into Prometheus metrics."""

from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter
from typing import Protocol

from limelight.errors import LeaseLost
from limelight.events import RunFailed, Terminal
from limelight.models import RunState, state_after


class RunMetrics(Protocol):
    """Receives measurements of runs and commits. Its methods must not raise."""

    def committed(self, records: int, seconds: float) -> None:
        """A commit of `records` Records took `seconds`."""

    def not_committed(self, error: Exception) -> None:
        """A commit failed. It will be retried."""

    def first_event(self, agent: str, seconds: float) -> None:
        """The agent's first event was committed `seconds` after the request for its run."""

    def run_ended(self, agent: str, outcome: RunState, code: str) -> None:
        """The end of a run was committed. `code` is the error code of a run that failed."""


class NoMetrics(RunMetrics):
    """Discards all measurements."""


NO_METRICS = NoMetrics()


@contextmanager
def measured_commit(metrics: RunMetrics, records: int) -> Generator[None]:
    """Measure a block that commits `records` Records. A lost lease does not count as a failed commit."""
    started_at = perf_counter()
    try:
        yield
    except LeaseLost:
        raise
    except Exception as error:
        metrics.not_committed(error)
        raise
    metrics.committed(records, perf_counter() - started_at)


def report_end(metrics: RunMetrics, agent: str, terminal: Terminal) -> None:
    """Report that the end of a run was committed."""
    code = terminal.code if isinstance(terminal, RunFailed) else ""
    metrics.run_ended(agent, state_after(terminal), code)
