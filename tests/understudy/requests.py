"""Requests and tools for tests of the understudy, and how a reply reads once it is put together again."""

import json
from typing import Any, NamedTuple

from limelight.understudy.conversation import Request, read_request
from limelight.understudy.reply import CallPiece, ReasoningPiece, Reply, TextPiece

STRING = {"type": "string"}
NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}


def tool(name: str, description: str = "", required: list[str] | None = None, /, **fields: Any) -> dict[str, Any]:
    """A tool as it stands in a request; all fields are required unless said otherwise."""
    wanted = list(fields) if required is None else required
    parameters = {"type": "object", "properties": fields, "required": wanted}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def request_of(*messages: dict[str, Any] | str, **body: Any) -> Request:
    told = [user(message) if isinstance(message, str) else message for message in messages]
    return read_request(json.dumps({"model": "any", "messages": told, **body}).encode())


class Read(NamedTuple):
    text: str
    reasoning: str
    calls: list[tuple[str, str]]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def arguments(self, at: int = 0) -> Any:
        return json.loads(self.calls[at][1])


def read(reply: Reply) -> Read:
    calls: list[tuple[str, str]] = []
    for piece in reply.pieces:
        if isinstance(piece, CallPiece):
            if piece.name:
                calls.append((piece.name, ""))
            name, arguments = calls[piece.index]
            calls[piece.index] = name, arguments + piece.arguments
    text = "".join(piece.text for piece in reply.pieces if isinstance(piece, TextPiece))
    reasoning = "".join(piece.text for piece in reply.pieces if isinstance(piece, ReasoningPiece))
    return Read(text, reasoning, calls)


def answered(said: Read, *results: str) -> list[dict[str, Any]]:
    """The messages that a framework adds after it has run the calls of a reply."""
    calls = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(said.calls)
    ]
    tools = [{"role": "tool", "tool_call_id": f"c{at}", "content": result} for at, result in enumerate(results)]
    return [{"role": "assistant", "content": said.text, "tool_calls": calls}, *tools]
