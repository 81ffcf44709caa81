"""A run's meter, and the log's: what is told to whoever counts, and when."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any, cast

import pytest

from limelight.errors import LeaseLost, StoreUnavailable
from limelight.events import AnyEvent, Record, RunCancelled, RunFailed, RunFinished, RunStarted, Status
from limelight.models import Append, RunState
from limelight.runs.metrics import RunTimer, commit
from limelight.stores.base import Store


class Told:
    """Somebody who counts, and remembers all of it; how long something took is left out."""

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


def part(*events: AnyEvent, state: RunState | None = None) -> Append:
    records = [Record(seq, "run", 0, event) for seq, event in enumerate(events, start=1)]
    return Append(run_id="run", records=records, state=state)


def asked(told: Told) -> RunTimer:
    meter = RunTimer("echo", told)
    meter.asked_at = perf_counter()
    return meter


def test_the_first_event_is_told_once_and_is_the_agents() -> None:
    told = Told()
    meter = asked(told)
    meter.committed(part(RunStarted(agent="echo")))
    meter.committed(part())
    assert told.calls == []
    for _ in range(2):
        meter.committed(part(Status(text="at work")))
    assert told.calls == [("first event", "echo")]


def test_a_run_that_another_process_began_has_no_first_event() -> None:
    told = Told()
    RunTimer("echo", told).committed(part(Status(text="on again")))
    assert told.calls == []


@pytest.mark.parametrize(
    ("terminal", "state", "code"),
    [
        (RunFinished(), "finished", ""),
        (RunCancelled(reason="enough"), "cancelled", ""),
        (RunFailed(code="agent_error", message="no"), "failed", "agent_error"),
    ],
)
def test_an_end_is_told_with_its_reason(terminal: AnyEvent, state: RunState, code: str) -> None:
    told = Told()
    meter = asked(told)
    meter.committed(part(RunStarted(agent="echo"), state="waiting"))
    meter.committed(part(terminal, state=state))
    assert told.calls == [("run ended", "echo", state, code)]


class Fake:
    """A store that takes what it gets, or fails."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def append(self, batch: Sequence[Append]) -> None:
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (None, [("committed", 3)]),
        (StoreUnavailable(), [("not committed", StoreUnavailable)]),
        (ValueError(), [("not committed", ValueError)]),
        (LeaseLost(), []),
    ],
)
async def test_a_commit_is_told_once_whatever_becomes_of_it(error: Exception | None, calls: list[Any]) -> None:
    told = Told()
    store = cast("Store", Fake(error))
    batch = [part(Status(text="a"), Status(text="b")), part(Status(text="c"))]
    if error is None:
        await commit(store, batch, told)
    else:
        with pytest.raises(type(error)):
            await commit(store, batch, told)
    assert told.calls == calls
