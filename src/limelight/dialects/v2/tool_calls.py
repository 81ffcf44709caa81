"""Writes tool calls as v2 messages: a badge, the code or the arguments, the output, and the result.

Python code is streamed while the model writes it. All other arguments are written when they are complete.
"""

from collections.abc import Callable
from typing import Any

from limelight.dialects.base import encode, outcome_field, result_seen_field, text_of, truncation_fields
from limelight.dialects.v2.message_writer import MessageWriter, Metadata, error_type, step_number
from limelight.dialects.v2.previews import args_summary
from limelight.dialects.v2.steps import Steps
from limelight.dialects.v2.text_stream import TextStream
from limelight.display_fields import streamed_code
from limelight.events import ToolArgsDelta, ToolFinished, ToolOutputDelta, ToolReady, ToolStarted

PYTHON = "python"
"""The language whose code the client shows in its code pane."""
FENCE = "```"
LONGEST_HELD = r"\ud83d\ude00"
"""The longest text that the decoder of streamed arguments may hold back between two deltas."""


class ToolCalls:
    """Writes the tool calls of all agents as v2 messages; each call is announced when its arguments are complete.

    Python code is streamed before that, if the run streams.
    """

    def __init__(self, writer: MessageWriter, steps_of: Callable[[str], Steps]) -> None:
        self._writer = writer
        self._steps_of = steps_of
        self._calls: dict[str, _Call] = {}

    def feed(self, event: ToolStarted | ToolArgsDelta | ToolReady | ToolOutputDelta | ToolFinished) -> None:
        """Write the v2 messages for one event of a tool call."""
        if isinstance(event, ToolStarted):
            steps = self._steps_of(event.agent_id)
            steps.begin_tool_call()
            self._calls[event.call_id] = _Call(event, steps.number)
        call = self._calls[event.call_id]
        match event:
            case ToolArgsDelta():
                self._append_code(call, event)
            case ToolStarted() | ToolReady():
                if event.args is not None:
                    call.is_python = event.language == PYTHON
                    self._announce(call, event.args, event.code_key, truncation_fields(event))
            case ToolOutputDelta():
                self._append_output(call, event)
            case ToolFinished():
                self._finish(call, event)

    def fits(self, event: ToolArgsDelta | ToolOutputDelta) -> bool:
        """Whether a delta joined from several, of a call's code or output, fits into the current message."""
        call = self._calls[event.call_id]
        if isinstance(event, ToolArgsDelta):
            return call.code is None or call.code.fits(event.text)
        return call.output is None or call.output.fits(event.text)

    def _append_code(self, call: "_Call", event: ToolArgsDelta) -> None:
        if not (call.is_python and self._writer.streams):
            return
        if call.code is None:
            call.code = _CodeStream(self._writer, call)
        call.code.append(event.text)

    def _announce(self, call: "_Call", args: dict[str, Any] | str, code_key: str, truncation: Metadata) -> None:
        if call.is_announced:
            return
        call.is_announced = True
        self._writer.write("tool_call", "", call.agent_id, **call.badge(args))
        if call.code is None or not call.code.finish(args, code_key, truncation):
            content, metadata = call.invocation(args, code_key)
            self._writer.write("tool_invocation", content, call.agent_id, **metadata, **truncation)

    def _append_output(self, call: "_Call", event: ToolOutputDelta) -> None:
        if call.output is None:
            metadata: Metadata = {**call.metadata, "title": "📝 Execution Logs", "agent_status": call.agent_status}
            call.output = TextStream(self._writer, "execution_logs", call.agent_id, metadata)
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
    """An open tool call, with the v2 messages that describe it."""

    def __init__(self, event: ToolStarted, step: int | None) -> None:
        self.call_id = event.call_id
        self.agent_id = event.agent_id
        self.is_announced = False
        self.code: _CodeStream | None = None
        self.output: TextStream | None = None
        self._name = event.name
        self._step = step
        self.is_python = event.language == PYTHON

    @property
    def metadata(self) -> Metadata:
        """The metadata keys that all v2 messages about the tool call have."""
        return {"step_type": "action", **step_number(self._step), "tool_name": self._name, "tool_id": self.call_id}

    @property
    def agent_status(self) -> str:
        return "coding" if self.is_python else "actions_running"

    def badge(self, args: dict[str, Any] | str) -> Metadata:
        """Return the metadata of the `tool_call` message, which announces the call with a badge."""
        return {
            **self.metadata,
            "tool_args_summary": args_summary(args),
            "is_python_interpreter": self.is_python,
            "agent_status": self.agent_status,
            "is_active": True,
        }

    def invocation(self, args: dict[str, Any] | str, code_key: str) -> tuple[str, Metadata]:
        """Return content and metadata of the message with the call's input: code, or arguments as JSON."""
        if not self.is_python:
            content = args if isinstance(args, str) else encode(args).decode()
            return content, {**self.shared_metadata, "tool_args": args}
        code = _code_of(args, code_key)
        return _fenced(code), self.code_metadata(code)

    @property
    def shared_metadata(self) -> Metadata:
        """The metadata keys that all messages with the call's input have."""
        title = f"🛠️ Used tool {self._name}"
        return {**self.metadata, "title": title, "is_active": False, "agent_status": self.agent_status}

    def code_metadata(self, code: str) -> Metadata:
        """Return the metadata of the message that contains the call's Python code."""
        lines = code.splitlines()
        has_imports = any(line.lstrip().startswith(("import ", "from ")) for line in lines)
        found = {"code": code, "language": PYTHON, "code_lines": len(lines), "has_imports": has_imports}
        return {**self.shared_metadata, **found}

    def observation(self, event: ToolFinished) -> tuple[str, Metadata]:
        """Return content and metadata of the message with the call's result."""
        metadata: Metadata = {**self.metadata, "title": f"Result of {self._name}", "has_error": event.error is not None}
        if event.error is not None:
            metadata |= {"error": True, "error_type": error_type(event.error, "ToolError")}
        if event.duration_ms is not None:
            metadata["execution_duration"] = event.duration_ms / 1000
        text = text_of(event.result)
        metadata["output_lines"] = len(text.splitlines())
        return text, {**metadata, **outcome_field(event), **result_seen_field(event), **truncation_fields(event)}


