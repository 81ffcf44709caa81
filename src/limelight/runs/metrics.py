"""The metrics of runs and commits: which ones there are, and where they are measured. `server/metrics.py` counts
them."""

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

from limelight.errors import LeaseLost
from limelight.events import TERMINAL_TYPES, RunStarted
from limelight.models import LIVE_STATES, Append, RunState, fault_of
from limelight.stores.base import Store

NOT_OF_THE_AGENT = (RunStarted, *TERMINAL_TYPES)
"""Events that every run has, also one whose agent never did anything."""


class RunMetrics(Protocol):
    """Receives measurements of runs and commits. Its methods must not raise."""

    def committed(self, records: int, seconds: float) -> None:
        """A commit of `records` Records took `seconds`."""
        ...

    def not_committed(self, error: Exception) -> None:
        """A commit failed. It will be retried."""
        ...

    def first_event(self, agent: str, seconds: float) -> None:
        """The agent's first event was committed `seconds` after the request for its run."""
        ...

    def run_ended(self, agent: str, outcome: RunState, code: str) -> None:
        """The end of a run was committed. `code` says why it failed."""
        ...


class NoMetrics:
    """Drops all measurements."""

    def committed(self, records: int, seconds: float) -> None: ...

    def not_committed(self, error: Exception) -> None: ...

    def first_event(self, agent: str, seconds: float) -> None: ...

    def run_ended(self, agent: str, outcome: RunState, code: str) -> None: ...


NO_METRICS = NoMetrics()


async def commit(store: Store, batch: Sequence[Append], metrics: RunMetrics) -> None:
    """Append a batch to the log and measure it. A lost lease does not count as a failure of the store."""
    started_at = perf_counter()
    try:
        await store.append(batch)
    except LeaseLost:
        raise
    except Exception as error:
        metrics.not_committed(error)
        raise
    metrics.committed(sum(len(append.records) for append in batch), perf_counter() - started_at)


class RunTimer:
    """Measures one run by its commits: the time to the agent's first event, and how the run ended."""

    def __init__(self, agent: str, metrics: RunMetrics = NO_METRICS) -> None:
        self.asked_at: float | None = None
        """When the run was requested; None if another process began it, and after the first event."""
        self._agent = agent
        self._metrics = metrics

    def committed(self, append: Append) -> None:
        """Measure a commit of the run."""
        if self.asked_at is not None and any(not isinstance(r.event, NOT_OF_THE_AGENT) for r in append.records):
            self._metrics.first_event(self._agent, perf_counter() - self.asked_at)
            self.asked_at = None
        if append.state is not None and append.state not in LIVE_STATES:
            fault = fault_of(append.records[-1])
            self._metrics.run_ended(self._agent, append.state, "" if fault is None else fault.code)
