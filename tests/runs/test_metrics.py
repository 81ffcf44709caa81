"""Measurements of runs and commits."""

from time import perf_counter
from typing import Any

import pytest

from limelight.errors import LeaseLost, StoreUnavailable
from limelight.events import RunCancelled, RunFailed, RunFinished, RunStarted, Status, Terminal
from limelight.models import RunState
from limelight.runs.engine import Execution
from limelight.runs.metrics import measured_commit
from tests.runs.execution import execution


class RecordedMetrics:
    """Keeps all measurements, without their durations."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def committed(self, records: int, seconds: float) -> None:
        self.calls.append(("committed", records))

    def not_committed(self, error: Exception) -> None:
        self.calls.append(("not committed", type(error)))

    def first_event(self, agent: str, seconds: float) -> None:
        self.calls.append(("first event", agent))

    def run_ended(self, agent: str, outcome: RunState, code: str) -> None:
        self.calls.append(("run ended", agent, outcome, code))


def measured(metrics: RecordedMetrics, *, asked: bool = True) -> Execution:
    run = execution(metrics=metrics)
    run.asked_at = perf_counter() if asked else None
    return run


def commit(run: Execution) -> None:
    run.take()
    run.committed()


async def test_first_event_of_the_agent_is_measured_once_after_its_commit() -> None:
    metrics = RecordedMetrics()
    run = measured(metrics)
    run.emit(RunStarted(agent="a"))
    commit(run)
    commit(run)
    assert metrics.calls == []
    for _ in range(2):
        run.emit(Status(text="at work"))
        commit(run)
    assert metrics.calls == [("first event", "a")]


async def test_run_that_another_process_began_has_no_first_event() -> None:
    metrics = RecordedMetrics()
    run = measured(metrics, asked=False)
    run.emit(RunStarted(agent="a"))
    run.emit(Status(text="resumed"))
    commit(run)
    assert metrics.calls == []


@pytest.mark.parametrize(
    ("terminal", "state", "code"),
    [
        (RunFinished(), "failed", "ended_early"),
        (RunCancelled(reason="enough"), "cancelled", ""),
        (RunFailed(code="agent_error", message="no"), "failed", "agent_error"),
    ],
)
async def test_end_of_a_run_without_events_of_the_agent_is_measured_with_its_code(
    terminal: Terminal, state: RunState, code: str
) -> None:
    metrics = RecordedMetrics()
    run = measured(metrics)
    run.emit(RunStarted(agent="a"))
    run.seal(terminal)
    assert metrics.calls == [], "nothing is committed yet"
    commit(run)
    assert metrics.calls == [("run ended", "a", state, code)]


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (None, [("committed", 3)]),
        (StoreUnavailable(), [("not committed", StoreUnavailable)]),
        (ValueError(), [("not committed", ValueError)]),
        (LeaseLost(), []),
    ],
)
def test_commit_is_measured_once_whether_it_succeeds_or_fails(error: Exception | None, calls: list[Any]) -> None:
    metrics = RecordedMetrics()
    if error is None:
        with measured_commit(metrics, 3):
            pass
    else:
        with pytest.raises(type(error)), measured_commit(metrics, 3):
            raise error
    assert metrics.calls == calls
