"""Tool calls from start to end, over all agents."""

from collections.abc import Callable
from typing import Any

from limelight.dialects.base import cut_of
from limelight.dialects.v2.message import Metadata
from limelight.dialects.v2.steps import Steps
from limelight.dialects.v2.text_stream import Stream
from limelight.dialects.v2.tool_messages import PYTHON_TOOLS, OpenCall
from limelight.dialects.v2.writer import Outbox
from limelight.events import RunStarted, ToolFinished, ToolOutputDelta, ToolReady, ToolStarted


class Tools:
    """A call is announced when its arguments are whole: the badge, then what goes in."""

    def __init__(self, outbox: Outbox, steps_of: Callable[[str], Steps]) -> None:
        self._outbox = outbox
        self._steps_of = steps_of
        self._live = True
        self._python_tools = PYTHON_TOOLS
        self._calls: dict[str, OpenCall] = {}

    def begin(self, event: RunStarted) -> None:
        self._live = event.enable_streaming
        self._python_tools = frozenset(event.python_tools) or PYTHON_TOOLS

    def take(self, event: ToolStarted | ToolReady | ToolOutputDelta | ToolFinished) -> None:
        if isinstance(event, ToolStarted):
            steps = self._steps_of(event.agent_id)
            steps.acts()
            self._calls[event.call_id] = OpenCall(event, steps.number, self._python_tools)
        call = self._calls[event.call_id]
        match event:
            case ToolStarted() | ToolReady():
                if event.args is not None:
                    self._announce(call, event.args, cut_of(event))
            case ToolOutputDelta():
                self._print(call, event)
            case ToolFinished():
                self._finish(call, event)

    def has_room(self, event: ToolOutputDelta) -> bool:
        logs = self._calls[event.call_id].logs
        return logs is None or logs.has_room(event.text)

    def _announce(self, call: OpenCall, args: dict[str, Any] | str, cut: Metadata) -> None:
        if call.announced:
            return
        call.announced = True
        self._outbox.send("tool_call", "", call.agent_id, **call.badge(args))
        content, about = call.invocation(args)
        self._outbox.send("tool_invocation", content, call.agent_id, **about, **cut)

    def _print(self, call: OpenCall, event: ToolOutputDelta) -> None:
        if call.logs is None:
            status = {"agent_status": "coding" if call.is_python else "actions_running"}
            about: Metadata = {**call.about, "title": "📝 Execution Logs", **status}
            call.logs = Stream(self._outbox, "execution_logs", call.agent_id, about, live=self._live)
        call.logs.grow(event.text, stream=event.stream)

    def _finish(self, call: OpenCall, event: ToolFinished) -> None:
        del self._calls[call.call_id]
        self._steps_of(call.agent_id).acted()
        self._announce(call, {}, {})
        if call.logs is not None:
            timing: Metadata = {} if event.duration_ms is None else {"execution_duration": event.duration_ms / 1000}
            call.logs.end(output_lines=call.logs.lines, has_error=event.error is not None, **timing)
        content, about = call.observation(event)
        self._outbox.send("observation", content, call.agent_id, **about)
