"""Converts messages to and from the formats of other libraries: OpenAI, LangChain and pydantic-ai.

For function agents, which get messages and call a model or a framework themselves, and for sources. A library is
imported when a function needs it. Every conversion to another format first repairs what models refuse: each tool call
gets an id, arguments that are an object, and a result.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from limelight.grammar import parse_args
from limelight.messages import IMAGE_NAME, InlineFile, Message, files_of, part_of
from limelight.sources.history import normalized

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage, BaseMessage
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponsePart, UserContent

FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")
"""Names of the message fields that OpenAI's chat completions API accepts."""


def to_openai(messages: Sequence[Message]) -> "list[ChatCompletionMessageParam]":
    """Convert messages for the chat completions API of OpenAI, and of servers that are compatible with it.

    Messages already have this format; fields that the API does not know are removed.
    """
    converted: list[Any] = [_openai_fields(message) for message in normalized(messages)]
    return converted


def _openai_fields(message: Message) -> dict[str, Any]:
    fields = {key: message[key] for key in FIELDS if message.get(key) is not None}
    if message.role == "tool":
        fields.pop("name", None)
    return {**fields, "content": message.get("content") or ""}


def to_langchain(messages: Sequence[Message]) -> "list[AnyMessage]":
    """Convert messages to LangChain's, for a chat model or a graph. Needs langchain-core."""
    from langchain_core.messages import convert_to_messages

    converted: list[Any] = convert_to_messages([_langchain_fields(message) for message in normalized(messages)])
    return converted


def _langchain_fields(message: Message) -> dict[str, Any]:
    fields = _openai_fields(message)
    if message.role == "tool":
        fields |= {key: message[key] for key in ("name", "status") if isinstance(message.get(key), str)}
    return fields


def from_langchain(messages: "Sequence[BaseMessage]") -> list[Message]:
    """Convert LangChain messages, such as those in a graph's state, to Limelight's. Needs langchain-core."""
    from langchain_core.messages import convert_to_openai_messages

    converted: Any = convert_to_openai_messages(list(messages))
    return [Message(fields) for fields in converted]


def to_pydantic_ai(messages: Sequence[Message]) -> "list[ModelMessage]":
    """Convert messages to a message history of pydantic-ai. Needs pydantic-ai-slim.

    The newest question is not part of a history: `agent.run(pydantic_ai_prompt(messages[-1]), message_history=
    to_pydantic_ai(messages[:-1]))`. System messages become system prompts in their place.
    """
    from pydantic_ai.messages import ModelRequest, ModelResponse

    history: list[ModelMessage] = []
    requests: list[ModelRequestPart] = []
    names: dict[str, str] = {}
    for message in normalized(messages):
        if message.role != "assistant":
            requests.append(_request_part(message, names))
            continue
        if requests:
            history.append(ModelRequest(parts=requests))
            requests = []
        names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
        if parts := list(_response_parts(message)):
            history.append(ModelResponse(parts=parts))
    return [*history, ModelRequest(parts=requests)] if requests else history


def _request_part(message: Message, names: dict[str, str]) -> "ModelRequestPart":
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    if message.role == "tool":
        call_id = str(message["tool_call_id"])
        outcome = "failed" if message.get("status") == "error" else "success"
        return ToolReturnPart(names.get(call_id, "unknown"), message.text, call_id, outcome=outcome)
    return SystemPromptPart(message.text) if message.role == "system" else UserPromptPart(pydantic_ai_prompt(message))


def _response_parts(message: Message) -> "Iterator[ModelResponsePart]":
    from pydantic_ai.messages import TextPart, ToolCallPart

    if message.text:
        yield TextPart(message.text)
    for call in message.get("tool_calls") or ():
        yield ToolCallPart(call["function"]["name"], parse_args(call["function"]["arguments"]), call["id"])


def pydantic_ai_prompt(message: Message) -> "str | list[UserContent]":
    """Convert a user's message to a pydantic-ai prompt with its images and files. Needs pydantic-ai-slim."""
    files = files_of(message)
    return [message.text, *map(_pydantic_ai_file, files)] if files else message.text


def _pydantic_ai_file(file: InlineFile) -> "UserContent":
    from pydantic_ai.messages import BinaryContent, DocumentUrl, ImageUrl

    if file.data is not None:
        return BinaryContent(file.data, media_type=file.media_type)
    return ImageUrl(file.url) if file.media_type.startswith("image/") else DocumentUrl(file.url)


def from_pydantic_ai(messages: "Iterable[ModelMessage]") -> list[Message]:
    """Convert a pydantic-ai message history, such as `result.all_messages()`, to messages. Needs pydantic-ai-slim.

    The reasoning of the model and the agent's instructions are left out.
    """
    from pydantic_ai.messages import ModelResponse

    converted: list[Message] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            converted += _from_response(message.parts)
        else:
            for part in message.parts:
                converted += _from_request_part(part)
    return converted


def _from_response(parts: "Sequence[ModelResponsePart]") -> Iterator[Message]:
    from pydantic_ai.messages import TextPart, ToolCallPart

    text = "".join(part.content for part in parts if isinstance(part, TextPart))
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
        }
        for part in parts
        if isinstance(part, ToolCallPart)
    ]
    if text or calls:
        yield Message(role="assistant", content=text, **({"tool_calls": calls} if calls else {}))


def _from_request_part(part: "ModelRequestPart") -> Iterator[Message]:
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    match part:
        case SystemPromptPart():
            yield Message(role="system", content=part.content)
        case UserPromptPart():
            yield Message(role="user", content=_user_content(part.content))
        case ToolReturnPart():
            status = {} if part.outcome == "success" else {"status": "error"}
            content = part.content if isinstance(part.content, str) else part.model_response_str()
            yield Message(role="tool", tool_call_id=part.tool_call_id, name=part.tool_name, content=content, **status)
        case _:  # prompts to retry, and changes of instructions and tools
            return


def _user_content(content: "str | Sequence[UserContent]") -> str | list[dict[str, Any]]:
    from pydantic_ai.messages import BinaryContent, FileUrl, TextContent

    if isinstance(content, str):
        return content
    parts: list[dict[str, Any]] = []
    for item in content:
        match item:
            case str():
                parts.append({"type": "text", "text": item})
            case TextContent():
                parts.append({"type": "text", "text": item.content})
            case BinaryContent():
                parts.append(part_of(InlineFile(_file_name(item.media_type), item.media_type, item.data)))
            case FileUrl():
                parts.append(part_of(InlineFile(_file_name(item.media_type), item.media_type, None, item.url)))
            case _:  # marks for caches, and files that a provider stores
                continue
    return parts


def _file_name(media_type: str) -> str:
    return IMAGE_NAME if media_type.startswith("image/") else "file"
