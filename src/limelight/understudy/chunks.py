"""A reply on the wire: chunks of a stream, or one whole completion, as OpenAI's API has them.

Pure, and without a clock: `created` is always the same, so that a request has one answer, byte for byte. The server
calls it for every reply.
"""

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from limelight.understudy.conversation import Request
from limelight.understudy.reply import AnyPiece, CallPiece, CutPiece, FaultPiece, ReasoningPiece, Reply, TextPiece

CREATED = 1_700_000_000
LETTERS_PER_TOKEN = 4


def opening(request: Request) -> dict[str, Any]:
    """The first chunk says who speaks."""
    return _chunk(request, {"role": "assistant", "content": ""})


def chunk_of(piece: AnyPiece, request: Request) -> dict[str, Any] | None:
    """The chunk of a piece; none for a cut, which is no words."""
    match piece:
        case TextPiece():
            return _chunk(request, {"content": piece.text})
        case ReasoningPiece():
            return _chunk(request, {"reasoning_content": piece.text})
        case CallPiece():
            return _chunk(request, {"tool_calls": [_call_delta(piece)]})
        case FaultPiece():
            return error_body(piece.message, piece.type, piece.code)
        case CutPiece():
            return None
        case _:
            assert_never(piece)


def closing(reply: Reply, request: Request) -> Iterator[dict[str, Any]]:
    """The last chunks: why it ended and, if the client asked for it, what was used."""
    yield _chunk(request, {}, reply.ends_with)
    if request.include_usage:
        yield {**_chunk(request, {}), "choices": [], "usage": usage_of(reply, request)}


def completion(reply: Reply, request: Request) -> dict[str, Any]:
    """The whole reply at once."""
    text = "".join(piece.text for piece in reply.pieces if isinstance(piece, TextPiece))
    reasoning = "".join(piece.text for piece in reply.pieces if isinstance(piece, ReasoningPiece))
    calls = _whole_calls(piece for piece in reply.pieces if isinstance(piece, CallPiece))
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    return {
        **_head(request, "chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reply.ends_with}],
        "usage": usage_of(reply, request),
    }


def usage_of(reply: Reply, request: Request) -> dict[str, int]:
    """What the script says, or a guess that is the same for the same request."""
    read = reply.usage.input if reply.usage else request.size // LETTERS_PER_TOKEN
    written = reply.usage.output if reply.usage else len(reply.pieces)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def error_body(message: str, type_: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type_, "param": None, "code": code}}


def _head(request: Request, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{request.mark}", "object": kind, "created": CREATED, "model": request.model}


def _chunk(request: Request, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {**_head(request, "chat.completion.chunk"), "choices": [choice]}


def _call_delta(piece: CallPiece) -> dict[str, Any]:
    if not piece.name:
        return {"index": piece.index, "function": {"arguments": piece.arguments}}
    function = {"name": piece.name, "arguments": piece.arguments}
    return {"index": piece.index, "id": piece.call_id, "type": "function", "function": function}


def _whole_calls(pieces: Iterable[CallPiece]) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for piece in pieces:
        if piece.name:
            function = {"name": piece.name, "arguments": piece.arguments}
            calls.append({"id": piece.call_id, "type": "function", "function": function})
        else:
            calls[piece.index]["function"]["arguments"] += piece.arguments
    return calls
