"""The body of a chat completion request, as far as the understudy looks at it. Other keys are accepted and ignored.

It knows nothing of what the parts mean; `conversation` gives them their meaning.
"""

from typing import Annotated, Any

import msgspec


class Function(msgspec.Struct, frozen=True):
    """A tool's description (in `tools`), or a call of it (in `tool_calls`)."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    arguments: Any = ""


class ToolEntry(msgspec.Struct, frozen=True):
    function: Function | None = None
    id: str | None = None


class Message(msgspec.Struct, frozen=True):
    role: str
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[ToolEntry] | None = None
    tool_call_id: str | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        """Content is a string, or a list of parts of which those with text count."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(str(part["text"]) for part in self.content or () if part.get("text"))


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool | None = None


class JsonSchema(msgspec.Struct, frozen=True):
    schema: dict[str, Any] | None = None


class ResponseFormat(msgspec.Struct, frozen=True):
    type: str = "text"
    json_schema: JsonSchema | None = None


class Body(msgspec.Struct, frozen=True):
    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    model: str = "understudy"
    tools: list[ToolEntry] | None = None
    tool_choice: str | ToolEntry | None = None
    response_format: ResponseFormat | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
