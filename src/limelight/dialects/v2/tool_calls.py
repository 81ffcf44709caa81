"""Writes tool calls as messages: a badge, the code or the arguments, the output, and the result."""

from collections.abc import Callable
from typing import Any

from limelight.dialects.base import encode, result_seen_field, text_of, truncation_fields
from limelight.dialects.v2.message_writer import MessageWriter, Metadata, error_type, step_number
from limelight.dialects.v2.previews import args_summary
from limelight.dialects.v2.steps import Steps
from limelight.dialects.v2.text_stream import TextStream
from limelight.events import RunStarted, ToolFinished, ToolOutputDelta, ToolReady, ToolStarted

PYTHON = "python"
"""The language whose code is shown in the code pane."""


class ToolCalls:
    """Writes the tool calls of all agents. A call is announced when its arguments are complete."""

    def __init__(self, writer: MessageWriter, steps_of: Callable[[str], Steps]) -> None:
        self._writer = writer
        self._steps_of = steps_of
        self._live = True
        self._calls: dict[str, _Call] = {}

    def begin(self, event: RunStarted) -> None:
        """Read the settings of a run: whether output is streamed."""
        self._live = event.enable_streaming

    def feed(self, event: ToolStarted | ToolReady | ToolOutputDelta | ToolFinished) -> None:
        """Write the messages of one event of a call."""
        if isinstance(event, ToolStarted):
            steps = self._steps_of(event.agent_id)
            steps.begin_tool_call()
            self._calls[event.call_id] = _Call(event, steps.number)
        call = self._calls[event.call_id]
        match event:
            case ToolStarted() | ToolReady():
                if event.args is not None:
                    call.is_python = event.language == PYTHON
                    self._announce(call, event.args, event.code_key, truncation_fields(event))
            case ToolOutputDelta():
                self._append_output(call, event)
            case ToolFinished():
                self._finish(call, event)

    def fits(self, event: ToolOutputDelta) -> bool:
        """Whether a delta of output fits into the current message."""
        output = self._calls[event.call_id].output
        return output is None or output.fits(event.text)

    def _announce(self, call: "_Call", args: dict[str, Any] | str, code_key: str, truncation: Metadata) -> None:
        if call.is_announced:
            return
        call.is_announced = True
        self._writer.write("tool_call", "", call.agent_id, **call.badge(args))
        content, metadata = call.invocation(args, code_key)
        self._writer.write("tool_invocation", content, call.agent_id, **metadata, **truncation)

    def _append_output(self, call: "_Call", event: ToolOutputDelta) -> None:
        if call.output is None:
            metadata: Metadata = {**call.metadata, "title": "📝 Execution Logs", "agent_status": call.agent_status}
            call.output = TextStream(self._writer, "execution_logs", call.agent_id, metadata, live=self._live)
        call.output.append(event.text, stream=event.stream)

    def _finish(self, call: "_Call", event: ToolFinished) -> None:
        del self._calls[call.call_id]
        self._steps_of(call.agent_id).end_tool_call()
        self._announce(call, {}, "", {})
        if call.output is not None:
            timing: Metadata = {} if event.duration_ms is None else {"execution_duration": event.duration_ms / 1000}
            call.output.finish(output_lines=call.output.lines, has_error=event.error is not None, **timing)
        content, metadata = call.observation(event)
        self._writer.write("observation", content, call.agent_id, **metadata)


class _Call:
    """An open tool call, and the messages that describe it."""

    def __init__(self, event: ToolStarted, step: int | None) -> None:
        self.call_id = event.call_id
        self.agent_id = event.agent_id
        self.is_announced = False
        self.output: TextStream | None = None
        self._name = event.name
        self._step = step
        self.is_python = event.language == PYTHON

    @property
    def metadata(self) -> Metadata:
        """The metadata keys that all messages of the call have."""
        return {"step_type": "action", **step_number(self._step), "tool_name": self._name, "tool_id": self.call_id}

    @property
    def agent_status(self) -> str:
        return "coding" if self.is_python else "actions_running"

    def badge(self, args: dict[str, Any] | str) -> Metadata:
        """Return the metadata of the message that announces the call."""
        return {
            **self.metadata,
            "tool_args_summary": args_summary(args),
            "is_python_interpreter": self.is_python,
            "agent_status": self.agent_status,
            "is_active": True,
        }

    def invocation(self, args: dict[str, Any] | str, code_key: str) -> tuple[str, Metadata]:
        """Return the content and metadata of the message with the input of the call: code, or arguments as JSON."""
        shared = {**self.metadata, "title": f"🛠️ Used tool {self._name}", "is_active": False}
        shared["agent_status"] = self.agent_status
        if not self.is_python:
            content = args if isinstance(args, str) else encode(args).decode()
            return content, {**shared, "tool_args": args}
        code = args[code_key] if isinstance(args, dict) and code_key else text_of(args)
        lines = code.splitlines()
        metadata: Metadata = {**shared, "code": code, "language": PYTHON, "code_lines": len(lines)}
        metadata["has_imports"] = any(line.lstrip().startswith(("import ", "from ")) for line in lines)
        return _fenced(code, PYTHON), metadata

    def observation(self, event: ToolFinished) -> tuple[str, Metadata]:
        """Return the content and metadata of the message with the result of the call."""
        metadata: Metadata = {**self.metadata, "title": f"Result of {self._name}", "has_error": event.error is not None}
        if event.error is not None:
            metadata |= {"error": True, "error_type": error_type(event.error, "ToolError")}
        if event.duration_ms is not None:
            metadata["execution_duration"] = event.duration_ms / 1000
        text = text_of(event.result)
        metadata["output_lines"] = len(text.splitlines())
        return text, {**metadata, **result_seen_field(event), **truncation_fields(event)}


def _fenced(code: str, language: str) -> str:
    """Return code as a markdown code block, with a fence that is longer than any fence in the code."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"
