"""A run's meter: it reads off what is committed of the run when its agent did something first, and how it ended."""

from time import perf_counter

from limelight.events import TERMINAL_TYPES, RunStarted
from limelight.models import LIVE_STATES, Append, fault_of
from limelight.runs.metrics import UNCOUNTED, Measures

EDGES = (RunStarted, *TERMINAL_TYPES)
"""Not the agent's doing: every run has them, also one whose agent never did anything."""


class Meter:
    """Measures one run, from the commits that it is part of."""

    def __init__(self, agent: str, measures: Measures = UNCOUNTED) -> None:
        self.asked_at: float | None = None
        """When the run was asked for; None if it was begun by another process, and once there is an event."""
        self._agent = agent
        self._measures = measures

    def committed(self, append: Append) -> None:
        """This is in the log now."""
        if self.asked_at is not None and any(not isinstance(record.event, EDGES) for record in append.records):
            self._measures.first_event(self._agent, perf_counter() - self.asked_at)
            self.asked_at = None
        if append.state is not None and append.state not in LIVE_STATES:
            fault = fault_of(append.records[-1])
            self._measures.run_ended(self._agent, append.state, "" if fault is None else fault.code)
