"""How long tools and steps took, where the source does not say. Pure: it is told the time, in seconds.

A call counts from when it may run: from when its arguments are whole or, if a person has to decide, from the answer.
The engine shows it every event on its way into the log, also those that it closes a run with.
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
    """Follows one run."""

    def __init__(self) -> None:
        self._calls: dict[str, float] = {}
        """Since when each open call may run; steps likewise, by their agents."""
        self._steps: dict[str, float] = {}
        self._asked_for: dict[str, str] = {}
        """The calls that wait, by their approvals."""

    def timed(self, event: AnyEvent, now: float) -> AnyEvent:
        """The event, with its duration if it ends something and says nothing of it."""
        match event:
            case ToolStarted() | ToolReady():
                self._calls[event.call_id] = now
            case ApprovalRequested() if event.call_id:
                self._asked_for[event.approval_id] = event.call_id
            case ApprovalResolved() if event.approval_id in self._asked_for:
                self._calls[self._asked_for.pop(event.approval_id)] = now
            case StepStarted():
                self._steps[event.agent_id] = now
            case ToolFinished():
                since = self._calls.pop(event.call_id, None)
                return _with_duration(event, since, now) if event.result_seen else event  # when it ended is not known
            case StepFinished():
                return _with_duration(event, self._steps.pop(event.agent_id, None), now)
            case _:
                pass
        return event

    def stood_still(self, call_ids: Iterable[str], now: float) -> None:
        """These calls could not run until now, whatever came before."""
        self._calls.update((call_id, now) for call_id in call_ids if call_id in self._calls)


def _with_duration(event: ToolFinished | StepFinished, since: float | None, now: float) -> AnyEvent:
    if event.duration_ms is not None or since is None:
        return event
    return msgspec.structs.replace(event, duration_ms=max(0, round((now - since) * 1000)))
