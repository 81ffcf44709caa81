"""The interface by which runs and the committer report measurements. `server/metrics.py` exports them to Prometheus."""

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
        """Called after a commit of `records` Records that took `seconds`."""

    def not_committed(self, error: Exception) -> None:
        """Called after a commit failed. It will be retried."""

    def first_event(self, agent: str, seconds: float) -> None:
        """Called when the first event of a run is committed, `seconds` after the request for the run."""

    def run_ended(self, agent: str, outcome: RunState, code: str) -> None:
        """Called when the end of a run is committed. `code` is the error code of a failed run."""


class NoMetrics(RunMetrics):
    """An implementation of RunMetrics that discards all measurements."""


NO_METRICS = NoMetrics()


@contextmanager
def measured_commit(metrics: RunMetrics, records: int) -> Generator[None]:
    """Report the duration or failure of a `with` block that commits `records` Records.

    A lost lease does not count as a failure.
    """
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
    """Report to `metrics` that the end of a run is committed."""
    code = terminal.code if isinstance(terminal, RunFailed) else ""
    metrics.run_ended(agent, state_after(terminal), code)
