"""Builds requests and tools for tests of the understudy, and reassembles replies."""

import json
from typing import Any, NamedTuple

from limelight.understudy.chat_requests import ChatRequest, read_request
from limelight.understudy.replies import CallPiece, ReasoningPiece, Reply, TextPiece

STRING = {"type": "string"}
NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}


def tool(name: str, description: str = "", required: list[str] | None = None, /, **fields: Any) -> dict[str, Any]:
    """A tool definition; all fields are required by default."""
    parameters = {"type": "object", "properties": fields, "required": list(fields) if required is None else required}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def build_request(*messages: dict[str, Any] | str, **body: Any) -> ChatRequest:
    """A request with these messages; a text is a user message."""
    all_messages = [user(message) if isinstance(message, str) else message for message in messages]
    return read_request(json.dumps({"model": "any", "messages": all_messages, **body}).encode())


class ReadReply(NamedTuple):
    """A reply, reassembled from its pieces."""

    text: str
    reasoning: str
    calls: list[tuple[str, str]]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def arguments(self, index: int = 0) -> Any:
        return json.loads(self.calls[index][1])


def read_reply(reply: Reply) -> ReadReply:
    calls: list[tuple[str, str]] = []
    for piece in reply.pieces:
        if isinstance(piece, CallPiece):
            if piece.name:
                calls.append((piece.name, ""))
            name, arguments = calls[piece.index]
            calls[piece.index] = name, arguments + piece.arguments
    text = "".join(piece.text for piece in reply.pieces if isinstance(piece, TextPiece))
    reasoning = "".join(piece.text for piece in reply.pieces if isinstance(piece, ReasoningPiece))
    return ReadReply(text, reasoning, calls)


def tool_messages(reply: ReadReply, *results: str) -> list[dict[str, Any]]:
    """The messages that a framework appends after it has run the calls of a reply."""
    calls = [
        {"id": f"c{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(reply.calls)
    ]
    outputs = [{"role": "tool", "tool_call_id": f"c{index}", "content": result} for index, result in enumerate(results)]
    return [{"role": "assistant", "content": reply.text, "tool_calls": calls}, *outputs]
