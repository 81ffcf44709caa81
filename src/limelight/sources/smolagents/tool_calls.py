"""Translates the tool calls of one agent into Events. Pure.

The model streams a call. Its arguments are complete when smolagents reports the call. smolagents reports the calls of a
reply in their order. Calls of `final_answer` are not shown.
"""

from typing import Any

import msgspec

from limelight.events import AnyEvent
from limelight.sources.base import Item
from limelight.sources.smolagents.reports import ANSWER, CallEnded, CallOutput, CallReady
from limelight.sources.tool_calls import CallIds, ToolCall
from limelight.sources.tool_results import args_value

NEVER_RAN = "the call was never run"


class RunCalls:
    """All agents' tool calls in one run, by the number that the Observer has assigned to each call."""

    def __init__(self) -> None:
        self.ids = CallIds()
        self.by_number: dict[int, ToolCall] = {}


class AgentCalls:
    """The tool calls of one smolagents agent. Its methods return the Events for them."""

    def __init__(self, agent_id: str, run_calls: RunCalls) -> None:
        self._agent_id = agent_id
        self._run_calls = run_calls
        self._streamed: dict[int, ToolCall | None] = {}
        """The calls that the model is streaming, by index in the reply; None if no events are emitted for the call
        (yet)."""
        self._open: list[ToolCall] = []

    def start_reply(self) -> None:
        """Forget the streamed calls, because the model starts a new reply."""
        self._streamed = {}

    def is_streamed(self, index: int) -> bool:
        """Whether events were emitted for the call with this index in the streamed reply."""
        return self._streamed.get(index) is not None

    def stream(self, index: int, name: str, raw_id: str) -> list[AnyEvent]:
        """Start a call that the model is streaming. A call without a name only reserves its index."""
        self._streamed.setdefault(index, None)
        if not name or name == ANSWER or self._streamed[index] is not None:
            return []
        call = self._streamed[index] = self._add(raw_id, name)
        return call.start()

    def append_args(self, index: int, text: str) -> list[AnyEvent]:
        """Return the event for a delta of the arguments of a call that the model is streaming."""
        call = self._streamed.get(index)
        return [] if call is None else call.append_args(text)

    def discard(self, index: int) -> list[Item]:
        """Return the events that end a streamed tool call which smolagents will not run."""
        call = self._streamed.pop(index, None)
        return [] if call is None else call.finish(error=NEVER_RAN)

    def ready(self, report: CallReady, args: Any) -> list[Item]:
        """Complete the arguments of the oldest open streamed call, or record a new call if none was streamed."""
        index = None if report.inner else next(iter(self._streamed), None)
        call = None if index is None else self._streamed.pop(index)
        if report.name == ANSWER:
            return [] if call is None else call.finish(error=NEVER_RAN)
        if call is not None:
            self._run_calls.by_number[report.call_number] = call
            return [*call.ready(args_value(args))]
        call = self._run_calls.by_number[report.call_number] = self._add(report.raw_id, report.name, args_value(args))
        return [*call.start()]

    def output(self, report: CallOutput) -> list[AnyEvent]:
        call = self._run_calls.by_number.get(report.call_number)
        return [] if call is None else call.output(report.text)

    def end(self, report: CallEnded) -> list[Item]:
        call = self._run_calls.by_number.get(report.call_number)
        if call is None:
            return []
        owner = {"call_id": call.call_id, "agent_id": self._agent_id}
        return call.finish(
            report.result.value,
            error=report.error,
            duration_ms=None if report.seconds is None else round(report.seconds * 1000),
            files=[msgspec.structs.replace(file, **owner) for file in report.result.files],
        )

    def close(self, error: str | None) -> list[Item]:
        """Fail the open calls of a step that has ended; calls made by code end before the code."""
        calls, self._open = self._open, []
        return [item for call in reversed(calls) for item in call.finish(error=error or NEVER_RAN)]

    def _add(self, raw_id: str, name: str, args: dict[str, Any] | str | None = None) -> ToolCall:
        call = ToolCall(self._agent_id, self._run_calls.ids.start(raw_id), name, args)
        self._open.append(call)
        return call