class _CodeStream:
    """Writes the Python code of a tool call while its arguments are streamed.

    Each delta of the arguments becomes an increment, whether it contains code or not, so that the cursors do not depend
    on how deltas were joined.
    """

    def __init__(self, writer: MessageWriter, call: _Call) -> None:
        self._call = call
        self._decoder = streamed_code()
        self._pieces: list[str] = []
        metadata: Metadata = {**call.shared_metadata, "language": PYTHON}
        self._text = TextStream(writer, "tool_invocation", call.agent_id, metadata)
        self._beginning = f"{FENCE}{PYTHON}\n"
        """The opening of the markdown code block, until it is written."""

    def fits(self, args_text: str) -> bool:
        """Whether the code in a delta joined from several of the arguments fits into the current message."""
        return self._text.fits(LONGEST_HELD + args_text)

    def append(self, args_text: str) -> None:
        """Write the code that a delta of the tool call's arguments contains."""
        code = self._decoder.feed(args_text)
        beginning, self._beginning = self._beginning, ""
        self._pieces.append(code)
        self._text.append(beginning + code)

    def finish(self, args: dict[str, Any] | str, code_key: str, truncation: Metadata) -> bool:
        """End the streamed code. Return False if the call runs other code, which needs a message of its own.

        Arguments that are a text are incomplete or not valid, so what was streamed is the code. The log may contain
        only the beginning of long arguments.
        """
        code, streamed = _code_of(args, code_key), "".join(self._pieces)
        is_part = bool(streamed) and (bool(truncation) or isinstance(args, str))
        rest = "" if is_part or not code.startswith(streamed) else code[len(streamed) :]
        streamed += rest
        self._text.append(f"{rest}\n{FENCE}")
        self._text.finish(**self._call.code_metadata(streamed), **truncation)
        return is_part or streamed == code


def _code_of(args: dict[str, Any] | str, code_key: str) -> str:
    return args[code_key] if isinstance(args, dict) and code_key else text_of(args)


def _fenced(code: str) -> str:
    """Return Python code as a markdown code block, with a fence longer than any fence in the code."""
    fence = FENCE
    while fence in code:
        fence += "`"
    return f"{fence}{PYTHON}\n{code}\n{fence}"
