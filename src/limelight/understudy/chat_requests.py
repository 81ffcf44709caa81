"""Parses chat completion requests into user messages, assistant messages and tool results.

Frameworks report tool results in different ways. Most send `tool` messages; smolagents writes calls and results as text
into assistant and user messages, and joins neighbouring messages. `read_request` gives all of them the same form.

This module knows neither scripts nor the improviser. Keys of the body that are not declared here are ignored.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, cast

import msgspec

from limelight.errors import BadRequest


class Tool(msgspec.Struct, frozen=True):
    """A tool that the request offers to the model."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """The JSON schema of the arguments."""
    returns: str = ""
    """The type of the result; "" if the prompt does not state it."""

    @property
    def properties(self) -> dict[str, dict[str, Any]]:
        declared = cast("dict[str, Any]", self.parameters.get("properties") or {})
        return {name: schema for name, schema in declared.items() if isinstance(schema, dict)}

    @property
    def required(self) -> list[str]:
        return self.parameters.get("required") or []


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call that the model made earlier; the arguments are JSON text, as in the request."""

    name: str
    arguments: str
    call_id: str = ""


class UserMessage(msgspec.Struct, frozen=True):
    text: str


class AssistantMessage(msgspec.Struct, frozen=True):
    text: str
    calls: tuple[ToolCall, ...] = ()


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a tool call, as the request reports it."""

    name: str
    text: str
    arguments: str = ""
    """The arguments of the call, or the code that was run; empty if they are unknown."""
    call_missing: bool = False
    """Whether the request does not contain the call of this result; smolagents drops calls that it could not parse."""
    reply_missing: bool = False
    """Whether the request also does not contain the assistant message that made the call."""


Entry = UserMessage | AssistantMessage | ToolResult


class ChatRequest(msgspec.Struct, frozen=True):
    """A chat completion request, parsed into the form that the offline model works with."""

    model: str
    entries: tuple[Entry, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    tool_required: bool = False
    schema: dict[str, Any] | None = None
    """The JSON schema of the answer, if `response_format` asks for JSON."""
    stream: bool = False
    include_usage: bool = False
    digest: str = ""
    """A hash of model, messages and tools, which is equal for equal conversations."""
    size: int = 0
    """The size of model, messages and tools in bytes."""

    @property
    def user_text(self) -> str:
        """The text of the last user message."""
        return next((entry.text for entry in reversed(self.entries) if isinstance(entry, UserMessage)), "")

    @property
    def current_turn(self) -> tuple[Entry, ...]:
        """The assistant messages and tool results that follow the last user message."""
        last = max((at for at, entry in enumerate(self.entries) if isinstance(entry, UserMessage)), default=-1)
        return self.entries[last + 1 :]

    @property
    def calls(self) -> list[ToolCall]:
        """The model's tool calls since the last user message."""
        return [call for entry in self.current_turn if isinstance(entry, AssistantMessage) for call in entry.calls]

    @property
    def results(self) -> list[ToolResult]:
        """The tool results since the last user message."""
        return [entry for entry in self.current_turn if isinstance(entry, ToolResult)]

    @property
    def has_replies(self) -> bool:
        return count_replies(self.entries) > 0

    @property
    def is_first_turn(self) -> bool:
        return sum(isinstance(entry, UserMessage) for entry in self.entries) == 1


def count_replies(entries: Iterable[Entry]) -> int:
    """Count the replies of the model: assistant messages, and tool results whose assistant message is missing."""
    return sum(
        isinstance(entry, AssistantMessage) or (isinstance(entry, ToolResult) and entry.reply_missing)
        for entry in entries
    )


