"""The tool calls of one agent, as Events. Pure.

The model streams a call. Its arguments are complete when smolagents reports the call. smolagents reports the calls of a
reply in their order. Calls of `final_answer` are not shown.
"""

from typing import Any

import msgspec

from limelight.events import AnyEvent
from limelight.sources.base import Item
from limelight.sources.smolagents.signals import ANSWER, CallEnded, CallOutput, CallReady
from limelight.sources.tool_calls import CallIds, ToolCall
from limelight.sources.tool_results import args_value

NEVER_RAN = "the call was never run"


class RunCalls:
    """The tool calls of all agents of a run, by call number."""

    def __init__(self) -> None:
        self.ids = CallIds()
        self.by_number: dict[int, ToolCall] = {}


class AgentCalls:
    """The tool calls of one agent."""

    def __init__(self, agent_id: str, run_calls: RunCalls) -> None:
        self._agent_id = agent_id
        self._run_calls = run_calls
        self._streamed: dict[int, ToolCall | None] = {}
        """The calls that the model streams, by index in the reply; None for a call that is not shown, or not yet."""
        self._open: list[ToolCall] = []

    def start_reply(self) -> None:
        """Clear the streamed calls, because a new reply of the model starts."""
        self._streamed = {}

    def is_streamed(self, index: int) -> bool:
        """Whether the streamed call with this index is shown."""
        return self._streamed.get(index) is not None

    def stream(self, index: int, name: str, raw_id: str) -> list[AnyEvent]:
        """Start a call that the model streams. A call without a name only reserves its position in the reply."""
        self._streamed.setdefault(index, None)
        if not name or name == ANSWER or self._streamed[index] is not None:
            return []
        call = self._streamed[index] = self._add(raw_id, name)
        return call.start()

    def append_args(self, index: int, text: str) -> list[AnyEvent]:
        """Append a delta to the arguments of a streamed call."""
        call = self._streamed.get(index)
        return [] if call is None else call.append_args(text)

    def ready(self, signal: CallReady, args: Any) -> list[Item]:
        """Mark the arguments of the next streamed call as complete, or start a new call if none was streamed."""
        index = None if signal.inner else next(iter(self._streamed), None)
        call = None if index is None else self._streamed.pop(index)
        if signal.name == ANSWER:
            return [] if call is None else call.finish(error=NEVER_RAN)
        if call is not None:
            self._run_calls.by_number[signal.call_number] = call
            return [*call.ready(args_value(args))]
        call = self._run_calls.by_number[signal.call_number] = self._add(signal.raw_id, signal.name, args_value(args))
        return [*call.start()]

    def output(self, signal: CallOutput) -> list[AnyEvent]:
        call = self._run_calls.by_number.get(signal.call_number)
        return [] if call is None else call.output(signal.text)

    def end(self, signal: CallEnded) -> list[Item]:
        call = self._run_calls.by_number.get(signal.call_number)
        if call is None:
            return []
        owner = {"call_id": call.call_id, "agent_id": self._agent_id}
        return call.finish(
            signal.result.value,
            error=signal.error,
            duration_ms=None if signal.seconds is None else round(signal.seconds * 1000),
            files=[msgspec.structs.replace(file, **owner) for file in signal.result.files],
        )

    def close(self, error: str | None) -> list[Item]:
        """Fail the open calls of a step that has ended. Calls that code has made end before the code."""
        calls, self._open = self._open, []
        return [item for call in reversed(calls) for item in call.finish(error=error or NEVER_RAN)]

    def _add(self, raw_id: str, name: str, args: dict[str, Any] | str | None = None) -> ToolCall:
        call = ToolCall(self._agent_id, self._run_calls.ids.start(raw_id), name, args)
        self._open.append(call)
        return call
