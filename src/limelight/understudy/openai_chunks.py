"""Encodes the offline model's replies for OpenAI's API: as chunks of a stream, or as one complete chat completion.

Pure. `created` is a constant, so that equal requests get byte-identical responses.
"""

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from limelight.understudy.chat_requests import ChatRequest
from limelight.understudy.replies import (
    AnyPiece,
    CallPiece,
    DisconnectPiece,
    ErrorPiece,
    ReasoningPiece,
    Reply,
    TextPiece,
)

CREATED = 1_700_000_000
CHARACTERS_PER_TOKEN = 4


def first_chunk(request: ChatRequest) -> dict[str, Any]:
    """Return the first chunk of a stream, which contains only the role."""
    return _chunk(request, {"role": "assistant", "content": ""})


def piece_chunk(piece: AnyPiece, request: ChatRequest) -> dict[str, Any] | None:
    """Return the stream chunk for a piece of a reply; None for a DisconnectPiece, which sends nothing."""
    match piece:
        case TextPiece():
            return _chunk(request, {"content": piece.text})
        case ReasoningPiece():
            return _chunk(request, {"reasoning_content": piece.text})
        case CallPiece():
            return _chunk(request, {"tool_calls": [_call_delta(piece)]})
        case ErrorPiece():
            return error_body(piece.message, piece.type, piece.code)
        case DisconnectPiece():
            return None
        case _:
            assert_never(piece)


def last_chunks(reply: Reply, request: ChatRequest) -> Iterator[dict[str, Any]]:
    """Yield the last chunks of a stream: the finish reason and, if the client asked for it, the token usage."""
    yield _chunk(request, {}, reply.finish_reason)
    if request.include_usage:
        yield {**_chunk(request, {}), "choices": [], "usage": _usage(reply, request)}


def completion(reply: Reply, request: ChatRequest) -> dict[str, Any]:
    """Return the reply as one complete chat completion."""
    text = "".join(piece.text for piece in reply.pieces if isinstance(piece, TextPiece))
    reasoning = "".join(piece.text for piece in reply.pieces if isinstance(piece, ReasoningPiece))
    calls = _complete_calls(piece for piece in reply.pieces if isinstance(piece, CallPiece))
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    return {
        **_envelope(request, "chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}],
        "usage": _usage(reply, request),
    }


def _usage(reply: Reply, request: ChatRequest) -> dict[str, int]:
    """Return the token usage from the script, or else a deterministic estimate."""
    prompt = reply.usage.input if reply.usage else request.size // CHARACTERS_PER_TOKEN
    completion = reply.usage.output if reply.usage else len(reply.pieces)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def error_body(message: str, type_: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type_, "param": None, "code": code}}


def _envelope(request: ChatRequest, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{request.digest}", "object": kind, "created": CREATED, "model": request.model}


def _chunk(request: ChatRequest, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {**_envelope(request, "chat.completion.chunk"), "choices": [choice]}


def _call_delta(piece: CallPiece) -> dict[str, Any]:
    if not piece.name:
        return {"index": piece.index, "function": {"arguments": piece.arguments}}
    function = {"name": piece.name, "arguments": piece.arguments}
    return {"index": piece.index, "id": piece.call_id, "type": "function", "function": function}


def _complete_calls(pieces: Iterable[CallPiece]) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for piece in pieces:
        if piece.name:
            function = {"name": piece.name, "arguments": piece.arguments}
            calls.append({"id": piece.call_id, "type": "function", "function": function})
        else:
            calls[piece.index]["function"]["arguments"] += piece.arguments
    return calls