class _Function(msgspec.Struct, frozen=True):
    """A `function` object of OpenAI's API: a tool's definition in `tools`, or a call in `tool_calls`."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    arguments: Any = ""


class _ToolEntry(msgspec.Struct, frozen=True):
    function: _Function | None = None
    id: str | None = None


class _Message(msgspec.Struct, frozen=True):
    role: str
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[_ToolEntry] | None = None
    tool_call_id: str | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(str(part["text"]) for part in self.content or () if part.get("text"))


class _StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool | None = None


class _JsonSchema(msgspec.Struct, frozen=True):
    schema: dict[str, Any] | None = None


class _ResponseFormat(msgspec.Struct, frozen=True):
    type: str = "text"
    json_schema: _JsonSchema | None = None


class _Body(msgspec.Struct, frozen=True):
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    model: str = "understudy"
    tools: list[_ToolEntry] | None = None
    tool_choice: str | _ToolEntry | None = None
    response_format: _ResponseFormat | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None


def read_request(payload: bytes) -> ChatRequest:
    """Parse the body of a chat completion request. Raises BadRequest if it is invalid."""
    try:
        body = msgspec.json.decode(payload, type=_Body)
    except msgspec.DecodeError as error:
        raise BadRequest(f"the body is not a chat completion request: {error}") from error
    choice = body.tool_choice
    named = choice.function.name if isinstance(choice, _ToolEntry) and choice.function is not None else None
    offered = [] if choice == "none" else [entry.function for entry in body.tools or () if entry.function is not None]
    conversation = msgspec.json.encode([body.model, body.messages, body.tools], order="sorted")
    return ChatRequest(
        model=body.model,
        entries=tuple(_entries(body.messages)),
        system="\n".join(message.text for message in body.messages if message.role in ("system", "developer")),
        tools=tuple(Tool(f.name, f.description or "", f.parameters or {}) for f in offered if named in (None, f.name)),
        tool_required=named is not None or choice in ("required", "any"),
        schema=_answer_schema(body.response_format),
        stream=bool(body.stream),
        include_usage=body.stream_options is not None and bool(body.stream_options.include_usage),
        digest=hashlib.sha256(conversation).hexdigest()[:24],
        size=len(conversation),
    )


def _answer_schema(response_format: _ResponseFormat | None) -> dict[str, Any] | None:
    if response_format is None or response_format.type not in ("json_schema", "json_object"):
        return None
    return (response_format.json_schema and response_format.json_schema.schema) or {"type": "object"}


def _entries(messages: list[_Message]) -> Iterator[Entry]:
    is_smolagents = any(message.role == "user" and "New task:\n" in message.text for message in messages)
    calls_by_id: dict[str | None, ToolCall] = {}
    previous: Entry | None = None
    for message in messages:
        for entry in _entries_of_message(message, calls_by_id, is_smolagents, previous):
            previous = entry
            yield entry


def _entries_of_message(
    message: _Message, calls_by_id: dict[str | None, ToolCall], is_smolagents: bool, previous: Entry | None
) -> Iterable[Entry]:
    text = message.text
    match message.role:
        case "assistant":
            calls = _calls(message.tool_calls or ()) or (_calls_in_text(text) if is_smolagents else ())
            calls_by_id.update({call.call_id: call for call in calls})
            return [AssistantMessage(text.partition("Calling tools:\n")[0].strip() if is_smolagents else text, calls)]
        case "tool" | "function":
            call = calls_by_id.get(message.tool_call_id, ToolCall(message.name or "tool", ""))
            return [ToolResult(call.name, text, call.arguments)]
        case "user":
            return _entries_in_text(text, previous) if is_smolagents else [UserMessage(text)]
        case _:
            return []


def _calls(entries: Iterable[_ToolEntry]) -> tuple[ToolCall, ...]:
    functions = [(entry.id or "", entry.function) for entry in entries if entry.function is not None]
    return tuple(
        ToolCall(f.name, f.arguments if isinstance(f.arguments, str) else json.dumps(f.arguments), call_id)
        for call_id, f in functions
    )


def _calls_in_text(text: str) -> tuple[ToolCall, ...]:
    """Return the tool calls in an assistant message of smolagents, which are a Python list after the message's text."""
    try:
        written = ast.literal_eval(text.partition("Calling tools:\n")[2].strip() or "[]")
        return _calls(msgspec.convert(written, list[_ToolEntry]))
    except (ValueError, SyntaxError):  # msgspec's errors are ValueErrors
        return ()


def _entries_in_text(text: str, previous: Entry | None) -> Iterator[Entry]:
    """Split a user message of smolagents, which joins the task, observations and errors into one text."""
    text = re.sub(r"(?m)^(Call id: .*)\nError:\n", r"\1, Error:\n", text)
    for part in re.split(r"(?m)^(?=New task:\n|Observation:\n|(?:Call id: .*, )?Error:\n)", text):
        head, _, rest = part.partition("\n")
        if head == "New task:":
            entry: Entry = UserMessage(rest.strip())
        elif head in ("Observation:", "Error:") or head.startswith("Call id: "):
            result_text = part.partition("\nNow let's retry: ")[0] if "Error:\n" in part else rest
            entry = _result_in_text(result_text.strip(), previous, call_missing=head == "Error:")
        elif part.strip() and part.strip() != "Now proceed and carry out this plan.":
            entry = UserMessage(part.strip())
        else:
            continue
        previous = entry
        yield entry


def _result_in_text(text: str, previous: Entry | None, *, call_missing: bool) -> ToolResult:
    if not isinstance(previous, AssistantMessage):
        return ToolResult("tool", text, call_missing=call_missing, reply_missing=call_missing)
    calls = previous.calls
    names = ", ".join(call.name for call in calls) or "tool"
    arguments = previous.text if not calls else calls[0].arguments if len(calls) == 1 else ""
    return ToolResult(names, text, arguments, call_missing)
