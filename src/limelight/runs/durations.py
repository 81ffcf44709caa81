"""Measures durations of tool calls and steps, for sources that do not report them. Pure: times are arguments.

The duration of a call starts when its arguments are complete or, if it needs an approval, at the decision. The engine
passes every event here before it logs it, also the events that close a run.
"""

from collections.abc import Iterable

import msgspec

from limelight.events import (
    AnyEvent,
    ApprovalRequested,
    ApprovalResolved,
    StepFinished,
    StepStarted,
    ToolFinished,
    ToolReady,
    ToolStarted,
)


class Durations:
    """Measures the durations of the tool calls and steps of one run."""

    def __init__(self) -> None:
        self._calls: dict[str, float] = {}
        """The start of each open call, by its id."""
        self._steps: dict[str, float] = {}
        """The start of each open step, by the id of its agent."""
        self._calls_of_approvals: dict[str, str] = {}
        """The calls that wait for an approval, by the approval's id."""

    def measure(self, event: AnyEvent, now: float) -> AnyEvent:
        """Take an event at the time `now`. Return it, with the measured duration if it ends a call or a step."""
        match event:
            case ToolStarted() | ToolReady():
                self._calls[event.call_id] = now
            case ApprovalRequested() if event.call_id:
                self._calls_of_approvals[event.approval_id] = event.call_id
            case ApprovalResolved() if event.approval_id in self._calls_of_approvals:
                self._calls[self._calls_of_approvals.pop(event.approval_id)] = now
            case StepStarted():
                self._steps[event.agent_id] = now
            case ToolFinished():
                since = self._calls.pop(event.call_id, None)
                return _with_duration(event, since, now) if event.result_seen else event  # its end was not seen
            case StepFinished():
                return _with_duration(event, self._steps.pop(event.agent_id, None), now)
            case _:
                pass
        return event

    def restart(self, call_ids: Iterable[str], now: float) -> None:
        """Measure these calls from `now` on, if they are open, because they could not run until now."""
        self._calls.update((call_id, now) for call_id in call_ids if call_id in self._calls)


def _with_duration(event: ToolFinished | StepFinished, since: float | None, now: float) -> AnyEvent:
    if event.duration_ms is not None or since is None:
        return event
    return msgspec.structs.replace(event, duration_ms=max(0, round((now - since) * 1000)))
